//===- Mutations.cpp - Wrong kernels, made on purpose ---------------------===//

#include "Mutants/Mutations.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// What ops do to the order of memory
//===----------------------------------------------------------------------===//

namespace {
/// What a step does for others: it waits for them, tells them, both, or it
/// touches memory and neither waits nor tells.
enum class OpRole { waits, tells, both, touches };
} // namespace

/// Whether the op starts a copy that comes at any time: two such have no order.
static bool startsCopy(Operation *op) {
  return isa<tile::CopyAsyncOp, tile::TmaLoadOp, tile::TmaStoreOp,
             tile::LoadWordsOp, tile::AddWordsOp, tile::StoreWordsOp>(op);
}

/// The role of an op that is a step itself.
static std::optional<OpRole> roleOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<OpRole>>(op)
      .Case<tile::WaitGroupOp, tile::MbarrierWaitOp, tile::TmaStoreWaitOp,
            tile::WgmmaWaitOp, tile::AwaitOp, tile::PopOp>(
          [](auto) { return OpRole::waits; })
      .Case<tile::CommitGroupOp, tile::MbarrierArriveOp, tile::BarArriveOp,
            tile::PublishOp, tile::CountOp>([](auto) { return OpRole::tells; })
      .Case<tile::BarrierOp, tile::BarSyncOp, tile::FenceAsyncOp, tile::PushOp>(
          [](auto) { return OpRole::both; })
      .Case<tile::CopyAsyncOp, tile::LoadMatrixOp, tile::StoreMatrixOp,
            tile::CopyOutOp, tile::TmaLoadOp, tile::TmaStoreOp, tile::WgmmaOp,
            tile::StoreRegistersOp, tile::LoadRegistersOp, tile::PutRegistersOp,
            tile::GetRegistersOp, tile::StoreTransposedOp, tile::GetColumnsOp,
            tile::LoadWordsOp, tile::AddWordsOp, tile::StoreWordsOp>(
          [](auto) { return OpRole::touches; })
      .Default([](Operation *) { return std::nullopt; });
}

