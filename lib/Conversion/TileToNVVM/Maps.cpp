//===- Maps.cpp - Elementwise functions, and numbers that lanes read ------===//
//
// A map is written out once per register, and so are additions of elements. Row
// and column of an element are a number of the lane plus a constant; where
// numbers are read by indices, or made of them, constants are kept outermost in
// sums of these, so that one address or one conversion to a float serves all
// columns of a row: `table[i - j]` at column n is `[address - 4 n]`, and
// `float(j - i)` is `float(j0 - i) + n`, which is exact up to 2^24.  Times a
// number that all elements of a row share it is one instruction: `s float(j -
// i)` is `n s + s float(j0 - i)`.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

Value numberOf(Lane &b, Value index, int64_t constant) {
  Type f32 = b.getF32Type();
  Value number = arith::SIToFPOp::create(b, f32, index);
  if (constant == 0)
    return number;
  Value more = arith::ConstantOp::create(b, b.getF32FloatAttr(float(constant)));
  return arith::AddFOp::create(b, number, more);
}

/// Compares with constants moved to one side: a column is (lane's column +
/// constant), and `column <= limit` becomes `constant <= limit - lane's
/// column`.  Otherwise every column of the fragment would be an invariant of
/// the kernel's loop and held in a register.
Value compareIndices(Lane &b, arith::CmpIOp op, const IRMapping &mapping) {
  auto [left, leftConstant] =
      b.splitConstant(mapping.lookupOrDefault(op.getLhs()));
  auto [right, rightConstant] =
      b.splitConstant(mapping.lookupOrDefault(op.getRhs()));
  bool unsignedOrder = op.getPredicate() >= arith::CmpIPredicate::ult;
  if (unsignedOrder || (leftConstant == 0 && rightConstant == 0))
    return arith::CmpIOp::create(b, op.getPredicate(),
                                 mapping.lookupOrDefault(op.getLhs()),
                                 mapping.lookupOrDefault(op.getRhs()));
  return arith::CmpIOp::create(b, op.getPredicate(),
                               b.i32(leftConstant - rightConstant),
                               b.sub(right, left));
}

/// What ops on i32 give of sums with constants outermost; null of others, and
/// of all but comparisons where no numbers depend on indices.
Value ofIndices(Lane &b, Operation &op, const IRMapping &mapping,
                bool hasNumbers) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compareIndices(b, compare, mapping);
  auto number = dyn_cast<arith::SIToFPOp>(op);
  bool isSum = isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) &&
               op.getResult(0).getType().isInteger(32);
  bool isNumber = number && number.getType().isF32() &&
                  number.getIn().getType().isInteger(32);
  if (!hasNumbers || (!isSum && !isNumber))
    return {};
  auto [left, c] = b.splitConstant(mapping.lookupOrDefault(op.getOperand(0)));
  if (isNumber)
    return numberOf(b, left, c);
  Value other = mapping.lookupOrDefault(op.getOperand(1));
  if (APInt factor; isa<arith::MulIOp>(op)) {
    if (c == 0 || !matchPattern(other, m_ConstantInt(&factor)))
      return {};
    return b.add(b.mul(left, other), c * factor.getSExtValue());
  }
  auto [right, d] = b.splitConstant(other);
  if (isa<arith::AddIOp>(op))
    return b.add(b.add(left, right), c + d);
  return b.add(b.sub(left, right), c - d);
}

/// Whether all elements of a row share a value that a body uses.
bool isOfRow(Block &body, ValueRange inputs, Value value) {
  if (value.getParentBlock() != &body)
    return true;
  auto argument = dyn_cast<BlockArgument>(value);
  constexpr unsigned indices = 2;
  return argument && argument.getArgNumber() >= indices &&
         isa<RowType>(inputs[argument.getArgNumber() - indices].getType());
}

/// Of a product of such a value and an index with a constant (`numberOf`):
/// the constant's part is added to that of the index.  Null of others.
Value productOf(Lane &b, ValueRange inputs, Operation &op,
                const IRMapping &mapping) {
  if (!isa<arith::MulFOp>(op))
    return {};
  for (unsigned place : {0, 1}) {
    Value factor = op.getOperand(1 - place);
    auto sum = mapping.lookupOrDefault(op.getOperand(place))
                   .getDefiningOp<arith::AddFOp>();
    if (!sum || !isOfRow(*op.getBlock(), inputs, factor) ||
        !sum.getLhs().getDefiningOp<arith::SIToFPOp>() ||
        !sum.getRhs().getDefiningOp<arith::ConstantOp>())
      continue;
    factor = mapping.lookupOrDefault(factor);
    Value rest = arith::MulFOp::create(b, sum.getLhs(), factor);
    return math::FmaOp::create(b, sum.getRhs(), factor, rest);
  }
  return {};
}

