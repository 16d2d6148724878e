//===- Fragments.cpp - Accumulators from and to global memory -------------===//
//
// A lane has two columns of every eight, and the four lanes of a row have eight
// between them.  Rows of f32 move so: eight columns are a sector of L2.  Rows
// of 16 bits move by eights, of which each lane has one of four; the lanes of a
// row then change what they hold.
//
// Loads touch no memory behind a view: a lane whose rows or columns lie there
// reads the last row or the first column and drops it.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

using Four = std::array<Value, 4>;

/// A row of the view: where it begins, and how many columns it has.
struct Row {
  Value start, width;
  ViewType type;

  int64_t elementBytes() const {
    return type.getElementType().getIntOrFloatBitWidth() / 8;
  }
  /// Whether so many elements can move at once.
  bool holds(int64_t elements) const {
    return type.getColumns() % elements == 0 &&
           type.getAlign() % (elements * elementBytes()) == 0;
  }
};

/// Value j of lane i of four becomes value i of lane j.
Four transpose(Lane &b, Four values) {
  for (int64_t bit : {1, 2}) {
    Value isHigh = b.less(b.i32(0), b.bitAnd(b.inQuad(), bit));
    for (int64_t i = 0; i < 4; ++i) {
      if (i & bit)
        continue;
      Value &low = values[i], &high = values[i + bit];
      Value other = b.shuffleXor(b.select(isHigh, low, high), bit);
      low = b.select(isHigh, other, low);
      high = b.select(isHigh, high, other);
    }
  }
  return values;
}

struct StoreFragmentLowering : OpConversionPattern<StoreFragmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreFragmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewType type = op.getView().getType();
    ViewValues view(adaptor.getView());
    FragType fragment = op.getFragment().getType();
    int64_t pieces = fragment.getColumns() / 8;
    for (int64_t m = 0; m < fragment.getRows() / 8; ++m) {
      Value row = b.add(b.add(adaptor.getRow().front(), b.quad()), 8 * m);
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, view.rows);
      // No column is left in a row that does not exist.
      Row target{b.offset(view.base, b.mul(b.wide(row), view.stride)),
                 b.select(exists, b.i32(type.getColumns()), b.i32(0)), type};
      SmallVector<ValueRange> pairs; // of columns that a lane has, by piece
      for (int64_t n = 0; n < pieces; ++n)
        pairs.push_back(adaptor.getFragment().slice(
            (m / 2 * pieces + n) * 4 + m % 2 * 2, 2));
      Value column = adaptor.getColumn().front();
      if (type.getElementType().isF32())
        storeNumbers(b, target, column, pairs);
      else
        storeHalves(b, target, column, pairs);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The columns of a row that a lane stores to, from its own first one on.
  class Columns {
  public:
    Columns(Lane &b, const Row &row, Value first)
        : b(b), left(b.sub(row.width, first)),
          address(
              b.offset(row.start, b.wide(b.mul(first, row.elementBytes())))),
          elementBytes(row.elementBytes()) {}

    /// Stores what begins `column` elements behind the first, if so many and
    /// more are left there.
    void store(int64_t column, ValueRange values, StringRef type,
               StringRef constraint) const {
      std::string list, constraints = "l,";
      for (size_t i = 1; i <= values.size(); ++i) {
        list += (i > 1 ? ",$" : "$") + std::to_string(i);
        constraints += (constraint + ",").str();
      }
      std::string vector;
      if (values.size() > 1) {
        vector = ".v" + std::to_string(values.size());
        list = "{" + list + "}";
      }
      SmallVector<Value> operands = {address};
      llvm::append_range(operands, values);
      operands.push_back(left);
      b.memoryAssembly("{ .reg .pred p; setp.gt.s32 p, $" +
                           std::to_string(values.size() + 1) + ", " +
                           std::to_string(column) + "; @p st.global" + vector +
                           "." + type.str() + " [$0+" +
                           std::to_string(column * elementBytes) + "], " +
                           list + "; }",
                       constraints + "r", operands);
    }

  private:
    Lane &b;
    Value left, address;
    int64_t elementBytes;
  };

  /// f32: the two columns that a lane has of eight are 8 bytes, with those of
  /// the other three a sector of L2.
  static void storeNumbers(Lane &b, const Row &row, Value column,
                           ArrayRef<ValueRange> pairs) {
    Columns columns(b, row, b.add(column, b.mul(b.inQuad(), 2)));
    for (auto [n, pair] : llvm::enumerate(pairs)) {
      if (row.holds(2)) {
        columns.store(8 * n, pair, "f32", "f");
        continue;
      }
      for (int64_t i = 0; i < 2; ++i)
        columns.store(8 * n + i, pair[i], "f32", "f");
    }
  }

  /// 16 bits.  Four lanes have 8 columns of a row between them.  Of four times
  /// as many each can have 8 for itself, 16 bytes, which fill sectors of L2.
  static void storeHalves(Lane &b, const Row &row, Value column,
                          ArrayRef<ValueRange> pairs) {
    int64_t pieces = pairs.size();
    int64_t inQuads = row.holds(8) ? pieces / 4 * 4 : 0;
    auto packed = [&](int64_t n) {
      return packPair(b, row.type.getElementType(), pairs[n][0], pairs[n][1]);
    };
    Columns eights(b, row, b.add(column, b.mul(b.inQuad(), 8)));
    for (int64_t n = 0; n < inQuads; n += 4)
      eights.store(8 * n,
                   transpose(b, {packed(n), packed(n + 1), packed(n + 2),
                                 packed(n + 3)}),
                   "b32", "r");
    Columns twos(b, row, b.add(column, b.mul(b.inQuad(), 2)));
    for (int64_t n = inQuads; n < pieces; ++n) {
      Value pair = packed(n);
      if (row.holds(2)) {
        twos.store(8 * n, pair, "b32", "r");
        continue;
      }
      for (int64_t i = 0; i < 2; ++i)
        twos.store(8 * n + i,
                   Value(LLVM::TruncOp::create(b, b.getI16Type(),
                                               b.shiftRight(pair, 16 * i))),
                   "b16", "h");
    }
  }
};

