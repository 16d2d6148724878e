//===- Rows.cpp - Row reductions and what rows are stored as --------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct FillLowering : OpConversionPattern<FillOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FillOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = op.getResult().getType();
    int64_t count = isa<FragType>(type) ? cast<FragType>(type).registers()
                                        : cast<RowType>(type).registers();
    rewriter.replaceOpWithMultiple(
        op, {Registers(count, adaptor.getValue().front())});
    return success();
  }
};

/// What a lane has of row number `row` (of those it has part of).
SmallVector<Value> rowOf(FragType fragment, ValueRange values, int64_t row) {
  int64_t pieces = fragment.getColumns() / 8, m = row / 2, half = row % 2;
  SmallVector<Value> result;
  for (int64_t n = 0; n < pieces; ++n)
    for (int64_t c = 0; c < 2; ++c)
      result.push_back(values[(m * pieces + n) * 4 + 2 * half + c]);
  return result;
}

Value combine(Lane &b, Reduction kind, Value x, Value y) {
  if (kind == Reduction::max)
    return arith::MaxNumFOp::create(b, x, y);
  return arith::AddFOp::create(b, x, y);
}

/// Combines the four lanes that share a row.
Value combineQuad(Lane &b, Reduction kind, Value value) {
  for (int64_t mask : {1, 2})
    value = combine(b, kind, value, b.shuffleXor(value, mask));
  return value;
}

struct RowReduceLowering : OpConversionPattern<RowReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType source = op.getSource().getType();
    ValueRange values = adaptor.getSource();
    Registers registers;
    for (int64_t m = 0; m < source.getRows() / 16; ++m)
      for (int64_t half = 0; half < 2; ++half) {
        Value result =
            reduce(b, op.getKind(), rowOf(source, values, m * 2 + half));
        if (!op.getResult().getType().getPartial())
          result = combineQuad(b, op.getKind(), result);
        registers.push_back(result);
      }
    // Last of all: ptxas schedules rows side by side only if none is finished
    // before the next begins.
    if (op.getInit())
      for (auto [result, init] : llvm::zip(registers, adaptor.getInit()))
        result = combine(b, op.getKind(), init, result);
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  /// A few chains side by side, so that a warp does not wait for each result.
  static Value reduce(Lane &b, Reduction kind, ArrayRef<Value> values) {
    constexpr size_t chains = 4;
    SmallVector<Value> partial;
    for (auto [i, value] : llvm::enumerate(values)) {
      if (i < chains)
        partial.push_back(value);
      else
        partial[i % chains] = combine(b, kind, partial[i % chains], value);
    }
    // Neighbours first: ptxas works its way back from the end of the tree, and
    // so finishes the two columns of a pair together, which it can then round.
    while (partial.size() > 1) {
      SmallVector<Value> halved;
      for (size_t i = 0; i + 1 < partial.size(); i += 2)
        halved.push_back(combine(b, kind, partial[i], partial[i + 1]));
      if (partial.size() % 2 != 0)
        halved.push_back(partial.back());
      partial = std::move(halved);
    }
    return partial.front();
  }
};

struct RowCombineLowering : OpConversionPattern<RowCombineOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowCombineOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Reduction kind = op.getMax() ? Reduction::max : Reduction::add;
    Registers registers;
    for (Value value : adaptor.getSource())
      registers.push_back(combineQuad(b, kind, value));
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct AnyAboveLowering : OpConversionPattern<AnyAboveOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AnyAboveOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    auto fragment = dyn_cast<FragType>(op.getValues().getType());
    Value above;
    for (auto [i, limit] : llvm::enumerate(adaptor.getLimits())) {
      Value one =
          fragment ? integersExceed(b, rowOf(fragment, adaptor.getValues(), i),
                                    limit)
                   : arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                           adaptor.getValues()[i], limit);
      above = above ? Value(arith::OrIOp::create(b, above, one)) : one;
    }
    Value any = NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), above,
                                         NVVM::VoteSyncKind::any);
    Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
    rewriter.replaceOpWithNewOp<LLVM::ExpectOp>(op, any, no);
    return success();
  }

private:
  /// Whether some value may exceed the limit, by integer maxima, of which the
  /// machine takes three operands at once.  The bits of floats order as signed
  /// integers do, as long as the limit is not negative; else the answer is yes.
  static Value integersExceed(Lane &b, ArrayRef<Value> values, Value limit) {
    Type i32 = b.getI32Type();
    auto bits = [&](Value value) -> Value {
      return arith::BitcastOp::create(b, i32, value);
    };
    SmallVector<Value> level = llvm::map_to_vector(values, bits);
    while (level.size() > 1) {
      SmallVector<Value> next;
      for (size_t i = 0; i < level.size(); i += 3) {
        Value most = level[i];
        for (size_t j = i + 1; j < std::min(i + 3, level.size()); ++j)
          most = arith::MaxSIOp::create(b, most, level[j]);
        next.push_back(most);
      }
      level = std::move(next);
    }
    Value least = bits(limit);
    Value exceeds = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                          level.front(), least);
    return arith::OrIOp::create(b, exceeds, b.less(least, b.i32(0)));
  }
};

