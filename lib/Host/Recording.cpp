//===- Recording.cpp - Taking notes and doing what they say ---------------===//

#include "attn/Host/Recording.h"

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
  FailureOr<uint64_t> counters(int64_t count, Location) override {
    recording.counterWords.push_back(count);
    return SymbolicAddress::ofCounter(recording.counterWords.size() - 1);
  }
  LogicalResult copy(const HostArray &source, const HostArray &target,
                     Location) override {
    recording.steps.push_back(RecordedCopy{source, target});
    return success();
  }
  LogicalResult runLoops(const ElementLoops &loops) override {
    recording.steps.push_back(loops);
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
    if (SymbolicAddress(array->base).isCounter())
      return function.emitError("expects to return arrays, but got a counter");
    recording.results.push_back(*array);
  }
  return recording;
}

namespace {
/// The addresses on a device that symbolic ones stand for.
struct Addresses {
  ArrayRef<uint64_t> slots;
  SmallVector<uint64_t> counters;

  void resolve(uint64_t &symbolic) const {
    SymbolicAddress address(symbolic);
    symbolic =
        address.offset() + (address.isCounter() ? counters[address.counter()]
                                                : slots[address.slot()]);
  }
};
} // namespace

LogicalResult attn::replay(const Recording &recording, Device &device,
                           ArrayRef<uint64_t> slots, Location location) {
  assert(static_cast<int64_t>(slots.size()) == recording.slotCount() &&
         "an address for every slot");
  Addresses addresses = {slots, {}};
  for (int64_t words : recording.counterWords) {
    FailureOr<uint64_t> counter = device.counters(words, location);
    if (failed(counter))
      return failure();
    addresses.counters.push_back(*counter);
  }
  for (const RecordedStep &step : recording.steps) {
    if (const auto *copy = std::get_if<RecordedCopy>(&step)) {
      HostArray source = copy->source, target = copy->target;
      addresses.resolve(source.base);
      addresses.resolve(target.base);
      if (failed(device.copy(source, target, location)))
        return failure();
      continue;
    }
    if (const auto *recorded = std::get_if<ElementLoops>(&step)) {
      ElementLoops loops = *recorded;
      for (auto &[value, of] : loops.values)
        if (auto *array = std::get_if<HostArray>(&of))
          addresses.resolve(array->base);
      if (failed(device.runLoops(loops)))
        return failure();
      continue;
    }
    const auto &launch = std::get<RecordedLaunch>(step);
    SmallVector<KernelArgument> arguments = launch.arguments;
    for (KernelArgument &argument : arguments) {
      if (auto *pointer = std::get_if<uint64_t>(&argument))
        addresses.resolve(*pointer);
      if (auto *map = std::get_if<TensorMapArgument>(&argument))
        addresses.resolve(map->address);
    }
    if (failed(device.launch(launch.kernel, launch.grid, arguments, location)))
      return failure();
  }
  return success();
}
