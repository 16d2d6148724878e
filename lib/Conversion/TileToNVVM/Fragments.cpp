//===- Fragments.cpp - Fragments from global memory -----------------------===//
//
// A lane loads what it has of a fragment, two elements side by side each time:
// eight rows of 16 bytes an instruction, of which the next one takes the other
// half of the same sectors.  Nothing crosses lanes, so nothing waits for these
// loads but who reads the fragment.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

struct LoadFragmentLowering : OpConversionPattern<LoadFragmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadFragmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType fragment = op.getFragment().getType();
    ViewValues view(adaptor.getView());
    Value row = adaptor.getRow().front(),
          columns = adaptor.getColumns().front();
    // Of the warp, and the same in all lanes.
    Value isWhole = b.both(atMost(b, b.add(row, fragment.getRows()), view.rows),
                           atMost(b, b.i32(fragment.getColumns()), columns));
    SmallVector<Row> rows;
    for (int64_t half = 0; half < fragment.getRows() / 8; ++half)
      rows.push_back(
          rowOf(b, view, b.add(b.add(row, b.quad()), 8 * half), columns));
    SmallVector<Type> types(fragment.registers(), b.getI32Type());
    auto branch = scf::IfOp::create(b, types, isWhole, /*withElse=*/true);
    for (bool whole : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(whole ? branch.thenBlock()
                                       : branch.elseBlock());
      scf::YieldOp::create(b, load(b, fragment, rows, whole));
    }
    rewriter.replaceOpWithMultiple(op,
                                   {SmallVector<Value>(branch.getResults())});
    return success();
  }

private:
  static constexpr int64_t kElementBytes = 2;

  /// A row of which a lane has something: the address of its first pair, and
  /// how many columns there are from that on.
  struct Row {
    Value address, left;
  };

  static Value atMost(Lane &b, Value small, Value large) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sle, small, large);
  }

  static Row rowOf(Lane &b, const ViewValues &view, Value row, Value columns) {
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, view.rows);
    Value first = b.mul(b.inQuad(), 2);
    Value start = b.offset(view.base, b.mul(b.wide(row), view.stride));
    return {b.offset(start, b.wide(b.mul(first, kElementBytes))),
            b.select(exists, b.sub(columns, first), b.i32(0))};
  }

  /// In a 16 x 16 piece: both halves of the rows, of the first eight columns
  /// and of the others.
  static SmallVector<Value> load(Lane &b, FragType fragment, ArrayRef<Row> rows,
                                 bool whole) {
    SmallVector<Value> registers;
    for (int64_t m = 0; m < fragment.getRows() / 16; ++m)
      for (int64_t column = 0; column < fragment.getColumns(); column += 8)
        for (int64_t half = 0; half < 2; ++half) {
          const Row &row = rows[2 * m + half];
          registers.push_back(whole ? pair(b, row, column)
                                    : pairIfThere(b, row, column));
        }
    return registers;
  }

  static std::string at(int64_t number, int64_t column) {
    return "[$" + std::to_string(number) + "+" +
           std::to_string(column * kElementBytes) + "]";
  }

  static Value pair(Lane &b, const Row &row, int64_t column) {
    return b.assembly(b.getI32Type(),
                      "ld.global.b32 $0, " + at(1, column) + ";", "=r,l",
                      row.address)[0];
  }

  /// Both elements, the first one beside a zero, or zeros.
  static Value pairIfThere(Lane &b, const Row &row, int64_t column) {
    std::string text =
        "{ .reg .pred p, q; setp.eq.s32 p, $2, " + std::to_string(column + 1) +
        "; setp.gt.s32 q, $2, " + std::to_string(column + 1) +
        "; mov.b32 $0, 0; @p ld.global.u16 $0, " + at(1, column) +
        "; @q ld.global.b32 $0, " + at(1, column) + "; }";
    return b.assembly(b.getI32Type(), text, "=&r,l,r",
                      {row.address, row.left})[0];
  }
};

} // namespace

void attn::populateFragmentPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LoadFragmentLowering>(converter, patterns.getContext());
}
