//===- attn-opt.cpp - The compiler's driver -------------------------------===//

#include "../commands/Commands.h"

#include "attn/InitAll.h"
#include "attn/Pipelines/Nesting.h"
#include "attn/Report/Tool.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Upstream's driver, but the text is looked at before it is parsed.
static LogicalResult run(int argc, char **argv) {
  attn::registerAllPasses();
  DialectRegistry registry;
  attn::registerAllDialects(registry);
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "attn-opt: attention compiler driver\n", registry);
  auto config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return MlirOptMain(argc, argv, inputName, outputName, registry);

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &error);
  std::unique_ptr<llvm::ToolOutputFile> output;
  if (input)
    output = openOutputFile(outputName, &error);
  if (!output) {
    llvm::errs() << "attn-opt: error: " << error << "\n";
    return failure();
  }
  if (failed(attn::checkNesting(input->getMemBufferRef(), llvm::errs())) ||
      failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return failure();
  output->keep();
  return success();
}

int attn::optMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (auto sentence = attn::prepareTool(argc, argv)) {
    llvm::errs() << "attn-opt: error: " << *sentence << "\n";
    return 1;
  }
  bool ok = succeeded(run(argc, argv));
  llvm::outs().flush();
  return ok ? 0 : 1;
}
