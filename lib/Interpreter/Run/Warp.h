//===- Warp.h - Warps and the block they form -------------------*- C++ -*-===//
//
// A warp is a stack of frames over the instructions of a program; it holds no
// thread and can be left between any two instructions.  A thread block lets
// its warps go on in turn; Residents.h says which block's turn it is.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_RUN_WARP_H
#define ATTN_LIB_INTERPRETER_RUN_WARP_H

#include "Memory/Additions.h"
#include "Memory/SharedMemory.h"
#include "Run/Program.h"
#include "Sync/Mbarriers.h"
#include "Sync/NamedBarriers.h"
#include "Sync/Products.h"
#include "Sync/Queues.h"
#include "Trace/Tracer.h"

#include "attn/Interpreter/Interpreter.h"
#include "llvm/ADT/DenseSet.h"

#include <deque>
#include <map>
#include <random>

namespace attn::interpreter {

class Residents;
class ThreadBlock;

/// What an error adds at another op.
struct Note {
  mlir::Operation *at;
  std::string text;
};

/// Emits errors, each kind once per op, and counts them.
class Reporter {
public:
  explicit Reporter(int64_t maxErrors) : maxErrors(maxErrors) {}

  /// Emits `message` at the op, with a note at another op where there is one.
  void report(mlir::Operation *op, const llvm::Twine &kind,
              const llvm::Twine &message, llvm::ArrayRef<Note> notes = {});
  int64_t errors() const { return count; }
  bool exhausted() const { return count >= maxErrors; }

private:
  int64_t maxErrors, count = 0;
  llvm::DenseSet<std::pair<mlir::Operation *, uint64_t>> seen;
};

/// What the blocks of a launch share.
struct Launch {
  const Program &program;
  GlobalMemory &memory;
  std::array<int64_t, 3> grid;
  llvm::ArrayRef<KernelArgument> arguments;
  Reporter reporter;
  /// Counters that were drawn from, with an op that did.
  std::map<uint64_t, mlir::Operation *> counters;
  /// Of a program that adds to global memory.
  Additions additions;
  /// By instruction, whether some warp has executed it.
  std::vector<bool> executed;
  /// Null: nobody wants to know.
  Tracer *tracer = nullptr;
};

/// A place in the instructions of a region, and the loop that repeats it.
struct Frame {
  const Code *code;
  size_t next = 0;
  const Instruction *owner = nullptr;
  int64_t iteration = 0, upper = 0, step = 0;
};

/// An asynchronous read of shared memory that its warp has not waited for.
struct InFlight {
  unsigned token;
  mlir::Operation *op;
};

class Warp {
public:
  /// Blocked warps try again, waiting ones stand at a barrier of the block.
  enum class State { ready, blocked, waiting, finished };

  Warp(ThreadBlock &block, unsigned id);

  ThreadBlock &block;
  const unsigned id;
  State state = State::ready;
  /// The instruction at which it waits, or is blocked.
  const Instruction *waitsAt = nullptr;
  /// What it is blocked by, for people.
  Obstacle obstacle;
  /// Instructions executed.
  uint64_t executed = 0;
  /// Whether it has come to its role, where mbarriers are ready.
  bool hasRole = false;
  /// Whether it waits for the whole cluster.
  bool meetsCluster = false;
  std::vector<Frame> frames;
  /// Loads from shared memory that are under way: where the result comes, and
  /// the read.
  struct Load {
    unsigned slot, token;
  };
  llvm::SmallVector<Load, 8> loads;
  /// Ends those whose results the instruction uses.
  void useLoads(const Instruction &in);
  /// Copies that no group has yet, and the groups in flight, oldest first.
  std::vector<unsigned> openGroup;
  std::deque<std::vector<unsigned>> groups;
  /// Products and stores in flight, oldest first.
  std::deque<InFlight> products, stores;
  uint64_t storesStarted = 0;
  void startStore(unsigned token, mlir::Operation *op) {
    stores.push_back({token, op});
    ++storesStarted;
  }
  /// Products started so far.
  unsigned productsStarted = 0;
  /// How often each collective instruction was executed.
  llvm::DenseMap<unsigned, unsigned> executions;

  /// What it is ordered behind.
  const Clock &clock() const;

