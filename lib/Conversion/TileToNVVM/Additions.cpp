//===- Additions.cpp - Sums of what elements have -------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Registers of a lane, then the lanes of its row if each has a part, then the
/// eight rows of lanes.
struct TotalLowering : OpConversionPattern<TotalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TotalOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value sum;
    for (Value value : adaptor.getValues())
      sum = sum ? Value(arith::AddFOp::create(b, sum, value)) : value;
    constexpr int64_t lanes = 32, lanesOfRow = 4;
    int64_t first = op.getValues().getType().getPartial() ? 1 : lanesOfRow;
    for (int64_t mask = first; mask < lanes; mask *= 2)
      sum = arith::AddFOp::create(b, sum, b.shuffleXor(sum, mask));
    rewriter.replaceOp(op, sum);
    return success();
  }
};

} // namespace

void attn::populateAdditionPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<TotalLowering>(converter, patterns.getContext());
}
