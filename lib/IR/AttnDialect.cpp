//===- AttnDialect.cpp - Registration of the attn dialect -----------------===//

#include "attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "attn/IR/AttnDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/IR/AttnAttrs.cpp.inc"

namespace {
/// The ops know nothing of the function that they stand in.
struct AttnInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void attn::AttnDialect::initialize() {
  addInterfaces<AttnInliner>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/IR/AttnAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/IR/AttnOps.cpp.inc"
      >();
}

LogicalResult
attn::AttnDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  if (attribute.getName() != machineAttrName)
    return op->emitOpError("expects '")
           << machineAttrName << "' as only attribute of the attn dialect, but "
           << "got '" << attribute.getName().getValue() << "'";
  if (!isa<ModuleOp>(op))
    return op->emitOpError("expects '")
           << machineAttrName << "' on a module, but got it here";
  if (!isa<MachineAttr>(attribute.getValue()))
    return op->emitOpError("expects '")
           << machineAttrName << "' to be a #attn.machine, but got "
           << attribute.getValue();
  return success();
}
