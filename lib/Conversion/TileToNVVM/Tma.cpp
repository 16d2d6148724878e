//===- Tma.cpp - Boxes through the copy engine ----------------------------===//
//
// A box is moved panel by panel of 128 bytes of columns.  The coordinates of a
// tensor map run from the inside out: column, row, head, batch.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct TmaLoadLowering : OpConversionPattern<TmaLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    Value target = b.add(adaptor.getBuffer(),
                         b.mul(adaptor.getStage(), buffer.stageBytes()));
    Value barrier = b.add(adaptor.getBarrier(), b.mul(adaptor.getSlot(), 8));
    // What lies outside the array counts too: it lands as zeros.
    int64_t bytes = op.panels() * buffer.panelBytes();
    b.memoryAssembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                     "r,r", {barrier, b.i32(bytes)});
    std::string start = "cp.async.bulk.tensor.4d.shared::cluster.global.tile"
                        ".mbarrier::complete_tx::bytes";
    std::string copy = start + " [$0], [$1, {$3,$4,$5,$6}], [$2];";
    Value row = adaptor.getRow();
    Value column = adaptor.getColumn() ? adaptor.getColumn() : b.i32(0);
    int64_t blocks = adaptor.getRank() ? clusterOf(op) : 1;
    if (blocks > 1) {
      // To the same place and barrier of every block.
      copy = "{ .reg .b16 all; mov.b16 all, " +
             std::to_string((1 << blocks) - 1) + "; " + start +
             ".multicast::cluster [$0], [$1, {$3,$4,$5,$6}], [$2], all; }";
      if (op.hasPartsOfPanels()) {
        Value first = b.mul(adaptor.getRank(), op.ownPanels(blocks));
        column = b.add(column, b.mul(first, buffer.panelColumns()));
        target = b.add(target, b.mul(first, buffer.panelBytes()));
      } else {
        Value first =
            b.mul(adaptor.getRank(), op.getMap().getType().getBoxRows());
        row = b.add(row, first);
        target = b.add(target, b.mul(first, SmemType::kPanelBytes));
      }
    }
    for (int64_t panel = 0; panel < op.ownPanels(blocks); ++panel)
      b.memoryAssembly(copy, "r,l,r,r,r,r,r",
                       {b.add(target, panel * buffer.panelBytes()),
                        adaptor.getMap(), barrier,
                        b.add(column, panel * buffer.panelColumns()), row,
                        adaptor.getHead(), adaptor.getBatch()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct TmaStoreLowering : OpConversionPattern<TmaStoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaStoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    int64_t first = op.getColumn();
    int64_t columns = std::min(buffer.getColumns(),
                               op.getMap().getType().getColumns() - first);
    Value source = b.add(adaptor.getBuffer(),
                         b.mul(adaptor.getSourceRow(), SmemType::kPanelBytes));
    b.when(isSingleLane(op) ? Value() : b.isFirstLane(), [&] {
      for (int64_t at = 0; at < columns; at += buffer.panelColumns())
        b.memoryAssembly(
            "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
            "[$0, {$2,$3,$4,$5}], [$1];",
            "l,r,r,r,r,r",
            {adaptor.getMap(),
             b.add(source, at / buffer.panelColumns() * buffer.panelBytes()),
             b.i32(first + at), adaptor.getRow(), adaptor.getHead(),
             adaptor.getBatch()});
      b.memoryAssembly("cp.async.bulk.commit_group;", "", {});
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct TmaStoreWaitLowering : OpConversionPattern<TmaStoreWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaStoreWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    // Groups belong to the lane that committed them; the others have none.
    b.memoryAssembly("cp.async.bulk.wait_group.read " +
                         std::to_string(op.getInFlight()) + ";",
                     "", {});
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::populateTmaPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<TmaLoadLowering, TmaStoreLowering, TmaStoreWaitLowering>(
      converter, patterns.getContext());
}
