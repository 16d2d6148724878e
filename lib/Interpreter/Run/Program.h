//===- Program.h - A kernel, ready to run -----------------------*- C++ -*-===//
//
// Before it runs, a kernel is turned into instructions: every SSA value gets a
// slot in its warp's memory, every op the function that executes it, every map
// body a list of scalar ops.  This is done once per launch, so that execution
// looks nothing up.  Unknown ops are found here, before anything has run.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_RUN_PROGRAM_H
#define ATTN_LIB_INTERPRETER_RUN_PROGRAM_H

#include "Memory/Values.h"
#include "attn/Host/Scalars.h"

#include "attn/Tile/SharedMemory.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <memory>
#include <string>

namespace attn::interpreter {

class Warp;
struct Instruction;
struct MapBody;

/// What becomes of a warp after an instruction.
enum class Step {
  next,
  /// The warp must wait at a barrier of the whole block.
  wait,
  /// The warp cannot go on yet; the instruction is executed again later.
  blocked,
  /// The warp has returned from the kernel.
  finished,
  /// An error behind which nothing can be executed.
  stop,
};

using Handler = Step (*)(Warp &, const Instruction &);

/// The instructions of a region's block.
struct Code {
  llvm::SmallVector<unsigned> arguments;
  std::vector<Instruction> instructions;
};

struct Instruction {
  Instruction() = default;
  Instruction(Instruction &&) = default;

  mlir::Operation *op = nullptr;
  Handler run = nullptr;
  llvm::SmallVector<unsigned, 4> operands;
  llvm::SmallVector<unsigned, 2> results;
  /// Position in the kernel, for tables keyed by instruction.
  unsigned index = 0;
  /// Regions of control flow; null for an empty one.
  llvm::SmallVector<std::unique_ptr<Code>, 2> regions;
  /// Of a scalar op.
  std::optional<ScalarOp> scalar;
  /// Of a `tile.map`, or of additions of elements.
  std::shared_ptr<const MapBody> map;
};

/// An mbarrier of a kernel: a slot of a ring, or one of the two of a slot of a
/// queue.
struct BarrierInfo {
  /// For people: `barrier 'key_full' (slot 1)`.
  std::string title;
  /// Arrivals that end a phase.
  unsigned arrivals;
};

struct Program {
  explicit Program(tile::KernelOp kernel)
      : warps(kernel.getWarps()), cluster(kernel.getCluster()),
        together(kernel.getCooperative()),
        argumentTypes(kernel.getArgumentTypes()), shared(kernel) {}

  /// Of a block, and blocks of a cluster.
  unsigned warps, cluster;
  /// Blocks wait for one another; all of them are taken to run at once.
  bool together;
  /// Some op adds to global memory.
  bool adds = false;
  Code body;
  llvm::SmallVector<mlir::Type> argumentTypes;
  unsigned slots = 0;
  /// Ops by instruction index.
  std::vector<mlir::Operation *> ops;
  tile::SharedMemory shared;
  /// All mbarriers, and the first one of each op that reserves some.
  std::vector<BarrierInfo> barriers;
  llvm::DenseMap<mlir::Operation *, unsigned> firstBarrier;
};

/// Fails with a diagnostic at an op that cannot be executed.
mlir::FailureOr<Program> compile(tile::KernelOp kernel);

/// Gives SSA values their slots.
class Slots {
public:
  unsigned of(mlir::Value value) {
    return numbers.try_emplace(value, unsigned(numbers.size())).first->second;
  }
  unsigned count() const { return unsigned(numbers.size()); }

private:
  llvm::DenseMap<mlir::Value, unsigned> numbers;
};

/// Compiles the body of a map.  `slots` are those of the warp, for what the
/// body captures.
mlir::FailureOr<std::shared_ptr<const MapBody>> compileMap(tile::MapOp map,
                                                           Slots &slots);
/// The same of what is added by elements.
mlir::FailureOr<std::shared_ptr<const MapBody>>
compileMap(tile::AddElementsOp op, Slots &slots);

} // namespace attn::interpreter

#endif
