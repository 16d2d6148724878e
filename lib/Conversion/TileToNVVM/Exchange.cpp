//===- Exchange.cpp - What blocks hand each other -------------------------===//
//
// Registers go to global memory as they are, 16 bytes a lane and instruction:
// a warp writes 512 bytes in one piece, and no shared memory, shuffle or proxy
// fence is in the way.  Loads pass by the multiprocessor's own cache, which
// other multiprocessors' stores do not reach.
//
// A flag is stored with release and polled with acquire, both at the scope of
// the GPU.  Memory order is transitive over the mbarriers of a block, so that
// one lane speaks for all warps.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kPiece = 4; ///< registers that one instruction moves
constexpr int64_t kPieceBytes = 32 * 4 * kPiece;

/// The lane's address of an image of so many registers.
Value imageAddress(Lane &b, Value base, Value place, int64_t registers) {
  Value bytes = b.add(b.mul(place, registers / kPiece * kPieceBytes),
                      b.mul(b.lane(), 4 * kPiece));
  return b.offset(base, b.wide(bytes));
}

/// `[$number + bytes]`.
std::string memoryOperand(int64_t number, int64_t bytes) {
  return "[$" + std::to_string(number) + "+" + std::to_string(bytes) + "]";
}

StringRef letterOf(Type type) { return type.isF32() ? "f" : "r"; }

struct StoreRegistersLowering : OpConversionPattern<StoreRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Registers all;
    for (ValueRange value : adaptor.getValues())
      llvm::append_range(all, value);
    Value address = imageAddress(b, adaptor.getBase().front(),
                                 adaptor.getPlace().front(), all.size());
    for (size_t i = 0; i < all.size(); i += kPiece) {
      SmallVector<Value> operands = {address};
      std::string constraints = "l";
      for (Value value : ArrayRef(all).slice(i, kPiece)) {
        operands.push_back(value);
        constraints += ("," + letterOf(value.getType())).str();
      }
      b.memoryAssembly("st.global.v4.b32 " +
                           memoryOperand(0, i / kPiece * kPieceBytes) +
                           ", {$1,$2,$3,$4};",
                       constraints, operands);
    }
    // One lane will say, at a barrier, that all of them have stored.
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LoadRegistersLowering : OpConversionPattern<LoadRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    SmallVector<Type> types;
    SmallVector<size_t> counts;
    for (Type type : op.getValues().getTypes()) {
      size_t before = types.size();
      if (failed(getTypeConverter()->convertType(type, types)))
        return failure();
      counts.push_back(types.size() - before);
    }
    Value address = imageAddress(b, adaptor.getBase().front(),
                                 adaptor.getPlace().front(), types.size());
    Registers all;
    for (size_t i = 0; i < types.size(); i += kPiece) {
      ArrayRef<Type> piece = ArrayRef(types).slice(i, kPiece);
      std::string constraints;
      for (Type type : piece)
        constraints += ("=" + letterOf(type) + ",").str();
      llvm::append_range(
          all, b.assembly(piece,
                          "ld.global.cg.v4.b32 {$0,$1,$2,$3}, " +
                              memoryOperand(4, i / kPiece * kPieceBytes) + ";",
                          constraints + "l,~{memory}", address));
    }
    SmallVector<Registers> values;
    size_t at = 0;
    for (size_t count : counts) {
      values.emplace_back(ArrayRef(all).slice(at, count));
      at += count;
    }
    rewriter.replaceOpWithMultiple(op, std::move(values));
    return success();
  }
};

struct ScaleRowsLowering : OpConversionPattern<ScaleRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScaleRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FragType fragment = op.getFragment().getType();
    auto pair = VectorType::get(2, fragment.getElementType());
    SmallVector<Value> factors;
    for (Value exponent : adaptor.getExponents()) {
      Value factor =
          LLVM::CallIntrinsicOp::create(
              b, b.getF32Type(), b.getStringAttr("llvm.nvvm.ex2.approx.ftz"),
              ValueRange(exponent))
              .getResult(0);
      factors.push_back(LLVM::BitcastOp::create(
          b, pair, packPair(b, fragment.getElementType(), factor, factor)));
    }
    // Of the four registers of a 16 x 16 piece every other one is of the lower
    // half of the rows.
    int64_t perRows = fragment.getColumns() / 16 * 4;
    Registers registers;
    for (auto [i, value] : llvm::enumerate(adaptor.getFragment())) {
      Value factor = factors[int64_t(i) / perRows * 2 + i % 2];
      Value product = LLVM::FMulOp::create(
          b, LLVM::BitcastOp::create(b, pair, value), factor);
      registers.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), product));
    }
    rewriter.replaceOpWithMultiple(op, {registers});
    return success();
  }
};

