//===- Mbarriers.cpp - Barriers that count arrivals and bytes -------------===//

#include "Rings.h"

#include "Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Mbarriers::Mbarriers(ThreadBlock &block) : block(block) {
  for (const BarrierInfo &info : block.program.barriers) {
    Mbarrier &barrier = all.emplace_back();
    barrier.missingArrivals = info.arrivals;
    barrier.waits.resize(block.program.warps);
  }
}

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

Step Mbarriers::wait(Warp &warp, const Instruction &in, unsigned index,
                     int64_t parity) {
  const std::string &title = block.program.barriers[index].title;
  if (parity != 0 && parity != 1)
    return warp.stop(in, "parity",
                     "expects parity 0 or 1, but got " + Twine(parity));
  Mbarrier &barrier = all[index];
  int64_t known = block.clocks.known(warp.id, block.clocks.mbarrier(index));
  int64_t wanted = known % 2 == parity ? known : known - 1;
  if (int64_t(barrier.phase) <= wanted)
    return warp.stall(in, {Obstacle::Kind::mbarrier, index, wanted});
  if (int64_t(barrier.phase) > wanted + 1)
    return warp.stop(in, "late",
                     "expects to wait for parity " + Twine(parity) + " of " +
                         title + " before phase " + Twine(wanted + 1) +
                         " ends, but got to it in phase " +
                         Twine(barrier.phase));
  barrier.waits[warp.id] = {wanted, block.clocks.now(warp.id), in.index};
  block.clocks.acquire(warp.id, barrier.ended);
  return Step::next;
}

/// `1 arrival`, `2 arrivals`.
static std::string plural(unsigned count, StringRef what) {
  return (Twine(count) + " " + what + (count == 1 ? "" : "s")).str();
}

//===----------------------------------------------------------------------===//
// Arriving
//===----------------------------------------------------------------------===//

bool Mbarriers::arrive(Warp &warp, const Instruction &in, unsigned index,
                       int64_t bytes) {
  const BarrierInfo &info = block.program.barriers[index];
  Mbarrier &barrier = all[index];
  uint32_t known =
      block.clocks.known(warp.clock(), block.clocks.mbarrier(index));
  if (known < barrier.phase || barrier.missingArrivals == 0) {
    warp.report(in, "arrivals",
                "expects " + plural(info.arrivals, "arrival") +
                    " in a phase of " + info.title +
                    " and others only behind its end, but got one that is not "
                    "ordered behind the end of phase " +
                    Twine(known));
    return false;
  }
  --barrier.missingArrivals;
  barrier.missingBytes += bytes;
  barrier.lastWarp = &warp;
  barrier.lastInstruction = in.index;
  warp.block.clocks.release(warp.id, barrier.arrived);
  if (bytes != 0)
    landings.push_back({index, bytes});
  if (landAtOnce)
    land(nullptr);
  endIfComplete(index);
  return true;
}

void Mbarriers::endIfComplete(unsigned index) {
  Mbarrier &barrier = all[index];
  if (barrier.missingArrivals != 0 || barrier.missingBytes != 0)
    return;
  const BarrierInfo &info = block.program.barriers[index];
  for (unsigned id = 0; id < barrier.waits.size(); ++id) {
    const Wait &wait = barrier.waits[id];
    if (wait.time == 0 || wait.phase + 1 != int64_t(barrier.phase) ||
        block.clocks.known(barrier.arrived, id) >= wait.time)
      continue;
    barrier.lastWarp->report(
        block.program.ops[barrier.lastInstruction], "overrun",
        "expects phase " + Twine(barrier.phase) + " of " + info.title +
            " to end behind the wait of warp " + Twine(id) +
            " for the phase before, but got no order between them",
        block.program.ops[wait.instruction], "the wait is here");
  }
  ++barrier.phase;
  barrier.missingArrivals = info.arrivals;
  barrier.ended.join(barrier.arrived);
  block.clocks.raise(barrier.ended, block.clocks.mbarrier(index),
                     barrier.phase);
  barrier.arrived.clear();
}

bool Mbarriers::land(std::mt19937_64 *random) {
  bool landed = false;
  for (size_t count = landings.size(); count != 0; --count) {
    Landing landing = landings.front();
    landings.pop_front();
    if (random && (*random)() % 4 != 0) {
      landings.push_back(landing);
      continue;
    }
    landed = true;
    all[landing.barrier].missingBytes -= landing.bytes;
    endIfComplete(landing.barrier);
  }
  return landed;
}

std::string Mbarriers::missing(unsigned index) const {
  const Mbarrier &barrier = all[index];
  return (Twine(barrier.missingArrivals) + " of " +
          Twine(block.program.barriers[index].arrivals) + " arrivals and " +
          Twine(barrier.missingBytes) + " bytes")
      .str();
}

//===----------------------------------------------------------------------===//
// tile.mbarrier, tile.mbarrier_wait, tile.mbarrier_arrive
//===----------------------------------------------------------------------===//

std::optional<unsigned> attn::interpreter::slotOf(Warp &warp,
                                                  const Instruction &in,
                                                  const Ring &ring,
                                                  int64_t slot) {
  if (!warp.hasRole) {
    warp.report(in, "role",
                "expects to stand in or behind tile.roles, where '" +
                    ring.name + "' is ready for use");
    return std::nullopt;
  }
  if (slot >= 0 && slot < int64_t(ring.slots))
    return ring.first + unsigned(slot);
  warp.report(in, "slots",
              "expects slots 0 to " + Twine(ring.slots - 1) + " of '" +
                  ring.name + "', but got " + Twine(slot));
  return std::nullopt;
}

Step attn::interpreter::runMbarrier(Warp &warp, const Instruction &in) {
  auto barrier = cast<tile::MbarrierOp>(in.op);
  return warp.set(in, Ring{warp.block.program.firstBarrier.lookup(in.op),
                           unsigned(barrier.getResult().getType().getSlots()),
                           barrier.getName()});
}

Step attn::interpreter::runMbarrierWait(Warp &warp, const Instruction &in) {
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 0), warp.integer(in, 1));
  if (!barrier)
    return Step::stop;
  return warp.block.mbarriers.wait(warp, in, *barrier, warp.integer(in, 2));
}

Step attn::interpreter::runMbarrierArrive(Warp &warp, const Instruction &in) {
  std::optional<unsigned> barrier =
      slotOf(warp, in, warp.ring(in, 0), warp.integer(in, 1));
  if (!barrier)
    return Step::stop;
  bool arrives = in.operands.size() < 3 || warp.integer(in, 2) != 0;
  if (arrives && !warp.block.mbarriers.arrive(warp, in, *barrier))
    return Step::stop;
  return Step::next;
}