/// The body with these arguments, an element of each input behind the indices;
/// what it ends in.
SmallVector<Value> inlineBody(Lane &b, Block &body, ValueRange inputs,
                              bool hasNumbers, ArrayRef<Value> arguments) {
  bool hasColumns = arguments.size() == inputs.size() + 2;
  IRMapping mapping;
  mapping.map(body.getArguments(), ValueRange(arguments));
  hasNumbers |= llvm::any_of(body, [](Operation &inner) {
    return isa<tile::ReadOp, arith::SIToFPOp>(inner);
  });
  for (Operation &inner : body.without_terminator()) {
    Value result;
    if (hasColumns) {
      result = ofIndices(b, inner, mapping, hasNumbers);
      if (!result)
        result = productOf(b, inputs, inner, mapping);
    }
    if (result)
      mapping.map(inner.getResult(0), result);
    else
      b.clone(inner, mapping);
  }
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Writes out the region once per register of the result.
struct MapLowering : OpConversionPattern<MapOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MapOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    auto fragment = dyn_cast<FragType>(op.getResult().getType());
    int64_t rows = fragment ? fragment.getRows()
                            : cast<RowType>(op.getResult().getType()).getRows();
    int64_t pieces = fragment ? fragment.getColumns() / 8 : 1;
    Value firstRow = b.quad();
    Value firstColumn = b.mul(b.inQuad(), 2);

    Registers registers;
    for (int64_t m = 0; m < rows / 16; ++m)
      for (int64_t n = 0; n < pieces; ++n)
        for (int64_t i = 0; i < (fragment ? 4 : 2); ++i) {
          int64_t half = fragment ? i / 2 : i;
          SmallVector<Value> arguments = {b.add(firstRow, m * 16 + half * 8)};
          if (fragment)
            arguments.push_back(b.add(firstColumn, n * 8 + i % 2));
          for (auto [input, values] :
               llvm::zip(op.getInputs(), adaptor.getInputs()))
            arguments.push_back(isa<FragType>(input.getType())
                                    ? values[(m * pieces + n) * 4 + i]
                                    : values[m * 2 + half]);
          registers.push_back(inlineBody(b, op.getBody().front(),
                                         op.getInputs(),
                                         /*hasNumbers=*/false, arguments)
                                  .front());
        }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

/// Once per register, as additions that nobody waits for, one for each element.
struct AddElementsLowering : OpConversionPattern<AddElementsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AddElementsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    auto fragment = cast<FragType>(op.getInputs().front().getType());
    int64_t pieces = fragment.getColumns() / 8;
    Value firstRow = b.quad(), firstColumn = b.mul(b.inQuad(), 2);
    Value base = adaptor.getBase().front(),
          offset = adaptor.getOffset().front();
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m)
      for (int64_t n = 0; n < pieces; ++n)
        for (int64_t i = 0; i < 4; ++i) {
          SmallVector<Value> arguments = {b.add(firstRow, m * 16 + i / 2 * 8),
                                          b.add(firstColumn, n * 8 + i % 2)};
          for (auto [input, values] :
               llvm::zip(op.getInputs(), adaptor.getInputs()))
            arguments.push_back(isa<FragType>(input.getType())
                                    ? values[(m * pieces + n) * 4 + i]
                                    : values[m * 2 + i / 2]);
          add(b, base, offset,
              inlineBody(b, op.getBody().front(), op.getInputs(),
                         /*hasNumbers=*/true, arguments));
        }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The same of a place in rows and, widened, in a row.
  static std::pair<Value, int64_t> splitPlace(Lane &b, Value place) {
    auto sum = place.getDefiningOp<arith::AddIOp>();
    auto wide = sum ? sum.getRhs().getDefiningOp<arith::ExtSIOp>() : nullptr;
    if (!wide)
      return b.splitConstant(place);
    auto [rest, constant] = b.splitConstant(wide.getIn());
    return {b.add(sum.getLhs(), b.wide(rest)), constant};
  }

  /// A predicate and not a branch: products may be in flight.
  static void add(Lane &b, Value base, Value offset, ArrayRef<Value> addition) {
    constexpr int64_t bytes = 4;
    auto [rest, constant] = splitPlace(b, addition[1]);
    if (rest.getType().isInteger(32))
      rest = b.wide(rest);
    SmallVector<Value> operands = {
        b.offset(base, b.mul(b.add(offset, rest), bytes)), addition[0]};
    std::string text = "red.relaxed.gpu.global.add.f32 [$0+" +
                       std::to_string(constant * bytes) + "], $1;";
    std::string constraints = "l,f";
    if (addition.size() > 2) {
      operands.push_back(
          arith::ExtUIOp::create(b, b.getI32Type(), addition[2]));
      text = "{ .reg .pred p; setp.ne.b32 p, $2, 0; @p " + text + " }";
      constraints += ",r";
    }
    b.assembly({}, text, constraints, operands);
  }
};