struct StoreFragmentLowering : OpConversionPattern<StoreFragmentOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreFragmentOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    ViewType type = op.getView().getType();
    ViewValues view(adaptor.getView());
    Type element = type.getElementType();
    FragType fragment = op.getFragment().getType();
    ValueRange values = adaptor.getFragment();
    if (element.isF32()) {
      storeNumbers(b, type, view, fragment, adaptor);
      rewriter.eraseOp(op);
      return success();
    }
    int64_t pieces = fragment.getColumns() / 8;
    // Four lanes have 8 columns of a row between them.  Of four times as many
    // each can have 8 for itself, 16 bytes, which fill sectors of L2.
    bool inQuads = type.getColumns() % 8 == 0 && type.getAlign() % 16 == 0;
    bool inPairs = type.getColumns() % 2 == 0 && type.getAlign() % 4 == 0;
    int64_t quads = inQuads ? pieces / 4 : 0;
    Value column = adaptor.getColumn().front();
    Value ofPair = b.add(column, b.mul(b.inQuad(), 2));
    Value ofQuad = b.add(column, b.mul(b.inQuad(), 8));
    for (int64_t m = 0; m < fragment.getRows() / 8; ++m) {
      Value row = b.add(b.add(adaptor.getRow().front(), b.quad()), 8 * m);
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, view.rows);
      // No column is left in a row that does not exist.
      Value width = b.select(exists, b.i32(type.getColumns()), b.i32(0));
      Value start = b.offset(view.base, b.mul(b.wide(row), view.stride));
      auto pairOf = [&](int64_t n) {
        size_t first = (m / 2 * pieces + n) * 4 + m % 2 * 2;
        return packPair(b, element, values[first], values[first + 1]);
      };
      Value left = b.sub(width, ofQuad);
      Value address = addressOf(b, start, ofQuad);
      for (int64_t n = 0; n < 4 * quads; n += 4)
        storeIf(b, address, 8 * n,
                transpose(b, {pairOf(n), pairOf(n + 1), pairOf(n + 2),
                              pairOf(n + 3)}),
                left);
      left = b.sub(width, ofPair);
      address = addressOf(b, start, ofPair);
      for (int64_t n = 4 * quads; n < pieces; ++n) {
        Value pair = pairOf(n);
        if (inPairs) {
          storeIf(b, address, 8 * n, pair, left, "b32", "r");
          continue;
        }
        for (int64_t i = 0; i < 2; ++i) {
          Value one = LLVM::TruncOp::create(b, b.getI16Type(),
                                            b.shiftRight(pair, 16 * i));
          storeIf(b, address, 8 * n + i, one, left, "b16", "h");
        }
      }
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// f32: the two columns that a lane has of eight are 8 bytes, with those of
  /// the other three a sector of L2.
  static void storeNumbers(Lane &b, ViewType type, const ViewValues &view,
                           FragType fragment, OneToNOpAdaptor adaptor) {
    constexpr int64_t numberBytes = 4;
    ValueRange values = adaptor.getFragment();
    bool inPairs = type.getColumns() % 2 == 0 && type.getAlign() % 8 == 0;
    Value column = b.add(adaptor.getColumn().front(), b.mul(b.inQuad(), 2));
    int64_t pieces = fragment.getColumns() / 8;
    for (int64_t m = 0; m < fragment.getRows() / 8; ++m) {
      Value row = b.add(b.add(adaptor.getRow().front(), b.quad()), 8 * m);
      Value exists =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, view.rows);
      Value width = b.select(exists, b.i32(type.getColumns()), b.i32(0));
      Value left = b.sub(width, column);
      Value address = b.offset(view.base, b.mul(b.wide(row), view.stride));
      address = b.offset(address, b.wide(b.mul(column, numberBytes)));
      for (int64_t n = 0; n < pieces; ++n) {
        ValueRange pair = values.slice((m / 2 * pieces + n) * 4 + m % 2 * 2, 2);
        if (inPairs) {
          b.memoryAssembly(
              "{ .reg .pred p; setp.gt.s32 p, $3, " + std::to_string(8 * n) +
                  "; @p st.global.v2.f32 " +
                  memoryOperand(0, 8 * n * numberBytes) + ", {$1, $2}; }",
              "l,f,f,r", {address, pair[0], pair[1], left});
          continue;
        }
        for (int64_t i = 0; i < 2; ++i)
          b.memoryAssembly(
              "{ .reg .pred p; setp.gt.s32 p, $2, " +
                  std::to_string(8 * n + i) + "; @p st.global.f32 " +
                  memoryOperand(0, (8 * n + i) * numberBytes) + ", $1; }",
              "l,f,r", {address, pair[i], left});
      }
    }
  }

  static constexpr int64_t elementBytes = 2;
  using Four = std::array<Value, 4>;

  static Value addressOf(Lane &b, Value row, Value column) {
    return b.offset(row, b.wide(b.mul(column, elementBytes)));
  }

  /// Value j of lane i of four becomes value i of lane j.
  static Four transpose(Lane &b, Four values) {
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

  /// Stores 16 bytes, all or none of which are left.
  static void storeIf(Lane &b, Value address, int64_t column,
                      const Four &values, Value left) {
    b.memoryAssembly(
        "{ .reg .pred p; setp.gt.s32 p, $5, " + std::to_string(column) +
            "; @p st.global.v4.b32 " + memoryOperand(0, column * elementBytes) +
            ", {$1,$2,$3,$4}; }",
        "l,r,r,r,r,r",
        {address, values[0], values[1], values[2], values[3], left});
  }
  /// Stores what begins `column` elements behind an address, if so many and
  /// more are left there.
  static void storeIf(Lane &b, Value address, int64_t column, Value value,
                      Value left, const char *type, const char *constraint) {
    b.memoryAssembly(
        "{ .reg .pred p; setp.gt.s32 p, $2, " + std::to_string(column) +
            "; @p st.global." + type + " " +
            memoryOperand(0, column * elementBytes) + ", $1; }",
        std::string("l,") + constraint + ",r", {address, value, left});
  }
};