struct LoadFragmentLowering : OpConversionPattern<LoadFragmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadFragmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewType type = op.getView().getType();
    ViewValues view(adaptor.getView());
    FragType fragment = op.getResult().getType();
    int64_t pieces = fragment.getColumns() / 8;
    Registers registers(fragment.getRows() / 8 * pieces * 2);
    for (int64_t m = 0; m < fragment.getRows() / 8; ++m) {
      Value row = b.add(b.add(adaptor.getRow().front(), b.quad()), 8 * m);
      Value last = b.add(view.rows, -1);
      Value inside = arith::MinSIOp::create(b, row, last);
      Row source{
          b.offset(view.base, b.mul(b.wide(inside), view.stride)),
          b.select(b.less(row, view.rows), b.i32(type.getColumns()), b.i32(0)),
          type};
      Value column = adaptor.getColumn().front();
      bool isF32 = type.getElementType().isF32();
      auto pairs = isF32 ? loadNumbers(b, source, column, pieces)
                         : loadHalves(b, source, column, pieces);
      for (auto [n, pair] : llvm::enumerate(pairs))
        for (int64_t i = 0; i < 2; ++i)
          registers[(m / 2 * pieces + int64_t(n)) * 4 + m % 2 * 2 + i] =
              pair[i];
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }

private:
  using Pair = std::array<Value, 2>;

  /// What a row has from a column on, or zeros behind its width.
  static Value load(Lane &b, const Row &row, Value column, Type type,
                    int64_t elements) {
    int64_t bytes = row.elementBytes();
    Value isInside = b.less(column, row.width);
    Value from = b.select(isInside, column, b.i32(0));
    Value loaded = LLVM::LoadOp::create(
        b, type, b.offset(row.start, b.wide(b.mul(from, bytes))),
        unsigned(elements * bytes));
    Value zero = LLVM::ZeroOp::create(b, type);
    return b.select(isInside, loaded, zero);
  }

  static Value element(Lane &b, Value vector, int64_t index) {
    return LLVM::ExtractElementOp::create(b, vector, b.i32(index));
  }

  static Pair both(Lane &b, Value vector) {
    return {element(b, vector, 0), element(b, vector, 1)};
  }

  static SmallVector<Pair> loadNumbers(Lane &b, const Row &row, Value column,
                                       int64_t pieces) {
    Value first = b.add(column, b.mul(b.inQuad(), 2));
    Type number = b.getF32Type();
    SmallVector<Pair> pairs;
    for (int64_t n = 0; n < pieces; ++n) {
      auto at = [&](int64_t i) { return b.add(first, 8 * n + i); };
      if (row.holds(2))
        pairs.push_back(
            both(b, load(b, row, at(0), VectorType::get(2, number), 2)));
      else
        pairs.push_back(
            {load(b, row, at(0), number, 1), load(b, row, at(1), number, 1)});
    }
    return pairs;
  }

  static SmallVector<Pair> loadHalves(Lane &b, const Row &row, Value column,
                                      int64_t pieces) {
    Type element = row.type.getElementType(), word = b.getI32Type();
    auto numbers = [&](Value pair) {
      Value narrow =
          LLVM::BitcastOp::create(b, VectorType::get(2, element), pair);
      return both(b, LLVM::FPExtOp::create(
                         b, VectorType::get(2, b.getF32Type()), narrow));
    };
    SmallVector<Pair> pairs;
    int64_t inQuads = row.holds(8) ? pieces / 4 * 4 : 0;
    Value eights = b.add(column, b.mul(b.inQuad(), 8));
    for (int64_t n = 0; n < inQuads; n += 4) {
      Value loaded =
          load(b, row, b.add(eights, 8 * n), VectorType::get(4, word), 8);
      Four words;
      for (int64_t i = 0; i < 4; ++i)
        words[i] = LoadFragmentLowering::element(b, loaded, i);
      for (Value pair : transpose(b, words))
        pairs.push_back(numbers(pair));
    }
    Value twos = b.add(column, b.mul(b.inQuad(), 2));
    for (int64_t n = inQuads; n < pieces; ++n) {
      Value at = b.add(twos, 8 * n);
      if (row.holds(2)) {
        pairs.push_back(numbers(load(b, row, at, word, 2)));
        continue;
      }
      Pair pair;
      for (int64_t i = 0; i < 2; ++i)
        pair[i] = LLVM::FPExtOp::create(b, b.getF32Type(),
                                        load(b, row, b.add(at, i), element, 1));
      pairs.push_back(pair);
    }
    return pairs;
  }
};

} // namespace

void attn::populateFragmentPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LoadFragmentLowering, StoreFragmentLowering>(
      converter, patterns.getContext());
}
