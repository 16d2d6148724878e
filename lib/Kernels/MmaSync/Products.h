//===- Products.h - Products on mma.sync, in a problem's precision -*- C++ -*-//
//
// Factors of 16 bits are multiplied as they are, f32 as tf32.  In tf32x3 a
// factor is split, x = high + low, and a product is three:
//
//   low * high + high * low    into one accumulator, from zero
//   high * high                into another
//
// Tensor cores cut sums off instead of rounding them.  That does not matter to
// the small products; but the large ones are summed up from zero, 32 contracted
// elements at a time, and those sums are added in f32.  In a simulation the
// error is then 0.5 to 1.2 times that of f32 arithmetic (d = 16 to 512, 32 to
// 8192 keys).  It is up to 3.4 times with one accumulator from zero every 64
// elements, and with one for everything 21 times.
//
// Sums from zero take registers beside the accumulator, so an output is kept in
// *parts* of 32 columns, each of which is worked out by itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_MMASYNC_PRODUCTS_H
#define ATTN_LIB_KERNELS_MMASYNC_PRODUCTS_H

#include "Build/TileBuilder.h"

namespace attn {

class Products {
public:
  Products(TileBuilder &builder, const Problem &problem);

  /// Elements that one load of each factor contracts.
  const int64_t step;

  /// A buffer for rows of inputs and outputs, or for some of their columns.
  tile::SmemType bufferOfRows(int64_t stages, int64_t rows,
                              int64_t columns) const;

  /// A fragment as the tensor cores take it, and in tf32x3 what that leaves.
  struct Factor {
    mlir::Value high, low;
  };

  /// Where a part of a buffer lies.
  struct Corner {
    mlir::Value buffer;
    Scalar stage, row, column;
  };
  /// `step` columns of queries.
  Factor queries(const Corner &corner, int64_t rows) const;
  /// The transpose of `step` columns of keys.
  Factor keys(const Corner &corner, int64_t keys) const;
  /// `step` rows of values.
  Factor values(const Corner &corner, int64_t columns) const;
  /// P, from an accumulator; then `step` columns of it.
  Factor weights(mlir::Value accumulator) const;
  Factor weightsAt(const Factor &weights, int64_t column) const;
  /// `step` columns of a P in shared memory; or of the transpose of one, that
  /// is, of `step` rows from the corner on.
  Factor weights(const Corner &corner, int64_t rows,
                 bool transpose = false) const;

  /// Gives the factors of a step, `at` elements into what is contracted.
  using Factors = llvm::function_ref<std::pair<Factor, Factor>(int64_t at)>;
  /// acc + the products of `extent` elements; null is an accumulator of 0. With
  /// `scale` acc is what `scaled` gave.
  mlir::Value add(mlir::Value acc, tile::FragType type, int64_t extent,
                  Factors factors, mlir::Value scale = {}) const;
  /// An accumulator with its rows scaled, unless the sum that is added in f32
  /// can take care of it.
  mlir::Value scaled(mlir::Value acc, mlir::Value scale) const;

  /// S = Q K^T: `rows` rows from a corner on times the transpose of `count`
  /// rows from another on, over `depth` columns.
  mlir::Value scores(const Corner &queries, int64_t rows, const Corner &keys,
                     int64_t count, int64_t depth) const;
  /// O += P V, part by part: P an accumulator, V a stage of a buffer.  With
  /// `scale` the parts are what `scaled` gave.
  void addWeighted(llvm::MutableArrayRef<mlir::Value> parts,
                   mlir::Value weights, mlir::Value buffer, Scalar stage,
                   mlir::Value scale = {}) const;

  /// Columns of the parts of an output.
  llvm::SmallVector<int64_t> parts(int64_t columns) const;
  /// Outputs of 0.
  llvm::SmallVector<mlir::Value> noOutput(int64_t rows, int64_t columns) const;

private:
  Factor load(const Corner &corner, tile::FragType type, bool transpose) const;
  Factor factor(mlir::Value fragment) const;
  mlir::Value addSplit(mlir::Value acc, tile::FragType type, int64_t extent,
                       Factors factors, mlir::Value scale) const;

  TileBuilder &b;
  mlir::Type element;
  bool isSingle, isSplit;  ///< f32; tf32x3
  tile::SmemLayout layout; ///< of rows of inputs and outputs
};

} // namespace attn

#endif
