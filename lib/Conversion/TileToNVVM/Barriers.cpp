//===- Barriers.cpp - mbarriers, named barriers, queues -------------------===//
//
// A queue's slot is 16 bytes of message, then the mbarriers "full" (one
// arrival, of who pushes) and "empty" (one arrival per reading warp).
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kBarrierBytes = 8;
constexpr int64_t kPieceBytes = 4 * QueueType::kPieceValues;

/// Behind its message a slot of a queue has two barriers.
int64_t fullOffset(QueueType type) { return type.messageBytes(); }
int64_t emptyOffset(QueueType type) { return fullOffset(type) + kBarrierBytes; }

void initialise(Lane &b, Value address, int64_t arrivals) {
  b.memoryAssembly("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r",
                   {address, b.i32(arrivals)});
}

void wait(Lane &b, Value address, Value parity) {
  b.memoryAssembly("{ .reg .pred p; "
                   "WAIT${:uid}: "
                   "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; "
                   "@p bra DONE${:uid}; "
                   "bra WAIT${:uid}; "
                   "DONE${:uid}: }",
                   "r,r", {address, parity});
}

/// What a warp does before one of its lanes arrives for it: that lane speaks
/// for what the others have read and written only behind this.  In the arrival
/// itself, so that nothing between keeps values in registers.
std::string gather(Operation *op) {
  return isSingleLane(op) ? "" : "bar.warp.sync 0xffffffff; ";
}

/// One arrival, of the warp's first lane, or of the only lane; if `condition`
/// holds (null is always).
void arrive(Lane &b, Operation *op, Value address, Value condition) {
  if (isSingleLane(op) && !condition)
    return b.memoryAssembly("mbarrier.arrive.shared::cta.b64 _, [$0];", "r",
                            address);
  Value mine = isSingleLane(op) ? Value() : b.isFirstLane();
  if (condition)
    mine = mine ? b.both(mine, condition) : condition;
  mine = arith::ExtUIOp::create(b, b.getI32Type(), mine);
  // A predicate and not a branch: products may be in flight.
  b.memoryAssembly("{ .reg .pred p; " + gather(op) +
                       "setp.ne.b32 p, $1, 0; "
                       "@p mbarrier.arrive.shared::cta.b64 _, [$0]; }",
                   "r,r", {address, mine});
}

/// The same in every block of a cluster: lane r of the warp, or the only lane
/// one by one, arrives in block r.  Without `.release.cluster`, which costs a
/// memory barrier: what a reader of a buffer hands back it has not written.
void arriveInCluster(Lane &b, Operation *op, Value address, Value condition) {
  int64_t blocks = clusterOf(op);
  auto arriveAt = [&](Value rank) {
    if (condition)
      rank = b.select(condition, rank, b.i32(blocks));
    // An address that only some lanes worked out would be kept for the others.
    b.memoryAssembly("{ .reg .pred p; .reg .b32 r, a; " + gather(op) +
                         "setp.le.u32 p, $1, $2; min.u32 r, $1, $2; "
                         "mapa.shared::cluster.u32 a, $0, r; "
                         "@p mbarrier.arrive.shared::cluster.b64 _, [a]; }",
                     "r,r,n", {address, rank, b.i32(blocks - 1)});
  };
  if (!isSingleLane(op))
    return arriveAt(b.lane());
  for (int64_t rank = 0; rank < blocks; ++rank)
    arriveAt(b.i32(rank));
}

Value slotAddress(Lane &b, Value base, Value slot, int64_t bytes) {
  return b.add(base, b.mul(slot, bytes));
}

/// Runs `body` in the block's first thread.
void byFirstThread(Lane &b, function_ref<void()> body) {
  b.when(b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, b.thread(),
                                       b.i32(0)),
         body);
}

