//===- TileBuilder.h - Shorthand for writing tile IR ------------*- C++ -*-===//
//
// Kernel builders should read like the schedule they write.  `Scalar` gives
// run-time numbers the operators of C++; `TileBuilder` names the ops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_BUILD_TILEBUILDER_H
#define ATTN_LIB_KERNELS_BUILD_TILEBUILDER_H

#include "attn/Kernels/Kernels.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// Rows of a product of a warpgroup that each of its warps has.
inline constexpr int64_t kWarpRows = 16;

class TileBuilder;

/// A run-time i32, i64, i1 or f32 with operators.  Integer constants on the
/// other side take its type.
class Scalar {
public:
  Scalar() = default;
  Scalar(TileBuilder &builder, mlir::Value value)
      : builder(&builder), value(value) {}
  operator mlir::Value() const { return value; }
  mlir::Type type() const { return value.getType(); }

  Scalar operator+(Scalar other) const;
  Scalar operator-(Scalar other) const;
  Scalar operator-() const; ///< of an f32
  Scalar operator*(Scalar other) const;
  Scalar operator+(int64_t other) const;
  Scalar operator-(int64_t other) const;
  Scalar operator*(int64_t other) const;
  /// Rounds toward zero; operands here are never negative.
  Scalar operator/(int64_t other) const;
  Scalar operator/(Scalar other) const;
  Scalar operator%(int64_t other) const;
  Scalar operator<(Scalar other) const;
  Scalar operator<=(Scalar other) const;
  Scalar operator==(Scalar other) const;
  Scalar operator&(Scalar other) const;
  Scalar operator^(Scalar other) const;
  Scalar operator^(int64_t other) const;

private:
  friend class TileBuilder;
  TileBuilder *builder = nullptr;
  mlir::Value value;
};

class TileBuilder : public mlir::ImplicitLocOpBuilder {
public:
  TileBuilder(mlir::Location loc, mlir::OpBuilder &builder)
      : ImplicitLocOpBuilder(loc, builder) {}

  // Scalars.
  Scalar wrap(mlir::Value value) { return {*this, value}; }
  Scalar i32(int64_t value);
  Scalar f32(double value);
  Scalar constantLike(Scalar other, int64_t value);
  Scalar boolean(bool value);
  Scalar wide(Scalar value);   ///< i32 to i64
  Scalar narrow(Scalar value); ///< i64 to i32
  Scalar min(Scalar a, Scalar b);
  Scalar max(Scalar a, Scalar b);
  Scalar select(Scalar condition, Scalar yes, Scalar no);
  /// ceil(a / b) for a >= 0.
  Scalar ceilDiv(Scalar a, int64_t b) { return (a + (b - 1)) / b; }
  Scalar ceil(mlir::Value x);
  /// |x| of an f32.
  Scalar abs(mlir::Value x);
  Scalar exp2(mlir::Value x);
  Scalar log2(mlir::Value x);
  /// a * b + c, contracted.
  Scalar fma(mlir::Value a, mlir::Value b, mlir::Value c);
  /// a * b in f32, rounded by itself: nothing is contracted with it.
  Scalar product(mlir::Value a, mlir::Value b);

  // Position.
  Scalar programId(int dim);
  Scalar gridSize(int dim);
  Scalar warpId();

  // Types.
  tile::FragType accType(int64_t rows, int64_t columns);
  tile::FragType lhsType(int64_t rows, int64_t columns, mlir::Type element);
  tile::FragType rhsType(int64_t rows, int64_t columns, mlir::Type element);
  tile::RowType rowType(int64_t rows, bool partial = false);
  tile::RowType indexRowType(int64_t rows);
  /// A warp's rows of a product in flight.
  tile::PendingType pendingType(int64_t columns);

  // Fragments and rows.
  mlir::Value fill(Scalar value, mlir::Type type);
  /// Body of a map: row and column (column only for a fragment) and one
  /// element per input; returns the element of the result.
  using MapBody = llvm::function_ref<mlir::Value(
      Scalar row, Scalar column, llvm::ArrayRef<Scalar> elements)>;
  mlir::Value map(mlir::ValueRange inputs, mlir::Type result, MapBody body);
  /// Adds what the body says to elements of an array of f32 behind an offset;
  /// the first input is a fragment.
  struct Addition {
    Scalar value, index, exists; ///< without `exists` always
  };
  using AdditionBody = llvm::function_ref<Addition(
      Scalar row, Scalar column, llvm::ArrayRef<Scalar> elements)>;
  void addElements(mlir::ValueRange inputs, Scalar base, Scalar offset,
                   AdditionBody body);
  mlir::Value rowMax(mlir::Value fragment, mlir::Value init);
  mlir::Value rowSum(mlir::Value fragment, mlir::Value init);
  /// Waits for a product, with so many younger ones left in flight.
  mlir::Value await(mlir::Value product, int64_t younger = 0);

