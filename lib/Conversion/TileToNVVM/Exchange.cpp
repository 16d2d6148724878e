//===- Exchange.cpp - What blocks hand each other -------------------------===//
//
// Registers go to global memory as they are, 16 bytes a lane and instruction:
// a warp writes 512 bytes in one piece (256, if two registers are left), and no
// shared memory, shuffle or proxy fence is in the way.  Loads pass by the
// multiprocessor's own cache, which other multiprocessors' stores do not reach.
//
// A flag is stored with release and polled with acquire, both at the scope of
// the GPU.  Memory order is transitive over the mbarriers of a block, so that
// one lane speaks for all warps.
//
// In shared memory an image has the same form: 16 bytes a lane, one lane behind
// the other, meet no bank conflict.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

constexpr int64_t kPiece = 4; ///< registers that one instruction moves
constexpr int64_t kRegisterBytes = 4, kLanes = 32;

/// Where a lane has its part of an image of so many registers; `base` is a
/// pointer to global memory, where images can take more than 2 GiB, or an
/// address in shared memory.  Pieces of images that are near are numbered in 32
/// bits: one multiplication makes an address, and of what stays the same from
/// image to image only the first number takes a register.
struct ImageAddress {
  ImageAddress(Lane &b, Value base, Value place, int64_t registers,
               bool isNear) {
    bool isShared = base.getType().isInteger();
    Value image = b.mul(isShared ? place : b.wide(place),
                        registers * kRegisterBytes * kLanes);
    auto ofLane = [&](int64_t piece) {
      if (isNear) {
        Value number =
            b.add(b.mul(place, registers * kLanes / piece), b.lane());
        Value wide = arith::ExtUIOp::create(b, b.getI64Type(), number);
        return b.offset(base, b.mul(wide, piece * kRegisterBytes));
      }
      Value bytes = b.mul(b.lane(), piece * kRegisterBytes);
      return isShared ? b.add(base, b.add(image, bytes))
                      : b.offset(b.offset(base, image), b.wide(bytes));
    };
    if (registers >= kPiece)
      whole = ofLane(kPiece);
    if (registers % kPiece != 0)
      rest = ofLane(registers % kPiece);
  }
  /// Of a piece of so many registers.
  Value of(size_t registers) const {
    return registers == kPiece ? whole : rest;
  }

  Value whole, rest;
};

/// Behind so many registers of all lanes.
int64_t bytesBehind(size_t registers) {
  return int64_t(registers) * kRegisterBytes * kLanes;
}

/// `{$first,...}` of `count` operands, and `.v4.b32`.
std::string operandList(size_t first, size_t count) {
  std::string list;
  for (size_t i = first; i < first + count; ++i)
    list += (list.empty() ? "{$" : ",$") + std::to_string(i);
  return list + "}";
}
std::string vectorOf(size_t count) {
  return ".v" + std::to_string(count) + ".b32 ";
}

/// `[$number + bytes]`.
std::string memoryOperand(int64_t number, int64_t bytes) {
  return "[$" + std::to_string(number) + "+" + std::to_string(bytes) + "]";
}

StringRef letterOf(Type type) { return type.isF32() ? "f" : "r"; }

/// Stores the registers of all values as an image, to `space` ("global").
void storeImage(Lane &b, StringRef space, Value base, Value place,
                ArrayRef<ValueRange> values, bool isNear = false) {
  Registers all;
  for (ValueRange value : values)
    llvm::append_range(all, value);
  ImageAddress address(b, base, place, all.size(), isNear);
  for (size_t i = 0; i < all.size(); i += kPiece) {
    ArrayRef<Value> piece = ArrayRef(all).slice(i).take_front(kPiece);
    SmallVector<Value> operands = {address.of(piece.size())};
    std::string constraints = base.getType().isInteger() ? "r" : "l";
    for (Value value : piece) {
      operands.push_back(value);
      constraints += ("," + letterOf(value.getType())).str();
    }
    b.memoryAssembly("st." + space.str() + vectorOf(piece.size()) +
                         memoryOperand(0, bytesBehind(i)) + ", " +
                         operandList(1, piece.size()) + ";",
                     constraints, operands);
  }
  // One lane will say, at a barrier, that all of them have stored.
  NVVM::SyncWarpOp::create(b, b.i32(-1));
}

