//===- Tiles.h - Tiles of attention -----------------------------*- C++ -*-===//
//
// The loops of attn.forward are batch, heads, queries and keys, of which the
// last is a reduction; those of attn.backward are batch and heads.  A tile is
// the same op on slices of its arrays:
//
//   * heads come in multiples of the group that shares a key head, and as the
//     op wants them, so many for every tile;
//   * queries and keys come in any number.  A mask tells them by their place in
//     the whole, which a tile does not know: then they are not tiled;
//   * of clauses (Clauses.h) all do, and an op with one is not tiled.
//
// What cannot be tiled is refused with a remark that says why.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_IR_TILES_H
#define ATTN_LIB_IR_TILES_H

#include "attn/IR/Attn.h"

#include "mlir/Interfaces/TilingInterface.h"

namespace attn {

/// The loops, by number.
inline constexpr unsigned kBatch = 0, kHeads = 1, kQueries = 2, kKeys = 3;

using Numbers = llvm::SmallVector<mlir::OpFoldResult>;

/// A part of the loops of an op, or of an array.
struct Box {
  Numbers offsets, sizes;
};

/// An op whose tiles are asked for.
class Tiled {
public:
  explicit Tiled(mlir::Operation *op)
      : op(llvm::cast<AttentionOpInterface>(op)),
        group(problemOf(this->op).heads / problemOf(this->op).kvHeads) {}

  unsigned loops() {
    return op.direction() == Direction::forward ? kKeys + 1 : kHeads + 1;
  }
  llvm::SmallVector<mlir::utils::IteratorType> iterators() {
    llvm::SmallVector<mlir::utils::IteratorType> all(
        loops(), mlir::utils::IteratorType::parallel);
    if (loops() > kKeys)
      all[kKeys] = mlir::utils::IteratorType::reduction;
    return all;
  }
  llvm::SmallVector<mlir::Range> domain(mlir::OpBuilder &b);

  /// A remark and failure where there is no such tile.
  llvm::LogicalResult check(const Box &tile, bool ofKeys = false);
  /// What a tile has of an array.
  Box boxOf(mlir::OpBuilder &b, llvm::StringRef role, const Box &tile);
  /// The tile that has a part of an array; failure if it has other columns or
  /// rows than the loops go through.
  mlir::FailureOr<Box> tileOf(mlir::OpBuilder &b, llvm::StringRef role,
                              const Box &part);

  /// Slices of the inputs, and of the destinations if there are any.
  llvm::SmallVector<mlir::Value>
  slices(mlir::OpBuilder &b, const Box &tile,
         llvm::ArrayRef<AttentionArray> arrays,
         llvm::SmallVectorImpl<mlir::Operation *> &made);
  mlir::FailureOr<mlir::TilingResult> implement(mlir::OpBuilder &b,
                                                const Box &tile);
  llvm::LogicalResult refuse(const llvm::Twine &why) {
    op->emitRemark() << why;
    return llvm::failure();
  }

  AttentionOpInterface op;
  int64_t group; ///< query heads that share a key head

private:
  /// Which loop goes through an extent of an array, if one does.
  std::optional<unsigned> loopOf(Extent extent);
  bool isWhole(unsigned loop, const Box &tile);
  bool isWholeExtent(mlir::Value array, unsigned dimension,
                     mlir::OpFoldResult offset, mlir::OpFoldResult size);
  /// The array and the dimension that tell how long a loop is.
  std::pair<mlir::Value, unsigned> lengthOf(unsigned loop);
  /// All of a dimension of an array; of a result as the operands tell, for the
  /// tile stands in place of it.
  mlir::OpFoldResult sizeOf(mlir::OpBuilder &b, mlir::Value array,
                            unsigned dimension);
};

/// The op on other operands, with a destination for each result.
mlir::Operation *cloneOn(mlir::OpBuilder &b, AttentionOpInterface op,
                         mlir::ValueRange inputs, mlir::ValueRange outs);

/// Models of the interfaces: PartialReduction.cpp has that of parts.
void attachPartialReduction(mlir::MLIRContext &context);

} // namespace attn

#endif
