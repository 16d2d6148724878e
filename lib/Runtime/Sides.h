//===- Sides.h - Which half of L2 a multiprocessor is next to ---*- C++ -*-===//
//
// Found out by time.  One thread on every multiprocessor adds 0 to some words,
// one addition behind the other: additions are done in the half of L2 that has
// the word, so they take longer from the other side (on an H100 490 clocks, not
// 310, with 20 or so more or less by place).  Multiprocessors of a side find
// the same words far.
//
// It is asked once for each GPU, by the first module with a table of sides
// (attn/Machine/Sides.h), and takes about a millisecond.  Where no two sides
// stand out, or nothing can be timed, tables stay as they are.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_SIDES_H
#define ATTN_LIB_RUNTIME_SIDES_H

#include "attn/Machine/Sides.h"
#include "attn/Runtime/Status.h"

#include <mutex>
#include <optional>
#include <vector>

namespace attn::runtime {

struct GpuState;

/// The sides of multiprocessors by what they took for each of some words, all
/// of one after the other; 0 where nothing is known of one, which has the side
/// that it would have anyway.  Nothing where no two sides stand out.
std::optional<Sides> sidesByTimes(const std::vector<uint32_t> &times,
                                  size_t words);

/// What has been found out about a GPU.
class KnownSides {
public:
  /// Times them, the first time.
  std::optional<Sides> of(const GpuState &gpu);

private:
  std::mutex mutex;
  bool isKnown = false;
  std::optional<Sides> sides;
};

/// Fills in the table of sides of a module that has one, if they are known. The
/// context is current, and captures let modules be loaded.
Status tellSides(GpuState &gpu, void *module);

} // namespace attn::runtime

#endif
