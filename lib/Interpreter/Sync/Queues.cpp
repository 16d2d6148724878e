//===- Queues.cpp - Messages between warps, counters of the grid ----------===//

#include "Run/Buffers.h"
#include "Run/Handlers.h"
#include "Run/Rings.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runQueue(Warp &warp, const Instruction &in) {
  auto queue = cast<tile::QueueOp>(in.op);
  return warp.set(in, Ring{warp.block.program.firstBarrier.lookup(in.op),
                           unsigned(queue.getResult().getType().getSlots()),
                           queue.getName(), unsigned(queue.slotsOfRing())});
}

/// Of the queue that has the slot, and its number there.
static std::pair<QueueState &, int64_t> stateOf(Warp &warp, const Ring &ring,
                                                int64_t slot) {
  unsigned slots = ring.slotsOfQueue, number = unsigned(slot) / slots;
  QueueState &state = warp.block.queues[ring.first + number];
  state.popped.resize(warp.block.program.warps);
  state.messages.resize(slots);
  return {state, slot - number * slots};
}

/// False, and reported, when message `number` has another slot or parity.
static bool checkPlace(Warp &warp, const Instruction &in, const Ring &ring,
                       int64_t number, int64_t slot, int64_t parity) {
  int64_t slots = ring.slotsOfQueue;
  if (slot == number % slots && parity == number / slots % 2)
    return true;
  warp.report(in, "place",
              "expects message " + Twine(number) + " of queue '" + ring.name +
                  "' in slot " + Twine(number % slots) + " with parity " +
                  Twine(number / slots % 2) + ", but got slot " + Twine(slot) +
                  " with parity " + Twine(parity));
  return false;
}

Step attn::interpreter::runPush(Warp &warp, const Instruction &in) {
  const Ring &ring = warp.ring(in, 0);
  int64_t slot = warp.integer(in, 1), parity = warp.integer(in, 2);
  std::optional<unsigned> full = slotOf(warp, in, ring, slot);
  if (!full)
    return Step::stop;
  auto [state, place] = stateOf(warp, ring, slot);
  if (!checkPlace(warp, in, ring, state.pushed, place, parity))
    return Step::stop;
  if (state.pusher.value_or(warp.id) != warp.id)
    return warp.stop(in, "pusher",
                     "expects one warp to push to queue '" + ring.name +
                         "', but got warp " + Twine(*state.pusher) + " before");
  state.pusher = warp.id;
  Mbarriers &barriers = warp.block.mbarriers;
  if (Step step = barriers.wait(warp, in, *full + ring.slots, 1 - parity);
      step != Step::next)
    return step;
  state.messages[place].clear();
  for (unsigned operand = 3; operand < in.operands.size(); ++operand)
    state.messages[place].push_back(warp.integer(in, operand));
  ++state.pushed;
  return barriers.arrive(warp, in, *full) ? Step::next : Step::stop;
}

Step attn::interpreter::runPop(Warp &warp, const Instruction &in) {
  const Ring &ring = warp.ring(in, 0);
  int64_t slot = warp.integer(in, 1), parity = warp.integer(in, 2);
  std::optional<unsigned> full = slotOf(warp, in, ring, slot);
  if (!full)
    return Step::stop;
  auto [state, place] = stateOf(warp, ring, slot);
  if (!checkPlace(warp, in, ring, state.popped[warp.id], place, parity))
    return Step::stop;
  Mbarriers &barriers = warp.block.mbarriers;
  if (Step step = barriers.wait(warp, in, *full, parity); step != Step::next)
    return step;
  for (auto [result, value] :
       llvm::zip_equal(in.results, state.messages[place]))
    warp.cell(result) = Number{value};
  ++state.popped[warp.id];
  return barriers.arrive(warp, in, *full + ring.slots) ? Step::next
                                                       : Step::stop;
}

/// The next number of the counter there; nothing after an error.
static std::optional<int32_t> draw(Warp &warp, const Instruction &in,
                                   uint64_t address, int64_t below) {
  int32_t value = 0;
  std::optional<std::string> error =
      warp.block.memory.read(address, &value, sizeof value);
  if (error) {
    warp.stop(in, "counter", *error);
    return std::nullopt;
  }
  if (value < 0 || value >= below) {
    warp.stop(in, "below",
              "expects a counter from 0 to " + Twine(below - 1) + ", but got " +
                  Twine(value));
    return std::nullopt;
  }
  int32_t next = value + 1 == below ? 0 : value + 1;
  warp.block.memory.write(address, &next, sizeof next);
  warp.block.launch.counters[address] = in.op;
  return value;
}

Step attn::interpreter::runDraw(Warp &warp, const Instruction &in) {
  uint64_t address = uint64_t(warp.integer(in, 0));
  if (cast<tile::DrawOp>(in.op).getIndex())
    address += uint64_t(warp.integer(in, 1)) * sizeof(int32_t);
  int64_t below = warp.integer(in, in.operands.size() - 1);
  std::optional<int32_t> value = draw(warp, in, address, below);
  return value ? warp.set(in, Number{*value}) : Step::stop;
}

/// Where a block keeps the number that was drawn for it.  Like a message it is
/// not counted as traffic.
static Part placeOfDraw(const Buffer &buffer) {
  int64_t columns = int64_t(sizeof(int32_t)) / buffer.type.elementBytes();
  return {buffer, /*stage=*/0, /*row=*/0, /*rows=*/1, /*column=*/0, columns};
}

Step attn::interpreter::runPutDraw(Warp &warp, const Instruction &in) {
  if (warp.id != 0)
    return Step::next;
  std::optional<int32_t> value =
      draw(warp, in, uint64_t(warp.integer(in, 0)), warp.integer(in, 1));
  if (!value)
    return Step::stop;
  uint8_t bytes[sizeof *value];
  std::memcpy(bytes, &*value, sizeof bytes);
  Part place = placeOfDraw(warp.buffer(in, 2));
  if (std::optional<Breach> breach =
          warp.block.shared.write(place.rectangle(), warp.id, in.index, bytes))
    reportBreach(warp, in, place, *breach, "overwritten");
  return Step::next;
}

Step attn::interpreter::runGetDraw(Warp &warp, const Instruction &in) {
  int32_t value = 0;
  uint8_t bytes[sizeof value];
  Part place = placeOfDraw(warp.buffer(in, 0));
  if (std::optional<Breach> breach =
          warp.block.shared.read(place.rectangle(), warp.id, in.index, bytes))
    reportBreach(warp, in, place, *breach, "read");
  std::memcpy(&value, bytes, sizeof value);
  return warp.set(in, Number{value});
}
