//===- Tma.cpp - Boxes and words through the copy engine ------------------===//
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

Value stageAddress(Lane &b, SmemType type, Value buffer, Value stage) {
  return b.add(buffer, b.mul(stage, type.stageBytes()));
}

/// The address of a slot's barrier.
template <typename Adaptor> Value barrierOf(Lane &b, Adaptor &adaptor) {
  return b.add(adaptor.getBarrier(), b.mul(adaptor.getSlot(), 8));
}

/// One arrival, which announces bytes.
void announce(Lane &b, Value barrier, int64_t bytes) {
  b.memoryAssembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                   "r,r", {barrier, b.i32(bytes)});
}

/// Closes the lane's current group of stores.
void commit(Lane &b) {
  b.memoryAssembly("cp.async.bulk.commit_group;", "", {});
}

struct TmaLoadLowering : OpConversionPattern<TmaLoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaLoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    Value target =
        stageAddress(b, buffer, adaptor.getBuffer(), adaptor.getStage());
    Value barrier = barrierOf(b, adaptor);
    // What lies outside the array counts too: it lands as zeros.
    announce(b, barrier, op.panels() * buffer.panelBytes());
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
    int64_t boxRows = op.getMap().getType().getBoxRows();
    for (int64_t panel = 0; panel < op.ownPanels(blocks); ++panel)
      for (int64_t box = 0; box < op.boxes(); ++box)
        b.memoryAssembly(
            copy, "r,l,r,r,r,r,r",
            {b.add(target, panel * buffer.panelBytes() +
                               box * boxRows * SmemType::kPanelBytes),
             adaptor.getMap(), barrier,
             b.add(column, panel * buffer.panelColumns()),
             b.add(row, box * boxRows), adaptor.getHead(), adaptor.getBatch()});
    rewriter.eraseOp(op);
    return success();
  }
};

/// A box to a place, whose bytes a barrier counts.
constexpr StringLiteral kLoadBox =
    "cp.async.bulk.tensor.4d.shared::cluster.global.tile"
    ".mbarrier::complete_tx::bytes";

struct MbarrierExpectLowering : OpConversionPattern<MbarrierExpectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierExpectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    announce(b, barrierOf(b, adaptor), op.panels() * buffer.panelBytes());
    rewriter.eraseOp(op);
    return success();
  }
};

struct TmaLoadRowsLowering : OpConversionPattern<TmaLoadRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaLoadRowsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    Value target =
        b.add(stageAddress(b, buffer, adaptor.getBuffer(), adaptor.getStage()),
              b.mul(adaptor.getTargetRow(), SmemType::kPanelBytes));
    Value barrier = barrierOf(b, adaptor);
    std::string copy = (kLoadBox + " [$0], [$1, {$3,$4,$5,$6}], [$2];").str();
    auto columnOf = [&](int64_t panel) {
      int64_t from = panel * buffer.panelColumns();
      return adaptor.getColumn() ? b.add(adaptor.getColumn(), from)
                                 : b.i32(from);
    };
    for (int64_t panel = 0; panel < op.panels(); ++panel)
      b.memoryAssembly(copy, "r,l,r,r,r,r,r",
                       {b.add(target, panel * buffer.panelBytes()),
                        adaptor.getMap(), barrier, columnOf(panel),
                        adaptor.getRow(), adaptor.getHead(),
                        adaptor.getBatch()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct TmaPrefetchLowering : OpConversionPattern<TmaPrefetchOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TmaPrefetchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    for (int64_t panel = 0; panel < op.panels(); ++panel)
      b.memoryAssembly("cp.async.bulk.prefetch.tensor.4d.L2.global.tile "
                       "[$0, {$1,$2,$3,$4}];",
                       "l,r,r,r,r",
                       {adaptor.getMap(),
                        b.add(adaptor.getColumn(), panel * op.panelColumns()),
                        adaptor.getRow(), adaptor.getHead(),
                        adaptor.getBatch()});
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
    Value source = adaptor.getBuffer();
    if (adaptor.getStage())
      source = stageAddress(b, buffer, source, adaptor.getStage());
    source =
        b.add(source, b.mul(adaptor.getSourceRow(), SmemType::kPanelBytes));
    b.when(isSingleLane(op) ? Value() : b.isFirstLane(), [&] {
      for (int64_t at = 0; at < op.columns(); at += buffer.panelColumns())
        b.memoryAssembly(
            "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
            "[$0, {$2,$3,$4,$5}], [$1];",
            "l,r,r,r,r,r",
            {adaptor.getMap(),
             b.add(source, at / buffer.panelColumns() * buffer.panelBytes()),
             b.add(adaptor.getColumn(), at), adaptor.getRow(),
             adaptor.getHead(), adaptor.getBatch()});
      commit(b);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Run number `index` of runs of so many bytes, which together may have more
/// than 2^31.
Value runAddress(Lane &b, Value base, Value index, int64_t bytes) {
  return b.offset(base, b.mul(b.wide(index), bytes));
}

struct LoadWordsLowering : OpConversionPattern<LoadWordsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadWordsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    int64_t bytes = buffer.tileBytes();
    Value barrier = barrierOf(b, adaptor);
    announce(b, barrier, bytes);
    b.memoryAssembly(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[$0], [$1], $2, [$3];",
        "r,l,r,r",
        {stageAddress(b, buffer, adaptor.getBuffer(), adaptor.getStage()),
         runAddress(b, adaptor.getBase(), adaptor.getIndex(), bytes),
         b.i32(bytes), barrier});
    rewriter.eraseOp(op);
    return success();
  }
};

/// The words of a stage to run number `index`, added or stored.
template <typename Op> struct WordsLowering : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    constexpr bool adds = std::is_same_v<Op, AddWordsOp>;
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    int64_t bytes = int32_t(op.getCount()) * int64_t(sizeof(float));
    Value source =
        stageAddress(b, buffer, adaptor.getBuffer(), adaptor.getStage());
    b.when(isSingleLane(op) ? Value() : b.isFirstLane(), [&] {
      b.memoryAssembly(
          adds ? "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 "
                 "[$0], [$1], $2;"
               : "cp.async.bulk.global.shared::cta.bulk_group "
                 "[$0], [$1], $2;",
          "l,r,r",
          {runAddress(b, adaptor.getBase(), adaptor.getIndex(), bytes), source,
           b.i32(bytes)});
      commit(b);
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
    // Groups belong to the lane that committed them; the others have none.  Who
    // has seen them complete needs no fence to read what they wrote (PTX ISA,
    // async proxy).
    std::string until = op.getComplete() ? "" : ".read";
    b.memoryAssembly("cp.async.bulk.wait_group" + until + " " +
                         std::to_string(op.getInFlight()) + ";",
                     "", {});
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::populateTmaPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<WordsLowering<AddWordsOp>, WordsLowering<StoreWordsOp>,
               LoadWordsLowering, MbarrierExpectLowering, TmaLoadLowering,
               TmaLoadRowsLowering, TmaPrefetchLowering, TmaStoreLowering,
               TmaStoreWaitLowering>(converter, patterns.getContext());
}
