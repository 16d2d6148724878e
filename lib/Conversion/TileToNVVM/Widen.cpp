//===- Widen.cpp - 8-bit rows in shared memory, in 16 bits ----------------===//
//
// Rows of 8-bit elements in panels of 128 become rows of 16 bits in panels of
// 64, of which a warp takes sixteen: of a row four pieces of 16 bytes become
// eight.  A lane reads one and writes two, neighbours, of rows r and r + 8.
//
// Eight lanes at a time have the pieces of two rows, r and r ^ 5.  As these
// differ in the bit of weight 4, what they read is both halves of a panel's
// row: all eight groups of four banks.  What they write at once is every other
// piece, and as the rows differ in the bit of weight 1, those of one row lie
// between those of the other: all eight again.
//
// cvt makes pairs of f16, which every number of e4m3 is one of; bf16 is what
// that is in f32, cut off.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kPieceBytes = 16, kOctet = 8;

struct WidenRowsLowering : OpConversionPattern<WidenRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WidenRowsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmemType source = op.getSource().getType();
    SmemType target = op.getTarget().getType();
    // What follows from the lane is worked out anew each time: a role beside
    // the producer has few registers to keep it in.
    Value lane = b.opaque(b.lane());
    Value piece = b.bitAnd(lane, 3);
    Value row = xorOf(b, b.shiftRight(lane, 3),
                      b.mul(b.bitAnd(b.shiftRight(lane, 2), 1), 5));
    Value from = rowAddress(b, source, adaptor.getSource(),
                            adaptor.getSourceStage(), adaptor, row);
    Value half = b.rem(b.div(adaptor.getColumn(), WidenRowsOp::kColumns), 2);
    from = b.add(from, xorOf(b, place(b, piece, row),
                             b.mul(half, SmemType::kPanelBytes / 2)));
    Value to = rowAddress(b, target, adaptor.getTarget(),
                          adaptor.getTargetStage(), adaptor, row);
    to = b.add(to, place(b, b.mul(piece, 2), row));

    // All that is loaded before any is stored: loads cannot move above stores.
    SmallVector<Registers> words;
    constexpr int64_t octets = WidenRowsOp::kRows / kOctet;
    for (int64_t octet = 0; octet < octets; ++octet)
      words.push_back(
          loadPiece(b, b.offset(b.shared(from), octet * bytesOfOctet())));
    // Rows begin at multiples of 128 bytes, so that the place of a piece may be
    // changed in the address.
    Value next = xorOf(b, to, b.i32(kPieceBytes));
    Type element = target.getElementType();
    for (int64_t octet = 0; octet < octets; ++octet)
      for (auto [address, some] :
           {std::pair(to, ArrayRef(words[octet]).take_front(2)),
            {next, ArrayRef(words[octet]).take_back(2)}}) {
        Registers widened;
        for (Value word : some)
          llvm::append_range(widened, widen(b, word, element));
        storeFour(b, b.offset(b.shared(address), octet * bytesOfOctet()),
                  widened);
      }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr int64_t bytesOfOctet() {
    return kOctet * SmemType::kPanelBytes;
  }
  static Value xorOf(Lane &b, Value value, Value bits) {
    return arith::XOrIOp::create(b, value, bits);
  }
  /// Where a piece of a row of eight lies.
  static Value place(Lane &b, Value piece, Value row) {
    return b.mul(xorOf(b, piece, row), kPieceBytes);
  }
  /// Of the lane's first row, in the panel of the column.
  static Value rowAddress(Lane &b, SmemType type, Value buffer, Value stage,
                          OpAdaptor adaptor, Value row) {
    Value panel = b.div(adaptor.getColumn(), type.panelColumns());
    Value start = b.add(b.add(buffer, b.mul(stage, type.stageBytes())),
                        b.mul(panel, type.panelBytes()));
    return b.add(start,
                 b.mul(b.add(adaptor.getRow(), row), SmemType::kPanelBytes));
  }

  static Registers loadPiece(Lane &b, Value pointer) {
    Type four = VectorType::get({4}, b.getI32Type());
    Value piece = LLVM::LoadOp::create(b, four, pointer, kPieceBytes);
    Registers words;
    for (int64_t i = 0; i < 4; ++i)
      words.push_back(LLVM::ExtractElementOp::create(b, piece, b.i32(i)));
    return words;
  }

  /// Four elements, as two registers of two.
  static Registers widen(Lane &b, Value word, Type element) {
    Type i16 = b.getI16Type(), pairType = VectorType::get(2, b.getF16Type());
    Registers result;
    for (int64_t bits : {0, 16}) {
      Value two =
          LLVM::TruncOp::create(b, i16, bits ? b.shiftRight(word, bits) : word);
      auto call = LLVM::CallIntrinsicOp::create(
          b, pairType, b.getStringAttr("llvm.nvvm.e4m3x2.to.f16x2.rn"),
          ValueRange{two});
      result.push_back(asElements(b, call.getResults(), element));
    }
    return result;
  }

  /// A pair of f16 as one of the element.
  static Value asElements(Lane &b, Value pair, Type element) {
    if (element.isF16())
      return LLVM::BitcastOp::create(b, b.getI32Type(), pair);
    auto single = [&](int64_t i) -> Value {
      Value half = LLVM::ExtractElementOp::create(b, pair, b.i32(i));
      return arith::ExtFOp::create(b, b.getF32Type(), half);
    };
    return packPair(b, element, single(0), single(1));
  }
};

} // namespace

void attn::populateWidenPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns) {
  patterns.add<WidenRowsLowering>(converter, patterns.getContext());
}
