//===- Lane.cpp - What one lane of a warp computes ------------------------===//

#include "Lane.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

Value Lane::i32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
}

Value Lane::i64(int64_t value) {
  return arith::ConstantOp::create(*this, getI64IntegerAttr(value));
}

/// A constant of the type of another value.
static Value like(Lane &b, Value other, int64_t value) {
  return other.getType().isInteger(64) ? b.i64(value) : b.i32(value);
}

Value Lane::add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
Value Lane::add(Value a, int64_t b) { return add(a, like(*this, a, b)); }
Value Lane::sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
Value Lane::mul(Value a, Value b) { return createOrFold<arith::MulIOp>(a, b); }
Value Lane::mul(Value a, int64_t b) { return mul(a, like(*this, a, b)); }

Value Lane::div(Value a, int64_t b) {
  return createOrFold<arith::DivUIOp>(a, like(*this, a, b));
}

Value Lane::rem(Value a, int64_t b) {
  return createOrFold<arith::RemUIOp>(a, like(*this, a, b));
}

Value Lane::bitAnd(Value a, int64_t mask) {
  return createOrFold<arith::AndIOp>(a, i32(mask));
}

Value Lane::shiftRight(Value a, int64_t bits) {
  return createOrFold<arith::ShRUIOp>(a, i32(bits));
}

Value Lane::both(Value a, Value b) { return createOrFold<arith::AndIOp>(a, b); }

Value Lane::less(Value a, Value b) {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}

Value Lane::select(Value condition, Value yes, Value no) {
  return createOrFold<arith::SelectOp>(condition, yes, no);
}

Value Lane::wide(Value a) {
  return createOrFold<arith::ExtSIOp>(getI64Type(), a);
}

std::pair<Value, int64_t> Lane::splitConstant(Value sum) {
  auto add = sum.getDefiningOp<arith::AddIOp>();
  APInt constant;
  if (!add || !matchPattern(add.getRhs(), m_ConstantInt(&constant)))
    return {sum, 0};
  auto [rest, more] = splitConstant(add.getLhs());
  return {rest, constant.getSExtValue() + more};
}

Value Lane::thread() { return NVVM::ThreadIdXOp::create(*this, getI32Type()); }

Value Lane::lane() { return bitAnd(thread(), 31); }
Value Lane::quad() { return shiftRight(lane(), 2); }
Value Lane::inQuad() { return bitAnd(lane(), 3); }

LLVM::LLVMPointerType Lane::globalPointer() {
  return LLVM::LLVMPointerType::get(getContext(),
                                    unsigned(NVVM::NVVMMemorySpace::Global));
}

LLVM::LLVMPointerType Lane::sharedPointer() {
  return LLVM::LLVMPointerType::get(getContext(),
                                    unsigned(NVVM::NVVMMemorySpace::Shared));
}

Value Lane::offset(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value Lane::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

Value Lane::shared(Value address) {
  return LLVM::IntToPtrOp::create(*this, sharedPointer(), address);
}

Value Lane::opaque(Value value) {
  return assembly(value.getType(), "", "=r,0", value).front();
}

SmallVector<Value> Lane::assembly(TypeRange results, StringRef text,
                                  StringRef constraints, ValueRange operands) {
  Type result;
  if (results.size() == 1)
    result = results.front();
  else if (results.size() > 1)
    result = LLVM::LLVMStructType::getLiteral(getContext(),
                                              llvm::to_vector(results));
  auto op = LLVM::InlineAsmOp::create(
      *this, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  if (results.size() <= 1)
    return SmallVector<Value>(op->getResults());
  SmallVector<Value> values;
  for (size_t i = 0; i < results.size(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(*this, op.getRes(), i));
  return values;
}

void Lane::memoryAssembly(StringRef text, StringRef constraints,
                          ValueRange operands) {
  assembly({}, text,
           (constraints + (constraints.empty() ? "" : ",") + "~{memory}").str(),
           operands);
}

SmallVector<Value> Lane::tie(ValueRange values) {
  if (values.empty())
    return {};
  StringRef letter = values.front().getType().isF32() ? "=f" : "=r";
  std::string outputs, inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    outputs += (i ? "," : "") + letter.str();
    inputs += "," + std::to_string(i);
  }
  return assembly(values.getTypes(), "", outputs + inputs, values);
}

void Lane::when(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(*this, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

Value Lane::uniform(Value value) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(-1), value, i32(0),
                              i32(31), NVVM::ShflKind::idx,
                              /*return_value_and_is_valid=*/UnitAttr());
}

Value Lane::warp() { return uniform(shiftRight(thread(), 5)); }

Value Lane::isFirstLane() {
  return createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, lane(), i32(0));
}

bool attn::isSingleLane(Operation *op) {
  for (Operation *o = op->getParentOp(); o; o = o->getParentOp())
    if (o->hasAttr(kSingleLaneAttr))
      return true;
  return false;
}

Value Lane::shuffleXor(Value value, int64_t mask) {
  return NVVM::ShflOp::create(*this, value.getType(), i32(-1), value, i32(mask),
                              i32(31), NVVM::ShflKind::bfly,
                              /*return_value_and_is_valid=*/UnitAttr());
}

void attn::storeFour(Lane &b, Value pointer, const Registers &words) {
  constexpr int64_t pieceBytes = 16;
  Type four = VectorType::get({4}, b.getI32Type());
  Value piece = LLVM::UndefOp::create(b, four);
  for (auto [i, word] : llvm::enumerate(words))
    piece = LLVM::InsertElementOp::create(b, piece, word, b.i32(int64_t(i)));
  LLVM::StoreOp::create(b, piece, pointer, pieceBytes);
}
