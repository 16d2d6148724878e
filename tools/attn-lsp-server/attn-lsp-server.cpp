//===- attn-lsp-server.cpp - Editor support for our dialects --------------===//

#include "Answers.h"

#include "attn/InitAll.h"
#include "attn/Report/Tool.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  if (auto sentence = attn::prepareTool(argc, argv)) {
    llvm::errs() << "attn-lsp-server: error: " << *sentence << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  attn::registerAllDialects(registry);
  // Static, since --help and --version exit: then it has to end as well.
  static attn::ExplainedOutput output;
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
