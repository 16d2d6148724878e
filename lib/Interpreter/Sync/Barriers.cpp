//===- Barriers.cpp - Waiting, and who waits for whom ---------------------===//

#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runBarrier(Warp &warp, const Instruction &in) {
  return warp.wait(in);
}

Step attn::interpreter::runCommitGroup(Warp &warp, const Instruction &in) {
  warp.groups.push_back(std::move(warp.openGroup));
  warp.openGroup.clear();
  return Step::next;
}

Step attn::interpreter::runWaitGroup(Warp &warp, const Instruction &in) {
  size_t allowed = cast<tile::WaitGroupOp>(in.op).getInFlight();
  while (warp.groups.size() > allowed) {
    for (unsigned copy : warp.groups.front())
      warp.block.shared.wait(copy, warp.id, in.index);
    warp.groups.pop_front();
  }
  return Step::next;
}
