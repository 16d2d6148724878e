//===- cluster_wgmma.cpp - Flash whose blocks load together (sm_90a) ------===//
//
// The kernel of flash_wgmma.cpp, whose frame (FlashFrame.h) has the blocks of a
// cluster take a tile of all their rows: a block's loads of keys and values go
// to all of them, slots are handed back to all, and nobody passes over what the
// others see.  Everything else, queries, softmax and results, is each block's.
//
//===----------------------------------------------------------------------===//

#include "Build/TileBuilder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace attn {
KernelOp flash_wgmma(OpBuilder &builder, Location loc,
                     const KernelRequest &request);
KernelOp cluster_wgmma(OpBuilder &builder, Location loc,
                       const KernelRequest &request);
} // namespace attn

KernelOp attn::cluster_wgmma(OpBuilder &builder, Location loc,
                             const KernelRequest &request) {
  assert(request.tiles.get("cluster") > 1 && "its tiles say of how many");
  return flash_wgmma(builder, loc, request);
}
