//===- Mutations.cpp - Wrong kernels, made on purpose ---------------------===//

#include "Mutations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;
using namespace attn;

/// Whether the op, or one inside it, touches or orders memory.
static bool isStep(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool step = isa<tile::CopyAsyncOp, tile::CommitGroupOp,
                        tile::WaitGroupOp, tile::BarrierOp, tile::LoadMatrixOp,
                        tile::StoreMatrixOp, tile::CopyOutOp>(inner);
        return step ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isTarget(Operation *op) {
  if (isa<tile::CopyAsyncOp, tile::CommitGroupOp, tile::WaitGroupOp,
          tile::BarrierOp>(op))
    return true;
  return isa<scf::IfOp>(op) && isStep(op);
}

/// Moves what the op needs, and stands between, to before `before`.
static void hoistOperands(Operation *op, Operation *before) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || definition->getBlock() != before->getBlock() ||
          !before->isBeforeInBlock(definition) || isStep(definition))
        continue;
      hoistOperands(definition, before);
      definition->moveBefore(before);
    }
  });
}

static bool drop(Operation *op) {
  op->erase();
  return true;
}

static bool moveUp(Operation *op) {
  Operation *step = op->getPrevNode();
  while (step && !isStep(step))
    step = step->getPrevNode();
  if (!step)
    return false;
  hoistOperands(op, step);
  op->moveBefore(step);
  return true;
}

static bool moveDown(Operation *op) {
  Operation *step = op->getNextNode();
  while (step && !isStep(step))
    step = step->getNextNode();
  if (!step)
    return false;
  op->moveAfter(step);
  return true;
}

static bool weaken(Operation *op) {
  auto wait = dyn_cast<tile::WaitGroupOp>(op);
  if (!wait)
    return false;
  wait.setInFlight(wait.getInFlight() + 1);
  return true;
}

namespace {
struct Mutation {
  const char *name;
  bool (*apply)(Operation *);
};
} // namespace

static constexpr Mutation kMutations[] = {{"dropped", drop},
                                          {"moved up", moveUp},
                                          {"moved down", moveDown},
                                          {"weakened", weaken}};

/// The targets of a module in the order of its text.
static std::vector<Operation *> targets(ModuleOp module) {
  std::vector<Operation *> found;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isTarget(op))
      found.push_back(op);
  });
  return found;
}

std::vector<Mutant> attn::mutants(ModuleOp module) {
  std::vector<Mutant> result;
  std::map<std::string, int> numbers;
  // A move may break dominance; such a mutant would not compile.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  for (auto [index, target] : llvm::enumerate(targets(module))) {
    std::string kind = target->getName().stripDialect().str();
    std::string name = kind + " " + std::to_string(++numbers[kind]) + " ";
    for (const Mutation &mutation : kMutations) {
      OwningOpRef<ModuleOp> copy = module.clone();
      if (mutation.apply(targets(*copy)[index]) && succeeded(verify(*copy)))
        result.push_back({name + mutation.name, std::move(copy)});
    }
  }
  return result;
}
