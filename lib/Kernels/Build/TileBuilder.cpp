//===- TileBuilder.cpp - Shorthand for writing tile IR --------------------===//

#include "Build/TileBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Scalar
//===----------------------------------------------------------------------===//

static bool isFloat(Type type) { return isa<FloatType>(type); }

/// Floating-point arithmetic may be contracted (fma) and nothing else: with
/// no-nan or no-inf the -inf of a masked score would be undefined.
static arith::FastMathFlags contract() {
  return arith::FastMathFlags::contract;
}

Scalar Scalar::operator+(Scalar other) const {
  if (isFloat(type()))
    return builder->wrap(
        builder->createOrFold<arith::AddFOp>(value, other.value, contract()));
  return builder->wrap(
      builder->createOrFold<arith::AddIOp>(value, other.value));
}

Scalar Scalar::operator-(Scalar other) const {
  if (isFloat(type()))
    return builder->wrap(
        builder->createOrFold<arith::SubFOp>(value, other.value, contract()));
  return builder->wrap(
      builder->createOrFold<arith::SubIOp>(value, other.value));
}

Scalar Scalar::operator-() const {
  return builder->wrap(builder->createOrFold<arith::NegFOp>(value));
}

Scalar Scalar::operator*(Scalar other) const {
  if (isFloat(type()))
    return builder->wrap(
        builder->createOrFold<arith::MulFOp>(value, other.value, contract()));
  return builder->wrap(
      builder->createOrFold<arith::MulIOp>(value, other.value));
}

Scalar Scalar::operator/(Scalar other) const {
  if (isFloat(type()))
    return builder->wrap(builder->createOrFold<arith::DivFOp>(
        value, other.value,
        arith::FastMathFlags::arcp | arith::FastMathFlags::afn));
  return builder->wrap(
      builder->createOrFold<arith::DivSIOp>(value, other.value));
}

Scalar Scalar::operator+(int64_t other) const {
  return *this + builder->constantLike(*this, other);
}
Scalar Scalar::operator-(int64_t other) const {
  return *this - builder->constantLike(*this, other);
}
Scalar Scalar::operator*(int64_t other) const {
  return *this * builder->constantLike(*this, other);
}
Scalar Scalar::operator/(int64_t other) const {
  return *this / builder->constantLike(*this, other);
}
Scalar Scalar::operator%(int64_t other) const {
  return builder->wrap(builder->createOrFold<arith::RemSIOp>(
      value, builder->constantLike(*this, other)));
}

static Scalar compare(TileBuilder &builder, arith::CmpIPredicate integer,
                      arith::CmpFPredicate real, Value a, Value b) {
  if (isFloat(a.getType()))
    return builder.wrap(builder.createOrFold<arith::CmpFOp>(real, a, b));
  return builder.wrap(builder.createOrFold<arith::CmpIOp>(integer, a, b));
}

Scalar Scalar::operator<(Scalar other) const {
  return compare(*builder, arith::CmpIPredicate::slt, arith::CmpFPredicate::OLT,
                 value, other.value);
}
Scalar Scalar::operator<=(Scalar other) const {
  return compare(*builder, arith::CmpIPredicate::sle, arith::CmpFPredicate::OLE,
                 value, other.value);
}
Scalar Scalar::operator==(Scalar other) const {
  return compare(*builder, arith::CmpIPredicate::eq, arith::CmpFPredicate::OEQ,
                 value, other.value);
}
Scalar Scalar::operator&(Scalar other) const {
  return builder->wrap(
      builder->createOrFold<arith::AndIOp>(value, other.value));
}
Scalar Scalar::operator^(Scalar other) const {
  return builder->wrap(
      builder->createOrFold<arith::XOrIOp>(value, other.value));
}
Scalar Scalar::operator^(int64_t other) const {
  return *this ^ builder->constantLike(*this, other);
}

//===----------------------------------------------------------------------===//
// TileBuilder: scalars
//===----------------------------------------------------------------------===//

Scalar TileBuilder::i32(int64_t value) {
  return wrap(arith::ConstantOp::create(*this, getI32IntegerAttr(value)));
}

Scalar TileBuilder::f32(double value) {
  return wrap(arith::ConstantOp::create(*this, getF32FloatAttr(value)));
}

Scalar TileBuilder::constantLike(Scalar other, int64_t value) {
  return wrap(arith::ConstantOp::create(
      *this, cast<TypedAttr>(getIntegerAttr(other.type(), value))));
}

Scalar TileBuilder::wide(Scalar value) {
  return wrap(createOrFold<arith::ExtSIOp>(getI64Type(), Value(value)));
}

