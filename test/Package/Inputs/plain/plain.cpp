// Reads a module and prints it with PTX.
#include "attn/InitAll.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[argc - 1], &context);
  attn::BinaryOptions options;
  options.machine = "h100_sxm";
  options.format = attn::BinaryFormat::isa;
  mlir::PassManager passes(&context);
  attn::buildAttnToBinaryPipeline(passes, options);
  if (!module || failed(passes.run(*module)))
    return 1;
  module->print(llvm::outs());
  return 0;
}
