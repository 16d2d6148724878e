//===- Problem.h - One attention, as numbers --------------------*- C++ -*-===//
///
/// A `Problem` says what is to be computed and nothing about how:
///
///   O[b,h,i,:] = softmax over the visible j of (Q[b,h,i,:]·K[b,g,j,:])
///   V[b,g,j,:]
///
/// with g the key head that serves query head h; or, backward, the gradients of
/// Q, K and V from that of O.  What a mask shows is a value, `Visible`: the
/// keys that a query sees are one run, and both of its ends rise with the
/// query.  A `Pattern` hides blocks beside it.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PROBLEM_H
#define ATTN_SCHEDULE_PROBLEM_H

#include "attn/Schedule/Bands.h"
#include "attn/Schedule/Pattern.h"
#include "attn/Schedule/Ragged.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

enum class DataType { bf16, f16, f32, f8e4m3 };
inline constexpr DataType kDataTypes[] = {DataType::bf16, DataType::f16,
                                          DataType::f32, DataType::f8e4m3};
std::string_view name(DataType type);
std::optional<DataType> parseDataType(std::string_view text);
int64_t bytesOf(DataType type);

/// How factors of f32 are multiplied.  Tensor cores take f32 with ten bits of
/// fraction only, tf32.
///
///   tf32x3  no less exact than three products of tf32: every factor is the
///           sum of two numbers of tf32, 22 bits, and a product three of
///           theirs; or on wgmma of two numbers of f16 times a power of two, 22
///           bits, and three, or of three of bf16, 24 bits, and six.  Sums are
///           rounded as in f32
///   tf32    factors are rounded to tf32
///
/// One is only priced, no kernel has it, and of 16 bits:
///
///   f8_qk   Q and K are f8e4m3, and V is of the type: Q·K runs at the rate of
///           8 bits, P·V at that of 16
enum class Precision { tf32x3, tf32, f8_qk };
std::string_view name(Precision precision);
/// One that kernels have.
std::optional<Precision> parsePrecision(std::string_view text);

/// What is computed: O, or the gradients of Q, K and V.
enum class Direction { forward, backward };
std::string_view name(Direction direction);
std::optional<Direction> parseDirection(std::string_view text);

enum class MaskKind { none, causal, causalBottomRight, window, prefix };

/// A mask by name, for any numbers of queries and keys.  What kernels and costs
/// ask of it holds for all of them; the rest is asked of `Visible`.
struct Mask {
  MaskKind kind = MaskKind::none;
  int64_t left = 0, right = 0; ///< window only, both >= 0
  int64_t keys = 0;            ///< prefix only, >= 0

  bool operator==(const Mask &other) const;

  /// Whether every query sees every key.
  bool isOpen() const;
  /// Whether keys before the first that a query sees may be hidden, and keys
  /// behind the last.
  bool hidesBefore() const;
  bool hidesBehind() const;
  /// Whether there are keys that every query sees, how many is in `Visible`.
  bool opensKeys() const;
  /// Whether there may be keys that no query sees.
  bool mayHideKeys() const;
  /// Whether what a query sees ends at its own number, so that the diagonal
  /// crosses tiles of keys at their corners.
  bool endsAtCorners() const;
};
/// `none`, `causal`, `causal_bottom_right`, `window<L, R>`, `prefix<P>`.
std::string str(const Mask &mask);
std::optional<Mask> parseMask(std::string_view text);
/// The mask of that name with these numbers; nothing if there is none.
std::optional<Mask> maskOf(std::string_view name,
                           const std::vector<int64_t> &numbers);
/// The numbers that a mask is written with, those behind its name.
std::vector<int64_t> numbersOf(const Mask &mask);
/// All masks as they are written, for messages.
inline constexpr std::string_view kMaskNames =
    "none, causal, causal_bottom_right, window<L, R>, prefix<P>";
/// The words that they begin with.
std::vector<std::string_view> maskKeywords();
/// A sentence when the numbers of a mask are wrong.
std::optional<std::string> check(const Mask &mask);

/// The most bytes that rows can be aligned to: the largest piece that a copy
/// moves at once.
inline constexpr int64_t kMaxAlignment = 16;

/// What kernels do for a region, for every score: instructions of a lane, among
/// them those of the unit for exponentials and reads of arrays; those of
/// gradients besides, 0 where these pass as they are; and registers of a lane
/// that live as long as a tile.  It is counted from the region.
struct RegionCost {
  double issue = 0, functions = 0, reads = 0, slopes = 0;
  int64_t held = 0;

