//===- Transpose.cpp - 8-bit matrices transposed in shared memory ---------===//
//
// ldmatrix transposes 8 x 8 matrices of 16-bit units, here pairs of columns
// (2g, 2g + 1) of a row.  Of 32 rows and 16 columns it gives lane l = 4g + q
// four registers r0 .. r3, of rows 2q and 2q + 1 (+ 8, + 16, + 24):
//
//   r0 = (row 2q: column 2g, column 2g + 1; row 2q + 1: column 2g, 2g + 1)
//
// The bytes of column 2g in r0 and r1 are rows 2q, 2q + 1, 2q + 8, 2q + 9: one
// behind the other the word that `sw128_paired` wants.  Two of four bytes each
// are picked by prmt, and stmatrix stores eight target rows at a time.
//
// Target rows 2g, g = 0 .. 7, would lie in four groups of banks, twice; rows
// 2g for g < 4 with rows 2g + 1 for the others lie in all eight.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kPieceBytes = 16;
constexpr int64_t kPiecesOfPanel = SmemType::kPanelBytes / kPieceBytes;
/// Bytes 0 and 2, or 1 and 3, of two registers.
constexpr int64_t kEvenBytes = 0x6420, kOddBytes = 0x7531;

struct TransposeLowering : OpConversionPattern<TransposeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(TransposeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    // What follows from the lane is worked out anew each time: a role beside
    // the producer has few registers to keep it in.
    Value lane = b.opaque(b.lane());
    Value row8 = b.bitAnd(lane, 7), matrix = b.shiftRight(lane, 3);
    Value from = sourceAddress(b, op, adaptor, lane, row8);
    Value to = targetAddress(b, op, adaptor, row8, matrix);
    Value early = b.less(lane, b.i32(16));
    Value first = b.select(early, b.i32(kEvenBytes), b.i32(kOddBytes));
    Value second = b.select(early, b.i32(kOddBytes), b.i32(kEvenBytes));

    // Piece by piece: loads cannot move above the stores before them, and the
    // role has few registers to load several pieces at once.
    SmemType source = op.getSource().getType();
    for (int64_t piece = 0; piece < source.getColumns() / kPieceBytes;
         ++piece) {
      SmallVector<Value, 4> r = load(b, from, source, piece);
      SmallVector<Value> rows = {
          pick(b, r[0], r[1], first), pick(b, r[0], r[1], second),
          pick(b, r[2], r[3], first), pick(b, r[2], r[3], second)};
      int64_t bytes = piece * kPieceBytes * SmemType::kPanelBytes;
      storeMatrices(b, b.offset(b.shared(to), bytes), rows,
                    /*transposed=*/false);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Of the lane's row, and of the piece whose place is the row's own number:
  /// that of column 0.
  static Value sourceAddress(Lane &b, TransposeOp op, OpAdaptor adaptor,
                             Value lane, Value row8) {
    SmemType source = op.getSource().getType();
    Value stage = b.mul(adaptor.getSourceStage(), source.stageBytes());
    Value row = b.add(adaptor.getRow(), lane);
    Value start = b.add(b.add(adaptor.getSource(), stage),
                        b.mul(row, SmemType::kPanelBytes));
    return b.add(start, b.mul(row8, kPieceBytes));
  }

  static SmallVector<Value, 4> load(Lane &b, Value from, SmemType source,
                                    int64_t piece) {
    // Rows begin at multiples of 128 bytes, so that the place of a piece may
    // be changed in the address.
    Value place = b.i32(piece % kPiecesOfPanel * kPieceBytes);
    Value address = b.createOrFold<arith::XOrIOp>(from, place);
    int64_t panel = piece / kPiecesOfPanel * source.panelBytes();
    return loadFour(b, b.offset(b.shared(address), panel), /*transposed=*/true);
  }

  /// Of the lane's row of the first 16: matrices 0 and 1 take 16 source rows,
  /// 2 and 3 the next ones.
  static Value targetAddress(Lane &b, TransposeOp op, OpAdaptor adaptor,
                             Value row8, Value matrix) {
    SmemType target = op.getTarget().getType();
    Value odd =
        arith::XOrIOp::create(b, b.bitAnd(matrix, 1), b.shiftRight(row8, 2));
    Value row = b.add(b.mul(row8, 2), odd);
    Value stage = b.mul(adaptor.getTargetStage(), target.stageBytes());
    Value panel = b.mul(b.div(adaptor.getRow(), target.panelColumns()),
                        target.panelBytes());
    Value piece = b.add(
        b.div(b.rem(adaptor.getRow(), target.panelColumns()), kPieceBytes),
        b.shiftRight(matrix, 1));
    Value place = arith::XOrIOp::create(b, piece, b.bitAnd(row, 7));
    Value start = b.add(b.add(adaptor.getTarget(), stage), panel);
    return b.add(b.add(start, b.mul(row, SmemType::kPanelBytes)),
                 b.mul(place, kPieceBytes));
  }

  static Value pick(Lane &b, Value low, Value high, Value bytes) {
    auto call = LLVM::CallIntrinsicOp::create(b, b.getI32Type(),
                                              b.getStringAttr("llvm.nvvm.prmt"),
                                              ValueRange{low, high, bytes});
    return call.getResults();
  }
};

} // namespace

void attn::populateTransposePatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<TransposeLowering>(converter, patterns.getContext());
}
