//===- Split.cpp - f32 as sums of numbers of bf16 or f16 ------------------===//
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
// Rows in global memory become rows of two parts there, behind a look at all of
// a block's for the largest number: as many columns as registers hold stay
// there, and others come again.
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

Value number(Lane &b, float value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

/// Splits numbers; of each part two go into a register.
class Splitter {
public:
  explicit Splitter(Lane &b)
      : b(b), perturbation(number(b, 0x1p-30f)), smaller(number(b, 0x1p-24f)),
        most(number(b, 0x1p100f)) {}

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

/// Splits numbers between -2^16 and 2^16; of each part two go into a register.
class HalfSplitter {
public:
  explicit HalfSplitter(Lane &b)
      : b(b), least(number(b, 0x1p-24f)), share(number(b, 1 + 0x3p-14f)) {}

  std::array<Registers, 2> split(ValueRange numbers, bool areSigned) const {
    std::array<Registers, 2> parts;
    for (size_t i = 0; i < numbers.size(); i += 2) {
      std::array<Value, 2> pair = {numbers[i], numbers[i + 1]};
      Value first = pack("llvm.nvvm.ff2f16x2.rz", pair);
      std::array<Value, 2> rests;
      for (int64_t k = 0; k < 2; ++k)
        rests[k] = rest(pair[k], first, k, areSigned);
      parts[0].push_back(bits(first));
      parts[1].push_back(bits(pack("llvm.nvvm.ff2f16x2.rn", rests)));
    }
    return parts;
  }

private:
  /// What half `k` of `first` leaves of a number, and a share of it: 2^-24 at
  /// least, and no more than the number.
  Value rest(Value x, Value first, int64_t k, bool isSigned) const {
    Value half = LLVM::ExtractElementOp::create(b, first, b.i32(k));
    Value rest = arith::SubFOp::create(
        b, x, arith::ExtFOp::create(b, b.getF32Type(), half));
    rest = arith::MulFOp::create(b, rest, share);
    auto magnitude = [&](Value v) -> Value {
      return isSigned ? Value(LLVM::FAbsOp::create(b, v)) : v;
    };
    // Of a NaN, what is left of an infinity, both give the other one.
    rest = arith::MaxNumFOp::create(b, magnitude(rest), least);
    rest = arith::MinNumFOp::create(b, rest, magnitude(x));
    return isSigned ? Value(LLVM::CopySignOp::create(b, rest, x)) : rest;
  }
  Value pack(StringRef intrinsic, std::array<Value, 2> pair) const {
    auto call = LLVM::CallIntrinsicOp::create(
        b, VectorType::get(2, b.getF16Type()), b.getStringAttr(intrinsic),
        ValueRange{pair[1], pair[0]}); // the upper half first
    return call.getResults();
  }
  Value bits(Value pair) const {
    return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
  }

  Lane &b;
  Value least, share;
};

Value multiply(Lane &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}

struct SplitF16Lowering : OpConversionPattern<SplitF16Op> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitF16Op op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value factor = number(b, float(1 << SplitF16Op::kExponent));
    Registers scaled;
    for (Value x : adaptor.getSource())
      scaled.push_back(multiply(b, x, factor));
    std::array<Registers, 2> parts =
        HalfSplitter(b).split(scaled, /*areSigned=*/false);
    rewriter.replaceOpWithMultiple(op, {parts[0], parts[1]});
    return success();
  }
};

/// Eight lanes have a row, each of them eight of 64 columns: a piece of 16
/// bytes of every part.  A warp has four rows at once.
class ViewSplitter {
public:
  ViewSplitter(Lane &b, SplitViewOp op, const ViewValues &source,
               const ViewValues &target, Value row)
      : b(b), source(source), target(target), type(op.getSource().getType()),
        width(op.getTarget().getType().getColumns() / SplitViewOp::kParts),
        kept(chunks() <= kMostKept ? chunks() : kMostKeptOfMore),
        first(b.add(b.add(row, b.mul(b.warp(), SplitViewOp::kRows)),
                    b.shiftRight(b.lane(), 3))),
        column(b.mul(b.bitAnd(b.lane(), 7), kColumnsOfLane)) {}