  bool operator==(const RegionCost &other) const;
  RegionCost operator+(const RegionCost &other) const;
  /// Of a share of the scores; registers are those of all.
  RegionCost operator*(double share) const;
};

/// What clauses make of scores (Clauses.h): kernels have it or not.
struct ScoreClauses {
  bool sees = false;  ///< a region tells which keys a query sees
  bool score = false; ///< a region tells what becomes of a score
  bool sinks = false; ///< a head has a score without a value
  /// Backward, of what the score reads and somebody asks gradients of: elements
  /// that a pair adds to, and sums of which each head of a batch entry has one.
  int64_t pairGradients = 0, headGradients = 0;
  bool sinkGradients = false; ///< and such a sum of the sinks
  RegionCost seesCost = {}, scoreCost = {};

  bool any() const { return sees || score || sinks; }
  /// What a head of a batch entry leaves a sum of.
  int64_t headSums() const { return headGradients + (sinkGradients ? 1 : 0); }
  bool anyGradients() const { return pairGradients > 0 || headSums() > 0; }
  bool operator==(const ScoreClauses &other) const;
};
/// `sees, score, sinks, gradients of captures`, those that are there.
std::string str(const ScoreClauses &clauses);

/// Where rows lie, beside strides, as far as it is known on the device only.
///
/// Batch entries may use so many of their keys each: `keys` is then the most,
/// and what a mask shows an entry follows from its own number.
///
/// Keys may lie in pages of so many rows, K and V [pages, heads, rows, head
/// dimension].  A table names the pages of each batch entry, in order, and
/// `keys` is what they hold.
struct Placement {
  /// Bits of the numbers of keys that are used, 32 or 64; 0: all are.
  int64_t usedKeysBits = 0;
  int64_t pageRows = 0; ///< 0: there are no pages

  bool usesSome() const { return usedKeysBits != 0; }
  bool isPaged() const { return pageRows != 0; }
  bool any() const { return usesSome() || isPaged(); }
  bool operator==(const Placement &other) const {
    return usedKeysBits == other.usedKeysBits && pageRows == other.pageRows;
  }
};
/// Pages have a multiple of so many rows.
inline constexpr int64_t kPageMultiple = 8;
/// `lengths(k)`, `pages of 16 keys with lengths(k)`, what is there.
std::string str(const Placement &place);

/// Which of Q, K and V come with a scale that is known on the device only, of
/// f32, one for each batch entry and key head or fewer:
///
///   S = scale sq sk Q K^T     O = sv P V     LSE of these S.
///
/// Scales of Q and K are not negative, so that the largest product is the
/// heaviest.
struct OperandScales {
  bool q = false, k = false, v = false;

  bool any() const { return q || k || v; }
  bool operator==(const OperandScales &other) const {
    return q == other.q && k == other.k && v == other.v;
  }
};
/// `scales(q, k, v)`, those that are there.
std::string str(const OperandScales &scales);

struct Problem {
  DataType dtype = DataType::bf16;
  /// Of f32; other types are multiplied as they are.
  Precision precision = Precision::tf32x3;
  int64_t batch = 1, heads = 1, kvHeads = 1;
  int64_t queries = 0, keys = 0;
  /// Of tiles that have rows of several query heads (SharedTiles.h): row r is
  /// one of query r / rowHeads.  What is asked for has rows of one.
  int64_t rowHeads = 1;
  int64_t headDim = 0, headDimV = 0;
  Mask mask;
  /// Visible are only pairs that both show.
  std::optional<Pattern> pattern;
  /// Or those of a union, if a region shows one; what the mask hides of it is
  /// left out already.
  Bands bands;
  ScoreClauses clauses;
  /// Where rows lie, if sequences lie one behind the other.
  std::optional<Ragged> ragged;
  Placement place;
  OperandScales scales;
  /// Of K and V, if it is not that of Q: those of a cache have 8 bits.
  std::optional<DataType> kvDtype;
  /// Forward: the log-sum-exp of every row is a result too.
  bool lse = true;
  /// Forward: and so is its low word, what it lacks as an f32, of which both
  /// are the sum; backward: that comes in.
  bool lseLow = false;
  /// Bytes that divide the address of every row of Q, K, V and O, and of their
  /// gradients.
  int64_t alignment = kMaxAlignment;
  Direction direction = Direction::forward;
  /// Backward: sums are taken in the same order in every run.
  bool deterministic = false;
  /// Backward: a gradient of the log-sum-exp comes in.
  bool dlse = false;
  /// Forward: weights and what they stand at are results too, of which the
  /// former grow with the square of the rows; backward: they come in.
  bool keepsWeights = false;
  /// Forward: V is the first columns of K, and no array of its own.
  bool valuesOfKeys = false;