/// The address of a lane's first value; the others follow in steps of 8.
Value valueAddress(Lane &b, Value base, SmemType buffer, Value row,
                   Value column) {
  Value mine = b.add(column, b.quad());
  Value bytes = b.add(b.mul(row, buffer.pitchBytes()),
                      b.mul(mine, buffer.elementBytes()));
  return b.shared(b.add(base, bytes));
}

constexpr int64_t kBytesBetweenValues = 8 * 4;

struct PutRowLowering : OpConversionPattern<PutRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PutRowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value address =
        valueAddress(b, adaptor.getBuffer().front(), op.getBuffer().getType(),
                     adaptor.getRow().front(), adaptor.getColumn().front());
    Value leads = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq,
                                                b.inQuad(), b.i32(0));
    b.when(leads, [&] {
      for (auto [i, value] : llvm::enumerate(adaptor.getValues()))
        LLVM::StoreOp::create(b, value,
                              b.offset(address, i * kBytesBetweenValues),
                              /*alignment=*/4u);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct GetRowLowering : OpConversionPattern<GetRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetRowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value address =
        valueAddress(b, adaptor.getBuffer().front(), op.getBuffer().getType(),
                     adaptor.getRow().front(), adaptor.getColumn().front());
    Registers values;
    for (int64_t i = 0; i < op.getValues().getType().registers(); ++i)
      values.push_back(LLVM::LoadOp::create(
          b, b.getF32Type(), b.offset(address, i * kBytesBetweenValues),
          /*alignment=*/4u));
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }
};

/// The rows of a fragment are alike, and so are the registers that a lane has
/// of a column.
struct GetColumnsLowering : OpConversionPattern<GetColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetColumnsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getResult().getType();
    int64_t elementBytes = buffer.elementBytes();
    Value own = b.add(adaptor.getColumn().front(), b.mul(b.inQuad(), 2));
    Value bytes =
        b.add(b.mul(adaptor.getStage().front(), buffer.stageBytes()),
              b.add(b.mul(adaptor.getRow().front(), buffer.pitchBytes()),
                    b.mul(own, elementBytes)));
    Value address = b.shared(b.add(adaptor.getBuffer().front(), bytes));
    auto pairType = VectorType::get(2, b.getF32Type());
    Registers ofOneRow;
    for (int64_t piece = 0; piece < fragment.getColumns() / 8; ++piece) {
      Value pair = LLVM::LoadOp::create(
          b, pairType, b.offset(address, piece * 8 * elementBytes),
          /*alignment=*/8u);
      for (int64_t i = 0; i < 2; ++i)
        ofOneRow.push_back(LLVM::ExtractElementOp::create(b, pair, b.i32(i)));
    }
    Registers registers;
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m)
      for (size_t piece = 0; piece < ofOneRow.size(); piece += 2)
        for (int64_t half = 0; half < 2; ++half)
          for (size_t i = 0; i < 2; ++i)
            registers.push_back(ofOneRow[piece + i]);
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

/// The address of a row of a view, of the last one for those behind it: what is
/// read there is dropped, and no lane branches.
Value rowAddress(Lane &b, const ViewValues &view, Value row) {
  Value last = b.add(view.rows, -1);
  Value inside = arith::MinSIOp::create(b, row, last);
  return b.offset(view.base, b.mul(b.wide(inside), view.stride));
}

Value orZeroBehind(Lane &b, const ViewValues &view, Value row, Value value) {
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(value.getType()));
  return b.select(b.less(row, view.rows), value, zero);
}

