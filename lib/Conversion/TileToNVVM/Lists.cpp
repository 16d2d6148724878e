//===- Lists.cpp - What makes lists of blocks -----------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct AnyLowering : OpConversionPattern<AnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AnyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0)), above;
    for (Value value : adaptor.getValues()) {
      Value one =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, zero);
      above = above ? Value(arith::OrIOp::create(b, above, one)) : one;
    }
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(
        op, b.getI1Type(), b.i32(-1), above, NVVM::VoteSyncKind::any);
    return success();
  }
};

struct StoreNumberLowering : OpConversionPattern<StoreNumberOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreNumberOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    constexpr int64_t bytes = 4;
    Lane b(op.getLoc(), rewriter);
    b.when(b.isFirstLane(), [&] {
      Value index = adaptor.getIndex();
      if (index.getType().isInteger(32))
        index = b.wide(index);
      LLVM::StoreOp::create(b, adaptor.getValue(),
                            b.offset(adaptor.getBase(), b.mul(index, bytes)),
                            unsigned(bytes));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::populateListPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns.add<AnyLowering, StoreNumberLowering>(converter,
                                                 patterns.getContext());
}
