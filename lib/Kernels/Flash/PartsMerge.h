//===- PartsMerge.h - Parts of the keys made whole --------------*- C++ -*-===//

#ifndef ATTN_LIB_KERNELS_FLASH_PARTSMERGE_H
#define ATTN_LIB_KERNELS_FLASH_PARTSMERGE_H

#include "Build/TileBuilder.h"

namespace attn {

/// The second kernel of flash with keys in parts.
tile::KernelOp buildPartsMerge(TileBuilder &builder,
                               const KernelRequest &request);

} // namespace attn

#endif
