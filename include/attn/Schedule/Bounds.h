//===- Bounds.h - What no schedule can beat ---------------------*- C++ -*-===//
///
/// Lower bounds on the words that move between a fast memory of M words, empty
/// at first and registers included, and slow memory, with constants.  V are the
/// visible pairs of all heads, d the columns of Q and K and e those of V:
///
///   compulsory    read Q, K, V and write O; backward read Q, K, V, dO and
///                 write dQ, dK, dV
///   large cache   forward min(V d (d + e) / M, V (1 - M / 4d(d + e))),
///   backward
///                 min(V (d + e)(2d + e) / M, V (1 - M / 4(d + e)(2d + e))) for
///                 e <= d: between M transfers so many pairs can be worked out
///                 from the rows at hand, and every other pair costs a word of
///                 its own.  Of a mask or a pattern that shows a query few keys
///                 those rows have fewer pairs, and the bound is higher
///   small cache   forward (2 (d + e)/√M − 2) V − 2M, backward
///                 (2 (3d + 2e)/√M − 4) V − 2M, where M <= d², backward also
///                 M <= e²: attention that writes scores and reads weights is a
///                 union of matrix products
///
/// All hold with standard multiplication, which makes every term of every
/// score, for any schedule, also one that computes scores again; docs/bounds.md
/// has the proofs.  The greatest counts.  With P processors that have M words
/// each the sum of what they move has the same bounds, less 2M for each instead
/// of one in the last.
///
/// The *published* bound speaks of non-zeros: the worst instance that has so
/// many of them.  It is an order without a constant, and what it divides small
/// from large is d²/s for a share s of visible pairs.  Blocks of b queries are
/// not the worst instance: a tile needs room for b rows only, and spilling pays
/// below M* = min(0.69 d², 2bd).
///
/// The *regime* is the papers' convention: M = shared memory of a block in
/// elements, d = the larger head dimension, large cache iff M >= d².  H100 in
/// bf16: M = 116224, so d = 320 is large (102400) and d = 512 (262144) small.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_BOUNDS_H
#define ATTN_SCHEDULE_BOUNDS_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"

namespace attn {

enum class Regime { largeCache, smallCache };
/// `large_cache`, `small_cache`.
std::string_view name(Regime regime);

/// The papers' M: elements of the input type that a block's shared memory
/// holds.
int64_t cacheWords(const Problem &problem, const Machine &machine);
/// That of the bounds: what shared memory and registers of so many
/// multiprocessors hold.
double fastWords(const Problem &problem, const Machine &machine,
                 int64_t multiprocessors = 1);

Regime regime(const Problem &problem, const Machine &machine);

struct Bounds {
  double inputWords = 0; ///< of the compulsory ones, those that are read
  double compulsoryWords = 0, largeCacheWords = 0;
  double smallCacheWords = 0; ///< 0: M is too large
  double words = 0;           ///< the greatest
};

/// For the whole problem, all heads, on so many processors with a fast memory
/// each.
Bounds bounds(const Problem &problem, double cacheWords,
              int64_t processors = 1);

/// The published bound in non-zeros, of the order of so many words, and the M
/// at which its two sides are equal.
struct PublishedBound {
  double words = 0, dividingWords = 0;
};
PublishedBound publishedBound(const Problem &problem, double cacheWords);

/// M*: with less fast memory a spill of P moves fewer words than `flash`.
double dividingWords(const Problem &problem);

/// The greatest bound in bytes of the input type.
///
/// At every level the fast memory is what lies before it:
///
///   hbm    L2 and all memory of all multiprocessors, which share one
///          processor's problem
///   l2     shared memory and registers of a multiprocessor, or of those that
///          load together
///   smem   the registers of a multiprocessor
///
/// Operands of products come through shared memory.  Results and what waits
/// need not: kernels move them between registers and L2.  So there only inputs
/// count.
struct LevelBounds {
  int64_t hbmBytes = 0, l2Bytes = 0, smemBytes = 0;
};
LevelBounds levelBounds(const Problem &problem, const Machine &machine,
                        int64_t together = 1);
/// That of l2.
int64_t lowerBoundBytes(const Problem &problem, const Machine &machine);

} // namespace attn

#endif // ATTN_SCHEDULE_BOUNDS_H
