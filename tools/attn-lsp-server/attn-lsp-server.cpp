//===- attn-lsp-server.cpp - Editor support for our dialects --------------===//

#include "Answers.h"

#include "attn/InitAll.h"
#include "attn/Report/Tool.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <optional>

/// Whether the command line asks about the server, which then ends at once.
static bool asksAboutServer(int argc, char **argv) {
  for (llvm::StringRef argument : llvm::ArrayRef(argv, argc).drop_front()) {
    argument.consume_front("-");
    if (argument == "-version" || argument.starts_with("-help") ||
        argument == "h")
      return true;
  }
  return false;
}

int main(int argc, char **argv) {
  if (auto sentence = attn::prepareTool(argc, argv)) {
    llvm::errs() << "attn-lsp-server: error: " << *sentence << "\n";
    return 1;
  }
  mlir::DialectRegistry registry;
  attn::registerAllDialects(registry);
  std::optional<attn::ExplainedOutput> output;
  if (!asksAboutServer(argc, argv))
    output.emplace();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
