//===- SharedRows.cpp - How rows lie in shared memory ---------------------===//

#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"

using namespace attn;

bool attn::staggersRows(const Problem &problem) {
  int64_t bytes = bytesOf(problem.dtype);
  auto staggers = [&](int64_t columns) {
    return columns * bytes % kSectorBytes == kSectorBytes / 2;
  };
  return bytes == 2 && staggers(problem.headDim) && staggers(problem.headDimV);
}

int64_t attn::smemPitch(int64_t columns, int64_t bytesPerElement,
                        bool isStaggered) {
  bool hasWholeSectors = bytesPerElement == 2 && !isStaggered;
  int64_t unit = hasWholeSectors ? kSectorBytes : kSectorBytes / 2;
  return (ceilDiv(columns * bytesPerElement, unit) | 1) * unit;
}