Scalar TileBuilder::boolean(bool value) {
  return wrap(arith::ConstantOp::create(*this, getBoolAttr(value)));
}

Scalar TileBuilder::narrow(Scalar value) {
  return wrap(createOrFold<arith::TruncIOp>(getI32Type(), Value(value)));
}

Scalar TileBuilder::min(Scalar a, Scalar b) {
  if (isFloat(a.type()))
    return wrap(createOrFold<arith::MinNumFOp>(Value(a), Value(b)));
  return wrap(createOrFold<arith::MinSIOp>(Value(a), Value(b)));
}

Scalar TileBuilder::max(Scalar a, Scalar b) {
  if (isFloat(a.type()))
    return wrap(createOrFold<arith::MaxNumFOp>(Value(a), Value(b)));
  return wrap(createOrFold<arith::MaxSIOp>(Value(a), Value(b)));
}

Scalar TileBuilder::select(Scalar condition, Scalar yes, Scalar no) {
  return wrap(
      createOrFold<arith::SelectOp>(Value(condition), Value(yes), Value(no)));
}

Scalar TileBuilder::ceil(Value x) {
  return wrap(math::CeilOp::create(*this, x));
}

Scalar TileBuilder::abs(Value x) {
  return wrap(math::AbsFOp::create(*this, x));
}

Scalar TileBuilder::product(Value a, Value b) {
  return wrap(createOrFold<arith::MulFOp>(a, b));
}

Scalar TileBuilder::exp2(Value x) {
  return wrap(math::Exp2Op::create(*this, x));
}

Scalar TileBuilder::log2(Value x) {
  return wrap(math::Log2Op::create(*this, x));
}

Scalar TileBuilder::fma(Value a, Value b, Value c) {
  return wrap(math::FmaOp::create(*this, a, b, c));
}

Scalar TileBuilder::programId(int dim) {
  return wrap(ProgramIdOp::create(*this, getI32Type(), uint32_t(dim)));
}

Scalar TileBuilder::gridSize(int dim) {
  return wrap(GridSizeOp::create(*this, getI32Type(), uint32_t(dim)));
}

Scalar TileBuilder::warpId() {
  return wrap(WarpIdOp::create(*this, getI32Type()));
}

//===----------------------------------------------------------------------===//
// TileBuilder: fragments and rows
//===----------------------------------------------------------------------===//

FragType TileBuilder::accType(int64_t rows, int64_t columns) {
  return FragType::get(getContext(), rows, columns, getF32Type(),
                       FragmentLayout::acc);
}

FragType TileBuilder::lhsType(int64_t rows, int64_t columns, Type element) {
  return FragType::get(getContext(), rows, columns, element,
                       FragmentLayout::lhs);
}

FragType TileBuilder::rhsType(int64_t rows, int64_t columns, Type element) {
  return FragType::get(getContext(), rows, columns, element,
                       FragmentLayout::rhs);
}

RowType TileBuilder::rowType(int64_t rows, bool partial) {
  return RowType::get(getContext(), rows, getF32Type(), partial);
}

RowType TileBuilder::indexRowType(int64_t rows) {
  return RowType::get(getContext(), rows, getI32Type(), /*partial=*/false);
}

PendingType TileBuilder::pendingType(int64_t columns) {
  return PendingType::get(getContext(), kWarpRows, columns);
}

Value TileBuilder::fill(Scalar value, Type type) {
  return FillOp::create(*this, type, value);
}

/// The block of a function of elements, with so many indices in front of them.
static Block *createElementBlock(TileBuilder &b, Region &region,
                                 unsigned indices, TypeRange inputs) {
  SmallVector<Type> types(indices, b.getI32Type());
  for (Type type : inputs)
    types.push_back(isa<FragType>(type) ? cast<FragType>(type).getElementType()
                                        : cast<RowType>(type).getElementType());
  return b.createBlock(&region, {}, types,
                       SmallVector<Location>(types.size(), b.getLoc()));
}

static SmallVector<Scalar> elementsOf(TileBuilder &b, Block *block,
                                      unsigned indices) {
  return llvm::map_to_vector(block->getArguments().drop_front(indices),
                             [&](Value v) { return b.wrap(v); });
}

Value TileBuilder::map(ValueRange inputs, Type result, MapBody body) {
  auto op = MapOp::create(*this, result, inputs);
  bool fragment = isa<FragType>(result);
  unsigned indices = fragment ? 2 : 1;
  OpBuilder::InsertionGuard guard(*this);
  Block *block =
      createElementBlock(*this, op.getBody(), indices, inputs.getTypes());
  Scalar row = wrap(block->getArgument(0));
  Scalar column = fragment ? wrap(block->getArgument(1)) : Scalar();
  YieldOp::create(*this, body(row, column, elementsOf(*this, block, indices)));
  return op;
}