  // Control flow.
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      Scalar index, mlir::ValueRange carried)>;
  mlir::ValueRange loop(Scalar lower, Scalar upper, mlir::ValueRange init,
                        LoopBody body);
  void when(Scalar condition, llvm::function_ref<void()> body);
  /// Both branches give values of the same types.
  using Branch = llvm::function_ref<llvm::SmallVector<mlir::Value>()>;
  mlir::ValueRange choose(Scalar condition, Branch yes, Branch no);
  /// While `test` holds for the carried values, `body` makes the next ones.
  using Test = llvm::function_ref<Scalar(mlir::ValueRange carried)>;
  using WhileBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::ValueRange carried)>;
  mlir::ValueRange repeat(mlir::ValueRange init, Test test, WhileBody body);
  /// The roles of a kernel, which `declare` declares, and its end.
  void roles(llvm::function_ref<void()> declare);
  /// A role of the roles that are being written.
  void role(llvm::StringRef name, int64_t warps, int64_t registers,
            bool singleLane, llvm::function_ref<void()> body);
};

/// A role as builders name it: a row of the table, or its text.
struct NamedRole : ArgumentRole {
  NamedRole(const ArgumentRole &role) : ArgumentRole(role) {}
  NamedRole(Role role, Facet facet = Facet::itself)
      : ArgumentRole(role, facet) {}
  NamedRole(llvm::StringRef text);
  NamedRole(const char *text) : NamedRole(llvm::StringRef(text)) {}
  NamedRole(const std::string &text) : NamedRole(llvm::StringRef(text)) {}
};

/// The arguments of a kernel: declared by role, then read by role.
class Arguments {
public:
  void pointer(const NamedRole &role, mlir::Type element);
  void scalar(const NamedRole &role, mlir::Type type);
  /// Pointer, offset and strides of an array.
  void operand(const NamedRole &array, mlir::Type element);
  /// Memory of the launch, so many elements for every block of the grid.
  /// If there are not more keys than `beyondKeys` it has none.
  void perBlock(const NamedRole &role, mlir::Type element, int64_t count,
                int64_t beyondKeys = 0);
  /// The same for all blocks together.
  void perLaunch(const NamedRole &role, mlir::Type element, int64_t count);
  /// Memory of all launches, so many elements for every strip of queries.
  void perStrip(const NamedRole &role, mlir::Type element, int64_t count);
  /// The same for every row of queries.
  void perRow(const NamedRole &role, mlir::Type element, int64_t count);

  /// The tensor map of an array.
  void map(TileBuilder &builder, const NamedRole &array, int64_t boxRows,
           int64_t columns, mlir::Type element, Facet facet = Facet::map);

  bool has(const NamedRole &role) const {
    return llvm::is_contained(roles, ArgumentRole(role));
  }
  /// Creates the kernel with its entry block; `builder` then stands in it.
  tile::KernelOp createKernel(TileBuilder &builder,
                              const KernelRequest &request, int64_t warps);
  Scalar get(TileBuilder &builder, const NamedRole &role) const;

  /// 0, as nobody who compiles knows.  Where places in shared memory are known,
  /// or the same in every step, the descriptors of all products there are
  /// worked out before the loop, which takes as many pairs of registers.
  Scalar opaqueZero(TileBuilder &builder) const;

  /// Elements from an array's base to a row of one batch entry and head.
  Scalar offset(TileBuilder &builder, const NamedRole &array, Scalar batch,
                Scalar head, Scalar row) const;
  /// The rows of an array for one batch entry and head, from a column, and
  /// from a row on.
  mlir::Value view(TileBuilder &builder, const NamedRole &array,
                   tile::ViewType type, Scalar batch, Scalar head, Scalar rows,
                   Scalar column = Scalar(), Scalar first = Scalar()) const;
  /// A statistic: a number for each row of one batch entry and head.
  mlir::Value vector(TileBuilder &builder, const NamedRole &array, Scalar batch,
                     Scalar head, Scalar rows, Scalar first = Scalar()) const;

private:
  llvm::SmallVector<ArgumentRole> roles;
  llvm::SmallVector<mlir::Type> types;
  /// Attributes of arguments, by position, with a number of elements.
  llvm::SmallVector<std::tuple<unsigned, llvm::StringRef, int64_t>> counts;
  tile::KernelOp kernel;
};

inline constexpr llvm::StringLiteral kCounterRole = "counter",
                                     kStripCounterRole = "strip_counter",
                                     kFlagsRole = "flags",
                                     kScratchRole = "scratch";
/// The roles of an input's parts, of the exponents of those, and of a map.
std::string partsRole(llvm::StringRef input);
std::string exponentsRole(llvm::StringRef input);
std::string mapRole(llvm::StringRef array);

/// The element type of a problem.
mlir::Type elementType(mlir::MLIRContext *context, DataType type);

} // namespace attn

#endif
