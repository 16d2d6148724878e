//===- Subject.cpp - Kernels whose mutants are run ------------------------===//

#include "Subject.h"

#include "attn/Host/Rounding.h"

#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

static float valueOf(Type type, const uint8_t *from) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, type.getIntOrFloatBitWidth() / 8);
  if (type.isBF16())
    return floatFromBf16(bits);
  if (type.isF16())
    return floatFromF16(bits);
  if (isa<Float8E4M3FNType>(type))
    return floatFromE4m3(bits);
  return floatOfBits(bits);
}

static uint32_t bitsOf(Type type, float value) {
  if (type.isBF16())
    return bf16FromFloat(value);
  if (type.isF16())
    return f16FromFloat(value);
  if (isa<Float8E4M3FNType>(type))
    return e4m3FromFloat(value);
  return bitsOfFloat(value);
}

/// Standard normal numbers, the same in every run.
static std::vector<uint8_t> draw(const HostArray &array, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  int64_t width = array.elementBytes();
  std::vector<uint8_t> bytes(array.extent() * width);
  for (size_t at = 0; at < bytes.size(); at += width) {
    uint32_t bits = bitsOf(array.elementType, normal(random));
    std::memcpy(&bytes[at], &bits, width);
  }
  return bytes;
}

FailureOr<SubjectCase> SubjectCase::make(func::FuncOp function) {
  SubjectCase subject(function.getLoc());
  SmallVector<HostArray> arguments;
  for (Type type : function.getArgumentTypes()) {
    auto array = dyn_cast<MemRefType>(type);
    if (!array || !array.hasStaticShape())
      return function.emitError("expects arrays of static sizes, but got ")
             << type;
    arguments.push_back(
        HostArray::contiguous(0, array.getShape(), array.getElementType()));
  }
  FailureOr<Recording> recording = record(function, arguments);
  if (failed(recording))
    return failure();
  subject.recording = std::move(*recording);
  for (const HostArray &array : arguments) {
    subject.contents.push_back(draw(array, subject.contents.size()));
    subject.slotBytes.push_back(int64_t(subject.contents.back().size()));
  }
  for (int64_t bytes : subject.recording.allocationBytes) {
    subject.contents.emplace_back();
    subject.slotBytes.push_back(bytes);
  }
  for (const HostArray &array : subject.recording.results) {
    SymbolicAddress address(array.base);
    subject.results.push_back(
        {address.slot(),
         int64_t(address.offset()) + array.offset * array.elementBytes(),
         array.extent(), array.elementType});
  }
  for (const RecordedStep &step : subject.recording.steps)
    if (const auto *launch = std::get_if<RecordedLaunch>(&step)) {
      tile::KernelOp kernel = launch->kernel;
      subject.isCooperative |= kernel.getCooperative();
      kernel.walk([&](Operation *op) {
        subject.isCooperative |= isa<tile::AwaitOp>(op);
        // Sums in any order; of those in_order all have the same bits.
        subject.isReproducible &=
            !isa<tile::AddWordsOp>(op) || op->hasAttr("in_order");
      });
    }
  return subject;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Replays a recording, from some launch on, with a kernel in the place of
/// another.
class SubjectCase::Player : public InterpreterDevice {
public:
  explicit Player(const InterpreterOptions &options)
      : InterpreterDevice(options) {}

  tile::KernelOp original, mutant;
  /// The first launch that is done, and memory before it.
  size_t first = 0;
  const GlobalMemory *memoryThen = nullptr;
  /// Where memory before the first launch of every kernel goes.
  std::map<Operation *, GlobalMemory> *before = nullptr;

  LogicalResult launch(tile::KernelOp kernel, std::array<int64_t, 3> grid,
                       ArrayRef<KernelArgument> arguments,
                       Location location) override {
    size_t number = count++;
    if (before)
      before->try_emplace(kernel, memory());
    if (number < first)
      return success();
    if (number == first && memoryThen)
      memory() = *memoryThen;
    return InterpreterDevice::launch(kernel == original ? mutant : kernel, grid,
                                     arguments, location);
  }
  LogicalResult copy(const HostArray &source, const HostArray &target,
                     Location location) override {
    return count < first ? success()
                         : InterpreterDevice::copy(source, target, location);
  }

private:
  size_t count = 0;
};

/// Reserves all slots, and fills those that have contents.
static SmallVector<uint64_t> upload(GlobalMemory &memory,
                                    ArrayRef<int64_t> slotBytes,
                                    ArrayRef<std::vector<uint8_t>> contents) {
  SmallVector<uint64_t> slots;
  for (auto [bytes, content] : llvm::zip_equal(slotBytes, contents)) {
    slots.push_back(memory.allocate(bytes));
    memory.write(slots.back(), content.data(), int64_t(content.size()));
  }
  return slots;
}

/// What stands for a number that nobody has written: no other NaN is like it.
static constexpr uint32_t kUnwritten = 0xffffffff;

std::vector<SubjectCase::Numbers>
SubjectCase::resultsOf(GlobalMemory &memory, ArrayRef<uint64_t> slots) const {
  std::vector<Numbers> all;
  for (const Result &result : results) {
    int64_t width = result.type.getIntOrFloatBitWidth() / 8;
    uint64_t address = slots[result.slot] + result.offset;
    std::vector<uint8_t> bytes(result.count * width);
    bool isWhole = !memory.read(address, bytes.data(), int64_t(bytes.size()));
    Numbers &numbers = all.emplace_back();
    for (int64_t i = 0; i < result.count; ++i) {
      uint8_t *number = &bytes[i * width];
      bool isWritten =
          isWhole || !memory.read(address + i * width, number, width);
      numbers.push_back(isWritten ? bitsOfFloat(valueOf(result.type, number))
                                  : kUnwritten);
    }
  }
  return all;
}

LogicalResult SubjectCase::runRight(const InterpreterOptions &order,
                                    llvm::DenseSet<Operation *> &executed) {
  Run run{order, {}, {}};
  InterpreterOptions options = order;
  options.executed = &executed;
  Player player(options);
  player.before = &run.before;
  SmallVector<uint64_t> slots = upload(player.memory(), slotBytes, contents);
  if (failed(replay(recording, player, slots, location)))
    return failure();
  run.results = resultsOf(player.memory(), slots);
  runs.push_back(std::move(run));
  return success();
}

bool SubjectCase::has(tile::KernelOp kernel) const {
  return llvm::any_of(recording.steps, [&](const RecordedStep &step) {
    const auto *launch = std::get_if<RecordedLaunch>(&step);
    return launch && launch->kernel == kernel;
  });
}

std::string SubjectCase::difference(const std::vector<Numbers> &numbers,
                                    const std::vector<Numbers> &right) const {
  if (numbers == right)
    return "";
  if (isReproducible)
    return "wrong numbers";
  // Of sums in another order.
  constexpr double limit = 4e-3;
  for (auto [got, want] : llvm::zip_equal(numbers, right)) {
    double squares = 0, size = 0;
    for (auto [a, b] : llvm::zip_equal(got, want)) {
      double exact = floatOfBits(b), error = floatOfBits(a) - exact;
      // Rows that see nothing have infinities.
      squares += a == b ? 0 : error * error;
      size += std::isfinite(exact) ? exact * exact : 0;
    }
    if (!(squares <= limit * limit * size))
      return "wrong numbers";
  }
  return "";
}

std::string SubjectCase::verdict(tile::KernelOp kernel, tile::KernelOp mutant,
                                 size_t order) const {
  const Run &run = runs[order];
  size_t first = 0;
  for (const RecordedStep &step : recording.steps)
    if (const auto *launch = std::get_if<RecordedLaunch>(&step)) {
      if (launch->kernel == kernel)
        break;
      ++first;
    }
  Player player(run.options);
  player.original = kernel;
  player.mutant = mutant;
  player.first = first;
  player.memoryThen = &run.before.at(kernel);
  SmallVector<uint64_t> slots = upload(player.memory(), slotBytes, contents);
  std::string error;
  ScopedDiagnosticHandler handler(mutant->getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (error.empty())
                                      error = diagnostic.str();
                                    return success();
                                  });
  if (failed(replay(recording, player, slots, location)))
    return error;
  return difference(resultsOf(player.memory(), slots), run.results);
}
