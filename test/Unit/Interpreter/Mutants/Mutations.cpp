//===- Mutations.cpp - Wrong kernels, made on purpose ---------------------===//

#include "Mutants/Mutations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;
using namespace attn;

/// Whether the op, or one inside it, touches or orders memory.
static bool isStep(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        bool step =
            isa<tile::CopyAsyncOp, tile::CommitGroupOp, tile::WaitGroupOp,
                tile::BarrierOp, tile::LoadMatrixOp, tile::StoreMatrixOp,
                tile::CopyOutOp, tile::MbarrierWaitOp, tile::MbarrierArriveOp,
                tile::BarSyncOp, tile::BarArriveOp, tile::FenceAsyncOp,
                tile::TmaLoadOp, tile::TmaStoreOp, tile::TmaStoreWaitOp,
                tile::WgmmaOp, tile::WgmmaWaitOp, tile::PushOp, tile::PopOp,
                tile::StoreRegistersOp, tile::LoadRegistersOp, tile::PublishOp,
                tile::AwaitOp, tile::PutRegistersOp, tile::StoreTransposedOp,
                tile::GetColumnsOp, tile::LoadWordsOp, tile::AddWordsOp,
                tile::StoreWordsOp>(inner);
        return step ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isTarget(Operation *op) {
  if (isa<tile::CopyAsyncOp, tile::CommitGroupOp, tile::WaitGroupOp,
          tile::BarrierOp, tile::MbarrierOp, tile::MbarrierWaitOp,
          tile::MbarrierArriveOp, tile::BarSyncOp, tile::BarArriveOp,
          tile::FenceAsyncOp, tile::TmaLoadOp, tile::TmaStoreOp,
          tile::TmaStoreWaitOp, tile::WgmmaWaitOp, tile::PublishOp,
          tile::AwaitOp, tile::LoadWordsOp, tile::AddWordsOp,
          tile::StoreWordsOp>(op))
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
  if (!op->use_empty())
    return false;
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
  if (auto wait = dyn_cast<tile::WaitGroupOp>(op)) {
    wait.setInFlight(wait.getInFlight() + 1);
    return true;
  }
  if (auto barrier = dyn_cast<tile::MbarrierOp>(op)) {
    barrier.setArrivals(barrier.getArrivals() - 1);
    return true;
  }
  OpBuilder builder(op);
  if (auto await = dyn_cast<tile::AwaitOp>(op)) {
    Value one = arith::ConstantIntOp::create(builder, op->getLoc(), 1, 32);
    Value less =
        arith::SubIOp::create(builder, op->getLoc(), await.getValue(), one);
    await.getValueMutable().assign(less);
    return true;
  }
  if (auto arrive = dyn_cast<tile::MbarrierArriveOp>(op);
      arrive && arrive.getCluster()) {
    arrive.setCluster(false);
    return true;
  }
  auto wait = dyn_cast<tile::MbarrierWaitOp>(op);
  if (!wait)
    return false;
  Value one = arith::ConstantIntOp::create(builder, op->getLoc(), 1, 32);
  Value other =
      arith::XOrIOp::create(builder, op->getLoc(), wait.getParity(), one);
  wait.getParityMutable().assign(other);
  return true;
}

static bool raise(Operation *op) {
  if (auto barrier = dyn_cast<tile::MbarrierOp>(op)) {
    barrier.setArrivals(barrier.getArrivals() + 1);
    return true;
  }
  auto sync = dyn_cast<tile::BarSyncOp>(op);
  if (!sync)
    return false;
  sync.setWarps(sync.getWarps() + 1);
  return true;
}

/// The op twice in a row.
static bool repeat(Operation *op) {
  if (!isa<tile::MbarrierArriveOp, tile::TmaLoadOp, tile::LoadWordsOp,
           tile::AddWordsOp, tile::StoreWordsOp, tile::BarSyncOp>(op))
    return false;
  OpBuilder(op).clone(*op);
  return true;
}

namespace {
struct Mutation {
  const char *name;
  bool (*apply)(Operation *);
};
} // namespace

static constexpr Mutation kMutations[] = {
    {"dropped", drop},    {"moved up", moveUp}, {"moved down", moveDown},
    {"weakened", weaken}, {"raised", raise},    {"repeated", repeat}};

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
