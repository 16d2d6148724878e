//===- Capabilities.cpp - Which instructions a machine has ----------------===//
//
// LLVM aborts on an intrinsic that a chip does not have, and ptxas speaks of
// lines that nobody wrote.  So every op is held against the chip before it is
// lowered.  A kernel built from a plan passes; one written by hand, or moved to
// another machine, may not.
//
//===----------------------------------------------------------------------===//

#include "Lane.h"

#include "attn/IR/Attn.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// What an op's instructions ask of a chip; `least` 0: any has them.
struct Need {
  StringRef instruction;
  int64_t least = 0; ///< compute capability
  /// Of the chips whose name ends in "a", which code for others never is; and
  /// whether only of those of that capability.
  bool isAccelerated = false, isOnlyThere = false;
};

/// What a kernel is compiled for: `h100_sxm`, sm_90a.
struct Chip {
  std::string machine; ///< empty if nobody says
  std::string name;
  int64_t capability;

  bool isAccelerated() const { return StringRef(name).ends_with("a"); }
  bool has(const Need &need) const {
    return capability >= need.least &&
           (!need.isAccelerated || isAccelerated()) &&
           (!need.isOnlyThere || capability == need.least);
  }
};

} // namespace

/// Of a conversion of numbers.
static Need needOfElement(Type element) {
  if (isa<Float8E4M3FNType>(element))
    return {"cvt.e4m3x2", 89};
  return {};
}

static Need needOf(Operation *op) {
  using Result = Need;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<CopyAsyncOp, CommitGroupOp, WaitGroupOp>(
          [](auto) { return Result{"cp.async", 80}; })
      .Case([](LoadMatrixOp) { return Result{"ldmatrix", 75}; })
      .Case([](MmaOp) { return Result{"mma.sync.m16n8k16", 80}; })
      .Case([](StoreMatrixOp store) {
        return store.getBuffer().getType().isSwizzled()
                   ? Result{"stmatrix", 90}
                   : needOfElement(
                         store.getBuffer().getType().getElementType());
      })
      .Case<StoreTransposedOp, TransposeOp>(
          [](auto) { return Result{"stmatrix", 90}; })
      .Case([](WidenRowsOp op) {
        return needOfElement(op.getSource().getType().getElementType());
      })
      .Case<WgmmaOp, WgmmaWaitOp>([](auto) {
        return Result{"wgmma", 90, /*isAccelerated=*/true,
                      /*isOnlyThere=*/true};
      })
      .Case<RolesOp, RoleOp>(
          [](auto) { return Result{"setmaxnreg", 90, /*isAccelerated=*/true}; })
      .Case<MbarrierOp, MbarrierWaitOp, MbarrierArriveOp, QueueOp, PushOp,
            PopOp>([](auto) { return Result{"mbarrier.try_wait", 90}; })
      .Case<MbarrierExpectOp, TmaLoadOp, TmaLoadRowsOp, TmaPrefetchOp,
            TmaStoreOp, TmaStoreWaitOp, LoadWordsOp, AddWordsOp, StoreWordsOp>(
          [](auto) { return Result{"cp.async.bulk", 90}; })
      .Case([](FenceAsyncOp) { return Result{"fence.proxy.async", 90}; })
      .Case<AwaitLaunchOp, ReleaseLaunchOp>(
          [](auto) { return Result{"griddepcontrol", 90}; })
      .Case([](ClusterRankOp) { return Result{"%cluster_ctarank", 90}; })
      .Case([](KernelOp kernel) {
        return kernel.getCluster() > 1 ? Result{"barrier.cluster", 90}
                                       : Result();
      })
      .Case<PublishOp, CountOp, AwaitOp>(
          [](auto) { return Result{"ld.acquire and st.release", 70}; })
      .Case([](DrawOp) { return Result{"atom.relaxed", 70}; })
      .Case([](CastOp cast) {
        return needOfElement(cast.getResult().getType().getElementType());
      })
      .Default([](Operation *) { return Result(); });
}

/// The machine of the kernel or of a module around it, or else the chip of the
/// target that its module has.
static std::optional<Chip> chipOf(KernelOp kernel) {
  auto attribute = kernel->getAttrOfType<MachineAttr>("machine");
  std::optional<Machine> machine =
      attribute ? attribute.resolve() : machineFor(kernel);
  if (machine)
    return Chip{machine->name, machine->chip, machine->computeCapability};
  auto module = dyn_cast<gpu::GPUModuleOp>(kernel->getParentOp());
  if (!module || !module.getTargetsAttr())
    return std::nullopt;
  for (Attribute target : module.getTargetsAttr())
    if (auto nvvm = dyn_cast<NVVM::NVVMTargetAttr>(target)) {
      StringRef digits = nvvm.getChip();
      int64_t capability = 0;
      if (digits.consume_front("sm_") && !digits.consumeInteger(10, capability))
        return Chip{"", nvvm.getChip().str(), capability};
    }
  return std::nullopt;
}

static LogicalResult checkOp(Operation *op, const Chip &chip) {
  Need need = needOf(op);
  if (chip.has(need))
    return success();
  InFlightDiagnostic error = op->emitOpError("expects a machine with ")
                             << need.instruction << ", compute capability "
                             << need.least << (need.isAccelerated ? "a" : "")
                             << (need.isOnlyThere ? "" : " or more")
                             << ", but got ";
  if (!chip.machine.empty())
    error << chip.machine << ", ";
  error << chip.name;
  std::string fit;
  for (const Machine &machine : machines())
    if (Chip{machine.name, machine.chip, machine.computeCapability}.has(need))
      fit += (fit.empty() ? "" : ", ") + machine.name;
  error.attachNote() << "machines that have it: " << fit;
  return error;
}

LogicalResult attn::checkCapabilities(KernelOp kernel) {
  std::optional<Chip> chip = chipOf(kernel);
  if (!chip)
    return success();
  WalkResult result = kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    return failed(checkOp(op, *chip)) ? WalkResult::interrupt()
                                      : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
