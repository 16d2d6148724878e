//===- AttachMachine.cpp - Say for which GPU to compile -------------------===//

#include "attn/Transforms/Passes.h"
#include "mlir/AsmParser/AsmParser.h"

namespace attn {
#define GEN_PASS_DEF_ATTACHMACHINEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr llvm::StringLiteral defaultMachine = "h100_sxm";

namespace {
struct AttachMachinePass
    : attn::impl::AttachMachinePassBase<AttachMachinePass> {
  using AttachMachinePassBase::AttachMachinePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (machine.empty() && module->hasAttr(machineAttrName))
      return;
    std::string name = machine.empty() ? defaultMachine.str() : machine;
    Attribute attribute =
        parseAttribute("#attn.machine<" + name + ">", &getContext());
    if (!attribute) {
      module.emitError(
          "expects the option machine to name a machine, but got '")
          << name << "'";
      return signalPassFailure();
    }
    module->setAttr(machineAttrName, attribute);
  }
};
} // namespace
