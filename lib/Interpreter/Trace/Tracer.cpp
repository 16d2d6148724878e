//===- Tracer.cpp - Records what a block's warps do -----------------------===//

#include "Trace/Tracer.h"

#include "Run/Warp.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// Threads of a warp: elements that one instruction takes.
static constexpr int64_t kLanes = 32;

Tracer::Tracer(const Program &program, tile::KernelOp kernel)
    : firstNamed(unsigned(program.barriers.size())) {
  trace.kernel = kernel.getSymName().str();
  trace.warps.resize(program.warps);
  kernel.walk([&](tile::RoleOp role) {
    auto first = size_t(role.firstWarp());
    for (size_t warp = first; warp < first + role.getWarps(); ++warp)
      trace.warps[warp] = role.getName().str();
  });
  for (const BarrierInfo &barrier : program.barriers)
    trace.channels.push_back(barrier.title);
  for (unsigned id = 0; id < kNamedBarriers; ++id)
    trace.channels.push_back("barrier " + std::to_string(id));
  trace.channels.push_back("all warps");
}

bool Tracer::follows(const ThreadBlock &block) {
  return block.position == std::array<int64_t, 3>{0, 0, 0};
}

bool Tracer::follows(const ThreadBlock &block, const Warp &warp) {
  return follows(block) && &warp.block == &block;
}

/// What it is called without its dialect.
static StringRef nameOf(Operation *op) { return op->getName().stripDialect(); }

void Tracer::copy(const Warp &warp, Operation *op, unsigned barrier,
                  int64_t phase, int64_t bytes) {
  StringRef what = nameOf(op);
  if (auto load = dyn_cast<tile::TmaLoadOp>(op))
    if (auto buffer = load.getBuffer().getDefiningOp<tile::AllocOp>())
      what = buffer.getName();
  trace.events.push_back(
      {TraceKind::copy, warp.id, what, barrier, phase, bytes});
}

void Tracer::arrive(const Warp &warp, Operation *op, unsigned channel,
                    int64_t phase) {
  trace.events.push_back(
      {TraceKind::arrive, warp.id, nameOf(op), channel, phase});
}

void Tracer::wait(const Warp &warp, Operation *op, unsigned channel,
                  int64_t phase) {
  trace.events.push_back(
      {TraceKind::wait, warp.id, nameOf(op), channel, phase});
}

/// Instructions of a warp that make a fragment: of a map, each op of its body.
/// Loops and branches only hand fragments on.
static int64_t instructionsOf(Operation *op) {
  int64_t each = 1, instructions = 0;
  if (auto map = dyn_cast<tile::MapOp>(op))
    each = std::max<int64_t>(
        1, int64_t(map.getBody().front().getOperations().size()) - 1);
  else if (op->getNumRegions() > 0)
    return 0;
  for (Type type : op->getResultTypes())
    if (auto fragment = dyn_cast<tile::FragType>(type))
      instructions += fragment.getRows() * fragment.getColumns() / kLanes;
  return each * instructions;
}

void Tracer::executed(const Warp &warp, Operation *op) {
  int64_t moved = warp.block.traffic.global - global;
  global += moved;
  auto add = [&](TraceKind kind, int64_t amount) {
    trace.events.push_back({kind, warp.id, nameOf(op), 0, 0, amount});
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::WgmmaOp product) {
        tile::PendingType type = product.getResult().getType();
        trace.factorBytes = product.getRhs().getType().elementBytes();
        add(TraceKind::product,
            2 * type.getRows() * type.getColumns() * product.depth());
      })
      .Case([&](tile::WgmmaWaitOp wait) {
        add(TraceKind::productWait, int64_t(wait.getInFlight()));
      })
      .Case([&](tile::MmaOp product) {
        tile::FragType left = product.getLhs().getType();
        tile::FragType sum = product.getResult().getType();
        trace.factorBytes = left.getElementType().getIntOrFloatBitWidth() / 8;
        add(TraceKind::product,
            2 * sum.getRows() * sum.getColumns() * left.getColumns());
        add(TraceKind::productWait, 0);
      })
      .Case([&](tile::TmaStoreOp) { add(TraceKind::store, moved); })
      .Case([&](tile::TmaStoreWaitOp wait) {
        add(TraceKind::storeWait, int64_t(wait.getInFlight()));
      })
      .Case([&](tile::CopyAsyncOp) { add(TraceKind::groupCopy, moved); })
      .Case([&](tile::CommitGroupOp) { add(TraceKind::commit, 0); })
      .Case([&](tile::WaitGroupOp wait) {
        add(TraceKind::groupWait, int64_t(wait.getInFlight()));
      })
      .Case([](tile::TmaLoadOp) {}) // is told by its barrier
      .Default([&](Operation *) {
        if (moved > 0)
          add(TraceKind::transfer, moved);
        if (int64_t instructions = instructionsOf(op))
          add(TraceKind::work, instructions);
      });
}
