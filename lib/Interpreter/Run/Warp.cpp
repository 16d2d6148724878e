//===- Warp.cpp - Warps and the block they form ---------------------------===//

#include "Run/Residents.h"

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

void Warp::useLoads(const Instruction &in) {
  llvm::erase_if(loads, [&](const Load &load) {
    if (!llvm::is_contained(in.operands, load.slot))
      return false;
    block.shared.endRead(id, load.token);
    return true;
  });
}

void Warp::record(const Instruction &in, Step step) {
  block.launch.executed[in.index] = true;
  Tracer *tracer = block.tracer();
  if (!tracer)
    return;
  if (step == Step::wait)
    tracer->arrive(*this, in.op, tracer->all(), tracer->meetings);
  else
    tracer->executed(*this, in.op);
}

Step Warp::run() {
  while (true) {
    Frame &frame = frames.back();
    // The regions of roles have no op at their end, and there clusters meet.
    if (frame.next == frame.code->instructions.size()) {
      const Instruction *owner = frame.owner;
      frames.pop_back();
      if (isa<tile::RolesOp>(owner->op) && block.program.cluster > 1)
        return wait(*owner, /*cluster=*/true);
      continue;
    }
    const Instruction &in = frame.code->instructions[frame.next++];
    if (!loads.empty())
      useLoads(in);
    Step step = in.run(*this, in);
    if (step == Step::blocked)
      --frames.back().next;
    else
      record(in, step);
    if (step != Step::next)
      return step;
    ++executed;
    waitsAt = nullptr;
    if (block.reporter.exhausted())
      return Step::stop;
    // One in eight, so that warps drift well apart.
    if (std::mt19937_64 *random = block.chance();
        random && (*random)() % 8 == 0)
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

ThreadBlock::ThreadBlock(Launch &launch, Residents &residents, unsigned number,
                         std::array<int64_t, 3> position,
                         const InterpreterOptions &options)
    : launch(launch), residents(residents), program(launch.program),
      memory(launch.memory), clocks(number, residents.together, program.warps,
                                    unsigned(program.barriers.size())),
      shared(program.shared.totalBytes(), clocks), mbarriers(*this),
      named(*this), products(program.warps), number(number), position(position),
      seed(options.seed), reporter(launch.reporter), warpOrder(options.order),
      shuffled(warpOrder == WarpOrder::shuffled), order(program.warps) {
  std::seed_seq seed{options.seed, uint64_t(position[0]), uint64_t(position[1]),
                     uint64_t(position[2])};
  random.seed(seed);
  std::iota(order.begin(), order.end(), 0);
  if (options.order == WarpOrder::reverse)
    std::reverse(order.begin(), order.end());
  // Bytes that are loaded land at once, as late as can be, or any time.
  mbarriers.landAtOnce = options.order == WarpOrder::forward;
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
// Turns
//===----------------------------------------------------------------------===//

Turn ThreadBlock::turn() {
  if (shuffled) {
    std::shuffle(order.begin(), order.end(), random);
    mbarriers.land(&random);
  }
  Turn turn = Turn::stuck;
  for (unsigned id : order) {
    Warp &warp = warps[id];
    if (warp.state != Warp::State::ready && warp.state != Warp::State::blocked)
      continue;
    uint64_t executed = warp.executed;
    bool wasBlocked = warp.state == Warp::State::blocked;
    switch (warp.run()) {
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
      return Turn::stopped;
    }
    turn = Turn::progress;
  }
  return turn;
}

bool ThreadBlock::finished() const {
  return llvm::all_of(warps, [](const Warp &warp) {
    return warp.state == Warp::State::finished;
  });
}

bool ThreadBlock::seesBefore() {
  return shuffled ? random() % 2 == 0 : warpOrder == WarpOrder::reverse;
}

bool ThreadBlock::meetsCluster() const {
  return llvm::all_of(warps, [](const Warp &warp) {
    return warp.state == Warp::State::waiting && warp.meetsCluster;
  });
}

bool ThreadBlock::meet() {
  if (meetsCluster() || !llvm::all_of(warps, [](const Warp &warp) {
        return warp.state == Warp::State::waiting;
      }))
    return false;
  Warp &first = warps.front();
  const Instruction &barrier = *first.waitsAt;
  for (const Warp &warp : warps)
    if (warp.waitsAt != &barrier)
      first.report(barrier, "divergence",
                   "expects all warps at this barrier, but got warp " +
                       Twine(warp.id) + " at another",
                   warp.waitsAt->op, "the other barrier is here");
  if (reporter.exhausted())
    return false;
  clocks.meet();
  go();
  return true;
}

void ThreadBlock::go() {
  for (Warp &warp : warps) {
    warp.state = Warp::State::ready;
    if (Tracer *tracer = this->tracer())
      tracer->wait(warp, warp.waitsAt->op, tracer->all(), tracer->meetings);
  }
  if (Tracer *tracer = this->tracer())
    ++tracer->meetings;
}

void ThreadBlock::reportMissing() {
  auto find = [&](Warp::State state) {
    return llvm::find_if(warps,
                         [&](const Warp &warp) { return warp.state == state; });
  };
  auto waiting = find(Warp::State::waiting);
  auto gone = find(Warp::State::finished);
  if (waiting != warps.end() && gone != warps.end())
    waiting->report(*waiting->waitsAt, "deadlock",
                    "expects all " + Twine(warps.size()) +
                        " warps at the barrier, but got the end of warp " +
                        Twine(gone->id));
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
