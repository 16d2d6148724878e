//===- Tensor.h - What tensors are ------------------------------*- C++ -*-===//
///
/// The tensors that schedules speak of: inputs, results, and what comes to be
/// in between.  Each has an axis of rows, most have one of columns, and a size
/// in memory that the problem decides.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TENSOR_H
#define ATTN_SCHEDULE_TENSOR_H

#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Rounds.h"
#include <optional>
#include <string_view>

namespace attn {

/// Everything that has a place and a size.  `Stats` are the running max and sum
/// of a row, backward its LSE and D; an LSE may have a low word.  `TileMax` is
/// the max that a spilled tile of P was computed with. Gradients are named
/// after what they are the gradient of; `GradS` is that of the scaled scores.
/// `Delta` is D, the number that a row of dP is short of: the inner product of
/// the rows of O and dO, less the gradient of the LSE.
enum class Tensor {
  Q,
  K,
  V,
  O,
  Lse,
  S,
  P,
  Stats,
  TileMax,
  GradO,
  GradLse,
  GradQ,
  GradK,
  GradV,
  GradP,
  GradS,
  Delta
};

enum class Level { Registers, Smem };

std::string_view name(Tensor tensor);
std::string_view name(Axis axis);
std::string_view name(Level level);

/// The axes of a tensor's rows and columns; a statistic has no columns.
struct Shape {
  Axis rows;
  std::optional<Axis> cols;
};
Shape shapeOf(Tensor tensor);
bool hasAxis(Tensor tensor, Axis axis);
int64_t extent(const Problem &problem, Axis axis);
/// Columns of the panels that the copy engine fills, of 16 bits each.
inline constexpr int64_t kPanelColumns = 64;
/// What one block of `group` has of an axis that is shared equally: whole
/// panels.
int64_t equalPart(const Problem &problem, Axis axis, int64_t group);
/// Words per element position: one, and two or three for what is several
/// numbers of a row.
int64_t wordsPerElement(Tensor tensor, const Problem &problem);
/// Bytes per element position in memory; accumulators and statistics are f32.
int64_t bytesPerElement(Tensor tensor, const Problem &problem);
/// The same as products find it in shared memory, behind what rewrites it in
/// the type of another factor (`widen`).
int64_t bytesAsFactor(Tensor tensor, const Problem &problem);
/// Inputs that are matrices: Q, K, V; backward also O and dO.
bool isInput(Tensor tensor, const Problem &problem);
/// Results have the type of the inputs, or bf16 if that has 8 bits.
DataType resultType(const Problem &problem);
/// Whether the right operand of a product must lie by columns in shared memory.
/// wgmma takes 16-bit elements in either order, all others only in that of
/// what is contracted; where this is false, `transpose` does nothing.
bool needsTranspose(const Problem &problem);
/// Whether K and V have another type than Q: both factors of a product have
/// one, so what streams is rewritten in that of Q.
bool needsWidening(const Problem &problem);
/// Blocks of K and of V that are rewritten while others are multiplied: the one
/// that is, and the next.
inline constexpr int64_t kWidenedStages = 2;
/// Whether tensor cores of pipelines take factors only in parts: of f32 three
/// of bf16, of whose nine products the six largest are added up.
bool needsSplit(const Problem &problem);
inline constexpr int64_t kSplitParts = 3, kPartProducts = 6, kPartBytes = 2;
/// Where a launch before has split them it knows how large numbers are, and two
/// parts of f16 do: of four products the three largest.  So many rows are
/// brought to where f16 has room by one power of two.
inline constexpr int64_t kScaledParts = 2, kScaledProducts = 3,
                         kScaledRows = 128;
/// Sums of such products are f32 for as long as a step lasts: the tensor cores
/// cut sums off, so a result is added to outside of them, so many columns at a
/// time.
inline constexpr int64_t kSumColumns = 64;
/// Keys of a piece of V where no tile says how many: two steps of a product, or
/// of f32 four.
inline constexpr int64_t kKeysOfPiece = 32;

} // namespace attn

#endif // ATTN_SCHEDULE_TENSOR_H