  /// Whether every query sees every key.
  bool isOpen() const { return mask.isOpen() && !isListed(); }
  /// Whether tiles of queries walk blocks that are listed, in memory or as runs
  /// of bands: those that need a mask, and then the others.
  bool isListed() const { return pattern || !bands.isEmpty(); }
};

/// Keys of a block of weights that are kept, which have a maximum and a sum of
/// their own for every query.
inline constexpr int64_t kKeptKeys = 256;
/// Rows of the array of these: two for every block.
int64_t keptRows(int64_t keys);

/// The sentinel for "unbounded", and the limits of what `check` accepts.
inline constexpr int64_t kUnbounded = int64_t(1) << 30;
inline constexpr int64_t kMaxRows = kUnbounded - 1;
inline constexpr int64_t kMaxHeadDim = 65536;
inline constexpr int64_t kMaxHeads = int64_t(1) << 20;
inline constexpr double kMostProducts = 0x1p58;

/// Rows or columns `begin .. end - 1`; none if `end` is not behind `begin`.
struct Span {
  int64_t begin = 0, end = 0;

  bool isEmpty() const { return begin >= end; }
  int64_t size() const { return isEmpty() ? 0 : end - begin; }
};

/// Which columns rows see: row i sees column j iff
///
///   i + first <= j <= i + last,   or j < openColumns,   or i < openRows.
///
/// So what a row sees is one run, each of whose ends is the greater or the less
/// of two that rise with the row; `openColumns` and `openRows` need a side that
/// is unbounded.  Rows are queries and columns keys, or, transposed, the other
/// way.  With 4 queries and 6 keys:
///
///   none                  first = -2^30      last = +2^30
///   causal                first = -2^30      last = 0      (top-left)
///   causal_bottom_right   first = -2^30      last = 2      (keys - queries)
///   window<1, 0>          first = 2 - 1 = 1  last = 2 + 0 = 2
///   prefix<4>             first = -2^30      last = 2      openColumns = 4
///
/// Windows and prefixes count from the bottom-right diagonal.  The
/// unbounded sides saturate at 2^30, which fits the kernel's 32-bit arithmetic;
/// hence a row count is at most 2^30 - 1.
struct Visible {
  int64_t first = -kUnbounded, last = kUnbounded;
  int64_t openColumns = 0, openRows = 0;

  bool sees(int64_t row, int64_t column) const;
  /// Of the first `columns`, those that some of the rows sees, and those that
  /// every one sees.
  Span seenBySome(Span rows, int64_t columns) const;
  Span seenByAll(Span rows, int64_t columns) const;
  /// What columns are seen by, as rows that see.
  Visible transposed() const;
  /// The same where rows and columns are counted from these on, as in a tile.
  Visible from(int64_t row, int64_t column) const;
};

/// Tensor-core products for each product of the problem.
int64_t productsPerProduct(const Problem &problem);

/// The type of K and V, and the same problem with that one.
DataType kvTypeOf(const Problem &problem);
Problem withKvType(const Problem &problem, DataType type);

/// A sentence when K and V cannot have their type beside that of Q.
std::optional<std::string> checkKvType(const Problem &problem);

/// Bytes of a key: of its rows of K and V, or of K if that has V.
int64_t bytesOfKey(const Problem &problem);

/// Bytes of the narrowest input's elements.
int64_t leastBytes(const Problem &problem);

/// The one place that gives a mask its meaning.  Of ragged sequences it is
/// counted from the last key of the last query of each, its diagonal.
Visible visible(const Problem &problem);

/// A sentence when the problem is illegal, nothing when it is fine.
std::optional<std::string> check(const Problem &problem);

/// A sentence when rows of that type cannot be aligned to so many bytes.
std::optional<std::string> checkAlignment(int64_t bytes, DataType type);

/// Pairs (i, j) with j visible to i, in one head, on average of those that
/// differ, and in all of them; expected ones if there is only a density.
int64_t visiblePairs(const Problem &problem);
double allVisiblePairs(const Problem &problem);

/// The arithmetic that the definition asks for: two products per visible pair,
/// Q·K and P·V; backward five, three of which are as long as a row of Q (Q·K
/// again, dS·K, dSᵀ·Q) and two as long as one of V (dO·V, Pᵀ·dO).
double usefulFlops(const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_PROBLEM_H
