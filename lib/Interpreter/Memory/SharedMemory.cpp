//===- SharedMemory.cpp - A block's bytes and who may touch them ----------===//

#include "Memory/SharedMemory.h"

#include "attn/Tile/Tile.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

using namespace attn::interpreter;

/// A NaN in every float format.
static constexpr uint8_t kPoison = 0xff;

SharedMemory::SharedMemory(int64_t size, const Clocks &clocks)
    : clocks(clocks), warps(clocks.warps()), bytes(size, kPoison),
      writers((size + kPieceBytes - 1) / kPieceBytes),
      readers(writers.size() * warps), reads(warps) {}

//===----------------------------------------------------------------------===//
// Where bytes lie
//===----------------------------------------------------------------------===//

/// Calls `apply(row, offset, address, count)` for the bytes of the rectangle
/// that lie one behind the other: all of a row, or a piece of it in panels.
template <typename Apply>
static void forEachRun(const Rectangle &where, int64_t pieceBytes,
                       Apply apply) {
  constexpr int64_t panelRow = attn::tile::SmemType::kPanelBytes;
  for (int64_t row = 0; row < where.rows; ++row) {
    if (where.panelBytes == 0) {
      apply(row, int64_t(0), where.begin + row * where.pitch, where.width);
      continue;
    }
    int64_t line = where.firstRow + row;
    int64_t end = where.firstByte + where.width;
    for (int64_t byte = where.firstByte; byte < end;) {
      int64_t next = std::min(byte / pieceBytes * pieceBytes + pieceBytes, end);
      int64_t piece = byte % panelRow / pieceBytes;
      int64_t place = piece ^ (line % (panelRow / pieceBytes));
      apply(row, byte - where.firstByte,
            where.begin + byte / panelRow * where.panelBytes + line * panelRow +
                place * pieceBytes + byte % pieceBytes,
            next - byte);
      byte = next;
    }
  }
}

/// Calls `check(address, row, offset, count)` for the bytes of every piece of
/// the rectangle and collects the rows of the first kind of conflict.
template <typename Check>
std::optional<Breach> SharedMemory::visit(const Rectangle &where,
                                          Check check) const {
  std::optional<Breach> breach;
  forEachRun(
      where, kPieceBytes,
      [&](int64_t row, int64_t offset, int64_t begin, int64_t count) {
        for (int64_t at = begin; at < begin + count;) {
          int64_t next = std::min(at / kPieceBytes * kPieceBytes + kPieceBytes,
                                  begin + count);
          std::optional<Found> found =
              check(at, row, offset + (at - begin), next - at);
          at = next;
          if (!found)
            continue;
          if (!breach)
            breach = Breach{
                found->conflict,    found->other, found->access.instruction,
                found->access.time, row,          row};
          if (breach->conflict == found->conflict)
            breach->lastRow = row;
        }
      });
  return breach;
}

void SharedMemory::scatter(const Rectangle &where, const uint8_t *source) {
  forEachRun(where, kPieceBytes,
             [&](int64_t row, int64_t offset, int64_t begin, int64_t count) {
               std::memcpy(&bytes[begin], source + row * where.width + offset,
                           count);
             });
}

//===----------------------------------------------------------------------===//
// What is ordered
//===----------------------------------------------------------------------===//

std::optional<SharedMemory::Found>
SharedMemory::behindWriter(const Writer &writer, Viewer viewer,
                           bool asynchronous) const {
  if (writer.copy != kNoCopy)
    return behindCopy(copies[writer.copy], viewer, asynchronous);
  if (writer.access.time == 0)
    return std::nullopt;
  bool load = writer.party >= warps;
  if (viewer.known[writer.party] < writer.access.time)
    return Found{load ? Conflict::unorderedLoad : Conflict::unorderedWrite,
                 writer.party, writer.access};
  if (asynchronous && !load &&
      !clocks.isFenced(viewer.known, writer.party, writer.access.time,
                       writer.fence))
    return Found{Conflict::unfenced, writer.party, writer.access};
  return std::nullopt;
}

std::optional<SharedMemory::Found>
SharedMemory::behindCopy(const Copy &copy, Viewer viewer,
                         bool asynchronous) const {
  Access begin{0, copy.instruction};
  if (viewer.warp && copy.issued[*viewer.warp].time == 0) {
    auto begun = llvm::find_if(
        copy.issued, [](const Access &access) { return access.time != 0; });
    return Found{Conflict::overtaken, unsigned(begun - copy.issued.begin()),
                 begin};
  }
  for (unsigned other = 0; other < warps; ++other) {
    if (copy.issued[other].time == 0)
      return Found{Conflict::notIssued, other, begin};
    if (copy.waited[other].time == 0)
      return Found{Conflict::inFlight, other, copy.issued[other]};
    if (viewer.known[other] < copy.waited[other].time)
      return Found{Conflict::unorderedWrite, other, copy.waited[other]};
    if (asynchronous &&
        !clocks.isFenced(viewer.known, other, copy.waited[other].time,
                         copy.fences[other]))
      return Found{Conflict::unfenced, other, copy.waited[other]};
  }
  return std::nullopt;
}

