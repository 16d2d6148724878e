//===- Wgmma.cpp - Products of a warpgroup --------------------------------===//
//
// A product is a fence, one instruction per step of 32 bytes along the
// contracted extent, and a commit; several that go on with each other may have
// those in common.  ptxas keeps products in flight only if no
// other instruction defines or reads their registers meanwhile; so registers
// are tied before the fence and behind the wait, and nowhere else.
//
// A product of more than 256 columns is several instructions a step, side by
// side, which begin at panels.
//
// Factors in shared memory are named by descriptors (PTX ISA, "Matrix
// descriptor format"): the address, the leading and the stride offset in units
// of 16 bytes, and the swizzle.  Two forms follow from the layout sw128:
//
// * k along the columns: stride offset 1024 (8 rows); a step is 32 bytes, and a
//   panel is `panelBytes` further;
// * k down the rows: leading offset `panelBytes` (the next columns), stride
//   offset 1024 (8 rows); a step is 16 rows, 2048 bytes.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "attn/Schedule/Footprint.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kUnit = 16; ///< bytes that descriptors count in
constexpr int64_t kStepBytes = 32;

/// A factor in shared memory, from a row or column of a stage on.
class Descriptors {
public:
  /// `kDown`: the contracted extent runs down the rows.  The factor begins at a
  /// row, or at the first column of a panel (null is 0).  The descriptors of a
  /// few steps stay in uniform registers; of many each is made anew.  `steps`
  /// are those of a group.
  Descriptors(Lane &b, SmemType type, Value buffer, Value stage, Value row,
              Value column, int64_t steps, bool kDown)
      : type(type), kDown(kDown),
        isWide(steps <= kMostKeptDescriptors && type.getStages() == 1) {
    bool areKept = steps <= kMostKeptDescriptors;
    constexpr int64_t addressMask = 0x3fff;
    int64_t leading = (kDown ? type.panelBytes() / kUnit : 1) << 16;
    // LLVM would compute the descriptors of all stages that are known, and of
    // many steps, ahead of the loop: more than there are uniform registers for.
    bool hasKnownStages =
        stage && getConstantIntValue(stage) && type.getStages() > 1;
    if (hasKnownStages || !areKept)
      buffer = b.opaque(buffer);
    if (row)
      buffer = b.add(buffer, b.mul(row, SmemType::kPanelBytes));
    if (column)
      buffer = b.add(
          buffer, b.mul(b.div(column, type.panelColumns()), type.panelBytes()));
    base = b.bitAnd(b.shiftRight(buffer, 4), addressMask);
    base = isWide ? wide(b, base, leading) : b.add(base, leading);
    if (type.getStages() > 1)
      base = b.add(base, b.mul(stage, type.stageBytes() / kUnit));
  }

  /// Of step k; `column` is the product's, of which a panel has 64 where k runs
  /// down the rows, and which are rows otherwise.
  Value step(Lane &b, int64_t k, int64_t column = 0) const {
    int64_t perPanel = SmemType::kPanelBytes / kStepBytes;
    int64_t bytes = kDown ? k * 16 * SmemType::kPanelBytes +
                                column / type.panelColumns() * type.panelBytes()
                          : k / perPanel * type.panelBytes() +
                                k % perPanel * kStepBytes +
                                column * SmemType::kPanelBytes;
    Value place = b.add(base, bytes / kUnit);
    return isWide ? place : wide(b, place);
  }

private:
  SmemType type;
  bool kDown, isWide;
  /// Of step 0: all of it, or the low half, in which sums with a slot are made:
  /// ptxas 13.0 lost the high half of some sums of 64 bits.
  Value base;

  static Value extend(Lane &b, Value low) {
    return arith::ExtUIOp::create(b, b.getI64Type(), low);
  }
  /// With the high half, which is the same everywhere, and more bits.
  static Value wide(Lane &b, Value low, int64_t more = 0) {
    constexpr int64_t high =
        int64_t(1) << 62 | (SmemType::kSwizzleBytes / kUnit) << 32;
    return arith::OrIOp::create(b, extend(b, low), b.i64(high | more));
  }
};

/// `$first, .. $first + count - 1` in braces.
std::string registerList(int64_t first, int64_t count) {
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ",$" : "$") + std::to_string(first + i);
  return text + "}";
}

StringRef typeName(Type element) {
  if (element.isBF16())
    return "bf16";
  return element.isF16() ? "f16" : "e4m3";
}