struct MbarrierLowering : OpConversionPattern<MbarrierOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value base = placeOf(b, op);
    byFirstThread(b, [&] {
      for (int64_t i = 0; i < op.getResult().getType().getSlots(); ++i)
        initialise(b, b.add(base, i * kBarrierBytes), op.getArrivals());
    });
    rewriter.replaceOp(op, base);
    return success();
  }
};

struct QueueLowering : OpConversionPattern<QueueOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(QueueOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value base = placeOf(b, op);
    QueueType type = op.getResult().getType();
    byFirstThread(b, [&] {
      for (int64_t i = 0; i < type.getSlots(); ++i) {
        Value slot = b.add(base, i * type.slotBytes());
        initialise(b, b.add(slot, fullOffset(type)), 1);
        initialise(b, b.add(slot, emptyOffset(type)), op.getReaders());
      }
    });
    rewriter.replaceOp(op, base);
    return success();
  }
};

struct MbarrierWaitLowering : OpConversionPattern<MbarrierWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    wait(b,
         slotAddress(b, adaptor.getBarrier(), adaptor.getSlot(), kBarrierBytes),
         adaptor.getParity());
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierArriveLowering : OpConversionPattern<MbarrierArriveOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MbarrierArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value address =
        slotAddress(b, adaptor.getBarrier(), adaptor.getSlot(), kBarrierBytes);
    if (op.getCluster() && clusterOf(op) > 1)
      arriveInCluster(b, op, address, adaptor.getCondition());
    else
      arrive(b, op, address, adaptor.getCondition());
    rewriter.eraseOp(op);
    return success();
  }
};

struct PushLowering : OpConversionPattern<PushOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PushOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    QueueType type = op.getQueue().getType();
    Value slot =
        slotAddress(b, adaptor.getQueue(), adaptor.getSlot(), type.slotBytes());
    // The first round finds the slots empty.
    Value parity = arith::XOrIOp::create(b, adaptor.getParity(), b.i32(1));
    wait(b, b.add(slot, emptyOffset(type)), parity);
    b.when(isSingleLane(op) ? Value() : b.isFirstLane(), [&] {
      SmallVector<Value> values(adaptor.getValues());
      values.resize(type.pieces() * QueueType::kPieceValues, b.i32(0));
      for (int64_t piece = 0; piece < type.pieces(); ++piece) {
        SmallVector<Value> operands = {b.add(slot, piece * kPieceBytes)};
        llvm::append_range(
            operands, ArrayRef(values).slice(piece * QueueType::kPieceValues,
                                             QueueType::kPieceValues));
        b.memoryAssembly("st.shared.v4.b32 [$0], {$1,$2,$3,$4};", "r,r,r,r,r",
                         operands);
      }
      b.memoryAssembly("mbarrier.arrive.shared::cta.b64 _, [$0];", "r",
                       b.add(slot, fullOffset(type)));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct PopLowering : OpConversionPattern<PopOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PopOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    QueueType type = op.getQueue().getType();
    Value slot =
        slotAddress(b, adaptor.getQueue(), adaptor.getSlot(), type.slotBytes());
    wait(b, b.add(slot, fullOffset(type)), adaptor.getParity());
    // The first lane reads, passes on and hands the slot back; so its own order
    // is all that is needed.
    SmallVector<Type> types(QueueType::kPieceValues, b.getI32Type());
    bool isAlone = isSingleLane(op);
    Value reads =
        isAlone ? b.i32(1)
                : arith::ExtUIOp::create(b, b.getI32Type(), b.isFirstLane());
    SmallVector<Value> message;
    for (int64_t piece = 0; piece < type.pieces(); ++piece)
      llvm::append_range(
          message,
          b.assembly(
              types,
              "{ .reg .pred p; setp.ne.b32 p, $5, 0; "
              "mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; "
              "@p ld.shared.v4.b32 {$0,$1,$2,$3}, [$4]; }",
              "=&r,=&r,=&r,=&r,r,r,~{memory}",
              {b.add(slot, piece * kPieceBytes), reads}));
    SmallVector<Value> values;
    for (size_t i = 0; i < op.getValues().size(); ++i)
      values.push_back(isAlone ? message[i] : b.uniform(message[i]));
    arrive(b, op, b.add(slot, emptyOffset(type)), Value());
    rewriter.replaceOp(op, values);
    return success();
  }
};