/// Whether the op, or one inside it, touches or orders memory.
static bool isStep(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return roleOf(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool isTarget(Operation *op) {
  if (isa<tile::CopyAsyncOp, tile::CommitGroupOp, tile::WaitGroupOp,
          tile::BarrierOp, tile::MbarrierOp, tile::MbarrierWaitOp,
          tile::MbarrierArriveOp, tile::BarSyncOp, tile::BarArriveOp,
          tile::FenceAsyncOp, tile::TmaLoadOp, tile::TmaStoreOp,
          tile::TmaStoreWaitOp, tile::WgmmaWaitOp, tile::PublishOp,
          tile::CountOp, tile::AwaitOp, tile::LoadWordsOp, tile::AddWordsOp,
          tile::StoreWordsOp, tile::QueueOp, tile::PushOp, tile::PopOp>(op))
    return true;
  return isa<scf::IfOp>(op) && isStep(op);
}

/// Whether the op waits for what an op like the other starts in its own warp.
static bool isWaitFor(Operation *wait, Operation *start) {
  if (isa<tile::WaitGroupOp>(wait))
    return isa<tile::CommitGroupOp, tile::CopyAsyncOp>(start);
  if (isa<tile::WgmmaWaitOp>(wait))
    return isa<tile::WgmmaOp>(start);
  return isa<tile::TmaStoreWaitOp>(wait) &&
         isa<tile::TmaStoreOp, tile::AddWordsOp, tile::StoreWordsOp>(start);
}

/// The ops that an op stands for: itself, or the steps inside.
static SmallVector<Operation *> stepsOf(Operation *op) {
  SmallVector<Operation *> steps;
  op->walk([&](Operation *inner) {
    if (roleOf(inner))
      steps.push_back(inner);
  });
  return steps;
}

/// Why there is no less order when `first` comes behind `second`; or nothing.
static std::string whyMoreOf(Operation *first, Operation *second) {
  OpRole a = *roleOf(first), b = *roleOf(second);
  if (isWaitFor(second, first))
    return "";
  if (startsCopy(first) && startsCopy(second))
    return "copies are started in any order";
  if (a == b && (a == OpRole::waits || a == OpRole::tells))
    return a == OpRole::waits ? "waits come in any order"
                              : "what is told is told in any order";
  if (a == OpRole::touches && b == OpRole::waits)
    return "it waits before more accesses";
  if (a == OpRole::tells && b == OpRole::touches)
    return "it tells of more accesses";
  if (a == OpRole::tells && b == OpRole::waits)
    return "it waits before it tells";
  return "";
}

/// The same of all steps inside.
static std::string whyMore(Operation *first, Operation *second) {
  std::string why;
  for (Operation *a : stepsOf(first))
    for (Operation *b : stepsOf(second)) {
      why = whyMoreOf(a, b);
      if (why.empty())
        return "";
    }
  return why;
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

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

static bool drop(Operation *op, std::string &) {
  if (!op->use_empty())
    return false;
  op->erase();
  return true;
}

/// Whether it touches memory, and so do all steps inside, and none orders it.
static bool onlyTouches(Operation *op) {
  return llvm::all_of(stepsOf(op), [](Operation *step) {
    return *roleOf(step) == OpRole::touches;
  });
}

/// The steps that an op passes over on its way up or down: all that touch
/// memory, to the next one that orders it; who touches it as well passes over
/// that one, and so does who orders it where none touches it between.
static SmallVector<Operation *> passedBy(Operation *op,
                                         Operation *(Operation::*next)()) {
  SmallVector<Operation *> passed;
  for (Operation *step = (op->*next)(); step; step = (step->*next)()) {
    if (!isStep(step))
      continue;
    if (onlyTouches(step)) {
      passed.push_back(step);
      continue;
    }
    if (passed.empty() || onlyTouches(op))
      passed.push_back(step);
    return passed;
  }
  // Of accesses alone the order is not the matter.
  return onlyTouches(op) ? SmallVector<Operation *>() : passed;
}

static bool moveUp(Operation *op, std::string &why) {
  SmallVector<Operation *> passed = passedBy(op, &Operation::getPrevNode);
  if (passed.empty())
    return false;
  for (Operation *step : passed)
    if (why = whyMore(step, op); why.empty())
      break;
  hoistOperands(op, passed.back());
  op->moveBefore(passed.back());
  return true;
}

static bool moveDown(Operation *op, std::string &why) {
  SmallVector<Operation *> passed = passedBy(op, &Operation::getNextNode);
  if (passed.empty())
    return false;
  for (Operation *step : passed)
    if (why = whyMore(op, step); why.empty())
      break;
  op->moveAfter(passed.back());
  return true;
}

/// One more or less than an operand, or the other parity of two.
static void change(OpOperand &operand, int64_t by) {
  Operation *op = operand.getOwner();
  OpBuilder b(op);
  Value one = arith::ConstantIntOp::create(b, op->getLoc(), 1, 32);
  Value value = operand.get();
  operand.set(
      by > 0 ? arith::AddIOp::create(b, op->getLoc(), value, one)
      : by < 0
          ? arith::SubIOp::create(b, op->getLoc(), value, one)
          : arith::XOrIOp::create(b, op->getLoc(), value, one).getResult());
}
static void changeParity(OpOperand &parity) { change(parity, 0); }

static bool weaken(Operation *op, std::string &) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](tile::WaitGroupOp wait) {
        wait.setInFlight(wait.getInFlight() + 1);
        return true;
      })
      .Case([](tile::WgmmaWaitOp wait) {
        wait.setInFlight(wait.getInFlight() + 1);
        return true;
      })
      .Case([](tile::TmaStoreWaitOp wait) {
        wait.setInFlight(wait.getInFlight() + 1);
        return true;
      })
      .Case([](tile::MbarrierOp barrier) {
        barrier.setArrivals(barrier.getArrivals() - 1);
        return true;
      })
      .Case([](tile::QueueOp queue) {
        queue.setReaders(queue.getReaders() - 1);
        return true;
      })
      .Case([](tile::AwaitOp await) {
        change(await.getValueMutable(), -1);
        return true;
      })
      .Case([](tile::MbarrierArriveOp arrive) {
        bool isInCluster = arrive.getCluster();
        arrive.setCluster(false);
        return isInCluster;
      })
      .Case([](tile::BarSyncOp sync) {
        OpBuilder b(sync);
        tile::BarArriveOp::create(b, sync.getLoc(), sync.getId(),
                                  sync.getWarps());
        sync.erase();
        return true;
      })
      .Case<tile::MbarrierWaitOp, tile::PushOp, tile::PopOp>([](auto wait) {
        changeParity(wait.getParityMutable());
        return true;
      })
      .Default([](Operation *) { return false; });
}

/// Sums have been read, but are not in memory yet.
static bool forget(Operation *op, std::string &) {
  auto wait = dyn_cast<tile::TmaStoreWaitOp>(op);
  if (!wait || !wait.getComplete())
    return false;
  wait.setComplete(false);
  return true;
}

