//===- SharedMemory.cpp - A block's bytes and who may touch them ----------===//

#include "SharedMemory.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

using namespace attn::interpreter;

/// A NaN in every float format.
static constexpr uint8_t kPoison = 0xff;

SharedMemory::SharedMemory(int64_t size, unsigned warps)
    : warps(warps), bytes(size, kPoison), clocks(warps, Clock(warps, 0)),
      writers((size + kPieceBytes - 1) / kPieceBytes),
      readers(writers.size() * warps) {
  for (unsigned warp = 0; warp < warps; ++warp)
    clocks[warp][warp] = 1;
}

void SharedMemory::meet() {
  Clock joined(warps, 0);
  for (const Clock &clock : clocks)
    for (unsigned warp = 0; warp < warps; ++warp)
      joined[warp] = std::max(joined[warp], clock[warp]);
  for (unsigned warp = 0; warp < warps; ++warp) {
    clocks[warp] = joined;
    ++clocks[warp][warp];
  }
}

/// Calls `check(piece)` for every piece of the rectangle and collects the rows
/// of the first kind of conflict.
template <typename Check>
std::optional<Breach> SharedMemory::visit(const Rectangle &where,
                                          Check check) const {
  std::optional<Breach> breach;
  for (int64_t row = 0; row < where.rows; ++row) {
    int64_t begin = where.begin + row * where.pitch;
    int64_t last = (begin + where.width - 1) / kPieceBytes;
    for (int64_t piece = begin / kPieceBytes; piece <= last; ++piece) {
      std::optional<Found> found = check(piece);
      if (!found)
        continue;
      if (!breach)
        breach =
            Breach{found->conflict, found->other, found->instruction, row, row};
      if (breach->conflict == found->conflict)
        breach->lastRow = row;
    }
  }
  return breach;
}

std::optional<SharedMemory::Found>
SharedMemory::behindWriter(const Writer &writer, unsigned warp) const {
  if (writer.copy == kNoCopy) {
    if (writer.access.time == 0 ||
        ordered(warp, writer.warp, writer.access.time))
      return std::nullopt;
    return Found{Conflict::unorderedWrite, writer.warp,
                 writer.access.instruction};
  }
  const Copy &copy = copies[writer.copy];
  if (copy.issued[warp].time == 0) {
    auto begun = llvm::find_if(
        copy.issued, [](const Access &access) { return access.time != 0; });
    return Found{Conflict::overtaken, unsigned(begun - copy.issued.begin()),
                 copy.instruction};
  }
  for (unsigned other = 0; other < warps; ++other) {
    if (copy.issued[other].time == 0)
      return Found{Conflict::notIssued, other, copy.instruction};
    if (copy.waited[other].time == 0)
      return Found{Conflict::inFlight, other, copy.issued[other].instruction};
    if (!ordered(warp, other, copy.waited[other].time))
      return Found{Conflict::unorderedWrite, other,
                   copy.waited[other].instruction};
  }
  return std::nullopt;
}

std::optional<SharedMemory::Found>
SharedMemory::behindReaders(int64_t piece, unsigned warp) const {
  for (unsigned other = 0; other < warps; ++other) {
    const Access &access = readers[piece * warps + other];
    if (access.time != 0 && !ordered(warp, other, access.time))
      return Found{Conflict::unorderedRead, other, access.instruction};
  }
  return std::nullopt;
}

std::optional<Breach> SharedMemory::read(const Rectangle &where, unsigned warp,
                                         unsigned instruction,
                                         uint8_t *target) {
  Access now{clocks[warp][warp], instruction};
  std::optional<Breach> breach =
      visit(where, [&](int64_t piece) -> std::optional<Found> {
        readers[piece * warps + warp] = now;
        const Writer &writer = writers[piece];
        if (writer.copy == kNoCopy && writer.access.time == 0)
          return Found{Conflict::neverWritten, warp, instruction};
        return behindWriter(writer, warp);
      });
  for (int64_t row = 0; row < where.rows; ++row)
    std::memcpy(target + row * where.width,
                &bytes[where.begin + row * where.pitch], where.width);
  return breach;
}

std::optional<Breach> SharedMemory::write(const Rectangle &where, unsigned warp,
                                          unsigned instruction,
                                          const uint8_t *source) {
  Access now{clocks[warp][warp], instruction};
  std::optional<Breach> breach = visit(where, [&](int64_t piece) {
    std::optional<Found> found = behindWriter(writers[piece], warp);
    if (!found)
      found = behindReaders(piece, warp);
    writers[piece] = Writer{now, warp, kNoCopy};
    return found;
  });
  for (int64_t row = 0; row < where.rows; ++row)
    std::memcpy(&bytes[where.begin + row * where.pitch],
                source + row * where.width, where.width);
  return breach;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

unsigned SharedMemory::begin(Copy copy) {
  int index = int(copies.size());
  copy.issued.resize(warps);
  copy.waited.resize(warps);
  copy.missingIssues = copy.missingWaits = warps;
  std::vector<Writer> &before = replaced.emplace_back();
  visit(copy.target, [&](int64_t piece) -> std::optional<Found> {
    before.push_back(writers[piece]);
    writers[piece] = Writer{{}, 0, index};
    return std::nullopt;
  });
  for (int64_t row = 0; row < copy.target.rows; ++row)
    std::memset(&bytes[copy.target.begin + row * copy.target.pitch], kPoison,
                copy.target.width);
  copies.push_back(std::move(copy));
  return unsigned(index);
}

std::optional<Breach> SharedMemory::issue(unsigned index, unsigned warp) {
  Copy &copy = copies[index];
  copy.issued[warp] = {clocks[warp][warp], copy.instruction};
  size_t next = 0;
  std::optional<Breach> breach = visit(copy.target, [&](int64_t piece) {
    std::optional<Found> found = behindWriter(replaced[index][next++], warp);
    return found ? found : behindReaders(piece, warp);
  });
  if (--copy.missingIssues == 0)
    replaced[index] = {};
  return breach;
}

void SharedMemory::wait(unsigned index, unsigned warp, unsigned instruction) {
  Copy &copy = copies[index];
  copy.waited[warp] = {clocks[warp][warp], instruction};
  if (--copy.missingWaits == 0)
    land(copy);
}

void SharedMemory::land(Copy &copy) {
  const Rectangle &where = copy.target;
  for (int64_t row = 0; row < where.rows; ++row)
    std::memcpy(&bytes[where.begin + row * where.pitch],
                &copy.data[row * where.width], where.width);
  copy.data = {};
}
