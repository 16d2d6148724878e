//===- PartsFootprint.h - What inputs in parts occupy -----------*- C++ -*-===//
//
// Launches that split inputs of f32 once, and what they leave (InputParts.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_FOLDS_PARTSFOOTPRINT_H
#define ATTN_LIB_SCHEDULE_FOLDS_PARTSFOOTPRINT_H

#include "attn/Schedule/Schedule.h"

namespace attn {

/// Bytes of scratch memory for an input in parts that `node` spills, and for
/// their exponents, of the heads of a batch entry.
int64_t partsBytes(const Node &node, const Problem &problem);

/// Of the launch that makes them: bytes of shared memory, in which warps tell
/// each other of the largest number, and registers of a thread besides those of
/// every kernel.
struct SplittingSpace {
  int64_t smemBytes, registers;
};
SplittingSpace splittingSpace(const Node &node, const Problem &problem);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_FOLDS_PARTSFOOTPRINT_H
