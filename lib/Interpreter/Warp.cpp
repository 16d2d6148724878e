//===- Warp.cpp - Warps, the block they form, and its scheduler -----------===//

#include "Warp.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

void Reporter::report(Operation *op, const Twine &kind, const Twine &message,
                      ArrayRef<Note> notes) {
  if (exhausted() || !seen.insert({op, llvm::hash_value(kind.str())}).second)
    return;
  ++count;
  InFlightDiagnostic diagnostic = op->emitError() << message;
  for (const Note &note : notes)
    diagnostic.attachNote(note.at->getLoc()) << note.text;
}

//===----------------------------------------------------------------------===//
// Warp
//===----------------------------------------------------------------------===//

Warp::Warp(ThreadBlock &block, unsigned id)
    : block(block), id(id), cells(block.program.slots) {
  frames.push_back({&block.program.body});
}

void Warp::report(Operation *op, StringRef kind, const Twine &message,
                  Operation *noteAt, const Twine &note) {
  SmallVector<Note, 1> notes;
  if (noteAt)
    notes.push_back({noteAt, note.str()});
  report(op, kind, message, notes);
}

void Warp::report(Operation *op, StringRef kind, const Twine &message,
                  ArrayRef<Note> notes) {
  block.reporter.report(
      op, kind, message + " (warp " + Twine(id) + " of " + block.name() + ")",
      notes);
}

Step Warp::run(std::mt19937_64 *random) {
  while (true) {
    Frame &frame = frames.back();
    // The region of a role has no op at its end.
    if (frame.next == frame.code->instructions.size()) {
      frames.pop_back();
      continue;
    }
    const Instruction &in = frame.code->instructions[frame.next++];
    Step step = in.run(*this, in);
    if (step == Step::blocked)
      --frames.back().next;
    if (step != Step::next)
      return step;
    ++executed;
    waitsAt = nullptr;
    if (block.reporter.exhausted())
      return Step::stop;
    // One in eight, so that warps drift well apart.
    if (random && (*random)() % 8 == 0)
      return Step::next;
  }
}

//===----------------------------------------------------------------------===//
// ThreadBlock
//===----------------------------------------------------------------------===//

static Number toNumber(const KernelArgument &argument) {
  if (const float *real = std::get_if<float>(&argument))
    return {0, *real};
  if (const int32_t *integer = std::get_if<int32_t>(&argument))
    return {*integer};
  if (const int64_t *integer = std::get_if<int64_t>(&argument))
    return {*integer};
  return {int64_t(std::get<uint64_t>(argument))};
}

static Cell toCell(Type type, const KernelArgument &argument) {
  if (const auto *array = std::get_if<TensorMapArgument>(&argument))
    return TensorMap{array, cast<tile::TensorMapType>(type)};
  return toNumber(argument);
}

ThreadBlock::ThreadBlock(Launch &launch, std::array<int64_t, 3> position)
    : launch(launch), program(launch.program), memory(launch.memory),
      clocks(program.warps, unsigned(program.barriers.size())),
      shared(program.shared.totalBytes(), clocks), mbarriers(*this),
      named(*this), products(program.warps), position(position),
      reporter(launch.reporter) {
  for (unsigned id = 0; id < program.warps; ++id) {
    Warp &warp = warps.emplace_back(*this, id);
    for (auto [index, slot] : llvm::enumerate(program.body.arguments))
      warp.cell(slot) =
          toCell(program.argumentTypes[index], launch.arguments[index]);
  }
}

std::string ThreadBlock::name() const {
  return ("block " + Twine(position[0]) + ", " + Twine(position[1]) + ", " +
          Twine(position[2]))
      .str();
}

//===----------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------===//

void ThreadBlock::run(const InterpreterOptions &options) {
  std::seed_seq seed{options.seed, uint64_t(position[0]), uint64_t(position[1]),
                     uint64_t(position[2])};
  std::mt19937_64 random(seed);
  bool shuffled = options.order == WarpOrder::shuffled;
  std::vector<unsigned> order(warps.size());
  std::iota(order.begin(), order.end(), 0);
  if (options.order == WarpOrder::reverse)
    std::reverse(order.begin(), order.end());
  // Bytes that are loaded land at once, as late as can be, or any time.
  mbarriers.landAtOnce = options.order == WarpOrder::forward;

  Round round;
  do {
    do {
      if (shuffled) {
        std::shuffle(order.begin(), order.end(), random);
        mbarriers.land(&random);
      }
      round = runRound(order, shuffled ? &random : nullptr);
    } while (round == Round::progress);
    if (round == Round::stopped)
      return;
  } while (mbarriers.land(nullptr) || releaseBarrier());
  checkEnd();
}

