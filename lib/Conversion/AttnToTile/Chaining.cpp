//===- Chaining.cpp - Launches that begin ahead of time -------------------===//

#include "Chaining.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void attn::chain(KernelOp kernel, bool holdsNext) {
  if (kernel.getCooperative())
    return;
  for (Operation &op : kernel.getBody().front()) {
    if (!touchesGlobalMemory(&op))
      continue;
    OpBuilder builder(&op);
    AwaitLaunchOp::create(builder, kernel.getLoc());
    if (!holdsNext)
      ReleaseLaunchOp::create(builder, kernel.getLoc());
    return;
  }
}