  /// The largest finite magnitude of the lane's numbers.
  Value look() {
    Value largest = number(b, 0);
    for (int64_t chunk = 0; chunk < kept; ++chunk)
      for (int64_t i = 0; i < kSteps; ++i) {
        numbers.push_back(load(i, b.i32(chunk * SplitViewOp::kColumns)));
        largest = largestOf(numbers.back(), largest);
      }
    if (!areAllKept()) {
      auto loop = scf::ForOp::create(b, b.i32(kept), b.i32(chunks()), b.i32(1),
                                     largest);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value place = b.mul(loop.getInductionVar(), SplitViewOp::kColumns);
      Value most = loop.getRegionIterArg(0);
      for (const Registers &some : loadAll(place))
        most = largestOf(some, most);
      scf::YieldOp::create(b, most);
      largest = loop.getResult(0);
    }
    return largest;
  }

  /// What was looked at last comes back first: it is nearest.
  void split(Value factor) {
    if (!areAllKept()) {
      int64_t others = chunks() - kept;
      auto loop = scf::ForOp::create(b, b.i32(0), b.i32(others), b.i32(1));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value place = b.mul(b.sub(b.i32(chunks() - 1), loop.getInductionVar()),
                          SplitViewOp::kColumns);
      SmallVector<Registers> all = loadAll(place);
      for (int64_t i = 0; i < kSteps; ++i)
        store(all[i], i, place, factor);
    }
    for (int64_t chunk = 0; chunk < kept; ++chunk)
      for (int64_t i = 0; i < kSteps; ++i)
        store(numbers[chunk * kSteps + i], i,
              b.i32(chunk * SplitViewOp::kColumns), factor);
  }

private:
  static constexpr int64_t kColumnsOfLane = 8, kRowsAtOnce = 4;
  static constexpr int64_t kSteps = SplitViewOp::kRows / kRowsAtOnce;
  /// Chunks of 64 columns that stay in registers, 32 for each; with others
  /// beside them one less.
  static constexpr int64_t kMostKept = 6, kMostKeptOfMore = 5;

  int64_t chunks() const { return width / SplitViewOp::kColumns; }
  bool areAllKept() const { return kept == chunks(); }

  Value largestOf(const Registers &some, Value most) const {
    for (Value x : some) {
      // Of an infinity NaN, which no maximum takes.
      Value magnitude = LLVM::FMAOp::create(b, b.getF32Type(), x, number(b, 0),
                                            LLVM::FAbsOp::create(b, x));
      most = arith::MaxNumFOp::create(b, most, magnitude);
    }
    return most;
  }

  SmallVector<Registers> loadAll(Value place) const {
    SmallVector<Registers> all;
    for (int64_t i = 0; i < kSteps; ++i)
      all.push_back(load(i, place));
    return all;
  }

  /// The lane's columns from `place` on in a row, or the last row: zeros behind
  /// those of the row, in pieces that are there or not.
  Registers load(int64_t step, Value place) const {
    constexpr int64_t numberBytes = 4;
    Value row = arith::MinSIOp::create(b, b.add(first, step * kRowsAtOnce),
                                       b.add(source.rows, -1));
    Value from = b.offset(source.base, b.mul(b.wide(row), source.stride));
    int64_t rowBytes = type.rowBytes();
    int64_t bytes =
        std::min<int64_t>({kPieceBytes, type.getAlign(), rowBytes & -rowBytes});
    int64_t count = bytes / numberBytes;
    bool isRagged = type.getColumns() < width;
    Value own = b.add(place, column);
    Registers loaded;
    for (int64_t i = 0; i < kColumnsOfLane; i += count) {
      Value at = b.add(own, i), exists;
      if (isRagged) { // what is not there is read from the row's beginning
        exists = b.less(at, b.i32(type.getColumns()));
        at = b.select(exists, at, b.i32(0));
      }
      Value address = b.offset(from, b.wide(b.mul(at, numberBytes)));
      Value piece =
          LLVM::LoadOp::create(b, VectorType::get({count}, b.getF32Type()),
                               address, unsigned(bytes));
      for (int64_t n = 0; n < count; ++n) {
        Value x = LLVM::ExtractElementOp::create(b, piece, b.i32(n));
        loaded.push_back(isRagged ? b.select(exists, x, number(b, 0)) : x);
      }
    }
    return loaded;
  }