/// Lets every warp that can go on do so once.
ThreadBlock::Round ThreadBlock::runRound(ArrayRef<unsigned> order,
                                         std::mt19937_64 *random) {
  Round round = Round::stuck;
  for (unsigned id : order) {
    Warp &warp = warps[id];
    if (warp.state != Warp::State::ready && warp.state != Warp::State::blocked)
      continue;
    uint64_t executed = warp.executed;
    bool wasBlocked = warp.state == Warp::State::blocked;
    switch (warp.run(random)) {
    case Step::next:
      warp.state = Warp::State::ready;
      break;
    case Step::blocked:
      warp.state = Warp::State::blocked;
      if (wasBlocked && warp.executed == executed)
        continue;
      break;
    case Step::wait:
      warp.state = Warp::State::waiting;
      break;
    case Step::finished:
      warp.state = Warp::State::finished;
      break;
    case Step::stop:
      return Round::stopped;
    }
    round = Round::progress;
  }
  return round;
}

/// No warp can go on.  Lets them pass the barrier if all stand there; false
/// when that is not so, and reported if some have not finished.
bool ThreadBlock::releaseBarrier() {
  auto blocked = llvm::find_if(
      warps, [](Warp &w) { return w.state == Warp::State::blocked; });
  if (blocked != warps.end()) {
    reportDeadlock(*blocked);
    return false;
  }
  auto waiting = llvm::find_if(
      warps, [](Warp &w) { return w.state == Warp::State::waiting; });
  if (waiting == warps.end())
    return false;
  const Instruction &barrier = *waiting->waitsAt;
  for (Warp &warp : warps) {
    if (warp.state == Warp::State::finished) {
      waiting->report(barrier, "deadlock",
                      "expects all " + Twine(warps.size()) +
                          " warps at the barrier, but got the end of warp " +
                          Twine(warp.id));
      return false;
    }
    if (warp.waitsAt != &barrier)
      waiting->report(barrier, "divergence",
                      "expects all warps at this barrier, but got warp " +
                          Twine(warp.id) + " at another",
                      warp.waitsAt->op, "the other barrier is here");
  }
  if (reporter.exhausted())
    return false;
  clocks.meet();
  for (Warp &warp : warps)
    warp.state = Warp::State::ready;
  return true;
}

/// What a warp waits for, and what is missing.
static std::string describe(const ThreadBlock &block, const Warp &warp) {
  if (warp.state == Warp::State::waiting)
    return "all warps";
  const Obstacle &by = warp.obstacle;
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

/// One error at the first warp that is blocked, and where the others wait.
void ThreadBlock::reportDeadlock(Warp &first) {
  SmallVector<Note> notes;
  llvm::DenseSet<const Instruction *> seen{first.waitsAt};
  for (const Warp &warp : warps)
    if (warp.state != Warp::State::finished && seen.insert(warp.waitsAt).second)
      notes.push_back(
          {warp.waitsAt->op, ("warp " + Twine(warp.id) + " waits here for " +
                              describe(*this, warp))
                                 .str()});
  first.report(first.waitsAt->op, "deadlock",
               "expects some warp to go on, but got none; this one waits for " +
                   describe(*this, first),
               notes);
}

void ThreadBlock::checkEnd() {
  for (unsigned index = 0; index < shared.copyCount(); ++index) {
    const Copy &copy = shared.copy(index);
    if (copy.missingIssues != 0)
      reporter.report(program.ops[copy.instruction], "shares",
                      "expects all " + Twine(warps.size()) +
                          " warps to take part in the copy, but got " +
                          Twine(warps.size() - copy.missingIssues) + " (" +
                          name() + ")");
  }
  products.checkEnd(*this);
}