static bool raise(Operation *op, std::string &) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([](tile::MbarrierOp barrier) {
        barrier.setArrivals(barrier.getArrivals() + 1);
        return true;
      })
      .Case([](tile::QueueOp queue) {
        queue.setReaders(queue.getReaders() + 1);
        return true;
      })
      .Case<tile::BarSyncOp, tile::BarArriveOp>([](auto barrier) {
        barrier.setWarps(barrier.getWarps() + 1);
        return true;
      })
      .Case([](tile::PublishOp publish) {
        change(publish.getValueMutable(), 1);
        return true;
      })
      .Case([](tile::CountOp count) {
        change(count.getBelowMutable(), 1);
        return true;
      })
      .Default([](Operation *) { return false; });
}

/// The op twice in a row.
static bool repeat(Operation *op, std::string &why) {
  if (!isa<tile::MbarrierArriveOp, tile::TmaLoadOp, tile::LoadWordsOp,
           tile::AddWordsOp, tile::StoreWordsOp, tile::BarSyncOp,
           tile::BarArriveOp, tile::CountOp, tile::PushOp>(op))
    return false;
  if (isa<tile::BarSyncOp>(op))
    why = "who meets meets twice";
  OpBuilder(op).clone(*op);
  return true;
}

namespace {
struct Mutation {
  const char *name;
  bool (*apply)(Operation *, std::string &why);
};
} // namespace

static constexpr Mutation kMutations[] = {
    {"dropped", drop},     {"moved up", moveUp}, {"moved down", moveDown},
    {"weakened", weaken},  {"raised", raise},    {"repeated", repeat},
    {"forgotten", forget},
};

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

/// What people call the value that an op works on: a buffer, a barrier, a
/// queue, or the flags.
static StringRef nameOfObject(Operation *op) {
  if (auto own = op->getAttrOfType<StringAttr>("name"))
    return own;
  for (Value value : op->getOperands()) {
    while (auto alias = value.getDefiningOp<tile::AliasOp>())
      value = alias.getBuffer();
    Operation *definition = value.getDefiningOp();
    if (definition)
      if (auto name = definition->getAttrOfType<StringAttr>("name"))
        return name;
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && isa<tile::PtrType>(value.getType()))
      if (auto kernel =
              dyn_cast<tile::KernelOp>(argument.getOwner()->getParentOp()))
        if (auto role = kernel.getArgAttrOfType<StringAttr>(
                argument.getArgNumber(), "tile.role"))
          return role;
  }
  return "";
}

/// `mbarrier_wait key_full`; a condition has the name of what it guards.
static std::string describe(Operation *op) {
  std::string kind = op->getName().stripDialect().str();
  if (isa<scf::IfOp>(op))
    return kind + " " + describe(stepsOf(op).front());
  StringRef object = nameOfObject(op);
  return object.empty() ? kind : kind + " " + object.str();
}

static bool isOfFlags(Operation *op) {
  return llvm::any_of(stepsOf(op), [](Operation *step) {
    return isa<tile::AwaitOp, tile::PublishOp, tile::CountOp>(step);
  });
}

std::vector<Target> attn::mutationTargets(ModuleOp module) {
  std::vector<Target> found;
  std::map<std::string, int> numbers;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isTarget(op))
      return;
    std::string name = describe(op);
    if (auto role = op->getParentOfType<tile::RoleOp>())
      name = (role.getName() + " " + name).str();
    found.push_back({name + " " + std::to_string(++numbers[name]), op});
  });
  return found;
}

void attn::forEachMutant(ModuleOp module,
                         function_ref<bool(const std::string &)> isWanted,
                         function_ref<void(Mutant &)> visit) {
  // A move may break dominance; such a mutant would not compile.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  for (auto [index, target] : llvm::enumerate(mutationTargets(module)))
    for (const Mutation &mutation : kMutations) {
      Mutant mutant{target.name + " " + mutation.name, target.name,
                    isOfFlags(target.op), nullptr, ""};
      if (!isWanted(mutant.name))
        continue;
      mutant.module = module.clone();
      Operation *op = mutationTargets(*mutant.module)[index].op;
      if (mutation.apply(op, mutant.asksForMore) &&
          succeeded(verify(*mutant.module)))
        visit(mutant);
    }
}

std::vector<Mutant> attn::mutants(ModuleOp module) {
  std::vector<Mutant> result;
  forEachMutant(
      module, [](const std::string &) { return true; },
      [&](Mutant &mutant) { result.push_back(std::move(mutant)); });
  return result;
}
