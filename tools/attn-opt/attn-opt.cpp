//===- attn-opt.cpp - The compiler's driver -------------------------------===//

#include "attn/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/TargetSelect.h"

int main(int argc, char **argv) {
  attn::registerAllPasses();
  mlir::DialectRegistry registry;
  attn::registerAllDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "attn-opt: attention compiler driver\n", registry));
}