/// What a thread draws for which `mine` is 1, with the limit that makes the
/// counter begin again; others get 0.
Value drawByOne(Lane &b, Value counter, Value below, Value mine) {
  SmallVector<Value> drawn =
      b.assembly(b.getI32Type(),
                 "{ .reg .pred p; setp.ne.b32 p, $3, 0; mov.b32 $0, 0; "
                 "@p atom.relaxed.gpu.global.inc.u32 $0, [$1], $2; }",
                 "=&r,l,r,r,~{memory}", {counter, b.add(below, -1), mine});
  return drawn.front();
}

struct DrawLowering : OpConversionPattern<DrawOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DrawOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value counter = adaptor.getCounter();
    if (adaptor.getIndex())
      counter = wordAddress(b, counter, adaptor.getIndex());
    if (isSingleLane(op)) {
      rewriter.replaceOpWithNewOp<LLVM::AtomicRMWOp>(
          op, LLVM::AtomicBinOp::uinc_wrap, counter,
          b.add(adaptor.getBelow(), -1), LLVM::AtomicOrdering::monotonic,
          /*syncscope=*/"device");
      return success();
    }
    // The first lane draws for its warp.
    Value mine = arith::ExtUIOp::create(b, b.getI32Type(), b.isFirstLane());
    rewriter.replaceOp(
        op, b.uniform(drawByOne(b, counter, adaptor.getBelow(), mine)));
    return success();
  }
};

struct PutDrawLowering : OpConversionPattern<PutDrawOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PutDrawOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                          b.thread(), b.i32(0));
    b.when(isFirst, [&] {
      Value number = drawByOne(b, adaptor.getCounter(), adaptor.getBelow(),
                               /*mine=*/b.i32(1));
      LLVM::StoreOp::create(b, number, b.shared(adaptor.getBuffer()),
                            /*alignment=*/4u);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct GetDrawLowering : OpConversionPattern<GetDrawOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetDrawOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, b.getI32Type(),
                                              b.shared(adaptor.getBuffer()),
                                              /*alignment=*/4u);
    return success();
  }
};

struct BarSyncLowering : OpConversionPattern<BarSyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BarSyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    NVVM::BarrierOp::create(b, TypeRange(), adaptor.getId(),
                            b.i32(32 * int64_t(op.getWarps())),
                            NVVM::BarrierReductionAttr(), Value());
    rewriter.eraseOp(op);
    return success();
  }
};

struct BarArriveLowering : OpConversionPattern<BarArriveOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BarArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    std::string threads = std::to_string(32 * op.getWarps());
    b.memoryAssembly("bar.arrive $0, " + threads + ";", "r", adaptor.getId());
    rewriter.eraseOp(op);
    return success();
  }
};

struct FenceAsyncLowering : OpConversionPattern<FenceAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FenceAsyncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    b.memoryAssembly(op.getGlobal() ? "fence.proxy.async.global;"
                                    : "fence.proxy.async.shared::cta;",
                     "", {});
    // What arrives for the warp is its first lane, which speaks for the stores
    // of the others only behind this.
    if (!isSingleLane(op))
      NVVM::SyncWarpOp::create(b, b.i32(-1));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::populateBarrierPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<BarArriveLowering, BarSyncLowering, DrawLowering,
               FenceAsyncLowering, GetDrawLowering, MbarrierArriveLowering,
               MbarrierLowering, MbarrierWaitLowering, PopLowering,
               PushLowering, PutDrawLowering, QueueLowering>(
      converter, patterns.getContext());
}