void TileBuilder::addElements(ValueRange inputs, Scalar base, Scalar offset,
                              AdditionBody body) {
  auto op = AddElementsOp::create(*this, inputs, base, offset);
  OpBuilder::InsertionGuard guard(*this);
  constexpr unsigned indices = 2;
  Block *block =
      createElementBlock(*this, op.getBody(), indices, inputs.getTypes());
  Addition one = body(wrap(block->getArgument(0)), wrap(block->getArgument(1)),
                      elementsOf(*this, block, indices));
  AddOp::create(*this, one.value, one.index, one.exists);
}

Value TileBuilder::rowMax(Value fragment, Value init) {
  int64_t rows = cast<FragType>(fragment.getType()).getRows();
  return RowReduceOp::create(*this, rowType(rows), Reduction::max, fragment,
                             init);
}

Value TileBuilder::rowSum(Value fragment, Value init) {
  int64_t rows = cast<FragType>(fragment.getType()).getRows();
  return RowReduceOp::create(*this, rowType(rows, /*partial=*/true),
                             Reduction::add, fragment, init);
}

Value TileBuilder::await(Value product, int64_t younger) {
  int64_t columns = cast<PendingType>(product.getType()).getColumns();
  return WgmmaWaitOp::create(*this, TypeRange(accType(kWarpRows, columns)),
                             uint32_t(younger), product)
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// TileBuilder: control flow
//===----------------------------------------------------------------------===//

ValueRange TileBuilder::loop(Scalar lower, Scalar upper, ValueRange init,
                             LoopBody body) {
  auto op = scf::ForOp::create(*this, Value(lower), Value(upper), Value(i32(1)),
                               init);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.getBody());
  SmallVector<Value> next =
      body(wrap(op.getInductionVar()), op.getRegionIterArgs());
  // With nothing carried the loop comes with its terminator.
  if (!init.empty())
    scf::YieldOp::create(*this, next);
  return op.getResults();
}

void TileBuilder::when(Scalar condition, function_ref<void()> body) {
  auto op = scf::IfOp::create(*this, Value(condition), /*withElse=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(op.thenBlock());
  body();
}

ValueRange TileBuilder::choose(Scalar condition, Branch yes, Branch no) {
  // The types are known when the first branch is written.
  auto op = scf::IfOp::create(*this, TypeRange(), Value(condition),
                              /*withElse=*/true);
  SmallVector<Value> results;
  for (auto [block, body] :
       {std::pair(op.thenBlock(), yes), std::pair(op.elseBlock(), no)}) {
    OpBuilder::InsertionGuard guard(*this);
    block->clear();
    setInsertionPointToStart(block);
    results = body();
    scf::YieldOp::create(*this, results);
  }
  auto typed = scf::IfOp::create(*this, TypeRange(ValueRange(results)),
                                 Value(condition));
  typed.getThenRegion().takeBody(op.getThenRegion());
  typed.getElseRegion().takeBody(op.getElseRegion());
  op.erase();
  return typed.getResults();
}

ValueRange TileBuilder::repeat(ValueRange init, Test test, WhileBody body) {
  auto op = scf::WhileOp::create(*this, init.getTypes(), init);
  SmallVector<Location> locations(init.size(), getLoc());
  OpBuilder::InsertionGuard guard(*this);
  Block *before = createBlock(&op.getBefore(), {}, init.getTypes(), locations);
  Scalar holds = test(before->getArguments());
  scf::ConditionOp::create(*this, Value(holds), before->getArguments());
  Block *after = createBlock(&op.getAfter(), {}, init.getTypes(), locations);
  SmallVector<Value> next = body(after->getArguments());
  scf::YieldOp::create(*this, next);
  return op.getResults();
}

void TileBuilder::roles(function_ref<void()> declare) {
  auto op = RolesOp::create(*this);
  {
    InsertionGuard guard(*this);
    createBlock(&op.getBody());
    declare();
  }
  ReturnOp::create(*this);
}

void TileBuilder::role(StringRef name, int64_t warps, int64_t registers,
                       bool singleLane, function_ref<void()> body) {
  auto op = RoleOp::create(*this, name, uint32_t(warps), uint32_t(registers),
                           singleLane);
  InsertionGuard guard(*this);
  createBlock(&op.getBody());
  body();
}
