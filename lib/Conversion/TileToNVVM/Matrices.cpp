//===- Matrices.cpp - Fragments: ldmatrix, mma.sync, conversions ----------===//
//
// Registers of a fragment, in the order the patterns share:
//   acc  16 x 8 pieces, row of pieces by row; 4 per piece: (row, column),
//        (row, +1), (row + 8, column), (row + 8, +1)
//   lhs  16 x 16 pieces (8-bit: 16 x 32, 32-bit: 16 x 8), row by row; 4 per
//        piece as in TileTypes.td
//   rhs  16 x 8 pieces (32-bit: 8 x 8), k by k, then along n; 2 per piece
// Pairs of 16-bit elements are i32, as are quadruples of 8-bit ones, and f32
// and tf32 that are factors.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Four f32 rounded to 8-bit elements of a register, the first lowest.
Value packBytes(Lane &b, Value x0, Value x1, Value x2, Value x3) {
  auto half = [&](Value low, Value high) -> Value {
    auto call = LLVM::CallIntrinsicOp::create(
        b, b.getI16Type(), b.getStringAttr("llvm.nvvm.ff.to.e4m3x2.rn"),
        ValueRange{high, low});
    return call.getResults();
  };
  Type pair = VectorType::get(2, b.getI16Type());
  Value both = LLVM::UndefOp::create(b, pair);
  both = LLVM::InsertElementOp::create(b, pair, both, half(x0, x1), b.i32(0));
  both = LLVM::InsertElementOp::create(b, pair, both, half(x2, x3), b.i32(1));
  return LLVM::BitcastOp::create(b, b.getI32Type(), both);
}

} // namespace

