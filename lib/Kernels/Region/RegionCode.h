//===- RegionCode.h - Regions of clauses as code of kernels -----*- C++ -*-===//
//
// A region of `sees` or `score` (attn/IR/Clauses.h) on the scores that a warp
// holds.  What its ops depend on says where they go:
//
//   batch entry, head, sizes    numbers of the kernel, once for a tile
//   and the query               rows, once for a tile, where they are costly:
//                               what is read, quotients, functions
//   and the key, or the score   elements, in every block
//
// Where fragments have keys as rows, as those of gradients, read "query" for
// key there and "key" for query.
//
// z is the scaled score.  A factor of z that is the same for all is taken
// together with the scale, and a positive constant that the result is
// multiplied by is left to the softmax, which scales anyway (`factor`).  Sums
// and products may be contracted, quotients by constants are products with the
// reciprocal; exp, log, sqrt and rsqrt are the machine's approximations.  So is
// tanh of a score where inputs are of fewer bits than f32, within 2^-11 of the
// result; elsewhere it is exact to f32 (Tanh.h).
//
// **Gradients** of a score become those of z by the derivative, which is
// written forward, op by op, beside the values that it needs.  Of a region that
// adds to z it is 1, and nothing is written.
//
// **Pairs that nobody sees.**  Who wrote a region promises that what it reads
// is there, of pairs that are seen.  Tiles have others.  Where a mask hides
// some pairs of a block reads are *checked*: what is not there is not touched,
// and is 0.  Elsewhere only rows and keys behind the last one are such pairs;
// of them reads take what is there instead, which nobody looks at.
//
// Example: z + s[h] * (j - i) reads s[h] once for a tile; per element are left
// one conversion by an addition (Maps.cpp), a product and a sum.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_REGIONCODE_H
#define ATTN_LIB_KERNELS_REGION_REGIONCODE_H

#include "Build/TileBuilder.h"
#include "Region/RegionRanges.h"

#include "attn/IR/Clauses.h"
#include "attn/IR/ScalarOps.h"

namespace attn {

class RegionWriter;

/// Which pairs a block has.
enum class Pairs {
  seen,    ///< all are seen
  inRange, ///< columns may end within the block, all others are seen
  any      ///< some are hidden
};

class RegionCode {
public:
  /// Declares what regions read of captures; null regions are absent.
  static void declare(Arguments &arguments, TileBuilder &builder,
                      llvm::ArrayRef<mlir::Region *> regions);
  /// Of attention whose inputs have that type, which a region of `sees` does
  /// not ask for.
  RegionCode(const Arguments &arguments, mlir::Region &region,
             DataType inputs = DataType::f32);

  /// A warp's rows of a head, from `row` on.
  struct Place {
    Scalar batch, head, row;
    int64_t count;
    bool areKeys = false;           ///< or queries
    Scalar queries = {}, keys = {}; ///< of a sequence, if it is of one
    Scalar ofProducts = {}; ///< what they are scaled by beside the scale
  };
  /// What is the same for them in every block.
  struct Rows {
    Place place;
    /// Numbers and rows that stand for values of the region.
    llvm::DenseMap<mlir::Value, mlir::Value> numbers;
    llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2> rows;
  };
  Rows ofRows(TileBuilder &builder, const Place &place) const;

  /// Of a region of `score`, what becomes of products of Q and K, over
  /// `factor`; the columns of `products` are from `column` on.
  mlir::Value scored(TileBuilder &builder, const Rows &rows,
                     mlir::Value products, Scalar column, Pairs pairs) const;
  double factor() const { return ofResult; }
  /// The derivative of the score in z; null if it is 1.  Of `scores`, what has
  /// become of `products`, some may be hidden, whose slopes may be anything: so
  /// nothing else needs to be held where slopes are functions of scores.
  mlir::Value slopes(TileBuilder &builder, const Rows &rows,
                     mlir::Value products, mlir::Value scores, Scalar column,
                     Pairs pairs) const;
  /// Of gradients of scores those of an element that the region reads.
  mlir::Value pulled(TileBuilder &builder, const Rows &rows,
                     mlir::Value products, mlir::Value gradient, Scalar column,
                     mlir::Operation *read) const;
  /// Adds them to an array of f32 that lies as the one that is read has its
  /// elements, without gaps; of pairs there are only those in front of the ends
  /// of own rows and of columns.
  void addPulled(TileBuilder &builder, const Rows &rows, mlir::Value products,
                 mlir::Value gradient, Scalar column, mlir::Operation *read,
                 Scalar base, Scalar offset, Scalar endOfRows,
                 Scalar endOfColumns) const;
  /// Of what is the same for a head, where it is in such an array.
  Scalar placeOfHead(TileBuilder &builder, const Rows &rows,
                     mlir::Operation *read) const;
  /// Of a region of `sees`, scores with -inf where a query does not see a key.
  mlir::Value hidden(TileBuilder &builder, const Rows &rows, mlir::Value scores,
                     Scalar column, Pairs pairs) const;
  /// Of a region of `sees`, 1 where a query sees a key, and 0 elsewhere, for so
  /// many columns from `column` on.
  mlir::Value shown(TileBuilder &builder, const Rows &rows, Scalar column,
                    int64_t columns, Pairs pairs) const;

private:
  friend class RegionWriter;
  unsigned dependenceOf(mlir::Value value) const {
    return dependence.lookup(value);
  }
  bool isCostly(mlir::Value value) const { return costly.contains(value); }
  /// Values that others with more dependence use.
  llvm::SmallVector<mlir::Value> frontier(unsigned of) const;
  using Result =
      llvm::function_ref<mlir::Value(RegionWriter &writer, Scalar element)>;
  mlir::Value map(TileBuilder &builder, const Rows &rows, mlir::Value scores,
                  Scalar column, Pairs pairs, Result result,
                  mlir::Value scored = {}) const;
  /// Fragments, and behind them what is known of rows.
  llvm::SmallVector<mlir::Value>
  inputsOf(const Rows &rows, llvm::ArrayRef<mlir::Value> fragments) const;
  /// Tells a writer of an element what those inputs are there.
  void enter(RegionWriter &writer, const Rows &rows, Scalar row, Scalar first,
             Scalar column, llvm::ArrayRef<Scalar> elements,
             size_t fragments) const;

  const Arguments &arguments;
  mlir::Region &region;
  RegionRanges ranges;
  llvm::DenseMap<mlir::Value, unsigned> dependence;
  llvm::DenseSet<mlir::Value> costly;
  mlir::Value result; ///< without its factor
  bool hasExactTanh;
  double ofResult = 1;
};

} // namespace attn

#endif