/// Of arrays that nothing writes: such loads may be merged.
struct ReadLowering : OpConversionPattern<tile::ReadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Type element = op.getBase().getType().getElementType();
    int64_t bits = element.getIntOrFloatBitWidth();
    int64_t bytes = std::max<int64_t>(bits / 8, 1);
    auto [rest, constant] = b.splitConstant(adaptor.getIndex());
    if (rest.getType().isInteger(32))
      rest = b.wide(rest);
    // What the array is displaced by is mostly the same for a tile, and then
    // what is left is a product and a sum in one instruction.
    Value base = b.offset(adaptor.getBase(), b.mul(adaptor.getOffset(), bytes));
    Value address =
        b.offset(b.offset(base, b.mul(rest, bytes)), constant * bytes);
    Type loaded = b.getIntegerType(unsigned(bytes * 8));
    Value value = adaptor.getExists()
                      ? loadIf(b, adaptor.getExists(), address, loaded)
                      : load(b, address, loaded);
    rewriter.replaceOp(op, numberOf(b, value, element));
    return success();
  }

private:
  static Value load(Lane &b, Value address, Type type) {
    auto load = LLVM::LoadOp::create(b, type, address,
                                     type.getIntOrFloatBitWidth() / 8);
    load.setInvariant(true);
    return load;
  }

  /// A predicate and not a branch: products may be in flight.
  static Value loadIf(Lane &b, Value exists, Value address, Type type) {
    unsigned bits = type.getIntOrFloatBitWidth();
    Type result = b.getIntegerType(std::max(bits, 16u));
    StringRef constraint = bits == 64 ? "l" : bits == 32 ? "r" : "h";
    std::string size = std::to_string(std::max(bits, 16u));
    std::string text = "{ .reg .pred p; setp.ne.b32 p, $2, 0; mov.b" + size +
                       " $0, 0; @p ld.global.nc.b" + std::to_string(bits) +
                       " $0, [$1]; }";
    Value asked = arith::ExtUIOp::create(b, b.getI32Type(), exists);
    auto op = LLVM::InlineAsmOp::create(
        b, TypeRange(result), ValueRange{address, asked}, text,
        ("=&" + constraint + ",l,r").str(), /*has_side_effects=*/false,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
    Value value = op.getResult(0);
    return bits < 16 ? Value(arith::TruncIOp::create(b, type, value)) : value;
  }

  static Value numberOf(Lane &b, Value bits, Type element) {
    if (isa<FloatType>(element)) {
      Value number = arith::BitcastOp::create(b, element, bits);
      if (element.isF32())
        return number;
      return arith::ExtFOp::create(b, b.getF32Type(), number);
    }
    if (element.isInteger(64) || element.isInteger(32))
      return bits;
    if (element.isInteger(1))
      return b.bitAnd(arith::ExtUIOp::create(b, b.getI32Type(), bits), 1);
    return arith::ExtSIOp::create(b, b.getI32Type(), bits);
  }
};

/// The machine's own approximations: accurate to 2 ulp, one instruction.
/// Denormal results become zero, which a softmax weight may be.
template <typename Op> struct ApproximateLowering : OpConversionPattern<Op> {
  ApproximateLowering(const TypeConverter &converter, MLIRContext *context,
                      StringRef intrinsic)
      : OpConversionPattern<Op>(converter, context), intrinsic(intrinsic) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr(intrinsic),
        ValueRange(adaptor.getOperands()));
    return success();
  }

private:
  StringRef intrinsic;
};

/// The same where MLIR has no intrinsic: within 2^-10.987 of the result.
struct TanhLowering : OpConversionPattern<math::TanhOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(math::TanhOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::InlineAsmOp>(
        op, TypeRange(op.getType()), ValueRange(adaptor.getOperand()),
        "tanh.approx.f32 $0, $1;", "=f,f", /*has_side_effects=*/false,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
    return success();
  }
};

} // namespace

void attn::populateMapPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<MapLowering, AddElementsLowering, ReadLowering, TanhLowering>(
      converter, context);
  patterns.add<ApproximateLowering<math::Exp2Op>>(converter, context,
                                                  "llvm.nvvm.ex2.approx.ftz");
  patterns.add<ApproximateLowering<math::Log2Op>>(converter, context,
                                                  "llvm.nvvm.lg2.approx.ftz.f");
  patterns.add<ApproximateLowering<math::SqrtOp>>(converter, context,
                                                  "llvm.nvvm.sqrt.approx.f");
  patterns.add<ApproximateLowering<math::RsqrtOp>>(converter, context,
                                                   "llvm.nvvm.rsqrt.approx.f");
}
