//===- TileDialect.cpp - Registration of the dialect of kernels -----------===//

#include "attn/Tile/Tile.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Tile/TileDialect.cpp.inc"

namespace {
/// Ops of the host: a launch and the memory for it.  Kernels call nothing.
struct TileInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *op, Region *, bool, IRMapping &) const final {
    return isa<LaunchOp, CounterOp, ScratchOp>(op);
  }
};
} // namespace

void TileDialect::initialize() {
  addInterfaces<TileInliner>();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "attn/Tile/TileOps.cpp.inc"
      >();
}