struct StoreRegistersLowering : OpConversionPattern<StoreRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    storeImage(b, "global", adaptor.getBase().front(),
               adaptor.getPlace().front(), adaptor.getValues(), op.getNear());
    rewriter.eraseOp(op);
    return success();
  }
};

struct PutRegistersLowering : OpConversionPattern<PutRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PutRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value stage = b.mul(adaptor.getStage().front(),
                        op.getBuffer().getType().stageBytes());
    storeImage(b, "shared", b.add(adaptor.getBuffer().front(), stage),
               adaptor.getPlace().front(), adaptor.getValues());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The registers of values of these types, in lanes' types, as they lie.
struct ImageTypes {
  SmallVector<Type> all;
  SmallVector<size_t> counts; ///< of each value

  static FailureOr<ImageTypes> of(const TypeConverter &converter,
                                  TypeRange values) {
    ImageTypes types;
    for (Type type : values) {
      size_t before = types.all.size();
      if (failed(converter.convertType(type, types.all)))
        return failure();
      types.counts.push_back(types.all.size() - before);
    }
    return types;
  }
};

/// Loads the registers of all values of an image by such instructions.
SmallVector<Registers> loadImage(Lane &b, StringRef load, Value base,
                                 Value place, const ImageTypes &types,
                                 bool isNear = false) {
  ImageAddress address(b, base, place, types.all.size(), isNear);
  StringRef addressLetter = base.getType().isInteger() ? "r" : "l";
  Registers all;
  for (size_t i = 0; i < types.all.size(); i += kPiece) {
    ArrayRef<Type> piece = ArrayRef(types.all).slice(i).take_front(kPiece);
    std::string constraints;
    for (Type type : piece)
      constraints += ("=" + letterOf(type) + ",").str();
    llvm::append_range(
        all, b.assembly(
                 piece,
                 load.str() + vectorOf(piece.size()) +
                     operandList(0, piece.size()) + ", " +
                     memoryOperand(int64_t(piece.size()), bytesBehind(i)) + ";",
                 constraints + addressLetter.str() + ",~{memory}",
                 address.of(piece.size())));
  }
  SmallVector<Registers> values;
  size_t at = 0;
  for (size_t count : types.counts) {
    values.emplace_back(ArrayRef(all).slice(at, count));
    at += count;
  }
  return values;
}

struct LoadRegistersLowering : OpConversionPattern<LoadRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FailureOr<ImageTypes> types =
        ImageTypes::of(*getTypeConverter(), op.getValues().getTypes());
    if (failed(types))
      return failure();
    rewriter.replaceOpWithMultiple(
        op, loadImage(b, "ld.global.cg", adaptor.getBase().front(),
                      adaptor.getPlace().front(), *types, op.getNear()));
    return success();
  }
};

struct GetRegistersLowering : OpConversionPattern<GetRegistersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GetRegistersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    FailureOr<ImageTypes> types =
        ImageTypes::of(*getTypeConverter(), op.getValues().getTypes());
    if (failed(types))
      return failure();
    Value stage = b.mul(adaptor.getStage().front(),
                        op.getBuffer().getType().stageBytes());
    rewriter.replaceOpWithMultiple(
        op, loadImage(b, "ld.shared", b.add(adaptor.getBuffer().front(), stage),
                      adaptor.getPlace().front(), *types));
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

struct PublishLowering : OpConversionPattern<PublishOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PublishOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    b.memoryAssembly(op->hasAttr("relaxed")
                         ? "st.relaxed.gpu.global.b32 [$0], $1;"
                         : "st.release.gpu.global.b32 [$0], $1;",
                     "l,r",
                     {wordAddress(b, adaptor.getFlags(), adaptor.getIndex()),
                      adaptor.getValue()});
    rewriter.eraseOp(op);
    return success();
  }
};

