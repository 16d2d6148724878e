// Reads a module with mini.attend and prints it with PTX.
#include "attn/IR/Attn.h"
#include "attn/InitAll.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "MiniDialect.h.inc"
#define GET_OP_CLASSES
#include "MiniOps.h.inc"

#include "MiniDialect.cpp.inc"
#define GET_OP_CLASSES
#include "MiniOps.cpp.inc"

void mini::MiniDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "MiniOps.cpp.inc"
      >();
}

struct AttendToAttn : mlir::OpRewritePattern<mini::AttendOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult
  matchAndRewrite(mini::AttendOp op,
                  mlir::PatternRewriter &rewriter) const override {
    auto causal = attn::MaskAttr::get(op.getContext(), attn::MaskKind::causal,
                                      /*left=*/0, /*right=*/0);
    rewriter.replaceOpWithNewOp<attn::ForwardOp>(
        op, op->getResultTypes(), op.getQ(), op.getK(), op.getV(),
        /*outs=*/mlir::ValueRange(), causal, /*scale=*/nullptr,
        /*precision=*/nullptr, /*alignment=*/nullptr, /*schedule=*/nullptr);
    return mlir::success();
  }
};

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerAllDialects(registry);
  registry.insert<mini::MiniDialect>();
  mlir::MLIRContext context(registry);
  context.loadDialect<attn::AttnDialect>();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[argc - 1], &context);
  mlir::RewritePatternSet patterns(&context);
  patterns.add<AttendToAttn>(&context);
  if (!module ||
      failed(mlir::applyPatternsGreedily(*module, std::move(patterns))))
    return 1;
  attn::BinaryOptions options;
  options.machine = "h100_sxm";
  options.format = attn::BinaryFormat::isa;
  mlir::PassManager passes(&context);
  attn::buildAttnToBinaryPipeline(passes, options);
  if (failed(passes.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
