//===- Warp.cpp - Warps, the block they form, and its scheduler -----------===//

#include "Warp.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

void Reporter::report(Operation *op, const Twine &kind, const Twine &message,
                      Operation *noteAt, const Twine &note) {
  if (exhausted() || !seen.insert({op, llvm::hash_value(kind.str())}).second)
    return;
  ++count;
  InFlightDiagnostic diagnostic = op->emitError() << message;
  if (noteAt)
    diagnostic.attachNote(noteAt->getLoc()) << note;
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
  const std::array<int64_t, 3> &at = block.position;
  block.reporter.report(op, kind,
                        message + " (warp " + Twine(id) + " of block " +
                            Twine(at[0]) + ", " + Twine(at[1]) + ", " +
                            Twine(at[2]) + ")",
                        noteAt, note);
}

Step Warp::run(std::mt19937_64 *random) {
  while (true) {
    Frame &frame = frames.back();
    const Instruction &in = frame.code->instructions[frame.next++];
    Step step = in.run(*this, in);
    if (step != Step::next)
      return step;
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

ThreadBlock::ThreadBlock(const Program &program, GlobalMemory &memory,
                         std::array<int64_t, 3> position,
                         ArrayRef<KernelArgument> arguments, Reporter &reporter)
    : program(program), memory(memory),
      shared(program.shared.totalBytes(), program.warps), position(position),
      reporter(reporter) {
  for (unsigned id = 0; id < program.warps; ++id) {
    Warp &warp = warps.emplace_back(*this, id);
    for (auto [slot, argument] :
         llvm::zip_equal(program.body.arguments, arguments))
      warp.cell(slot) = toNumber(argument);
  }
}

void ThreadBlock::run(const InterpreterOptions &options) {
  std::seed_seq seed{options.seed, uint64_t(position[0]), uint64_t(position[1]),
                     uint64_t(position[2])};
  std::mt19937_64 random(seed);
  bool shuffled = options.order == WarpOrder::shuffled;
  std::vector<unsigned> order(warps.size());
  std::iota(order.begin(), order.end(), 0);
  if (options.order == WarpOrder::reverse)
    std::reverse(order.begin(), order.end());

  do {
    bool ready = true;
    while (ready) {
      ready = false;
      if (shuffled)
        std::shuffle(order.begin(), order.end(), random);
      for (unsigned id : order) {
        Warp &warp = warps[id];
        if (warp.state != Warp::State::ready)
          continue;
        ready = true;
        switch (warp.run(shuffled ? &random : nullptr)) {
        case Step::next:
          break;
        case Step::wait:
          warp.state = Warp::State::waiting;
          break;
        case Step::finished:
          warp.state = Warp::State::finished;
          break;
        case Step::stop:
          return;
        }
      }
    }
  } while (releaseBarrier());
  checkEnd();
}

/// No warp is ready.  Lets them pass the barrier if all stand there; false when
/// none can go on.
bool ThreadBlock::releaseBarrier() {
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
  shared.meet();
  for (Warp &warp : warps)
    warp.state = Warp::State::ready;
  return true;
}

void ThreadBlock::checkEnd() {
  for (unsigned index = 0; index < shared.copyCount(); ++index) {
    const Copy &copy = shared.copy(index);
    if (copy.missingIssues != 0)
      reporter.report(program.ops[copy.instruction], "shares",
                      "expects all " + Twine(warps.size()) +
                          " warps to take part in the copy, but got " +
                          Twine(warps.size() - copy.missingIssues) +
                          " (block " + Twine(position[0]) + ", " +
                          Twine(position[1]) + ", " + Twine(position[2]) + ")");
  }
}