std::optional<SharedMemory::Found>
SharedMemory::behindReaders(int64_t piece, Viewer viewer,
                            bool asynchronous) const {
  for (unsigned other = 0; other < warps; ++other) {
    Access access = readers[other * writers.size() + piece];
    if (access.time == 0)
      continue;
    if (access.time & kToken) {
      Read read = reads[other][access.time & ~kToken];
      bool isOrdinary = read.issue != 0 && !asynchronous;
      if (read.end == 0 && !isOrdinary)
        return Found{Conflict::readInFlight, other, access};
      access.time = isOrdinary ? read.issue : read.end;
    }
    if (viewer.known[other] < access.time)
      return Found{Conflict::unorderedRead, other, access};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

std::optional<Breach> SharedMemory::gather(const Rectangle &where,
                                           unsigned warp, Access now,
                                           bool asynchronous, uint8_t *target) {
  Viewer reader = viewer(warp);
  return visit(where,
               [&](int64_t address, int64_t row, int64_t offset,
                   int64_t count) -> std::optional<Found> {
                 int64_t piece = address / kPieceBytes;
                 Access &last = readers[warp * writers.size() + piece];
                 // What is in flight ends later than what is done at once.
                 if (asynchronous || !unfinished(warp, last))
                   last = now;
                 const Writer &writer = writers[piece];
                 std::optional<Found> found =
                     writer.copy == kNoCopy && writer.access.time == 0
                         ? Found{Conflict::neverWritten, warp, now}
                         : behindWriter(writer, reader, asynchronous);
                 uint8_t *to = target + row * where.width + offset;
                 if (found)
                   std::memset(to, kPoison, count);
                 else
                   std::memcpy(to, &bytes[address], count);
                 return found;
               });
}

std::optional<Breach> SharedMemory::read(const Rectangle &where, unsigned warp,
                                         unsigned instruction,
                                         uint8_t *target) {
  return gather(where, warp, {clocks.now(warp), instruction},
                /*asynchronous=*/false, target);
}

std::optional<Breach> SharedMemory::overwrite(const Rectangle &where,
                                              Viewer viewer, const Writer &now,
                                              bool asynchronous,
                                              const uint8_t *source) {
  std::optional<Breach> breach =
      visit(where, [&](int64_t address, int64_t, int64_t, int64_t) {
        int64_t piece = address / kPieceBytes;
        std::optional<Found> found =
            behindWriter(writers[piece], viewer, asynchronous);
        if (!found)
          found = behindReaders(piece, viewer, asynchronous);
        writers[piece] = now;
        return found;
      });
  scatter(where, source);
  return breach;
}

std::optional<Breach> SharedMemory::write(const Rectangle &where, unsigned warp,
                                          unsigned instruction,
                                          const uint8_t *source) {
  Writer now{{clocks.now(warp), instruction},
             warp,
             kNoCopy,
             clocks.known(warp, clocks.fencesOf(warp)) + 1};
  return overwrite(where, viewer(warp), now, /*asynchronous=*/false, source);
}

std::optional<Breach> SharedMemory::load(const Rectangle &where,
                                         const Clock &issuer,
                                         unsigned instruction, unsigned party,
                                         uint32_t time, const uint8_t *source) {
  Writer now{{time, instruction}, party, kNoCopy, 0};
  return overwrite(where, {clocks.times(issuer), std::nullopt}, now,
                   /*asynchronous=*/true, source);
}

unsigned SharedMemory::beginRead(unsigned warp) {
  reads[warp].push_back({});
  return unsigned(reads[warp].size() - 1);
}

std::optional<Breach> SharedMemory::readLater(const Rectangle &where,
                                              unsigned warp,
                                              unsigned instruction,
                                              unsigned token, uint8_t *target) {
  return gather(where, warp, {kToken | token, instruction},
                /*asynchronous=*/true, target);
}

void SharedMemory::endRead(unsigned warp, unsigned token) {
  reads[warp][token].end = clocks.now(warp);
}

unsigned SharedMemory::beginLoad(unsigned warp) {
  reads[warp].push_back({clocks.now(warp), 0});
  return unsigned(reads[warp].size() - 1);
}

std::optional<Breach> SharedMemory::readUntilUsed(const Rectangle &where,
                                                  unsigned warp,
                                                  unsigned instruction,
                                                  unsigned token,
                                                  uint8_t *target) {
  return gather(where, warp, {kToken | token, instruction},
                /*asynchronous=*/false, target);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

unsigned SharedMemory::begin(Copy copy) {
  int index = int(copies.size());
  copy.issued.resize(warps);
  copy.waited.resize(warps);
  copy.fences.resize(warps);
  copy.missingIssues = copy.missingWaits = warps;
  std::vector<Writer> &before = replaced.emplace_back();
  visit(
      copy.target,
      [&](int64_t address, int64_t, int64_t, int64_t) -> std::optional<Found> {
        Writer &writer = writers[address / kPieceBytes];
        before.push_back(writer);
        writer = Writer{{}, 0, index, 0};
        return std::nullopt;
      });
  std::vector<uint8_t> poison(copy.target.rows * copy.target.width, kPoison);
  scatter(copy.target, poison.data());
  copies.push_back(std::move(copy));
  return unsigned(index);
}

std::optional<Breach> SharedMemory::issue(unsigned index, unsigned warp) {
  Copy &copy = copies[index];
  copy.issued[warp] = {clocks.now(warp), copy.instruction};
  size_t next = 0;
  std::optional<Breach> breach =
      visit(copy.target, [&](int64_t address, int64_t, int64_t, int64_t) {
        std::optional<Found> found =
            behindWriter(replaced[index][next++], viewer(warp),
                         /*asynchronous=*/false);
        return found ? found
                     : behindReaders(address / kPieceBytes, viewer(warp),
                                     /*asynchronous=*/false);
      });
  if (--copy.missingIssues == 0)
    replaced[index] = {};
  return breach;
}

void SharedMemory::wait(unsigned index, unsigned warp, unsigned instruction) {
  Copy &copy = copies[index];
  copy.waited[warp] = {clocks.now(warp), instruction};
  copy.fences[warp] = clocks.known(warp, clocks.fencesOf(warp)) + 1;
  if (--copy.missingWaits == 0)
    land(copy);
}

void SharedMemory::land(Copy &copy) {
  scatter(copy.target, copy.data.data());
  copy.data = {};
}
