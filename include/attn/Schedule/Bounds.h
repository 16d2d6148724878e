//===- Bounds.h - What no schedule can beat ---------------------*- C++ -*-===//
///
/// Lower bounds on the words that move between a fast memory of M words and
/// slow memory, with constants, for one head with V visible pairs (all N² of
/// them without a mask):
///
///   compulsory    read Q, K, V and write O; backward read Q, K, V, dO and
///                 write dQ, dK, dV
///   large cache   V·d²/(M + 4d²) − M.  A segment of M transfers can finish at
///                 most M + (X·Y ≤ M²/d²) scores, from X rows of Q and Y of K;
///                 Hong and Kung's argument with the constants of Saha and Ye's
///                 Lemma 3.3 kept
///   small cache   (2d/√M − 1)·V − 2M.  Writing every score when it is first
///                 computed makes any attention a matrix product, which needs
///                 2V·d/√M − 2M (Smith, Lowery, Langou, van de Geijn)
///
/// All three hold with standard multiplication, which makes every term of every
/// score.  With fast multiplication only the order of the large-cache bound is
/// proven (Saha, Ye, Theorem 4.8).  They hold backward too, which computes the
/// scores again; the greatest counts.
///
/// The *regime* is the papers' convention: M = shared memory of a block in
/// elements, d = the larger head dimension, large cache iff M >= d².  H100 in
/// bf16: M = 116224, so d = 320 is large (102400) and d = 512 (262144) small.
///
/// Source: Saha, Ye, arXiv 2402.07443, with explicit constants derived from the
/// proofs there.  They speak of one processor with a cache of its own, as one
/// block on one multiprocessor is: the bound is one on L2 traffic.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_BOUNDS_H
#define ATTN_SCHEDULE_BOUNDS_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"

namespace attn {

enum class Regime { largeCache, smallCache };
/// `large_cache`, `small_cache`.
std::string_view name(Regime regime);

/// M: elements of the input type that a block's shared memory holds.
int64_t cacheWords(const Problem &problem, const Machine &machine);

Regime regime(const Problem &problem, const Machine &machine);

struct Bounds {
  double inputWords = 0; ///< of the compulsory ones, those that are read
  double compulsoryWords = 0, largeCacheWords = 0, smallCacheWords = 0;
  double words = 0; ///< the greatest
};

/// For the whole problem, all heads.
Bounds bounds(const Problem &problem, double cacheWords);

/// The greatest bound in bytes of the input type.
///
/// At every level the fast memory is what lies before it:
///
///   hbm    L2 and all memory of all multiprocessors, which share one
///          processor's problem
///   l2     the shared memory of a block, by the papers' convention
///   smem   the registers of a multiprocessor, which hold what tensor cores
///          accumulate
///
/// Operands of products come through shared memory.  Results need not: kernels
/// store them, and add to sums, from registers.  So of the compulsory words
/// only inputs count there.  The other two bounds hold as they are, since they
/// count what the scores need.
struct LevelBounds {
  int64_t hbmBytes = 0, l2Bytes = 0, smemBytes = 0;
};
LevelBounds levelBounds(const Problem &problem, const Machine &machine);
/// That of l2.
int64_t lowerBoundBytes(const Problem &problem, const Machine &machine);

} // namespace attn

#endif // ATTN_SCHEDULE_BOUNDS_H
