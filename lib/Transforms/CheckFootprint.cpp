//===- CheckFootprint.cpp - Do kernels fit their machine? -----------------===//

#include "attn/Kernels/Kernels.h"
#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Limits.h"
#include "attn/Tile/SharedMemory.h"
#include "attn/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_CHECKFOOTPRINTPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

/// The kernel's shared memory against what a block may use.
static LogicalResult checkLimit(tile::KernelOp kernel,
                                const tile::SharedMemory &layout,
                                const Machine &machine) {
  if (layout.totalBytes() <= machine.smemBytesPerBlock)
    return success();
  using Reservation = tile::SharedMemory::Reservation;
  ArrayRef<Reservation> all = layout.reservations();
  const Reservation &largest =
      *llvm::max_element(all, [](const Reservation &a, const Reservation &b) {
        return a.bytes < b.bytes;
      });
  InFlightDiagnostic diagnostic =
      kernel.emitOpError("expects at most ")
      << machine.smemBytesPerBlock << " bytes of shared memory on "
      << machine.name << ", but got " << layout.totalBytes()
      << "; the largest is '" << largest.name << "' with " << largest.bytes;
  for (const Reservation &one : all)
    diagnostic.attachNote(one.op->getLoc())
        << "'" << one.name << "' takes " << one.bytes << " bytes";
  return diagnostic;
}

/// The kernel's shared memory against what its plan promised.  A kernel serves
/// any sizes, and memory of the device is the matter of its launches.
static LogicalResult checkPromise(tile::KernelOp kernel,
                                  const tile::SharedMemory &layout,
                                  const Machine &machine) {
  auto schedule = kernel->getAttrOfType<ScheduleAttr>("schedule");
  auto attribute = kernel->getAttrOfType<DictionaryAttr>(kProblemAttr);
  if (!schedule || !attribute)
    return success(); // written by hand: there is no promise
  std::optional<Problem> problem = problemFromAttr(attribute);
  if (!problem)
    return kernel.emitOpError("expects a legal problem, but got ") << attribute;
  std::string error;
  std::optional<Decision> decided =
      decide(*problem, withAnyMemory(machine),
             schedule.getName().getValue().str(), schedule.tiles(), error);
  if (!decided)
    return kernel.emitOpError() << error;
  int64_t promised = decided->footprints[size_t(launchOf(kernel))].smemBytes;
  if (promised != layout.totalBytes())
    return kernel.emitOpError("expects the ")
           << promised << " bytes of shared memory of its plan, but got "
           << layout.totalBytes();
  return success();
}

namespace {

struct CheckFootprintPass
    : attn::impl::CheckFootprintPassBase<CheckFootprintPass> {
  using CheckFootprintPassBase::CheckFootprintPassBase;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](tile::KernelOp kernel) {
      auto attribute = kernel->getAttrOfType<MachineAttr>("machine");
      if (!attribute)
        attribute = machineAttrOf(kernel);
      if (!attribute) {
        kernel.emitOpError("expects a machine, on the kernel or the module");
        return WalkResult::interrupt();
      }
      Machine machine = attribute.resolve();
      tile::SharedMemory layout(kernel);
      if (failed(checkLimit(kernel, layout, machine)) ||
          failed(checkPromise(kernel, layout, machine)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