struct LoadRowLowering : OpConversionPattern<LoadRowOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadRowOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues view(adaptor.getView());
    RowType type = op.getValues().getType();
    Value first = b.add(adaptor.getRow().front(), b.quad());
    Registers registers;
    for (int64_t i = 0; i < type.registers(); ++i) {
      Value row = b.add(first, i * 8);
      Value value = LLVM::LoadOp::create(
          b, type.getElementType(), rowAddress(b, view, row), /*alignment=*/4u);
      registers.push_back(orZeroBehind(b, view, row, value));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

/// The four lanes of a row take its pieces in turn.
struct RowDotLowering : OpConversionPattern<RowDotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(RowDotOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues lhs(adaptor.getLhs()), rhs(adaptor.getRhs());
    ViewType view = op.getLhs().getType();
    int64_t rowBytes = view.rowBytes();
    // Both factors come in pieces that either's rows allow.
    int64_t bytes = std::min<int64_t>({16, view.getAlign(),
                                       op.getRhs().getType().getAlign(),
                                       rowBytes & -rowBytes});
    Value first = b.add(adaptor.getRow().front(), b.quad());
    int64_t rows = op.getValues().getType().registers();
    int64_t together = piecesTogether(op);
    if (together < kMostTogether)
      for (int64_t i = 0; i < rows; ++i)
        for (const ViewValues *matrix : {&lhs, &rhs})
          prefetch(b, view, rowAddress(b, *matrix, b.add(first, i * 8)));
    Registers registers;
    for (int64_t i = 0; i < rows; ++i) {
      Value row = b.add(first, i * 8);
      Value sum = ownSum(b, view, bytes, rowAddress(b, lhs, row),
                         rowAddress(b, rhs, row), together);
      registers.push_back(
          orZeroBehind(b, lhs, row, combineQuad(b, Reduction::add, sum)));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  static constexpr int64_t kLanes = 4; ///< of a row

  /// Pieces of both factors that a lane waits for at once: with one of each a
  /// launch that reads 134 MB took 70 us on an H100.  A role may have registers
  /// for fewer, 4 for each piece, beside 16 for what else there is; all are
  /// then called to L2 first.
  static constexpr int64_t kMostTogether = 4;
  static int64_t piecesTogether(RowDotOp op) {
    constexpr int64_t registers = 8, others = 16;
    auto ofRole = op->getAttrOfType<IntegerAttr>(kRegistersAttr);
    if (!ofRole)
      return kMostTogether;
    return std::clamp<int64_t>((ofRole.getInt() - others) / registers, 1,
                               kMostTogether);
  }

  /// Calls a row to L2; its four lanes take turns, 64 bytes each.
  static void prefetch(Lane &b, ViewType view, Value row) {
    constexpr int64_t unit = 64;
    for (int64_t i = 0; i * unit * kLanes < view.rowBytes(); ++i) {
      Value at = b.mul(b.add(b.inQuad(), i * kLanes), unit);
      Value last = b.i32(view.rowBytes() - 1);
      at = b.select(b.less(at, last), at, last);
      b.memoryAssembly("prefetch.global.L2 [$0];", "l",
                       {b.offset(row, b.wide(at))});
    }
  }

  /// The sum over the pieces, of so many bytes, that belong to the lane.
  static Value ownSum(Lane &b, ViewType view, int64_t bytes, Value lhs,
                      Value rhs, int64_t together) {
    int64_t count = view.rowBytes() / bytes, rounds = count / kLanes;
    Value mine = b.mul(b.inQuad(), bytes), sum = f32(b, 0);
    auto runs = rounds / together;
    if (runs > 0) {
      auto loop = scf::ForOp::create(b, b.i32(0), b.i32(runs), b.i32(1), sum);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value first = b.mul(loop.getInductionVar(), together * kLanes * bytes);
      scf::YieldOp::create(b,
                           pieces(b, view, bytes, b.add(first, mine), together,
                                  lhs, rhs, loop.getRegionIterArg(0)));
      sum = loop.getResult(0);
    }
    Value rest = b.add(mine, runs * together * kLanes * bytes);
    sum = pieces(b, view, bytes, rest, rounds % together, lhs, rhs, sum);
    if (count % kLanes == 0)
      return sum;
    Value isLeft = b.less(b.inQuad(), b.i32(count % kLanes));
    // A lane without a piece reads the first one again.
    Value at = b.select(isLeft, b.add(mine, rounds * kLanes * bytes), b.i32(0));
    Value more = pieces(b, view, bytes, at, 1, lhs, rhs, sum);
    return b.select(isLeft, more, sum);
  }

  static Value f32(Lane &b, double value) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(float(value)));
  }

  /// sum + the inner product of some of the lane's pieces, all of which are on
  /// their way before the first is multiplied.
  static Value pieces(Lane &b, ViewType view, int64_t bytes, Value at,
                      int64_t count, Value lhs, Value rhs, Value sum) {
    Type element = view.getElementType();
    int64_t width = bytes * 8 / element.getIntOrFloatBitWidth();
    auto type = VectorType::get(width, element);
    SmallVector<Value> left, right;
    for (int64_t i = 0; i < count; ++i) {
      Value place = b.wide(b.add(at, i * kLanes * bytes));
      for (auto [base, loaded] : {std::pair(lhs, &left), {rhs, &right}})
        loaded->push_back(LLVM::LoadOp::create(b, type, b.offset(base, place),
                                               unsigned(bytes)));
    }
    auto single = [&](Value vector, int64_t i) -> Value {
      Value value = LLVM::ExtractElementOp::create(b, vector, b.i32(i));
      if (element.isF32())
        return value;
      return arith::ExtFOp::create(b, b.getF32Type(), value);
    };
    for (auto [one, other] : llvm::zip_equal(left, right))
      for (int64_t i = 0; i < width; ++i)
        sum = LLVM::FMAOp::create(b, b.getF32Type(), single(one, i),
                                  single(other, i), sum);
    return sum;
  }
};

} // namespace

void attn::populateRowPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AnyAboveLowering, FillLowering, GetColumnsLowering,
               GetRowLowering, LoadRowLowering, PutRowLowering, RowCombineLowering,
               RowDotLowering, RowReduceLowering>(converter, context);
}
