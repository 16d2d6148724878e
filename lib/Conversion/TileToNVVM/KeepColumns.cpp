//===- KeepColumns.cpp - What lies outside of a run becomes -inf ----------===//
//
// A lane has two of every eight columns of a row, so those of a run are
// neighbours: a mask with one bit for each.  ptxas moves eight bits of it to
// predicates with two instructions, where comparisons take one for each column
// and bound.
//
// Rows that end alike share a mask.  Every tile may have the same, behind the
// last key: LLVM would take its bits out of the loop over tiles, a register for
// each.  So that mask is opaque.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct KeepColumnsLowering : OpConversionPattern<KeepColumnsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(KeepColumnsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType type = op.getSource().getType();
    Value hidden = arith::ConstantOp::create(
        b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    int64_t pieces = type.getColumns() / 8, perRow = 2 * pieces;
    SmallVector<Value> masks;
    ValueRange lasts = adaptor.getLast();
    bool areAlike = !op.getFirst() && llvm::all_equal(lasts);
    for (auto [row, last] :
         llvm::enumerate(lasts.take_front(areAlike ? 1 : lasts.size())))
      append(b, op.getFirst() ? adaptor.getFirst()[row] : Value(), last,
             type.getColumns(), masks);
    for (Value &mask : masks)
      mask = areAlike ? b.opaque(mask) : mask;
    int64_t words = areAlike ? 0 : llvm::divideCeil(perRow, kBits);
    Registers registers(adaptor.getSource());
    for (auto [at, element] : llvm::enumerate(registers)) {
      // Two rows of a piece of eight columns, of which the lane has two.
      int64_t piece = at / 4 % pieces, row = at / 4 / pieces * 2 + at / 2 % 2;
      int64_t own = 2 * piece + at % 2;
      Value bit =
          b.bitAnd(masks[row * words + own / kBits], int64_t(1) << own % kBits);
      Value kept =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, b.i32(0));
      element = b.select(kept, element, hidden);
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  static constexpr int64_t kBits = 32; ///< of a mask

  /// Appends the masks of what the lane has of a row.
  static void append(Lane &b, Value first, Value last, int64_t columns,
                     SmallVectorImpl<Value> &masks) {
    Value begin = first ? columnsBefore(b, first, columns) : b.i32(0);
    Value end = columnsBefore(b, b.add(last, 1), columns);
    for (int64_t from = 0; from < columns / 4; from += kBits) {
      auto behind = [&](Value column) -> Value {
        if (from == 0)
          return column;
        return arith::MaxSIOp::create(b, b.add(column, -from), b.i32(0));
      };
      Value begun = first ? behind(begin) : b.i32(0), count = behind(end);
      if (first)
        count = arith::MaxSIOp::create(b, b.sub(count, begun), b.i32(0));
      masks.push_back(
          LLVM::CallIntrinsicOp::create(b, b.getI32Type(),
                                        b.getStringAttr("llvm.nvvm.bmsk.clamp"),
                                        ValueRange{begun, count})
              .getResult(0));
    }
  }

  /// How many of the lane's columns lie before a column of the fragment.
  static Value columnsBefore(Lane &b, Value column, int64_t columns) {
    Value own = b.sub(column, b.mul(b.inQuad(), 2));
    own = arith::MaxSIOp::create(b, own, b.i32(0));
    own = arith::MinSIOp::create(b, own, b.i32(columns));
    Value rest = arith::MinSIOp::create(b, b.bitAnd(own, 7), b.i32(2));
    return b.add(b.mul(b.shiftRight(own, 3), 2), rest);
  }
};

} // namespace

void attn::populateKeepColumnsPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<KeepColumnsLowering>(converter, patterns.getContext());
}