Value flagAddress(Lane &b, Value flags, Value index) {
  constexpr int64_t flagBytes = 4;
  return b.offset(flags, b.wide(b.mul(index, flagBytes)));
}

struct PublishLowering : OpConversionPattern<PublishOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PublishOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    b.memoryAssembly("st.release.gpu.global.b32 [$0], $1;", "l,r",
                     {flagAddress(b, adaptor.getFlags(), adaptor.getIndex()),
                      adaptor.getValue()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct AwaitLowering : OpConversionPattern<AwaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AwaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    rewriter.replaceOp(
        op, b.assembly(b.getI32Type(),
                       "{ .reg .pred p; "
                       "WAIT${:uid}: "
                       "ld.acquire.gpu.global.b32 $0, [$1]; "
                       "setp.ge.s32 p, $0, $2; "
                       "@p bra DONE${:uid}; "
                       "bra WAIT${:uid}; "
                       "DONE${:uid}: }",
                       "=&r,l,r,~{memory}",
                       {flagAddress(b, adaptor.getFlags(), adaptor.getIndex()),
                        adaptor.getValue()}));
    return success();
  }
};

struct ClusterRankLowering : OpConversionPattern<ClusterRankOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClusterRankOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value block = NVVM::BlockIdXOp::create(b, b.getI32Type());
    rewriter.replaceOp(op, b.rem(block, clusterOf(op)));
    return success();
  }
};

} // namespace

int64_t attn::clusterOf(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  auto extents = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getClusterDimAttrName());
  return extents ? extents[0] : 1;
}

void attn::populateExchangePatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<AwaitLowering, ClusterRankLowering, LoadRegistersLowering,
               PublishLowering, ScaleRowsLowering, StoreFragmentLowering,
               StoreRegistersLowering>(converter, patterns.getContext());
}
