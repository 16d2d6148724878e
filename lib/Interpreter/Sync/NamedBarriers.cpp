//===- NamedBarriers.cpp - Barriers 1 to 15 of a block, fences ------------===//

#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

bool NamedBarriers::check(Warp &warp, const Instruction &in, int64_t id,
                          int64_t warps) {
  if (id < 1 || id >= int64_t(kNamedBarriers)) {
    warp.report(in, "id",
                "expects barrier 1 to " + Twine(kNamedBarriers - 1) +
                    ", but got " + Twine(id));
    return false;
  }
  if (warps > int64_t(block.program.warps)) {
    warp.report(in, "warps",
                "expects at most the " + Twine(block.program.warps) +
                    " warps of the block, but got " + Twine(warps));
    return false;
  }
  const Barrier &barrier = all[id];
  if (barrier.arrived != 0 && barrier.expected != warps) {
    warp.report(in, "count",
                "expects the same number of warps in all ops that come to "
                "barrier " +
                    Twine(id) + ", but got " + Twine(warps) + " and " +
                    Twine(barrier.expected),
                block.program.ops[barrier.firstInstruction],
                "the other op is here");
    return false;
  }
  if (block.clocks.known(warp.id, block.clocks.named(unsigned(id))) <
      barrier.openings) {
    warp.report(in, "opening",
                "expects to come to barrier " + Twine(id) +
                    " behind its opening before, but got no order between "
                    "them");
    return false;
  }
  return true;
}

Step NamedBarriers::come(Warp &warp, const Instruction &in, int64_t id,
                         int64_t warps, bool syncs) {
  Barrier &barrier = all[size_t(id) % kNamedBarriers];
  // It has come before and tries again.
  if (warp.waitsAt == &in) {
    if (llvm::is_contained(barrier.syncing, warp.id))
      return warp.stall(in, warp.obstacle);
    if (Tracer *tracer = block.tracer())
      tracer->wait(warp, in.op, tracer->named(unsigned(id)),
                   warp.obstacle.phase);
    return Step::next;
  }
  if (!check(warp, in, id, warps))
    return Step::stop;
  if (barrier.arrived++ == 0) {
    barrier.expected = unsigned(warps);
    barrier.firstInstruction = in.index;
  }
  block.clocks.release(warp.id, barrier.clock);
  if (Tracer *tracer = block.tracer())
    tracer->arrive(warp, in.op, tracer->named(unsigned(id)),
                   int64_t(barrier.openings));
  if (syncs)
    barrier.syncing.push_back(warp.id);
  if (barrier.arrived == barrier.expected) {
    int64_t opening = barrier.openings;
    open(unsigned(id));
    if (Tracer *tracer = syncs ? block.tracer() : nullptr)
      tracer->wait(warp, in.op, tracer->named(unsigned(id)), opening);
    return Step::next;
  }
  if (!syncs)
    return Step::next;
  return warp.stall(
      in, {Obstacle::Kind::named, unsigned(id), int64_t(barrier.openings)});
}

void NamedBarriers::open(unsigned id) {
  Barrier &barrier = all[id];
  ++barrier.openings;
  block.clocks.raise(barrier.clock, block.clocks.named(id), barrier.openings);
  for (unsigned warp : barrier.syncing)
    block.clocks.acquire(warp, barrier.clock);
  barrier.syncing.clear();
  barrier.arrived = 0;
  // What came before stays before.
}

std::string NamedBarriers::missing(unsigned id) const {
  const Barrier &barrier = all[id];
  return (Twine(barrier.expected - barrier.arrived) + " of " +
          Twine(barrier.expected) + " warps")
      .str();
}

//===----------------------------------------------------------------------===//
// tile.bar_sync, tile.bar_arrive, tile.fence_async
//===----------------------------------------------------------------------===//

Step attn::interpreter::runBarSync(Warp &warp, const Instruction &in) {
  return warp.block.named.come(warp, in, warp.integer(in, 0),
                               cast<tile::BarSyncOp>(in.op).getWarps(),
                               /*syncs=*/true);
}

Step attn::interpreter::runBarArrive(Warp &warp, const Instruction &in) {
  return warp.block.named.come(warp, in, warp.integer(in, 0),
                               cast<tile::BarArriveOp>(in.op).getWarps(),
                               /*syncs=*/false);
}

Step attn::interpreter::runFenceAsync(Warp &warp, const Instruction &in) {
  if (cast<tile::FenceAsyncOp>(in.op).getGlobal())
    warp.block.clocks.fenceGlobal(warp.id);
  else
    warp.block.clocks.fence(warp.id);
  return Step::next;
}