SmallVector<Value, 4> attn::loadFour(Lane &b, Value pointer, bool transposed) {
  Type i32 = b.getI32Type();
  Type four =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  Value loaded = NVVM::LdMatrixOp::create(
      b, four, pointer, 4u,
      transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value, 4> registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return registers;
}

namespace {

struct LoadMatrixLowering : OpConversionPattern<LoadMatrixOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadMatrixOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getResult().getType();
    if (fragment.isPaired()) {
      rewriter.replaceOpWithMultiple(op, {loadPaired(b, op, adaptor)});
      return success();
    }
    if (buffer.isSwizzled()) {
      rewriter.replaceOpWithMultiple(op, {loadSwizzled(b, op, adaptor)});
      return success();
    }
    bool lhs = fragment.getLayout() == FragmentLayout::lhs;
    // The instruction transposes when k runs down the rows of the buffer.
    bool transposed = lhs == op.getTranspose();
    // Of 16-byte rows: of 32-bit elements four are one row of a matrix, and a
    // lane gets one of them.
    int64_t across = 16 / buffer.elementBytes();

    // Matrices 1 and 3 lie 8 rows down or 16 bytes to the right of 0 and 2.
    Value lane = b.lane();
    bool downFirst = !op.getTranspose();
    Value low = b.bitAnd(b.shiftRight(lane, 3), 1);
    Value high = b.shiftRight(lane, 4);
    Value down = downFirst ? low : high;
    auto [address, bytes] = startOf(b, op, adaptor);
    Value row8 = b.bitAnd(lane, 7), laneRow = b.add(row8, b.mul(down, 8));
    address = b.add(address, b.add(b.mul(laneRow, buffer.pitchBytes()),
                                   bytesToRight(b, buffer, downFirst ? 4 : 3)));
    // Loads at constant distances share one address register.  Were it known
    // to be invariant, LLVM would keep every sum in a register of its own
    // outside the loop.
    Value pointer = b.offset(b.shared(b.opaque(address)), bytes);

    // One instruction loads 16 x 16 elements of the buffer, or 16 x 8.
    auto load = [&](int64_t row, int64_t column) {
      return loadFour(b,
                      b.offset(pointer, row * buffer.pitchBytes() +
                                            column * buffer.elementBytes()),
                      transposed);
    };
    Registers registers;
    int64_t down16 = lhs ? 16 : 2 * across, right16 = lhs ? 2 * across : 16;
    for (int64_t i = 0; i < fragment.getRows(); i += down16)
      for (int64_t j = 0; j < fragment.getColumns(); j += right16) {
        llvm::append_range(registers,
                           op.getTranspose() ? load(j, i) : load(i, j));
      }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  /// 16 for lanes that load from the right, whose numbers have this bit, the
  /// 3rd or 4th, or in rows that swap halves for the others.  Bits are compared
  /// where they come to stand: one by one they took a register more, and ptxas
  /// 13.0 spilled 24 bytes (flash, d = 96, 128 queries, 48 keys).
  static Value bytesToRight(Lane &b, SmemType buffer, int64_t bit) {
    constexpr int64_t bytes = 16;
    Value lane = b.lane(), sum = b.mul(lane, bytes >> bit);
    if (buffer.swapsHalves())
      sum = b.createOrFold<arith::XOrIOp>(sum, b.mul(lane, bytes / 4));
    return b.bitAnd(sum, bytes);
  }

  /// Of elements of 16 bits: 16 x 16 of them by one instruction.
  static Registers loadSwizzled(Lane &b, LoadMatrixOp op,
                                OneToNOpAdaptor adaptor) {
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getResult().getType();
    bool transposes = fragment.isLhs() == op.getTranspose();
    Value lane = b.lane(), row8 = b.bitAnd(lane, 7);
    Value low = b.bitAnd(b.shiftRight(lane, 3), 1);
    Value high = b.shiftRight(lane, 4);
    Value down = op.getTranspose() ? high : low;
    Value right = op.getTranspose() ? low : high;
    Value row = b.add(adaptor.getRow().front(), b.add(row8, b.mul(down, 8)));
    Value stage = b.mul(adaptor.getStage().front(), buffer.stageBytes());
    Value start = b.add(b.add(adaptor.getBuffer().front(), stage),
                        b.mul(row, buffer.pitchBytes()));
    auto load = [&](int64_t row, int64_t column) {
      Value from = b.add(adaptor.getColumn().front(), column);
      Value address = b.add(start, placeInRow(b, buffer, from, right, row8));
      return loadFour(b, b.offset(b.shared(address), row * buffer.pitchBytes()),
                      transposes);
    };
    Registers registers;
    for (int64_t i = 0; i < fragment.getRows(); i += 16)
      for (int64_t j = 0; j < fragment.getColumns(); j += 16)
        llvm::append_range(registers,
                           op.getTranspose() ? load(j, i) : load(i, j));
    return registers;
  }

  /// Where the part starts, as a run-time address and a number of bytes known
  /// now, which becomes an immediate.
  static std::pair<Value, int64_t> startOf(Lane &b, LoadMatrixOp op,
                                           OneToNOpAdaptor adaptor) {
    SmemType buffer = op.getBuffer().getType();
    auto [address, bytes] = b.splitConstant(adaptor.getBuffer().front());
    for (auto [index, unit] :
         {std::pair(adaptor.getStage().front(), buffer.stageBytes()),
          std::pair(adaptor.getRow().front(), buffer.pitchBytes()),
          std::pair(adaptor.getColumn().front(), buffer.elementBytes())}) {
      APInt constant;
      if (matchPattern(index, m_ConstantInt(&constant)))
        bytes += constant.getSExtValue() * unit;
      else
        address = b.add(address, b.mul(index, unit));
    }
    return {address, bytes};
  }

  /// f32 whose k are 2 (lane % 4) and the next: for `lhs` side by side in a row
  /// of the buffer, for `rhs` and a transpose one below the other.  Rows there
  /// differ by twice an odd number of 16 bytes, so that eight columns of four
  /// of them fall into different banks.
  static Registers loadPaired(Lane &b, LoadMatrixOp op,
                              OneToNOpAdaptor adaptor) {
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getResult().getType();
    int64_t pitch = buffer.pitchBytes(), element = buffer.elementBytes();
    auto [address, bytes] = startOf(b, op, adaptor);
    Value k = b.mul(b.inQuad(), 2), other = b.quad();
    bool isBeside = fragment.isLhs() && !op.getTranspose();
    Value row = isBeside ? other : k, column = isBeside ? k : other;
    address = b.add(address, b.add(b.mul(row, pitch), b.mul(column, element)));
    Value pointer = b.offset(b.shared(b.opaque(address)), bytes);
    auto load = [&](Type type, int64_t row, int64_t column) -> Value {
      Value from = b.offset(pointer, row * pitch + column * element);
      auto vector = dyn_cast<VectorType>(type);
      int64_t size = vector ? vector.getNumElements() * element : element;
      return LLVM::LoadOp::create(b, type, from, unsigned(size));
    };
    Type one = b.getI32Type(), two = VectorType::get(2, one);
    Registers registers;
    if (fragment.isRhs()) {
      for (int64_t i = 0; i < fragment.getRows(); i += 8)
        for (int64_t j = 0; j < fragment.getColumns(); j += 8)
          for (int64_t next = 0; next < 2; ++next)
            registers.push_back(load(one, i + next, j));
      return registers;
    }
    for (int64_t i = 0; i < fragment.getRows(); i += 16)
      for (int64_t j = 0; j < fragment.getColumns(); j += 8) {
        if (op.getTranspose()) {
          for (int64_t next = 0; next < 2; ++next)
            for (int64_t below = 0; below < 16; below += 8)
              registers.push_back(load(one, j + next, i + below));
          continue;
        }
        Value upper = load(two, i, j), lower = load(two, i + 8, j);
        for (int64_t next = 0; next < 2; ++next)
          for (Value pair : {upper, lower})
            registers.push_back(
                LLVM::ExtractElementOp::create(b, pair, b.i32(next)));
      }
    return registers;
  }
};

/// The f32 of a factor, or of an accumulator in the order of a factor: rows
/// first there, columns first here.
Registers numbersOf(Lane &b, FragType type, ValueRange values) {
  Registers numbers;
  if (type.getLayout() == FragmentLayout::acc) {
    for (size_t piece = 0; piece < values.size(); piece += 4)
      for (size_t i : {0, 2, 1, 3})
        numbers.push_back(values[piece + i]);
    return numbers;
  }
  for (Value bits : values)
    numbers.push_back(LLVM::BitcastOp::create(b, b.getF32Type(), bits));
  return numbers;
}

/// To nearest, ties away from zero.
Value toTf32(Lane &b, Value number) {
  auto call = LLVM::CallIntrinsicOp::create(
      b, b.getI32Type(), b.getStringAttr("llvm.nvvm.f2tf32.rna"),
      ValueRange{number});
  return call.getResults();
}

struct MmaLowering : OpConversionPattern<MmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType lhs = op.getLhs().getType(), acc = op.getAcc().getType();
    int64_t rows = acc.getRows() / 16, columns = acc.getColumns() / 8;
    int64_t depth = lhs.depthStep(), steps = lhs.getColumns() / depth;
    Type f32 = b.getF32Type();
    Type result =
        LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
    bool half = lhs.getElementType().isF16();
    NVVM::MMATypes type = half ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    if (isa<FloatTF32Type>(lhs.getElementType()))
      type = NVVM::MMATypes::tf32;
    // The f16 intrinsic takes vectors, the others take i32.
    auto operands = [&](ValueRange values) {
      if (!half)
        return SmallVector<Value>(values);
      SmallVector<Value> cast;
      for (Value v : values)
        cast.push_back(
            LLVM::BitcastOp::create(b, VectorType::get(2, b.getF16Type()), v));
      return cast;
    };

    Registers registers = llvm::to_vector(adaptor.getAcc());
    for (int64_t k = 0; k < steps; ++k)
      for (int64_t n = 0; n < columns; ++n)
        for (int64_t m = 0; m < rows; ++m) {
          MutableArrayRef<Value> piece(&registers[(m * columns + n) * 4], 4);
          Value product = NVVM::MmaOp::create(
              b, result,
              operands(adaptor.getLhs().slice((m * steps + k) * 4, 4)),
              operands(adaptor.getRhs().slice((k * columns + n) * 2, 2)),
              SmallVector<Value>(piece), ArrayRef<int64_t>{16, 8, depth},
              std::nullopt, std::nullopt,
              std::array<NVVM::MMATypes, 2>{type, type},
              std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                             NVVM::MMALayout::col});
          for (int64_t i = 0; i < 4; ++i)
            piece[i] = LLVM::ExtractValueOp::create(b, product, i);
        }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct CastLowering : OpConversionPattern<CastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType source = op.getSource().getType();
    Type element = op.getResult().getType().getElementType();
    ValueRange values = adaptor.getSource();
    if (isa<FloatTF32Type>(element)) {
      Registers rounded;
      for (Value number : numbersOf(b, source, values))
        rounded.push_back(toTf32(b, number));
      rewriter.replaceOpWithMultiple(op, {rounded});
      return success();
    }
    if (element.getIntOrFloatBitWidth() == 8) {
      rewriter.replaceOpWithMultiple(op, {toBytes(b, values)});
      return success();
    }
    if (element.isF32()) {
      rewriter.replaceOpWithMultiple(op, {widened(b, source, values)});
      return success();
    }
    // A 16 x 16 piece of the operand is two 16 x 8 pieces of the accumulator,
    // side by side; pairs of columns are pairs of registers already.
    Registers registers;
    for (int64_t piece = 0;
         piece < source.getRows() / 16 * (source.getColumns() / 16); ++piece)
      for (int64_t i = 0; i < 4; ++i)
        registers.push_back(packPair(b, element, values[piece * 8 + 2 * i],
                                     values[piece * 8 + 2 * i + 1]));
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  /// The two elements of every register.  bf16 is the upper half of f32; as a
  /// conversion LLVM would move it behind comparisons, and then write some that
  /// ptxas 13.0 has no form of (setp.ftz.bf16).
  static Registers widened(Lane &b, FragType source, ValueRange values) {
    Type pair = VectorType::get({2}, source.getElementType());
    Registers numbers;
    for (Value value : values) {
      if (source.getElementType().isBF16()) {
        constexpr int32_t upper = int32_t(0xffff0000);
        for (Value bits : {Value(arith::ShLIOp::create(b, value, b.i32(16))),
                           b.bitAnd(value, upper)})
          numbers.push_back(LLVM::BitcastOp::create(b, b.getF32Type(), bits));
        continue;
      }
      Value halves = LLVM::BitcastOp::create(b, pair, value);
      for (int64_t i = 0; i < 2; ++i) {
        Value half = LLVM::ExtractElementOp::create(b, halves, b.i32(i));
        numbers.push_back(LLVM::FPExtOp::create(b, b.getF32Type(), half));
      }
    }
    return numbers;
  }

  /// Two 16 x 8 pieces side by side give each row a register.
  static Registers toBytes(Lane &b, ValueRange values) {
    Registers registers;
    for (size_t piece = 0; piece < values.size(); piece += 8)
      for (size_t i = piece; i < piece + 4; i += 2)
        registers.push_back(packBytes(b, values[i], values[i + 1],
                                      values[i + 4], values[i + 5]));
    return registers;
  }
};

