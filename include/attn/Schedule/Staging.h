//===- Staging.h - How tiles of plain products leave ------------*- C++ -*-===//
///
/// What a tile of a pipeline of products has become lies in shared memory when
/// the copy engine takes it away, beside the ring of factors.  Each warpgroup
/// has slots of its own there.  One takes all columns of its rows, so that it
/// can go on while the tile leaves.  If the ring leaves no room for that, there
/// are two slots of 64 columns, and pieces wait for those before them to have
/// been read.
///
/// Example, tiles of 128 x 256 in 16 bits: a stage of the ring has 48 KiB, and
/// a whole tile 64.  Three stages and that are 208 KiB, four and half of that
/// 224.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_STAGING_H
#define ATTN_SCHEDULE_STAGING_H

#include <cstdint>

namespace attn {

/// The staging buffer of a warpgroup.
struct Staging {
  int64_t slots, columns; ///< of each
};

/// The same of tiles of so many columns, beside a ring of so many stages, where
/// a block has so many bytes of shared memory.
Staging stagingOf(int64_t stages, int64_t width, int64_t smemBytes);

} // namespace attn

#endif // ATTN_SCHEDULE_STAGING_H
