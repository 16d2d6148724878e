//===- Problem.h - One attention, as numbers --------------------*- C++ -*-===//
///
/// A `Problem` says what is to be computed and nothing about how:
///
///   O[b,h,i,:] = softmax over the visible j of (Q[b,h,i,:]·K[b,g,j,:])
///   V[b,g,j,:]
///
/// with g the key head that serves query head h; or, backward, the gradients of
/// Q, K and V from that of O.  Every mask is a *band*: key j
/// is visible to query i iff i + first <= j <= i + last.  With 4 queries and 6
/// keys:
///
///   none                  first = -2^30      last = +2^30
///   causal                first = -2^30      last = 0      (top-left)
///   causal_bottom_right   first = -2^30      last = 2      (keys - queries)
///   window<1, 0>          first = 2 - 1 = 1  last = 2 + 0 = 2
///
/// A window counts from the bottom-right diagonal, as in FlashAttention.  The
/// unbounded sides saturate at 2^30, which fits the kernel's 32-bit arithmetic;
/// hence a row count is at most 2^30 - 1.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PROBLEM_H
#define ATTN_SCHEDULE_PROBLEM_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attn {

enum class DataType { bf16, f16, f32, f8e4m3 };
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
enum class Precision { tf32x3, tf32 };
std::string_view name(Precision precision);
std::optional<Precision> parsePrecision(std::string_view text);

/// What is computed: O, or the gradients of Q, K and V.
enum class Direction { forward, backward };
std::string_view name(Direction direction);
std::optional<Direction> parseDirection(std::string_view text);

enum class MaskKind { none, causal, causalBottomRight, window };
struct Mask {
  MaskKind kind = MaskKind::none;
  int64_t left = 0, right = 0; ///< window only, both >= 0
};
/// `none`, `causal`, `causal_bottom_right`, `window<L, R>`.
std::string str(const Mask &mask);
std::optional<Mask> parseMask(std::string_view text);

/// The most bytes that rows can be aligned to: the largest piece that a copy
/// moves at once.
inline constexpr int64_t kMaxAlignment = 16;

struct Problem {
  DataType dtype = DataType::bf16;
  /// Of f32; other types are multiplied as they are.
  Precision precision = Precision::tf32x3;
  int64_t batch = 1, heads = 1, kvHeads = 1;
  int64_t queries = 0, keys = 0;
  int64_t headDim = 0, headDimV = 0;
  Mask mask;
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

struct Band {
  int64_t first = -kUnbounded, last = kUnbounded;
};

/// Tensor-core products for each product of the problem.
int64_t productsPerProduct(const Problem &problem);

/// The one place that gives a mask its meaning.
Band band(const Problem &problem);

/// A sentence when the problem is illegal, nothing when it is fine.
std::optional<std::string> check(const Problem &problem);

/// A sentence when rows of that type cannot be aligned to so many bytes.
std::optional<std::string> checkAlignment(int64_t bytes, DataType type);

/// Pairs (i, j) with j visible to i, in one head.
int64_t visiblePairs(const Problem &problem);

/// The arithmetic that the definition asks for: two products per visible pair,
/// Q·K and P·V; backward five, three of which are as long as a row of Q (Q·K
/// again, dS·K, dSᵀ·Q) and two as long as one of V (dO·V, Pᵀ·dO).
double usefulFlops(const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_PROBLEM_H
