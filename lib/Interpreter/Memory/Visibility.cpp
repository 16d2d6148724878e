//===- Visibility.cpp - Who sees what other blocks wrote ------------------===//

#include "Run/Residents.h"

#include <algorithm>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Event attn::interpreter::eventOf(const Warp &warp, const Instruction &in) {
  return {warp.block.number, warp.id, warp.block.clocks.now(warp.id), in.index};
}

bool attn::interpreter::inSight(const Warp &warp, const Event &event) {
  return warp.clock().sight.of(event.block, event.warp) >= event.time;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// Makes `at` the first byte of a range, if it lies in one.
void Visibility::split(uint64_t at) {
  auto behind = ranges.lower_bound(at);
  if (behind == ranges.begin())
    return;
  auto [begin, range] = *std::prev(behind);
  if (range.end <= at)
    return;
  Range &first = std::prev(behind)->second;
  first.end = at;
  if (!range.before.empty()) {
    first.before.resize(at - begin);
    range.before.erase(range.before.begin(),
                       range.before.begin() + int64_t(at - begin));
  }
  ranges.emplace_hint(behind, at, std::move(range));
}

/// Calls `apply(begin, range)` for ranges that together are these bytes.
template <typename Apply>
void Visibility::cover(uint64_t begin, uint64_t end, Apply apply) {
  split(begin);
  split(end);
  auto next = ranges.lower_bound(begin);
  for (uint64_t at = begin; at < end; at = next->second.end, ++next) {
    if (next == ranges.end() || next->first > at) {
      uint64_t gap = next == ranges.end() ? end : std::min(next->first, end);
      next = ranges.emplace_hint(next, at, Range{gap, std::nullopt, {}, {}});
    }
    apply(at, next->second);
  }
}

std::optional<Event> Visibility::writerOf(uint64_t address,
                                          int64_t bytes) const {
  auto range = ranges.find(address);
  if (range == ranges.end() || range->second.end < address + uint64_t(bytes))
    return std::nullopt;
  return range->second.writer;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// `done` ("the write") by another warp must come before `now` ("read").
void Visibility::report(Warp &warp, const Instruction &in, StringRef done,
                        const Event &event, StringRef now) {
  std::string who = ("warp " + Twine(event.warp)).str();
  std::string what = (done + " of these bytes by ").str();
  Operation *cause = warp.block.program.ops[event.instruction];
  bool isOwn = event.block == warp.block.number;
  if (event.time == kInFlight) {
    if (!isOwn)
      who += " of " + warp.block.residents.block(event.block).name();
    return warp.report(in, (done + now).str(),
                       "expects " + Twine(what) + who +
                           " to be complete before they are " + now +
                           ", but it has not been waited for",
                       cause, done + " is here");
  }
  if (isOwn)
    return warp.report(in, (done + now).str(),
                       "expects a barrier after " + Twine(what) + who +
                           " before they are " + now + ", but got none",
                       cause, done + " is here");
  who += " of " + warp.block.residents.block(event.block).name();
  warp.report(in, (done + now).str(),
              "expects " + Twine(what) + who +
                  " to be published, and that to be awaited, before they are " +
                  now + ", but got no such order",
              cause, done + " is here");
}

void Visibility::reportUnfenced(Warp &warp, const Instruction &in,
                                const Event &writer) {
  warp.report(in, "unfenced",
              "expects tile.fence_async global behind the write of these bytes "
              "by warp " +
                  Twine(writer.warp) + " of " +
                  warp.block.residents.block(writer.block).name() +
                  ", before they are loaded, but got none",
              warp.block.program.ops[writer.instruction], "the write is here");
}

Visibility::Gap Visibility::gapBefore(const Warp &warp, const Range &range,
                                      bool isLoad) {
  if (!range.writer)
    return Gap::none;
  const Event &writer = *range.writer;
  if (!inSight(warp, writer))
    return Gap::order;
  bool isOwn = range.isStored && writer.block == warp.block.number;
  return !isLoad || isOwn ||
                 warp.clock().fenced.of(writer.block, writer.warp) >=
                     writer.time
             ? Gap::none
             : Gap::fence;
}

void Visibility::read(Warp &warp, const Instruction &in, uint64_t address,
                      MutableArrayRef<uint8_t> bytes) {
  read(warp, in, address, bytes, /*isLoad=*/false);
}

void Visibility::load(Warp &warp, const Instruction &in, uint64_t address,
                      MutableArrayRef<uint8_t> bytes) {
  read(warp, in, address, bytes, /*isLoad=*/true);
}

void Visibility::read(Warp &warp, const Instruction &in, uint64_t address,
                      MutableArrayRef<uint8_t> bytes, bool isLoad) {
  constexpr uint8_t poison = 0xff;
  Event now = eventOf(warp, in);
  cover(address, address + bytes.size(), [&](uint64_t begin, Range &range) {
    auto last = llvm::find_if(range.readers, [&](const Event &other) {
      return other.block == now.block && other.warp == now.warp;
    });
    if (last == range.readers.end())
      range.readers.push_back(now);
    else
      *last = now;
    Gap gap = gapBefore(warp, range, isLoad);
    if (gap == Gap::none)
      return;
    if (gap == Gap::fence)
      reportUnfenced(warp, in, *range.writer);
    else
      report(warp, in, "the write", *range.writer, "read");
    if (!warp.block.seesBefore())
      return;
    MutableArrayRef<uint8_t> part =
        bytes.slice(begin - address, range.end - begin);
    if (range.before.empty())
      std::fill(part.begin(), part.end(), poison);
    else
      std::copy(range.before.begin(), range.before.end(), part.begin());
  });
}

void Visibility::write(Warp &warp, const Instruction &in, uint64_t address,
                       int64_t bytes, ArrayRef<uint8_t> before) {
  write(warp, in, eventOf(warp, in), /*isStored=*/false, address, bytes,
        before);
}

void Visibility::store(Warp &warp, const Instruction &in, uint64_t address,
                       int64_t bytes, ArrayRef<uint8_t> before) {
  Event event = eventOf(warp, in);
  event.time = kInFlight;
  write(warp, in, event, /*isStored=*/true, address, bytes, before);
  inFlight.push_back({event.block, event.warp, warp.storesStarted - 1, address,
                      address + uint64_t(bytes)});
}

void Visibility::complete(const Event &wait, uint64_t end) {
  auto isOf = [&](const Event &event) {
    return event.block == wait.block && event.warp == wait.warp;
  };
  llvm::erase_if(inFlight, [&](const Store &store) {
    if (store.block != wait.block || store.warp != wait.warp ||
        store.number >= end)
      return false;
    cover(store.begin, store.end, [&](uint64_t, Range &range) {
      if (range.writer && isOf(*range.writer) &&
          range.writer->time == kInFlight)
        range.writer->time = wait.time;
    });
    return true;
  });
}

void Visibility::write(Warp &warp, const Instruction &in, const Event &event,
                       bool isStored, uint64_t address, int64_t bytes,
                       ArrayRef<uint8_t> before) {
  cover(address, address + uint64_t(bytes), [&](uint64_t begin, Range &range) {
    if (range.writer && !inSight(warp, *range.writer))
      report(warp, in, "the write", *range.writer, "overwritten");
    for (const Event &reader : range.readers)
      if (!inSight(warp, reader))
        report(warp, in, "the read", reader, "overwritten");
    range.readers.clear();
    range.writer = event;
    range.isStored = isStored;
    range.before.clear();
    if (!before.empty()) {
      ArrayRef<uint8_t> part = before.slice(begin - address, range.end - begin);
      range.before.assign(part.begin(), part.end());
    }
  });
}

/// Checks that the launch adds to none of the bytes, or has.
static void checkNotAdded(Warp &warp, const Instruction &in, bool isWrite,
                          uint64_t address, int64_t bytes) {
  if (!warp.block.program.adds)
    return;
  auto isBehind = [&](const Event &event) { return inSight(warp, event); };
  if (std::optional<unsigned> addition = warp.block.launch.additions.access(
          eventOf(warp, in), isWrite, address, bytes, isBehind))
    warp.report(in, "added to",
                "expects bytes that no op of the launch adds to, or behind the "
                "wait for all that they do, but got some that one does",
                warp.block.program.ops[*addition], "the addition is here");
}

/// Reads bytes; `record` records it where blocks run together.
static std::optional<std::string>
read(Warp &warp, const Instruction &in, uint64_t address, void *target,
     int64_t bytes,
     void (Visibility::*record)(Warp &, const Instruction &, uint64_t,
                                MutableArrayRef<uint8_t>)) {
  checkNotAdded(warp, in, /*isWrite=*/false, address, bytes);
  std::optional<std::string> error =
      warp.block.memory.read(address, target, bytes);
  if (!error && warp.block.residents.together)
    (warp.block.residents.visibility.*record)(
        warp, in, address, {static_cast<uint8_t *>(target), size_t(bytes)});
  return error;
}

std::optional<std::string>
attn::interpreter::readGlobal(Warp &warp, const Instruction &in,
                              uint64_t address, void *target, int64_t bytes) {
  return read(warp, in, address, target, bytes, &Visibility::read);
}

std::optional<std::string>
attn::interpreter::loadGlobal(Warp &warp, const Instruction &in,
                              uint64_t address, void *target, int64_t bytes) {
  return read(warp, in, address, target, bytes, &Visibility::load);
}

/// Writes bytes; `record` records it where blocks run together.
static std::optional<std::string>
write(Warp &warp, const Instruction &in, uint64_t address, const void *source,
      int64_t bytes,
      void (Visibility::*record)(Warp &, const Instruction &, uint64_t, int64_t,
                                 ArrayRef<uint8_t>)) {
  checkNotAdded(warp, in, /*isWrite=*/true, address, bytes);
  std::vector<uint8_t> before;
  bool together = warp.block.residents.together;
  if (together) {
    before.resize(bytes);
    if (warp.block.memory.read(address, before.data(), bytes))
      before.clear();
  }
  std::optional<std::string> error =
      warp.block.memory.write(address, source, bytes);
  if (!error && together)
    (warp.block.residents.visibility.*record)(warp, in, address, bytes, before);
  return error;
}

std::optional<std::string> attn::interpreter::writeGlobal(Warp &warp,
                                                          const Instruction &in,
                                                          uint64_t address,
                                                          const void *source,
                                                          int64_t bytes) {
  return write(warp, in, address, source, bytes, &Visibility::write);
}

std::optional<std::string> attn::interpreter::storeGlobal(Warp &warp,
                                                          const Instruction &in,
                                                          uint64_t address,
                                                          const void *source,
                                                          int64_t bytes) {
  return write(warp, in, address, source, bytes, &Visibility::store);
}

/// Records what the copy engine adds or stores, and checks its order among what
/// else it does to the same words; `expected` says behind what it should be.
static void checkOrder(Warp &warp, const Instruction &in,
                       const Additions::Addition &addition,
                       StringRef expected) {
  Additions &additions = warp.block.launch.additions;
  auto isBehind = [&](const Event &event) { return inSight(warp, event); };
  if (std::optional<unsigned> other = additions.before(addition, isBehind))
    warp.report(in, "order",
                "expects words that nobody has " + expected +
                    ", but got no order between them",
                warp.block.program.ops[*other], "the other one is here");
  if (std::optional<unsigned> other = additions.add(addition, isBehind))
    warp.report(in, "otherwise accessed",
                "expects words that no op of the launch has read or written "
                "otherwise, or behind the write, but got some that one has",
                warp.block.program.ops[*other], "the access is here");
}

std::optional<std::string>
attn::interpreter::addGlobal(Warp &warp, const Instruction &in,
                             uint64_t address, ArrayRef<float> summands) {
  auto bytes = int64_t(summands.size() * sizeof(float));
  bool inOrder = in.op->hasAttr("in_order");
  Additions::Addition addition = {
      eventOf(warp, in),
      warp.storesStarted - 1,
      address,
      address + uint64_t(bytes),
      llvm::all_of(summands, [](float summand) { return summand == 0; }),
      inOrder ? Additions::Order::behindSums : Additions::Order::behindStores};
  checkOrder(warp, in, addition,
             inOrder ? "added to, or behind the wait for all that was added"
                     : "stored, or behind the wait for that");
  std::vector<float> sums(summands.size());
  if (std::optional<std::string> error =
          warp.block.memory.read(address, sums.data(), bytes))
    return error;
  for (auto [sum, summand] : llvm::zip_equal(sums, summands))
    sum += summand;
  return warp.block.memory.write(address, sums.data(), bytes);
}

std::optional<std::string>
attn::interpreter::beginGlobal(Warp &warp, const Instruction &in,
                               uint64_t address, ArrayRef<float> words) {
  auto bytes = int64_t(words.size() * sizeof(float));
  checkOrder(warp, in,
             {eventOf(warp, in), warp.storesStarted - 1, address,
              address + uint64_t(bytes), /*isNothing=*/false,
              Additions::Order::behindAll},
             "stored or added to, or behind the wait for all that");
  return warp.block.memory.write(address, words.data(), bytes);
}