  Cell &cell(unsigned slot) { return cells[slot]; }
  /// Operands and results of an instruction.
  const Number &number(const Instruction &in, unsigned operand) {
    return std::get<Number>(cells[in.operands[operand]]);
  }
  int64_t integer(const Instruction &in, unsigned operand) {
    return number(in, operand).integer;
  }
  const MatrixRef &matrix(const Instruction &in, unsigned operand) {
    return std::get<MatrixRef>(cells[in.operands[operand]]);
  }
  const View &view(const Instruction &in, unsigned operand) {
    return std::get<View>(cells[in.operands[operand]]);
  }
  const Buffer &buffer(const Instruction &in, unsigned operand) {
    return std::get<Buffer>(cells[in.operands[operand]]);
  }
  const TensorMap &map(const Instruction &in, unsigned operand) {
    return std::get<TensorMap>(cells[in.operands[operand]]);
  }
  const Ring &ring(const Instruction &in, unsigned operand) {
    return std::get<Ring>(cells[in.operands[operand]]);
  }
  const Pending &pending(const Instruction &in, unsigned operand) {
    return std::get<Pending>(cells[in.operands[operand]]);
  }
  Step set(const Instruction &in, Cell value) {
    cells[in.results[0]] = std::move(value);
    return Step::next;
  }

  /// Reports an error of this warp.  `kind` tells the errors of an op apart.
  void report(mlir::Operation *op, llvm::StringRef kind,
              const llvm::Twine &message, mlir::Operation *noteAt = nullptr,
              const llvm::Twine &note = "");
  void report(mlir::Operation *op, llvm::StringRef kind,
              const llvm::Twine &message, llvm::ArrayRef<Note> notes);
  void report(const Instruction &in, llvm::StringRef kind,
              const llvm::Twine &message, mlir::Operation *noteAt = nullptr,
              const llvm::Twine &note = "") {
    report(in.op, kind, message, noteAt, note);
  }
  /// Reports an error behind which this warp cannot go on.
  Step stop(const Instruction &in, llvm::StringRef kind,
            const llvm::Twine &message) {
    report(in, kind, message);
    return Step::stop;
  }
  /// The warp stands at a barrier of the block, or of the cluster.
  Step wait(const Instruction &in, bool cluster = false) {
    waitsAt = &in;
    meetsCluster = cluster;
    return Step::wait;
  }
  /// The warp cannot go on before the obstacle is gone.
  Step stall(const Instruction &in, Obstacle by) {
    waitsAt = &in;
    obstacle = by;
    return Step::blocked;
  }

  /// Runs until the warp waits, has finished, or cannot go on; or, in a
  /// shuffled order, until chance takes it away between two instructions.
  Step run();

private:
  std::vector<Cell> cells;

  /// What it has executed.
  void record(const Instruction &in, Step step);
};

/// What came of a turn.
enum class Turn { progress, stuck, stopped };

class ThreadBlock {
public:
  /// `number` is its number among the blocks that run at once.
  ThreadBlock(Launch &launch, Residents &residents, unsigned number,
              std::array<int64_t, 3> position,
              const InterpreterOptions &options);

  Launch &launch;
  Residents &residents;
  const Program &program;
  GlobalMemory &memory;
  Clocks clocks;
  SharedMemory shared;
  Mbarriers mbarriers;
  NamedBarriers named;
  Queues queues;
  Products products;
  const unsigned number;
  const std::array<int64_t, 3> position;
  const uint64_t seed;
  Reporter &reporter;
  std::deque<Warp> warps;
  /// Who records what it does, or null.
  Tracer *tracer() const {
    return launch.tracer && Tracer::follows(*this) ? launch.tracer : nullptr;
  }
  /// Bytes moved so far.
  tile::Traffic traffic;
  /// The copy that each execution of a collective instruction started:
  /// (instruction, how many times before) to index.
  llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> copies;

  /// What an error says about where it happened: `block 0, 0, 0`.
  std::string name() const;
  /// What decides where anything may happen; null where it must not.
  std::mt19937_64 *chance() { return shuffled ? &random : nullptr; }
  /// Whether, of what may or may not have come yet, it has not.
  bool seesBefore();

  /// Lets every warp that can go on do so once.
  Turn turn();
  /// Lets all warps pass the barrier of the block if they stand there.
  bool meet();
  /// All warps that stand at a barrier go on.
  void go();
  /// All warps stand where the cluster meets.
  bool meetsCluster() const;
  bool finished() const;
  /// None can go on any more: reports that the first warp at a barrier of the
  /// block waits in vain.
  void reportMissing();
  /// What should have happened before the end.
  void checkEnd();

private:
  const WarpOrder warpOrder;
  const bool shuffled;
  std::mt19937_64 random;
  /// Of the warps.
  std::vector<unsigned> order;
};

inline const Clock &Warp::clock() const { return block.clocks.of(id); }

} // namespace attn::interpreter

#endif
