//===- Rings.h - Slots of rings of barriers and messages --------*- C++ -*-===//

#ifndef ATTN_LIB_INTERPRETER_RUN_RINGS_H
#define ATTN_LIB_INTERPRETER_RUN_RINGS_H

#include "Run/Warp.h"

namespace attn::interpreter {

/// The program's number of the barrier in a slot of the ring; nothing, and
/// reported, when there is none or it is not ready for use.
std::optional<unsigned> slotOf(Warp &warp, const Instruction &in,
                               const Ring &ring, int64_t slot);

} // namespace attn::interpreter

#endif
