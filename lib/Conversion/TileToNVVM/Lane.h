//===- Lane.h - What one lane of a warp computes ----------------*- C++ -*-===//
//
// Tile ops speak of warps and blocks; below them every lane does its part.
// `Lane` writes the scalar code of that part: where the lane stands, addresses,
// shuffles.  All index arithmetic is 32 bits wide except global addresses.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_LANE_H
#define ATTN_LIB_CONVERSION_TILETONVVM_LANE_H

#include "attn/Conversion/Passes.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn {

class Lane : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;

  // Integers.  Constants fold, so sums may be written without care.
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value div(Value a, int64_t b); ///< of a non-negative number
  Value rem(Value a, int64_t b); ///< of a non-negative number
  Value bitAnd(Value a, int64_t mask);
  Value shiftRight(Value a, int64_t bits);
  Value both(Value a, Value b); ///< of i1
  Value less(Value a, Value b); ///< signed
  Value select(Value condition, Value yes, Value no);
  Value wide(Value a); ///< i32 to i64, signed

  /// A sum as its run-time part and its constant part (0 if there is none), so
  /// that the constant can become an immediate of the memory instruction.
  std::pair<Value, int64_t> splitConstant(Value sum);

  // Position.
  Value thread(); ///< in the block
  Value lane();   ///< in the warp
  /// Row of an accumulator's first element in a 16 x 8 piece: lane / 4.
  Value quad();
  /// Position in the four lanes that share a row: lane % 4.
  Value inQuad();

  // Memory.
  mlir::LLVM::LLVMPointerType globalPointer();
  mlir::LLVM::LLVMPointerType sharedPointer();
  /// The address `bytes` behind a pointer; constants become immediates.
  Value offset(Value pointer, Value bytes);
  Value offset(Value pointer, int64_t bytes);
  /// A pointer from an i32 address in shared memory.
  Value shared(Value address);
  /// The same value, of which LLVM forgets that a loop does not change it.
  Value opaque(Value value);

  /// The value of the lane whose number differs in the bits of `mask`.
  Value shuffleXor(Value value, int64_t mask);
  /// The first lane's value in all lanes: ptxas then knows it to be uniform.
  Value uniform(Value value);
  /// Number of the warp in the block, uniform.
  Value warp();
  /// Whether this is the warp's first lane.
  Value isFirstLane();

  /// PTX that MLIR has no op for.  With side effects: never moved, merged or
  /// dropped.  A clobber of memory is for what orders accesses.
  llvm::SmallVector<Value> assembly(mlir::TypeRange results,
                                    llvm::StringRef text,
                                    llvm::StringRef constraints,
                                    mlir::ValueRange operands);
  /// The same for PTX without a result that orders or moves memory.
  void memoryAssembly(llvm::StringRef text, llvm::StringRef constraints,
                      mlir::ValueRange operands);
  /// The same registers, of which LLVM forgets where they come from, so that no
  /// use can move above this place.
  llvm::SmallVector<Value> tie(mlir::ValueRange values);

  /// Runs `body` under a condition; null is always.
  void when(Value condition, llvm::function_ref<void()> body);
};

/// Two f32 rounded to a pair of 16-bit elements, the first in the low half; of
/// f32 a vector of the two.
mlir::Value packPair(Lane &b, mlir::Type element, mlir::Value low,
                     mlir::Value high);

/// Where one of several words (flags, counters) is, by number.
mlir::Value wordAddress(Lane &b, mlir::Value words, mlir::Value index);

/// A whole number of a global array; an i64 that is no i32 is the nearest one.
mlir::Value loadNumber(Lane &b, mlir::Type element, mlir::Value base,
                       mlir::Value index);

/// Blocks of a cluster of the lowered kernel that an op stands in.
int64_t clusterOf(mlir::Operation *op);

/// Whether one lane of one warp executes the op.
bool isSingleLane(mlir::Operation *op);

/// Loads four 8 x 8 matrices of 16-bit elements (ldmatrix); lane l gives the
/// address of row l % 8 of matrix l / 8.
llvm::SmallVector<mlir::Value, 4> loadFour(Lane &b, mlir::Value pointer,
                                           bool transposed);
/// stmatrix of 8 x 8 elements of 16 bits, a register of each lane for each of
/// one, two or four of them: lane l gives the address of row l % 8, or
/// transposed of column l % 8, of the matrix l / 8.
void storeMatrices(Lane &b, mlir::Value pointer, mlir::ValueRange registers,
                   bool transposed);

/// Of two 16-byte pieces that share 32 bytes of a row, which place one has.
/// Rows begin at multiples of 8, so that row % 8 is the lane's own.
mlir::Value placeOfHalf(Lane &b, tile::SmemType buffer, mlir::Value half,
                        mlir::Value row8);
/// Bytes from the start of a row to `right` times eight columns behind a
/// column, a multiple of 16.
mlir::Value placeInRow(Lane &b, tile::SmemType buffer, mlir::Value column,
                       mlir::Value right, mlir::Value row8);

/// Registers of a 1:N-converted value.
using Registers = llvm::SmallVector<mlir::Value>;

/// Stores four registers, a piece of 16 bytes.
void storeFour(Lane &b, mlir::Value pointer, const Registers &words);

/// A converted `!tile.view`: address of row 0, bytes between rows, row count.
struct ViewValues {
  explicit ViewValues(mlir::ValueRange values)
      : base(values[0]), stride(values[1]), rows(values[2]) {}
  mlir::Value base, stride, rows;
};

/// An error at the first op whose instructions the machine of the kernel, or
/// the chip of its module's target, does not have.
llvm::LogicalResult checkCapabilities(tile::KernelOp kernel);

// Patterns, one function per family of ops.
void populateKernelPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateCopyPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateAdditionPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateListPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateMatrixPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateMatrixStorePatterns(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateKeepColumnsPatterns(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateMapPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);
void populateRowPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);
void populateRolePatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateBarrierPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateTmaPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);
void populateTransposePatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateSplitPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateWidenPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateWgmmaPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateExchangePatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateFragmentPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

/// The i32 address of what an op reserves in the block's shared memory.  The
/// op keeps its place in an attribute while its kernel is being lowered.
mlir::Value placeOf(Lane &b, mlir::Operation *reservation);

/// Name of the attribute of a role's branch that tells that one lane runs it.
inline constexpr llvm::StringLiteral kSingleLaneAttr = "tile.single_lane";
/// On an op of a role that has so many registers, where it asks how many.
inline constexpr llvm::StringLiteral kRegistersAttr = "tile.registers";

/// Replaces the launches of a module by gpu.launch_func.  Runs before kernels
/// are lowered, which still know their footprint.
mlir::LogicalResult lowerLaunches(mlir::ModuleOp module);

} // namespace attn

#endif