  void store(const Registers &some, int64_t step, Value place,
             Value factor) const {
    constexpr int64_t partBytes = 2;
    Registers scaled;
    for (Value x : some)
      scaled.push_back(multiply(b, x, factor));
    std::array<Registers, 2> parts =
        HalfSplitter(b).split(scaled, /*areSigned=*/true);
    Value row = b.add(first, step * kRowsAtOnce);
    b.when(b.less(row, source.rows), [&] {
      Value to = b.offset(target.base, b.mul(b.wide(row), target.stride));
      to = b.offset(to, b.wide(b.mul(b.add(place, column), partBytes)));
      for (auto [i, part] : llvm::enumerate(parts))
        storeFour(b, b.offset(to, int64_t(i) * width * partBytes), part);
    });
  }

  Lane &b;
  const ViewValues &source, &target;
  ViewType type;
  int64_t width, kept;
  Value first, column;
  SmallVector<Registers> numbers; ///< by chunk and step
};

struct SplitViewLowering : OpConversionPattern<SplitViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitViewOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewValues source(adaptor.getSource()), target(adaptor.getTarget());
    Value row = adaptor.getRow().front();
    ViewSplitter rows(b, op, source, target, row);
    // Numbers that are not negative are in order as integers.
    Value bits = LLVM::BitcastOp::create(b, b.getI32Type(), rows.look());
    Value exponent =
        exponentOf(b, ofBlock(b, bits, adaptor.getLargest().front()),
                   int32_t(op.getMost()));
    b.when(b.less(b.thread(), b.i32(1)), [&] {
      Value place = b.wide(b.mul(adaptor.getIndex().front(), kNumberBytes));
      LLVM::StoreOp::create(b, exponent,
                            b.offset(adaptor.getExponents().front(), place),
                            unsigned(kNumberBytes));
    });
    rows.split(powerOf(b, exponent));
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr int64_t kNumberBytes = 4, kBias = 127, kFractionBits = 23;

  /// The largest of all warps.
  static Value ofBlock(Lane &b, Value bits, Value buffer) {
    for (int64_t mask = 16; mask > 0; mask /= 2)
      bits = arith::MaxSIOp::create(b, bits, b.shuffleXor(bits, mask));
    Value own = b.add(buffer, b.mul(b.warp(), kNumberBytes)); // by all lanes
    b.when(b.isFirstLane(), [&] {
      LLVM::StoreOp::create(b, bits, b.shared(own), unsigned(kNumberBytes));
    });
    NVVM::Barrier0Op::create(b);
    for (int64_t warp = 0; warp < SplitViewOp::kWarps; ++warp) {
      Value other = LLVM::LoadOp::create(
          b, b.getI32Type(), b.shared(b.add(buffer, warp * kNumberBytes)),
          unsigned(kNumberBytes));
      bits = arith::MaxSIOp::create(b, bits, other);
    }
    return bits;
  }

  /// Of the power of two that brings a number with these bits to where the
  /// largest shall be.
  static Value exponentOf(Lane &b, Value bits, int32_t most) {
    Value move = b.sub(b.i32(kBias + SplitViewOp::kLargest),
                       b.shiftRight(bits, kFractionBits));
    move = arith::MinSIOp::create(b, move, b.i32(most));
    return arith::MaxSIOp::create(b, move, b.i32(SplitViewOp::kLeastMove));
  }
  static Value powerOf(Lane &b, Value exponent) {
    Value biased = b.mul(b.add(exponent, kBias), 1 << kFractionBits);
    return LLVM::BitcastOp::create(b, b.getF32Type(), biased);
  }
};

} // namespace

void attn::populateSplitPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<SplitBf16Lowering, SplitF16Lowering, SplitRowsLowering,
               SplitViewLowering>(converter, patterns.getContext());
}
