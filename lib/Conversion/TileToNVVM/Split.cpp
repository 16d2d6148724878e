//===- Split.cpp - f32 as the sum of three numbers of bf16 ----------------===//
//
// Rows of f32 in panels of 32 columns become rows of bf16 in panels of 64, of
// which a warp takes eight rows at a time: of each half a lane reads eight
// columns, two pieces of 16 bytes, and writes a piece of each part.
//
// Eight lanes at a time have four pieces of two rows, r and r ^ 5.  What they
// read is every other piece of an even row and those between of an odd one:
// all eight groups of four banks.  What they write is four neighbouring pieces
// of one row and of one that differs in the bit of weight 4: all eight again.
//
// Rows in global memory become rows of all three parts there.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kPieceBytes = 16;
/// Bytes 2 and 3 of two registers: those of bf16 in f32.
constexpr int64_t kUpperHalves = 0x7632;

/// Splits numbers; of each part two go into a register.
class Splitter {
public:
  explicit Splitter(Lane &b)
      : b(b), perturbation(number(0x1p-30f)), smaller(number(0x1p-24f)),
        most(number(0x1p100f)) {}

  std::array<Registers, 3> split(ValueRange numbers) const {
    std::array<Registers, 3> parts;
    for (size_t i = 0; i < numbers.size(); i += 2) {
      std::array<Value, 3> low = split(numbers[i]),
                           high = split(numbers[i + 1]);
      for (size_t part = 0; part < 3; ++part)
        parts[part].push_back(pack(low[part], high[part]));
    }
    return parts;
  }

private:
  /// The upper halves of the results are the parts.
  std::array<Value, 3> split(Value x) const {
    Value first = arith::SubFOp::create(b, x, cutOff(x));
    Value rest = fma(x, perturbation, first);
    // Of a NaN the minimum is the other one.
    rest = arith::MinNumFOp::create(b, rest, most);
    Value second = arith::SubFOp::create(b, rest, cutOff(rest));
    return {x, rest, fma(rest, smaller, second)};
  }

  Value number(float value) const {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  }
  Value bits(Value x) const {
    return LLVM::BitcastOp::create(b, b.getI32Type(), x);
  }
  Value cutOff(Value x) const {
    constexpr auto upper = int32_t(0xffff0000);
    return LLVM::BitcastOp::create(b, b.getF32Type(), b.bitAnd(bits(x), upper));
  }
  Value fma(Value x, Value y, Value z) const {
    return LLVM::FMAOp::create(b, b.getF32Type(), x, y, z);
  }
  Value pack(Value low, Value high) const {
    auto call = LLVM::CallIntrinsicOp::create(
        b, b.getI32Type(), b.getStringAttr("llvm.nvvm.prmt"),
        ValueRange{bits(low), bits(high), b.i32(kUpperHalves)});
    return call.getResults();
  }

  Lane &b;
  Value perturbation, smaller, most;
};

/// Stores four registers, a piece.
void storeFour(Lane &b, Value pointer, const Registers &words) {
  Type four = VectorType::get({4}, b.getI32Type());
  Value piece = LLVM::UndefOp::create(b, four);
  for (auto [i, word] : llvm::enumerate(words))
    piece = LLVM::InsertElementOp::create(b, piece, word, b.i32(int64_t(i)));
  LLVM::StoreOp::create(b, piece, pointer, kPieceBytes);
}

/// A 16 x 16 piece of a factor is two 16 x 8 pieces of the accumulator, side by
/// side, as in a cast.
struct SplitBf16Lowering : OpConversionPattern<SplitBf16Op> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitBf16Op op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    std::array<Registers, 3> parts = Splitter(b).split(adaptor.getSource());
    rewriter.replaceOpWithMultiple(op, {parts[0], parts[1], parts[2]});
    return success();
  }
};

