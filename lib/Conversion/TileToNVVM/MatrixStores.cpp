//===- MatrixStores.cpp - Fragments to shared memory ----------------------===//
//
// Registers come in the order of Matrices.cpp.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include <array>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::storeMatrices(Lane &b, Value pointer, ValueRange registers,
                         bool transposed) {
  NVVM::StMatrixOp::create(b, pointer, registers,
                           transposed ? NVVM::MMALayout::col
                                      : NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

Value attn::placeOfHalf(Lane &b, SmemType buffer, Value half, Value row8) {
  if (!buffer.swapsHalves())
    return half;
  return b.createOrFold<arith::XOrIOp>(half,
                                       b.bitAnd(b.shiftRight(row8, 2), 1));
}

Value attn::placeInRow(Lane &b, SmemType buffer, Value column, Value right,
                       Value row8) {
  Value piece = b.add(b.div(column, 8), placeOfHalf(b, buffer, right, row8));
  if (!buffer.isSwizzled())
    return b.mul(piece, 16);
  constexpr int64_t perPanel = 8;
  Value place = b.createOrFold<arith::XOrIOp>(b.rem(piece, perPanel), row8);
  return b.add(b.mul(b.div(piece, perPanel), buffer.panelBytes()),
               b.mul(place, 16));
}

namespace {

struct StoreMatrixLowering : OpConversionPattern<StoreMatrixOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreMatrixOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getFragment().getType();
    assert((buffer.elementBytes() == 2 || !buffer.isSwizzled()) &&
           "the verifier knows no panels of f32");
    Value start = adaptor.getBuffer().front();
    if (op.getStage())
      start =
          b.add(start, b.mul(adaptor.getStage().front(), buffer.stageBytes()));
    if (buffer.isSwizzled()) {
      storeSwizzled(b, op, adaptor.getFragment(), start,
                    adaptor.getRow().front());
      rewriter.eraseOp(op);
      return success();
    }
    Value row = b.add(adaptor.getRow().front(), b.quad());
    Value address =
        b.add(start, b.add(b.mul(row, buffer.pitchBytes()),
                           b.mul(b.inQuad(), 2 * buffer.elementBytes())));
    if (op.getColumn())
      address = b.add(
          address, b.mul(adaptor.getColumn().front(), buffer.elementBytes()));
    // Of even and of odd pieces of eight columns.
    std::array<Value, 2> pointers = {b.shared(address), b.shared(address)};
    if (buffer.swapsHalves()) {
      Value shift = b.mul(placeOfHalf(b, buffer, b.i32(0), b.quad()), 16);
      pointers = {b.shared(b.add(address, shift)),
                  b.shared(b.sub(address, shift))};
    }
    ValueRange values = adaptor.getFragment();
    int64_t columns = fragment.getColumns() / 8;
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m)
      for (int64_t n = 0; n < columns; ++n)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t first = (m * columns + n) * 4 + 2 * half;
          Value pair = packPair(b, buffer.getElementType(), values[first],
                                values[first + 1]);
          int64_t pairBytes = 2 * buffer.elementBytes();
          int64_t bytes = (m * 16 + half * 8) * buffer.pitchBytes() +
                          n * 8 * buffer.elementBytes();
          LLVM::StoreOp::create(b, pair, b.offset(pointers[n % 2], bytes),
                                unsigned(pairBytes));
        }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// stmatrix: lane l gives the address of row l % 8 of the 8 x 8 matrix l / 8;
  /// four of them are 16 columns of 16 rows.
  static void storeSwizzled(Lane &b, StoreMatrixOp op, ValueRange values,
                            Value buffer, Value firstRow) {
    SmemType type = op.getBuffer().getType();
    FragType fragment = op.getFragment().getType();
    Value lane = b.lane();
    Value row8 = b.bitAnd(lane, 7), matrix = b.shiftRight(lane, 3);
    Value down = b.mul(b.bitAnd(matrix, 1), 8), right = b.shiftRight(matrix, 1);
    Value row = b.add(b.add(firstRow, row8), down);
    Value start = b.add(buffer, b.mul(row, SmemType::kPanelBytes));
    // Rows begin at multiples of 8, so row % 8 is the lane's own.
    Value twist = arith::XOrIOp::create(b, right, row8);
    int64_t pieces = fragment.getColumns() / 8, perPanel = 8;
    // Pairs of columns are registers already, in the same order.
    bool isFactor = fragment.getLayout() == FragmentLayout::lhs;
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m)
      for (int64_t n = 0; n < pieces; n += 2) {
        int64_t count = std::min<int64_t>(2, pieces - n);
        SmallVector<Value> packed;
        for (int64_t i = 0; i < 2 * count; ++i) {
          int64_t pair = (m * pieces + n) * 2 + i;
          packed.push_back(isFactor ? values[pair]
                                    : packPair(b, type.getElementType(),
                                               values[2 * pair],
                                               values[2 * pair + 1]));
        }
        Value piece = arith::XOrIOp::create(b, twist, b.i32(n % perPanel));
        Value address = b.add(start, b.mul(piece, 16));
        int64_t bytes =
            n / perPanel * type.panelBytes() + m * 16 * SmemType::kPanelBytes;
        storeMatrices(b, b.offset(b.shared(address), bytes), packed,
                      /*transposed=*/false);
      }
  }
};

/// stmatrix with its matrices transposed: lane l gives the address of column
/// l % 8 of the 8 x 8 matrix l / 8 of a 16 x 16 piece, a row of the buffer.
struct StoreTransposedLowering : OpConversionPattern<StoreTransposedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreTransposedOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType buffer = op.getBuffer().getType();
    FragType fragment = op.getFragment().getType();
    // Matrices 1 and 3 are 8 columns of the buffer to the right of 0 and 2, and
    // 2 and 3 are 8 rows down.
    Value lane = b.lane(), matrix = b.shiftRight(lane, 3);
    Value right = b.bitAnd(matrix, 1), down = b.shiftRight(matrix, 1);
    Value row8 = b.bitAnd(lane, 7);
    Value row = b.add(adaptor.getRow().front(), b.add(row8, b.mul(down, 8)));
    Value stage = b.mul(adaptor.getStage().front(), buffer.stageBytes());
    Value start = b.add(b.add(adaptor.getBuffer().front(), stage),
                        b.mul(row, buffer.pitchBytes()));
    int64_t columns = fragment.getColumns() / 16;
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m) {
      Value column = b.add(adaptor.getColumn().front(), m * 16);
      // The rows of one place in a piece of eight are a constant apart, and
      // share one address: see LoadMatrixLowering.
      Value pointer = b.shared(
          b.opaque(b.add(start, placeInRow(b, buffer, column, right, row8))));
      for (int64_t n = 0; n < columns; ++n)
        storeMatrices(b, b.offset(pointer, n * 16 * buffer.pitchBytes()),
                      adaptor.getFragment().slice((m * columns + n) * 4, 4),
                      /*transposed=*/true);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::populateMatrixStorePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<StoreMatrixLowering, StoreTransposedLowering>(
      converter, patterns.getContext());
}
