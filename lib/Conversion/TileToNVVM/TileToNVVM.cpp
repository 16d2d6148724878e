//===- TileToNVVM.cpp - From tiles to the code of one lane ----------------===//

#include "Lane.h"

#include "mlir/Dialect/SCF/Transforms/Patterns.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace attn {
#define GEN_PASS_DEF_TILETONVVMPASS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

namespace {

/// What a value of a tile type is in one lane.
class LaneTypes : public TypeConverter {
public:
  explicit LaneTypes(MLIRContext *context) {
    Type i32 = IntegerType::get(context, 32),
         i64 = IntegerType::get(context, 64);
    Type global = LLVM::LLVMPointerType::get(
        context, unsigned(NVVM::NVVMMemorySpace::Global));
    addConversion([](Type type) { return type; });
    addConversion([=](PtrType) { return global; });
    addConversion([=](SmemType) { return i32; });
    addConversion([=](MbarrierType) { return i32; });
    addConversion([=](QueueType) { return i32; });
    addConversion(
        [=](TensorMapType) { return LLVM::LLVMPointerType::get(context); });
    addConversion([=](PendingType type, SmallVectorImpl<Type> &types) {
      types.append(type.getRows() * type.getColumns() / 32,
                   Float32Type::get(context));
      return success();
    });
    addConversion([=](ViewType, SmallVectorImpl<Type> &types) {
      types.append({global, i64, i32});
      return success();
    });
    addConversion([=](FragType type, SmallVectorImpl<Type> &types) {
      bool accumulator = type.getLayout() == FragmentLayout::acc;
      types.append(type.registers(), accumulator ? type.getElementType() : i32);
      return success();
    });
    addConversion([](RowType type, SmallVectorImpl<Type> &types) {
      types.append(type.registers(), type.getElementType());
      return success();
    });
  }
};

struct TileToNVVMPass : attn::impl::TileToNVVMPassBase<TileToNVVMPass> {
  using TileToNVVMPassBase::TileToNVVMPassBase;

  void runOnOperation() override {
    if (failed(checkKernels()) || failed(lowerLaunches(getOperation())))
      return signalPassFailure();

    MLIRContext *context = &getContext();
    LaneTypes types(context);
    RewritePatternSet patterns(context);
    populateKernelPatterns(types, patterns);
    populateCopyPatterns(types, patterns);
    populateAdditionPatterns(types, patterns);
    populateListPatterns(types, patterns);
    populateMatrixPatterns(types, patterns);
    populateMatrixStorePatterns(types, patterns);
    populateKeepColumnsPatterns(types, patterns);
    populateMapPatterns(types, patterns);
    populateRowPatterns(types, patterns);
    populateRolePatterns(types, patterns);
    populateBarrierPatterns(types, patterns);
    populateTmaPatterns(types, patterns);
    populateTransposePatterns(types, patterns);
    populateSplitPatterns(types, patterns);
    populateWidenPatterns(types, patterns);
    populateWgmmaPatterns(types, patterns);
    populateExchangePatterns(types, patterns);
    populateFragmentPatterns(types, patterns);

    ConversionTarget target(*context);
    target.addIllegalDialect<TileDialect>();
    target.addIllegalOp<math::Exp2Op, math::Log2Op, math::RsqrtOp, math::SqrtOp,
                        math::TanhOp>();
    target.addLegalDialect<arith::ArithDialect, gpu::GPUDialect,
                           LLVM::LLVMDialect, math::MathDialect,
                           NVVM::NVVMDialect>();
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns,
                                                         target);
    llvm::DenseSet<std::pair<Operation *, StringAttr>> withRoles;
    getOperation().walk([&](RolesOp roles) {
      auto kernel = cast<KernelOp>(roles->getParentOp());
      withRoles.insert({kernel->getParentOp(), kernel.getSymNameAttr()});
    });
    FrozenRewritePatternSet frozen(std::move(patterns));
    SmallVector<gpu::GPUModuleOp> ours;
    getOperation().walk([&](gpu::GPUModuleOp module) {
      if (!module.getOps<KernelOp>().empty())
        ours.push_back(module);
    });
    for (gpu::GPUModuleOp module : ours) {
      if (failed(applyPartialConversion(module, target, frozen)))
        return signalPassFailure();
      for (auto function : module.getOps<LLVM::LLVMFuncOp>())
        if (withRoles.contains({module, function.getSymNameAttr()}))
          keepLoops(function);
    }
  }

private:
  /// Roles hide their latencies from each other; unrolled loops would only cost
  /// registers, and products in two copies of a body are not kept in flight.
  static void keepLoops(LLVM::LLVMFuncOp function) {
    MLIRContext *context = function.getContext();
    auto unroll = LLVM::LoopUnrollAttr::get(
        context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
        {});
    auto annotation =
        LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {},
                                      {}, {}, {}, {}, {}, {}, {}, {});
    function.walk([&](scf::ForOp loop) {
      loop->setAttr("llvm.loop_annotation", annotation);
    });
  }

  LogicalResult checkKernels() {
    WalkResult result = getOperation().walk([&](KernelOp kernel) {
      Operation *parent = kernel->getParentOp();
      if (!isa<gpu::GPUModuleOp>(parent) ||
          !isa<ModuleOp>(parent->getParentOp())) {
        kernel.emitOpError("expects to stand in a gpu.module of a module");
        return WalkResult::interrupt();
      }
      return failed(checkCapabilities(kernel)) ? WalkResult::interrupt()
                                               : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