struct SplitRowsLowering : OpConversionPattern<SplitRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitRowsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Splitter splitter(b);
    SmemType source = op.getSource().getType();
    SmemType target = op.getFirst().getType();
    // What follows from the lane is worked out anew each time: a role beside
    // the producer has few registers to keep it in.
    Value lane = b.opaque(b.lane());
    Value group = b.bitAnd(lane, 3);
    Value row = arith::XOrIOp::create(
        b, b.shiftRight(lane, 3), b.mul(b.bitAnd(b.shiftRight(lane, 2), 1), 5));
    Value from = b.add(rowAddress(b, source, adaptor.getSource(),
                                  adaptor.getSourceStage(),
                                  b.add(adaptor.getSourceRow(), row)),
                       piece(b, b.mul(group, 2), row));
    Value offset =
        b.add(rowAddress(b, target, b.i32(0), adaptor.getTargetStage(),
                         b.add(adaptor.getTargetRow(), row)),
              piece(b, group, row));

    // A panel of the targets, of which both halves are loaded before either is
    // stored: loads cannot move above stores.
    constexpr int64_t columnsOfHalf = SplitRowsOp::kColumns / 2;
    constexpr int64_t bytesOfHalf = SmemType::kPanelBytes / 2;
    int64_t halves = source.getColumns() > columnsOfHalf ? 2 : 1;
    Value panel = b.div(adaptor.getColumn(), SplitRowsOp::kColumns);
    from = b.add(from, b.mul(panel, halves * source.panelBytes()));
    offset = b.add(offset, b.mul(panel, target.panelBytes()));
    std::array<Registers, 2> numbers;
    for (int64_t half = 0; half < halves; ++half)
      for (Value place : {from, xorOf(b, from, kPieceBytes)})
        loadPiece(b, b.offset(b.shared(place), half * source.panelBytes()),
                  numbers[half]);
    for (int64_t half = 0; half < halves; ++half) {
      std::array<Registers, 3> parts = splitter.split(numbers[half]);
      Value place = half ? xorOf(b, offset, bytesOfHalf) : offset;
      for (auto [buffer, part] : llvm::zip_equal(
               std::array<Value, 3>{adaptor.getFirst(), adaptor.getSecond(),
                                    adaptor.getThird()},
               parts))
        storeFour(b, b.shared(b.add(buffer, place)), part);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value rowAddress(Lane &b, SmemType type, Value buffer, Value stage,
                          Value row) {
    return b.add(b.add(buffer, b.mul(stage, type.stageBytes())),
                 b.mul(row, SmemType::kPanelBytes));
  }
  /// Where a piece of a row of eight lies.
  static Value piece(Lane &b, Value number, Value row) {
    return b.mul(Value(arith::XOrIOp::create(b, number, row)), kPieceBytes);
  }
  /// Rows begin at multiples of 128 bytes, so that the place of a piece may be
  /// changed in the address.
  static Value xorOf(Lane &b, Value address, int64_t bits) {
    return arith::XOrIOp::create(b, address, b.i32(bits));
  }

  static void loadPiece(Lane &b, Value pointer, Registers &numbers) {
    Type four = VectorType::get({4}, b.getF32Type());
    Value piece = LLVM::LoadOp::create(b, four, pointer, kPieceBytes);
    for (int64_t i = 0; i < 4; ++i)
      numbers.push_back(LLVM::ExtractElementOp::create(b, piece, b.i32(i)));
  }
};

/// Eight lanes have a row, each of them eight of 64 columns: a piece of 16
/// bytes of every part.
struct SplitViewLowering : OpConversionPattern<SplitViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitViewOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues source(adaptor.getSource()), target(adaptor.getTarget());
    Value first = b.add(adaptor.getRow().front(), b.shiftRight(b.lane(), 3));
    Value column = b.mul(b.bitAnd(b.lane(), 7), kColumnsOfLane);
    for (int64_t i = 0; i < SplitViewOp::kRows; i += kRowsAtOnce) {
      Value row = b.add(first, i);
      b.when(b.less(row, source.rows), [&] {
        auto start = [&](const ViewValues &view) {
          return b.offset(view.base, b.mul(b.wide(row), view.stride));
        };
        splitRow(b, op, start(source), start(target), column);
      });
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr int64_t kColumnsOfLane = 8, kRowsAtOnce = 4;

  static void splitRow(Lane &b, SplitViewOp op, Value from, Value to,
                       Value column) {
    constexpr int64_t columns = SplitViewOp::kColumns, partBytes = 2;
    int64_t width = op.getTarget().getType().getColumns() / SplitViewOp::kParts;
    ViewType type = op.getSource().getType();
    auto loop =
        scf::ForOp::create(b, b.i32(0), b.i32(width / columns), b.i32(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value own = b.add(b.mul(loop.getInductionVar(), columns), column);
    std::array<Registers, 3> parts =
        Splitter(b).split(loadNumbers(b, type, width, from, own));
    Value place = b.offset(to, b.wide(b.mul(own, partBytes)));
    for (auto [i, part] : llvm::enumerate(parts))
      storeFour(b, b.offset(place, int64_t(i) * width * partBytes), part);
  }

  /// The lane's columns from `own` on, zeros behind those of the row, in pieces
  /// that are there or not.
  static Registers loadNumbers(Lane &b, ViewType type, int64_t width,
                               Value from, Value own) {
    constexpr int64_t numberBytes = 4;
    int64_t rowBytes = type.rowBytes();
    int64_t bytes =
        std::min<int64_t>({kPieceBytes, type.getAlign(), rowBytes & -rowBytes});
    int64_t count = bytes / numberBytes;
    bool isRagged = type.getColumns() < width;
    Registers numbers;
    for (int64_t i = 0; i < kColumnsOfLane; i += count) {
      Value column = b.add(own, i), exists;
      if (isRagged) { // what is not there is read from the row's beginning
        exists = b.less(column, b.i32(type.getColumns()));
        column = b.select(exists, column, b.i32(0));
      }
      Value address = b.offset(from, b.wide(b.mul(column, numberBytes)));
      Value piece =
          LLVM::LoadOp::create(b, VectorType::get({count}, b.getF32Type()),
                               address, unsigned(bytes));
      for (int64_t n = 0; n < count; ++n) {
        Value number = LLVM::ExtractElementOp::create(b, piece, b.i32(n));
        numbers.push_back(isRagged ? b.select(exists, number, zero(b))
                                   : number);
      }
    }
    return numbers;
  }

  static Value zero(Lane &b) {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  }
};

} // namespace

void attn::populateSplitPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<SplitBf16Lowering, SplitRowsLowering, SplitViewLowering>(
      converter, patterns.getContext());
}
