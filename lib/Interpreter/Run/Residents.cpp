//===- Residents.cpp - Blocks that run at once ----------------------------===//

#include "Run/Residents.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

static BlockOrder orderOf(const InterpreterOptions &options) {
  if (options.blocks != BlockOrder::sameAsWarps)
    return options.blocks;
  switch (options.order) {
  case WarpOrder::forward:
    return BlockOrder::inTurn;
  case WarpOrder::reverse:
    return BlockOrder::newestFirst;
  case WarpOrder::shuffled:
    return BlockOrder::shuffled;
  }
  llvm_unreachable("all orders are above");
}

Residents::Residents(Launch &launch, ArrayRef<std::array<int64_t, 3>> positions,
                     const InterpreterOptions &options)
    : together(launch.program.together || launch.program.cluster > 1),
      reporter(launch.reporter), order(orderOf(options)),
      starved(unsigned(options.seed % positions.size())), random(options.seed),
      turns(positions.size()) {
  for (std::array<int64_t, 3> position : positions)
    blocks.emplace_back(launch, *this, unsigned(blocks.size()), position,
                        options);
  std::iota(turns.begin(), turns.end(), 0);
  if (order == BlockOrder::newestFirst)
    std::reverse(turns.begin(), turns.end());
  // The one that starves comes last.
  if (order == BlockOrder::oneStarved)
    std::rotate(turns.begin() + starved, turns.begin() + starved + 1,
                turns.end());
}

SmallVector<ThreadBlock *> Residents::clusterOf(const ThreadBlock &block) {
  unsigned size = block.program.cluster;
  SmallVector<ThreadBlock *> peers;
  for (unsigned rank = 0; rank < size; ++rank)
    peers.push_back(&blocks[block.number / size * size + rank]);
  return peers;
}

tile::Traffic Residents::traffic() const {
  tile::Traffic sum;
  for (const ThreadBlock &block : blocks)
    sum += block.traffic;
  return sum;
}

//===----------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------===//

void Residents::run() {
  Turn last;
  do
    do
      last = round();
    while (last == Turn::progress);
  while (last == Turn::stuck && land());
  if (last == Turn::stopped || reporter.exhausted())
    return;
  reportDeadlock();
  for (ThreadBlock &block : blocks)
    block.checkEnd();
}

/// Lets blocks go on, in an order of which the first ones may come again before
/// the others had a turn.
Turn Residents::round() {
  if (order == BlockOrder::shuffled)
    std::shuffle(turns.begin(), turns.end(), random);
  Turn round = Turn::stuck;
  for (unsigned number : turns) {
    // The starved one waits until no other can go on.
    if (order == BlockOrder::oneStarved && number == starved &&
        round == Turn::progress)
      break;
    ThreadBlock &block = blocks[number];
    Turn turn = block.turn();
    if (turn == Turn::stuck && (block.meet() || meetCluster(block)))
      turn = Turn::progress;
    if (turn == Turn::stopped || reporter.exhausted())
      return Turn::stopped;
    if (turn == Turn::stuck)
      continue;
    round = Turn::progress;
    if (order != BlockOrder::inTurn && order != BlockOrder::oneStarved)
      break;
  }
  return round;
}

/// Lets all warps of the block's cluster go on if they have met.
bool Residents::meetCluster(ThreadBlock &block) {
  if (!block.meetsCluster())
    return false;
  SmallVector<ThreadBlock *> peers = clusterOf(block);
  if (!llvm::all_of(peers,
                    [](ThreadBlock *peer) { return peer->meetsCluster(); }))
    return false;
  Clock joined;
  for (ThreadBlock *peer : peers)
    peer->clocks.releaseAll(joined);
  for (ThreadBlock *peer : peers) {
    peer->clocks.acquireAll(joined);
    peer->go();
  }
  return true;
}

/// No warp can go on: what TMA loads must come now.
bool Residents::land() {
  bool landed = false;
  for (ThreadBlock &block : blocks)
    landed |= block.mbarriers.land(nullptr);
  return landed;
}

//===----------------------------------------------------------------------===//
// Deadlocks
//===----------------------------------------------------------------------===//

/// What a warp waits for, and what is missing.
static std::string describe(const Warp &warp) {
  const ThreadBlock &block = warp.block;
  if (warp.state == Warp::State::waiting)
    return warp.meetsCluster ? "all warps of the cluster" : "all warps";
  const Obstacle &by = warp.obstacle;
  if (by.kind == Obstacle::Kind::flag)
    return ("flag " + Twine(by.barrier) + " to be " + Twine(by.phase) +
            ", where " + Twine(block.residents.flags.value(by.address)) +
            " is published")
        .str();
  if (by.kind == Obstacle::Kind::named)
    return ("barrier " + Twine(by.barrier) + ", where " +
            block.named.missing(by.barrier) + " are missing")
        .str();
  return ("the end of phase " + Twine(by.phase) + " (parity " +
          Twine(by.phase & 1) + ") of " +
          block.program.barriers[by.barrier].title + ", where " +
          block.mbarriers.missing(by.barrier) + " are missing")
      .str();
}

/// If some warp is blocked: one error at the first, and where the others wait.
/// Else, warps that stand at a barrier where others never come.
void Residents::reportDeadlock() {
  auto find = [&](Warp::State state) {
    Warp *found = nullptr;
    for (ThreadBlock &block : blocks)
      for (Warp &warp : block.warps)
        if (!found && warp.state == state)
          found = &warp;
    return found;
  };
  Warp *first = find(Warp::State::blocked);
  if (!first) {
    for (ThreadBlock &block : blocks)
      block.reportMissing();
    first = find(Warp::State::waiting);
    if (!first || reporter.errors() != 0)
      return;
  }
  // What is the same for many warps is said once, and not more than can be
  // read.
  constexpr size_t most = 32;
  SmallVector<Note> notes;
  std::set<std::pair<const Instruction *, std::string>> seen;
  seen.insert({first->waitsAt, describe(*first)});
  for (const ThreadBlock &block : blocks)
    for (const Warp &warp : block.warps) {
      if (warp.state == Warp::State::finished || notes.size() == most)
        continue;
      std::string what = describe(warp);
      if (!seen.insert({warp.waitsAt, what}).second)
        continue;
      std::string who = ("warp " + Twine(warp.id)).str();
      if (blocks.size() > 1)
        who += " of " + block.name();
      notes.push_back({warp.waitsAt->op, who + " waits here for " + what});
    }
  first->report(
      first->waitsAt->op, "deadlock",
      "expects some warp to go on, but got none; this one waits for " +
          describe(*first),
      notes);
}