struct CountLowering : OpConversionPattern<CountOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CountOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    Value address = wordAddress(b, adaptor.getFlags(), adaptor.getIndex());
    // Counts that follow one another are one release (PTX, release patterns).
    auto count = [&] {
      b.assembly(b.getI32Type(),
                 "atom.release.gpu.global.inc.u32 $0, [$1], $2;",
                 "=r,l,r,~{memory}", {address, b.add(adaptor.getBelow(), -1)});
    };
    // One lane counts for all, and speaks for what they did only behind this.
    if (!isSingleLane(op))
      NVVM::SyncWarpOp::create(b, b.i32(-1));
    b.when(isSingleLane(op) ? Value() : b.isFirstLane(), count);
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
    SmallVector<Value> operands = {
        wordAddress(b, adaptor.getFlags(), adaptor.getIndex()),
        adaptor.getValue()};
    // Every acquire empties the cache that all warps share, so looks are
    // relaxed and one acquire follows; a whole warp, beside which others work,
    // looks now and then.
    // What is `mostly_set` is looked at with acquire first, which is all then.
    bool isPatient = !isSingleLane(op);
    if (op->hasAttr("mostly_set")) {
      rewriter.replaceOp(op, b.assembly(b.getI32Type(),
                                        "{ .reg .pred p; "
                                        "LOOK${:uid}: "
                                        "ld.acquire.gpu.global.b32 $0, [$1]; "
                                        "setp.ge.s32 p, $0, $2; "
                                        "@p bra DONE${:uid}; "
                                        "WAIT${:uid}: "
                                        "ld.relaxed.gpu.global.b32 $0, [$1]; "
                                        "setp.ge.s32 p, $0, $2; "
                                        "@p bra LOOK${:uid}; "
                                        "bra WAIT${:uid}; "
                                        "DONE${:uid}: }",
                                        "=&r,l,r,~{memory}", operands));
      return success();
    }
    std::string again = isPatient ? "nanosleep.u32 500; " : "";
    std::string then = isPatient ? "fence.acq_rel.gpu; "
                                 : "ld.acquire.gpu.global.b32 $0, [$1]; ";
    rewriter.replaceOp(op, b.assembly(b.getI32Type(),
                                      "{ .reg .pred p; "
                                      "WAIT${:uid}: "
                                      "ld.relaxed.gpu.global.b32 $0, [$1]; "
                                      "setp.ge.s32 p, $0, $2; "
                                      "@p bra DONE${:uid}; " +
                                          again +
                                          "bra WAIT${:uid}; "
                                          "DONE${:uid}: " +
                                          then + "}",
                                      "=&r,l,r,~{memory}", operands));
    return success();
  }
};

template <typename Op, NVVM::GridDepActionKind action>
struct LaunchControlLowering : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::GriddepcontrolOp>(op, action);
    return success();
  }
};
using AwaitLaunchLowering =
    LaunchControlLowering<AwaitLaunchOp, NVVM::GridDepActionKind::wait>;
using ReleaseLaunchLowering =
    LaunchControlLowering<ReleaseLaunchOp,
                          NVVM::GridDepActionKind::launch_dependents>;

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

Value attn::wordAddress(Lane &b, Value words, Value index) {
  constexpr int64_t wordBytes = 4;
  return b.offset(words, b.wide(b.mul(index, wordBytes)));
}

int64_t attn::clusterOf(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  auto extents = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getClusterDimAttrName());
  return extents ? extents[0] : 1;
}

void attn::populateExchangePatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<AwaitLaunchLowering, AwaitLowering, ClusterRankLowering,
               CountLowering, GetRegistersLowering, LoadRegistersLowering,
               PublishLowering, PutRegistersLowering, ReleaseLaunchLowering,
               ScaleRowsLowering, StoreRegistersLowering>(
      converter, patterns.getContext());
}
