//===- Chaining.h - Launches that begin ahead of time -----------*- C++ -*-===//
//
// A call of several launches loses microseconds at each boundary: the last
// blocks of one leave multiprocessors idle, and the first of the next take
// their time to begin.  So a kernel of such a call waits for the launch before
// it by itself, when it has set up what it needs to, and lets the next one
// begin when all of its own blocks have (programmatic dependent launch).
//
// The order stays what it was:
//
//   * All threads wait before any touches global memory, tensor maps' arrays
//     and counters included, for the whole of the launch before.  That one has
//     waited likewise, so for all before it too; a launch left out because it
//     is empty takes nothing away.
//   * The first launch of a call, one behind a copy and one of a cooperative
//     kernel are launched as usual, behind all that is in the stream; and so is
//     what the user puts behind the last, which ends behind all of the call.
//   * Nothing lies between two launches of a call but such copies: counters
//     are zeroed when they are allocated, and every launch leaves them at 0.
//   * The next launch is let begin behind the own wait, so of three no two but
//     neighbours overlap.  Its blocks come once all of this one's have begun,
//     and take no place that one of these still needs; so blocks may wait for
//     others of their launch as before.
//   * A launch may hold the next one back (LaunchShape::holdsNext), which then
//     begins when the last block has ended.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_CHAINING_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_CHAINING_H

#include "attn/Tile/Tile.h"

namespace attn {

/// Makes a kernel wait before it first touches global memory, and release the
/// launch behind it then, unless it holds that one back until its blocks end.
/// Not a cooperative one, whose blocks, in clusters or not, are launched all at
/// once or not at all.
void chain(tile::KernelOp kernel, bool holdsNext);

} // namespace attn

#endif
