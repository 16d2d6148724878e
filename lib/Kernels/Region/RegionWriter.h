//===- RegionWriter.h - Writes values of a region ---------------*- C++ -*-===//
//
// Where the builder stands, on demand: what a value needs is written before it,
// once.  Integers are i1, i32 or i64 as their ranges ask (RegionRanges.h), with
// the bits of their type; floats are f32, and rounded where a region says so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_REGIONWRITER_H
#define ATTN_LIB_KERNELS_REGION_REGIONWRITER_H

#include "Region/RegionCode.h"

namespace attn {

class RegionWriter {
public:
  RegionWriter(TileBuilder &builder, const RegionCode &code,
               const RegionCode::Rows &rows, Pairs pairs)
      : b(builder), code(code), rows(rows), pairs(pairs) {}

  /// Where an element is, by its row and column in the fragment, whose first
  /// column that is.
  void setRow(Scalar row) { this->row = row; }
  void setColumn(Scalar first, Scalar column) {
    firstColumn = first;
    this->column = column;
  }
  /// Its product of a query and a key.
  void setProduct(Scalar product) { ofElement = product; }
  void set(mlir::Value value, Scalar is) { known[value] = is; }

  /// What derivatives are taken in: z unless it is said, or what an op reads.
  void setSource(mlir::Value value);

  mlir::Value write(mlir::Value value);
  /// Where an element that is read would be without gaps, as an i64.
  Scalar placeOf(mlir::Operation *read);
  /// A derivative in the source: a number known here, times a value if there is
  /// one.  Constants of a region so become one, which mostly is 1.
  struct Slope {
    double factor = 1;
    Scalar value = {};

    bool isConstant() const { return !mlir::Value(value); }
  };
  /// That of a float; nothing if it is 0.
  std::optional<Slope> slope(mlir::Value value);
  /// The same times a factor, as one number.
  Scalar slopeOf(mlir::Value value, double factor);

private:
  using Value = mlir::Value;
  using Type = mlir::Type;

  /// Whether a value depends on the source.
  bool isOnSource(Value value) const;
  Value argument(mlir::BlockArgument argument);
  Value operation(mlir::Operation &op, ScalarKind kind);
  Value constant(mlir::Operation &op);
  Value read(mlir::Operation &op);
  Scalar extentOf(mlir::Operation &read, int64_t dim, bool isSmall);
  ArgumentRole captureOf(Value array) const;
  bool mayBeBehind(Value value) const;
  Value integers(mlir::Operation &op, ScalarKind kind);
  Value quotient(ScalarKind kind, Value a, Value divisor);
  Value comparison(mlir::Operation &op);
  Value converted(mlir::Operation &op, ScalarKind kind);
  Value floats(mlir::Operation &op, ScalarKind kind);
  Value product(mlir::Operation &op, ScalarKind kind);

  Scalar position(unsigned number);
  /// What products of Q and K are scaled by.
  Scalar scale();
  Scalar real(double value) { return b.f32(value); }
  Type typeOf(Value integer) const;
  /// An integer with so many bits.
  Value as(Value value, unsigned bits, bool isUnsigned = false);
  Value number(Type type, int64_t value);
  /// The bits of a narrow type, with its sign or without.
  Value wrapped(Value value, unsigned bits);
  Value masked(Value value, unsigned bits);
  template <typename Op> Value make(Value a, Value c) {
    return b.createOrFold<Op>(a, c);
  }

  TileBuilder &b;
  const RegionCode &code;
  const RegionCode::Rows &rows;
  Pairs pairs;
  std::optional<Slope> slopeOf(mlir::Operation &op, ScalarKind kind);
  /// What the slope of an op's only operand is multiplied by.
  Slope steepness(ScalarKind kind, Value operand, Value result);
  Scalar numberOf(const Slope &slope);
  Slope sum(const Slope &x, const Slope &y);
  Slope product(const Slope &x, const Slope &y);

  Scalar row, firstColumn, column, ofElement;
  Value source; ///< null is z
  llvm::DenseSet<Value> onSource;
  llvm::DenseMap<Value, Value> known;
  llvm::DenseMap<Value, std::optional<Slope>> slopes;
};

} // namespace attn

#endif
