//===- Kernels.cpp - Kernel functions, position, buffers, views -----------===//

#include "Lane.h"

#include "attn/Machine/Sides.h"
#include "attn/Tile/SharedMemory.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Name of the block's dynamic shared memory in a gpu.module.
constexpr StringLiteral kSharedSymbol = "attn_shared_memory";

/// Name of the attribute in which an allocation keeps its place while its
/// kernel is being lowered.
constexpr StringLiteral kPlaceAttr = "tile.place";

/// Declares dynamic shared memory once per module.
void declareShared(OpBuilder &builder, gpu::GPUModuleOp module,
                   int64_t alignment) {
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(kSharedSymbol)) {
    if (int64_t(known.getAlignment().value_or(1)) < alignment)
      known.setAlignment(alignment);
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedSymbol, Attribute(),
                         alignment, unsigned(NVVM::NVVMMemorySpace::Shared));
}

/// The module's table of sides, in constant memory, which its loader writes.
LLVM::GlobalOp sidesOf(OpBuilder &builder, gpu::GPUModuleOp module) {
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(kSidesSymbol))
    return known;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto type = LLVM::LLVMArrayType::get(builder.getI32Type(), kSidesWords);
  auto words = DenseElementsAttr::get(
      RankedTensorType::get(kSidesWords, builder.getI32Type()),
      llvm::APInt(32, kUnknownSides));
  return LLVM::GlobalOp::create(
      builder, module.getLoc(), type, /*isConstant=*/false,
      LLVM::Linkage::External, kSidesSymbol, words,
      /*alignment=*/4, unsigned(NVVM::NVVMMemorySpace::Constant));
}

/// Tensor maps are 128 bytes of the launch's parameters, which TMA reads there.
void passMapsByValue(KernelOp kernel, LLVM::LLVMFuncOp function) {
  Builder b(kernel.getContext());
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (!isa<TensorMapType>(type))
      continue;
    function.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(bytes));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        b.getUnitAttr());
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(64));
  }
}

struct KernelLowering : OpConversionPattern<KernelOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(KernelOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SharedMemory layout(op);
    declareShared(rewriter, cast<gpu::GPUModuleOp>(op->getParentOp()),
                  layout.alignment());
    for (const SharedMemory::Reservation &one : layout.reservations())
      rewriter.modifyOpInPlace(one.op, [&] {
        one.op->setAttr(kPlaceAttr,
                        rewriter.getI32IntegerAttr(layout.offset(one.op)));
      });

    TypeConverter::SignatureConversion signature(op.getNumArguments());
    SmallVector<Type> types;
    for (auto [i, type] : llvm::enumerate(op.getArgumentTypes())) {
      types.push_back(getTypeConverter()->convertType(type));
      signature.addInputs(i, types.back());
    }
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(op.getContext()), types);
    auto function =
        LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getName(), type);
    // One attribute for the translation, one for gpu.launch_func.
    for (StringRef name : {NVVM::NVVMDialect::getKernelFuncAttrName(),
                           gpu::GPUDialect::getKernelFuncAttrName()})
      function->setAttr(name, rewriter.getUnitAttr());
    function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                      rewriter.getDenseI32ArrayAttr({int32_t(op.threads())}));
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      rewriter.getI32IntegerAttr(op.getMinBlocksPerSm()));
    if (op.getCluster() > 1)
      function->setAttr(
          NVVM::NVVMDialect::getClusterDimAttrName(),
          rewriter.getDenseI32ArrayAttr({int32_t(op.getCluster()), 1, 1}));
    // exp2 and products become single instructions; nothing in a softmax needs
    // denormals.
    function.setDenormalFpMathF32("preserve-sign,preserve-sign");
    passMapsByValue(op, function);
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.end());
    if (failed(rewriter.convertRegionTypes(&function.getBody(),
                                           *getTypeConverter(), &signature)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

struct ReturnLowering : OpConversionPattern<tile::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

struct SideLowering : OpConversionPattern<SideOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SideOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    constexpr int64_t bits = 32;
    LLVM::GlobalOp table =
        sidesOf(rewriter, op->getParentOfType<gpu::GPUModuleOp>());
    Value number = NVVM::SmIdOp::create(b, b.getI32Type());
    Value word = b.bitAnd(b.shiftRight(number, 5), kSidesWords - 1);
    Value place = LLVM::GEPOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), table.getAddrSpace()),
        b.getI32Type(), LLVM::AddressOfOp::create(b, table),
        ArrayRef<LLVM::GEPArg>{word});
    Value all = LLVM::LoadOp::create(b, b.getI32Type(), place);
    Value mine = arith::ShRUIOp::create(b, all, b.bitAnd(number, bits - 1));
    rewriter.replaceOp(op, b.bitAnd(mine, 1));
    return success();
  }
};

struct ProgramIdLowering : OpConversionPattern<ProgramIdOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ProgramIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    if (op.getDim() == 0)
      rewriter.replaceOpWithNewOp<NVVM::BlockIdXOp>(op, i32);
    else if (op.getDim() == 1)
      rewriter.replaceOpWithNewOp<NVVM::BlockIdYOp>(op, i32);
    else
      rewriter.replaceOpWithNewOp<NVVM::BlockIdZOp>(op, i32);
    return success();
  }
};

struct GridSizeLowering : OpConversionPattern<GridSizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GridSizeOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    if (op.getDim() == 0)
      rewriter.replaceOpWithNewOp<NVVM::GridDimXOp>(op, i32);
    else if (op.getDim() == 1)
      rewriter.replaceOpWithNewOp<NVVM::GridDimYOp>(op, i32);
    else
      rewriter.replaceOpWithNewOp<NVVM::GridDimZOp>(op, i32);
    return success();
  }
};

struct WarpIdLowering : OpConversionPattern<WarpIdOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WarpIdOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, b.warp());
    return success();
  }
};

struct AllocLowering : OpConversionPattern<AllocOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AllocOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, placeOf(b, op));
    return success();
  }
};

struct AliasLowering : OpConversionPattern<AliasOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AliasOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getBuffer());
    return success();
  }
};

struct ViewLowering : OpConversionPattern<ViewOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ViewOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Lane b(op.getLoc(), rewriter);
    int64_t bytes =
        op.getResult().getType().getElementType().getIntOrFloatBitWidth() / 8;
    Value base = b.offset(adaptor.getBase(), b.mul(adaptor.getOffset(), bytes));
    Value stride = b.mul(adaptor.getStride(), bytes);
    rewriter.replaceOpWithMultiple(
        op, {Registers{base, stride, adaptor.getRows()}});
    return success();
  }
};

} // namespace

Value attn::placeOf(Lane &b, Operation *reservation) {
  Value base =
      LLVM::AddressOfOp::create(b, b.sharedPointer(), StringRef(kSharedSymbol));
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), base);
  auto place = reservation->getAttrOfType<IntegerAttr>(kPlaceAttr);
  return b.add(address, place.getInt());
}

void attn::populateKernelPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<AliasLowering, AllocLowering, GridSizeLowering, KernelLowering,
               ProgramIdLowering, ReturnLowering, SideLowering, ViewLowering,
               WarpIdLowering>(converter, patterns.getContext());
}
