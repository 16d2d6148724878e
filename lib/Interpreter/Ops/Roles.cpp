//===- Roles.cpp - Deals the warps of a block out to different work -------===//

#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// All warps meet, of a whole cluster, which also makes barriers ready; then
/// each goes through the list of roles and finds its own.
Step attn::interpreter::runRoles(Warp &warp, const Instruction &in) {
  warp.hasRole = true;
  warp.frames.push_back({in.regions[0].get(), 0, &in});
  return warp.wait(in, warp.block.program.cluster > 1);
}

Step attn::interpreter::runRole(Warp &warp, const Instruction &in) {
  auto role = cast<tile::RoleOp>(in.op);
  int64_t number = int64_t(warp.id) - role.firstWarp();
  int64_t warps = role.getSingleLane() ? 1 : int64_t(role.getWarps());
  if (number >= 0 && number < warps)
    warp.frames.push_back({in.regions[0].get(), 0, &in});
  return Step::next;
}
