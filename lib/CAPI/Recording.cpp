//===- Recording.cpp - Taking notes and doing what they say ---------------===//

#include "attn/CAPI/Recording.h"

using namespace attn;
using namespace mlir;

namespace {

/// The device that takes notes.
class RecordingDevice : public Device {
public:
  explicit RecordingDevice(Recording &recording) : recording(recording) {}

  FailureOr<uint64_t> allocate(int64_t bytes, Location) override {
    recording.allocationBytes.push_back(bytes);
    return SymbolicAddress::ofSlot(recording.slotCount() - 1);
  }
  // Memory of a recording lives until the end of its replay.
  LogicalResult free(uint64_t, Location) override { return success(); }

  LogicalResult launch(tile::KernelOp kernel, std::array<int64_t, 3> grid,
                       ArrayRef<KernelArgument> arguments, Location) override {
    recording.steps.push_back(
        RecordedLaunch{kernel, grid, llvm::to_vector(arguments)});
    return success();
  }
  LogicalResult copy(const HostArray &source, const HostArray &target,
                     Location) override {
    recording.steps.push_back(RecordedCopy{source, target});
    return success();
  }

private:
  Recording &recording;
};

} // namespace

FailureOr<Recording> attn::record(func::FuncOp function,
                                  ArrayRef<HostArray> arguments) {
  Recording recording;
  recording.argumentCount = arguments.size();
  SmallVector<HostValue> values;
  for (auto [slot, argument] : llvm::enumerate(arguments)) {
    HostArray symbolic = argument;
    symbolic.base = SymbolicAddress::ofSlot(slot);
    values.push_back(symbolic);
  }
  RecordingDevice device(recording);
  FailureOr<SmallVector<HostValue>> results = runHost(function, values, device);
  if (failed(results))
    return failure();
  for (const HostValue &result : *results) {
    const auto *array = std::get_if<HostArray>(&result);
    if (!array)
      return function.emitError("expects to return arrays only, but got ")
             << function.getFunctionType();
    recording.results.push_back(*array);
  }
  return recording;
}

/// The address on the device that a symbolic one stands for.
static uint64_t resolve(uint64_t symbolic, ArrayRef<uint64_t> slots) {
  SymbolicAddress address(symbolic);
  return slots[address.slot()] + address.offset();
}

LogicalResult attn::replay(const Recording &recording, Device &device,
                           ArrayRef<uint64_t> slots, Location location) {
  assert(static_cast<int64_t>(slots.size()) == recording.slotCount() &&
         "an address for every slot");
  for (const RecordedStep &step : recording.steps) {
    if (const auto *copy = std::get_if<RecordedCopy>(&step)) {
      HostArray source = copy->source, target = copy->target;
      source.base = resolve(source.base, slots);
      target.base = resolve(target.base, slots);
      if (failed(device.copy(source, target, location)))
        return failure();
      continue;
    }
    const auto &launch = std::get<RecordedLaunch>(step);
    SmallVector<KernelArgument> arguments = launch.arguments;
    for (KernelArgument &argument : arguments)
      if (auto *pointer = std::get_if<uint64_t>(&argument))
        *pointer = resolve(*pointer, slots);
    if (failed(device.launch(launch.kernel, launch.grid, arguments, location)))
      return failure();
  }
  return success();
}
