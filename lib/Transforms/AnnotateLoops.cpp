//===- AnnotateLoops.cpp - Loop annotations of branches -------------------===//

#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ANNOTATELOOPSPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

/// The attribute that conversions from scf leave behind.
static constexpr StringLiteral kAnnotation = "llvm.loop_annotation";

template <typename Branch> static void annotate(Branch branch) {
  auto annotation =
      branch->template getAttrOfType<LLVM::LoopAnnotationAttr>(kAnnotation);
  if (!annotation)
    return;
  branch->removeAttr(kAnnotation);
  branch.setLoopAnnotationAttr(annotation);
}

namespace {

struct AnnotateLoopsPass
    : attn::impl::AnnotateLoopsPassBase<AnnotateLoopsPass> {
  using AnnotateLoopsPassBase::AnnotateLoopsPassBase;

  void runOnOperation() override {
    getOperation()->walk([](LLVM::BrOp branch) { annotate(branch); });
    getOperation()->walk([](LLVM::CondBrOp branch) { annotate(branch); });
  }
};

} // namespace
