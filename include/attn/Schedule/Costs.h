//===- Costs.h - What a choice costs ----------------------------*- C++ -*-===//
///
/// The three answers that a plan holds, as values: bytes at every memory level
/// (`traffic`, Traffic.h), what a block takes of a multiprocessor (`footprint`,
/// Footprint.h), and seconds, term by term (`time`, Time.h).  Who reads plans
/// needs nothing else of these.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_COSTS_H
#define ATTN_SCHEDULE_COSTS_H

#include <cstdint>

namespace attn {

struct Bytes {
  int64_t hbm = 0, l2 = 0, smem = 0;

  Bytes &operator+=(const Bytes &other);
};

struct Footprint {
  int64_t smemBytes = 0;
  int64_t registersPerThread = 0;
  int64_t threads = 0;
  int64_t blocksPerSm = 0;  ///< how many fit at once; 0 if none does
  int64_t scratchBytes = 0; ///< device memory for spilled tensors
  /// Of those, tensors with rows like an operand's, and no others: they take as
  /// much for each row of it however many there are.
  int64_t rowScratchBytes = 0;
  /// Of those, the scores of the heads and the strip of a round.
  int64_t stripScratchBytes = 0;
};

/// Seconds each resource is busy, for the whole problem, and the total.
struct Time {
  double hbm = 0, l2 = 0, smem = 0, tensor = 0, exp = 0, issue = 0;
  double exposed = 0;    ///< phases of a warp that nothing hides
  double contention = 0; ///< levels that are nearly as busy as the longest
  double tail = 0;       ///< the last wave
  double overhead = 0;   ///< launches, first loads of a block
  double seconds = 0;
};

} // namespace attn

#endif // ATTN_SCHEDULE_COSTS_H