struct SplitLowering : OpConversionPattern<SplitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SplitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Type f32 = b.getF32Type(), i32 = b.getI32Type();
    Value factor =
        arith::ConstantOp::create(b, b.getF32FloatAttr(SplitOp::kCutFactor));
    constexpr int64_t kTf32Bits = 0xffffe000;
    Registers high, low;
    for (Value number :
         numbersOf(b, op.getSource().getType(), adaptor.getSource())) {
      Value more = arith::MulFOp::create(b, number, factor);
      high.push_back(
          b.bitAnd(LLVM::BitcastOp::create(b, i32, more), kTf32Bits));
      Value cut = LLVM::BitcastOp::create(b, f32, high.back());
      // The tensor cores themselves cut off what tf32 has no bits for.
      low.push_back(LLVM::BitcastOp::create(
          b, i32, arith::SubFOp::create(b, number, cut)));
    }
    rewriter.replaceOpWithMultiple(op, {high, low});
    return success();
  }
};

struct ExtractLowering : OpConversionPattern<ExtractOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExtractOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType source = op.getSource().getType();
    FragType result = op.getResult().getType();
    int64_t width = source.columnStep();
    int64_t perRow = source.getColumns() / width;
    int64_t first = op.getColumn() / width, count = result.getColumns() / width;
    Registers registers;
    for (int64_t row = 0; row < source.getRows() / 16; ++row)
      llvm::append_range(registers, adaptor.getSource().slice(
                                        (row * perRow + first) * 4, count * 4));
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct ConcatLowering : OpConversionPattern<ConcatOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ConcatOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Registers registers;
    int64_t tiles = op.getResult().getType().getRows() / 16;
    for (int64_t row = 0; row < tiles; ++row)
      for (ValueRange part : {adaptor.getLeft(), adaptor.getRight()}) {
        size_t perRow = part.size() / tiles;
        llvm::append_range(registers, part.slice(row * perRow, perRow));
      }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

} // namespace

Value attn::packPair(Lane &b, Type element, Value low, Value high) {
  Type pair = VectorType::get(2, b.getF32Type());
  Value both = LLVM::UndefOp::create(b, pair);
  both = LLVM::InsertElementOp::create(b, pair, both, low, b.i32(0));
  both = LLVM::InsertElementOp::create(b, pair, both, high, b.i32(1));
  if (element.isF32())
    return both;
  Value rounded = LLVM::FPTruncOp::create(b, VectorType::get(2, element), both);
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

void attn::populateMatrixPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<CastLowering, ConcatLowering, ExtractLowering,
               LoadMatrixLowering, MmaLowering, SplitLowering>(
      converter, patterns.getContext());
}
