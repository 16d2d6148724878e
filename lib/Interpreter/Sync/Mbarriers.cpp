//===- Mbarriers.cpp - Barriers that count arrivals and bytes -------------===//

#include "Run/Rings.h"

#include "Run/Handlers.h"
#include "Run/Residents.h"

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
  if (Tracer *tracer = block.tracer())
    tracer->wait(warp, in.op, index, wanted);
  return Step::next;
}

/// `1 arrival`, `2 arrivals`.
static std::string plural(unsigned count, StringRef what) {
  return (Twine(count) + " " + what + (count == 1 ? "" : "s")).str();
}

//===----------------------------------------------------------------------===//
// Arriving
//===----------------------------------------------------------------------===//

/// False, and reported, when what comes might be counted in the phase before.
bool Mbarriers::check(Warp &warp, const Instruction &in, unsigned index,
                      bool isArrival) {
  const BarrierInfo &info = block.program.barriers[index];
  const Mbarrier &barrier = all[index];
  std::string title = info.title;
  if (&warp.block != &block)
    title += " of " + block.name();
  if (block.finished()) {
    warp.report(in, "gone",
                "expects " + Twine(title) + " to be there, but got its end");
    return false;
  }
  uint32_t known =
      block.clocks.known(warp.clock(), block.clocks.mbarrier(index));
  if (known == barrier.phase && !(isArrival && barrier.missingArrivals == 0))
    return true;
  if (isArrival)
    warp.report(in, "arrivals",
                "expects " + plural(info.arrivals, "arrival") +
                    " in a phase of " + title +
                    " and others only behind its end, but got one that is not "
                    "ordered behind the end of phase " +
                    Twine(known));
  else
    warp.report(in, "early bytes",
                "expects to load for phase " + Twine(barrier.phase) + " of " +
                    title +
                    " behind the end of the phase before, but got no order "
                    "between them");
  return false;
}

bool Mbarriers::arrive(Warp &warp, const Instruction &in, unsigned index,
                       int64_t bytes) {
  if (!check(warp, in, index, /*isArrival=*/true))
    return false;
  Mbarrier &barrier = all[index];
  --barrier.missingArrivals;
  barrier.missingBytes += bytes;
  barrier.lastWarp = &warp;
  barrier.lastInstruction = in.index;
  // From another block without release: what was before is over, not in sight.
  if (&warp.block == &block)
    block.clocks.release(warp.id, barrier.arrived);
  else
    warp.block.clocks.releaseUnseen(warp.id, barrier.arrived);
  unsigned phase = barrier.phase;
  bool isCopy = bytes > 0; // which is told when its bytes are on their way
  if (block.launch.tracer && Tracer::follows(block, warp) && !isCopy)
    block.launch.tracer->arrive(warp, in.op, index, phase);
  endIfComplete(index);
  // The only one that a phase waits for knows that it has ended.
  if (barrier.phase != phase && &warp.block == &block &&
      block.program.barriers[index].arrivals == 1)
    block.clocks.learn(warp.id, block.clocks.mbarrier(index), barrier.phase);
  return true;
}

bool Mbarriers::bring(Warp &warp, const Instruction &in, unsigned index,
                      int64_t bytes) {
  if (!check(warp, in, index, /*isArrival=*/false))
    return false;
  // What the load waited for is over for whoever sees its bytes.
  if (&warp.block != &block)
    warp.block.clocks.releaseUnseen(warp.id, all[index].arrived);
  if (block.launch.tracer && Tracer::follows(block, warp))
    block.launch.tracer->copy(warp, in.op, index, all[index].phase, bytes);
  landings.push_back({index, bytes});
  if (landAtOnce)
    land(nullptr);
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
          Twine(std::max<int64_t>(barrier.missingBytes, 0)) + " bytes")
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
  if (!arrives)
    return Step::next;
  if (!cast<tile::MbarrierArriveOp>(in.op).getCluster())
    return warp.block.mbarriers.arrive(warp, in, *barrier) ? Step::next
                                                           : Step::stop;
  for (ThreadBlock *peer : warp.block.residents.clusterOf(warp.block))
    if (!peer->mbarriers.arrive(warp, in, *barrier))
      return Step::stop;
  return Step::next;
}
