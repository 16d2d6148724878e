//===- Lists.cpp - Lists of blocks, ranks of sequences --------------------===//

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

/// A thread for each sequence: it stores its length and its slots, and sums up
/// the slots of those before it.  Entries without a sequence come behind all.
struct RankLowering : OpConversionPattern<RankOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RankOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value count = adaptor.getCount(), own = b.thread();
    Value isOne = b.less(own, count);
    // All threads of the block, or none, come to the barriers.
    b.when(b.less(count, b.i32(op.entries() + 1)), [&] {
      SmallVector<Value> measures = measured(b, op, adaptor, own, isOne);
      Value table = b.shared(adaptor.getTable()), length = measures[0];
      b.when(b.less(own, b.i32(op.entries())),
             [&] { store(b, entryOf(b, table, own), measures); });
      NVVM::Barrier0Op::create(b);
      auto [rank, before] = placeOf(b, op, table, count, own, length);
      NVVM::Barrier0Op::create(b); // all have read what is overwritten
      b.when(isOne, [&, rank = rank, before = before] {
        store(b, entryOf(b, table, rank), {before, own});
      });
    });
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value entryOf(Lane &b, Value table, Value number) {
    return b.offset(table, b.mul(number, int64_t(RankOp::kEntryBytes)));
  }
  static void store(Lane &b, Value entry, ValueRange pair) {
    LLVM::StoreOp::create(b, pair[0], entry, /*alignment=*/8u);
    LLVM::StoreOp::create(b, pair[1], b.offset(entry, 4), /*alignment=*/4u);
  }

  /// The length and the slots of a sequence, if there is one.
  static SmallVector<Value> measured(Lane &b, RankOp op, OpAdaptor adaptor,
                                     Value number, Value isOne) {
    Type type = b.getI32Type();
    auto branch = scf::IfOp::create(b, TypeRange{type, type}, isOne,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, measure(b, op, adaptor, number));
    b.setInsertionPointToStart(branch.elseBlock());
    Value last = b.i32(op.getDescending() ? INT32_MIN : INT32_MAX);
    scf::YieldOp::create(b, ValueRange{last, b.i32(0)});
    return {branch.getResult(0), branch.getResult(1)};
  }
  static SmallVector<Value> measure(Lane &b, RankOp op, OpAdaptor adaptor,
                                    Value number) {
    auto load = [&](TypedValue<PtrType> array, Value base, Value at,
                    Value stride, Value number) {
      Value index = b.add(at, b.mul(b.wide(number), stride));
      return loadNumber(b, array.getType().getElementType(), base, index);
    };
    auto slot = [&](Value number) {
      return b.div(load(op.getOffsets(), adaptor.getOffsets(), adaptor.getAt(),
                        adaptor.getStride(), number),
                   op.getRows());
    };
    auto length = [&](Value number) {
      return load(op.getLengths(), adaptor.getLengths(), adaptor.getLengthsAt(),
                  adaptor.getLengthsStride(), number);
    };
    Value next = b.add(number, 1), own = length(number);
    if (op.getDifferences())
      own = b.sub(length(next), own);
    return {own, b.add(b.sub(slot(next), slot(number)), 1)};
  }

  /// Entries that are loaded at once.
  static constexpr int64_t kAtOnce = 4;

  /// The rank of a sequence, and the slots of those before it.
  static std::pair<Value, Value> placeOf(Lane &b, RankOp op, Value table,
                                         Value count, Value own, Value length) {
    auto loop = scf::ForOp::create(b, b.i32(0), count, b.i32(kAtOnce),
                                   ValueRange{b.i32(0), b.i32(0)});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value rank = loop.getRegionIterArg(0), before = loop.getRegionIterArg(1);
    for (int64_t i = 0; i < kAtOnce; ++i) {
      Value other = b.add(loop.getInductionVar(), i);
      Value entry = entryOf(b, table, other);
      Value its = LLVM::LoadOp::create(b, b.getI32Type(), entry, 8u);
      Value slots =
          LLVM::LoadOp::create(b, b.getI32Type(), b.offset(entry, 4), 4u);
      Value isSame =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, its, length);
      Value isBefore = b.select(isSame, b.less(other, own),
                                op.getDescending() ? b.less(length, its)
                                                   : b.less(its, length));
      rank = b.add(rank, b.select(isBefore, b.i32(1), b.i32(0)));
      before = b.add(before, b.select(isBefore, slots, b.i32(0)));
    }
    scf::YieldOp::create(b, ValueRange{rank, before});
    return {loop.getResult(0), loop.getResult(1)};
  }
};

struct GetNumberLowering : OpConversionPattern<GetNumberOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetNumberOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value place =
        b.offset(b.shared(adaptor.getBuffer()), b.mul(adaptor.getIndex(), 4));
    rewriter.replaceOpWithNewOp<LLVM::LoadOp>(op, b.getI32Type(), place,
                                              /*alignment=*/4u);
    return success();
  }
};

} // namespace

void attn::populateListPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns) {
  patterns
      .add<AnyLowering, GetNumberLowering, RankLowering, StoreNumberLowering>(
          converter, patterns.getContext());
}
