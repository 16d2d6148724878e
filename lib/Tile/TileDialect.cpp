//===- TileDialect.cpp - Registration of the dialect of kernels -----------===//

#include "attn/Tile/Tile.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Tile/TileDialect.cpp.inc"

void TileDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "attn/Tile/TileOps.cpp.inc"
      >();
}