struct WgmmaLowering : OpConversionPattern<WgmmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType rhs = op.getRhs().getType();
    int64_t steps = op.depth() * rhs.elementBytes() / kStepBytes;
    // Products of a group have factors of their own.
    bool isAlone = !op.getOpen() && !op.joins();
    int64_t stepsOfGroup = isAlone ? steps : kMostKeptDescriptors + 1;
    Descriptors right(b, rhs, adaptor.getRhs().front(),
                      adaptor.getRhsStage().front(), /*row=*/Value(),
                      op.getRhsColumn() ? adaptor.getRhsColumn().front()
                                        : Value(),
                      stepsOfGroup, !op.getTranspose());

    // A sum in flight is not to be touched.
    bool goesOn = op.getAcc() && isa<PendingType>(op.getAcc().getType());
    Registers acc = goesOn        ? llvm::to_vector(adaptor.getAcc())
                    : op.getAcc() ? b.tie(adaptor.getAcc())
                                  : zeros(b, op);
    Registers left;
    std::optional<Descriptors> leftPlace;
    if (auto lhs = dyn_cast<SmemType>(op.getLhs().getType())) {
      Value at = adaptor.getLhsRow().front();
      bool kDown = op.getLhsTranspose();
      leftPlace.emplace(b, lhs, adaptor.getLhs().front(),
                        adaptor.getLhsStage().front(), kDown ? Value() : at,
                        kDown ? at : Value(), stepsOfGroup, kDown);
    } else {
      left = b.tie(adaptor.getLhs());
    }
    int64_t columns = op.getResult().getType().getColumns();
    int64_t most = columnsOfInstruction(columns);
    if (!op.joins())
      NVVM::WgmmaFenceAlignedOp::create(b);
    for (int64_t k = 0; k < steps; ++k) {
      Registers factor = leftPlace ? Registers{leftPlace->step(b, k)}
                                   : Registers(ArrayRef(left).slice(4 * k, 4));
      bool accumulate = op.getAcc() || k > 0;
      // Two columns a register.
      Registers sums;
      for (int64_t at = 0; at < columns; at += most)
        llvm::append_range(
            sums,
            issue(b, op,
                  ArrayRef(acc).slice(at / 2, std::min(most, columns - at) / 2),
                  factor, right.step(b, k, at), accumulate));
      acc = std::move(sums);
    }
    if (!op.getOpen())
      NVVM::WgmmaGroupSyncAlignedOp::create(b);
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }

private:
  static Registers zeros(Lane &b, WgmmaOp op) {
    // Not read: the first step does not accumulate.
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    return Registers(op.getResult().getType().getColumns() / 2, zero);
  }

  /// Columns of each instruction of a step but the last: as even as panels
  /// allow.
  static int64_t columnsOfInstruction(int64_t columns) {
    constexpr int64_t most = 256, panel = 64;
    int64_t instructions = llvm::divideCeil(columns, most);
    return llvm::alignTo(llvm::divideCeil(columns, instructions), panel);
  }

  static Registers issue(Lane &b, WgmmaOp op, ArrayRef<Value> acc,
                         const Registers &left, Value right, bool accumulate) {
    Type element = op.getRhs().getType().getElementType();
    int64_t count = acc.size(), inputs = left.size();
    bool inRegisters = inputs == 4;
    // Outputs come first, then their tied inputs.
    int64_t leftAt = 2 * count, rightAt = leftAt + inputs;
    std::string type = typeName(element).str();
    std::string k = element.getIntOrFloatBitWidth() == 8 ? "32" : "16";
    std::string text =
        "{ .reg .pred p; setp.ne.b32 p, $" + std::to_string(rightAt + 1) +
        ", 0; wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * count) +
        "k" + k + ".f32." + type + "." + type + " " + registerList(0, count) +
        ", " +
        (inRegisters ? registerList(leftAt, 4) : "$" + std::to_string(leftAt)) +
        ", $" + std::to_string(rightAt) + ", p, 1, 1";
    // Whether k runs down the rows, for factors of 16 bits in shared memory.
    if (element.getIntOrFloatBitWidth() == 16) {
      if (!inRegisters)
        text += op.getLhsTranspose() ? ", 1" : ", 0";
      text += op.getTranspose() ? ", 0" : ", 1";
    }
    text += "; }";
    std::string constraints;
    for (int64_t i = 0; i < count; ++i)
      constraints += "=f,";
    for (int64_t i = 0; i < count; ++i)
      constraints += std::to_string(i) + ",";
    constraints += inRegisters ? "r,r,r,r,l,n" : "l,l,n";

    SmallVector<Value> operands(acc.begin(), acc.end());
    llvm::append_range(operands, left);
    operands.push_back(right);
    operands.push_back(b.i32(accumulate));
    return b.assembly(SmallVector<Type>(count, b.getF32Type()), text,
                      constraints, operands);
  }
};

struct WgmmaWaitLowering : OpConversionPattern<WgmmaWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaWaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    NVVM::WgmmaWaitGroupSyncOp::create(b, uint64_t(op.getInFlight()));
    SmallVector<Registers> fragments;
    for (ValueRange product : adaptor.getProducts())
      fragments.push_back(b.tie(product));
    if (fragments.empty())
      rewriter.eraseOp(op);
    else
      rewriter.replaceOpWithMultiple(op, std::move(fragments));
    return success();
  }
};

} // namespace

void attn::populateWgmmaPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<WgmmaLowering, WgmmaWaitLowering>(converter,
                                                 patterns.getContext());
}
