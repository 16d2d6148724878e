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

  /// An option is wrong wherever it meets a module, so none is shown.
  LogicalResult initialize(MLIRContext *context) override {
    std::string name = machine.empty() ? defaultMachine.str() : machine;
    attribute = parseAttribute("#attn.machine<" + name + ">", context);
    if (attribute)
      return success();
    return emitError(UnknownLoc::get(context),
                     "expects the option machine to name a machine, but got '")
           << name << "'";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (machine.empty() && module->hasAttr(machineAttrName))
      return;
    module->setAttr(machineAttrName, attribute);
  }

private:
  Attribute attribute;
};
} // namespace
