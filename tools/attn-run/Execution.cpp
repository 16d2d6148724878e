//===- Execution.cpp - To the device and back -----------------------------===//

#include "Execution.h"

#include "ClauseInputs.h"
#include "Listings.h"
#include "Reference.h"

#include "attn/CAPI/Binding.h"
#include "attn/Interpreter/InterpreterDevice.h"
#include "attn/Schedule/Layout.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <limits>
#include <unistd.h>

using namespace attn;
using namespace attn::run;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// Strides of a buffer: those of the type, the open ones so that the array is
/// as small as the known ones allow.  `strided<[?, 64, 512, 1]>` of sizes
/// 2x8x100x64 gets 51200 for the batch.
static FailureOr<HostArray> layOut(func::FuncOp function, unsigned position,
                                   ArrayRef<int64_t> sizes, bool isWritten) {
  auto type = dyn_cast<MemRefType>(function.getArgument(position).getType());
  if (!type)
    return function.emitError("expects the compiled function to take memrefs, "
                              "but argument ")
           << position << " is " << function.getArgument(position).getType();
  HostArray array;
  array.sizes = llvm::to_vector(sizes);
  array.elementType = type.getElementType();
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(array.strides, offset)))
    return function.emitError("expects a strided layout, but got ") << type;
  array.offset = ShapedType::isDynamic(offset) ? 0 : offset;
  // Sizes that were open may reach too far with strides that were not, or lie
  // on each other.
  auto wrong = [&] {
    Layout layout{{array.sizes.begin(), array.sizes.end()},
                  {array.strides.begin(), array.strides.end()},
                  array.offset,
                  array.elementBytes()};
    return wrongLayout(layout, isWritten);
  };
  std::optional<std::string> wanted = wrong();
  int64_t span = 1;
  for (auto [size, stride] : llvm::zip_equal(array.sizes, array.strides))
    if (!wanted && size > 1 && !ShapedType::isDynamic(stride))
      span = std::max(span, size * stride);
  for (int64_t dim = array.sizes.size() - 1; dim >= 0 && !wanted; --dim) {
    if (!ShapedType::isDynamic(array.strides[dim]))
      continue;
    array.strides[dim] = span;
    span *= std::max<int64_t>(array.sizes[dim], 1);
    wanted = wrong();
  }
  if (wanted)
    return function.emitError("expects argument ")
           << position << " to have " << *wanted << ", but got " << type
           << " of sizes " << sizes;
  return array;
}

/// Fails unless this computer has memory for so many bytes of arrays, of which
/// there are three copies: what comes in, what comes out, and the device's.
static LogicalResult checkMemory(func::FuncOp function, double bytes) {
  const double memory =
      double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  const double most = std::floor(memory / 3);
  if (bytes <= most)
    return success();
  return function.emitError("expects arrays of at most ")
         << llvm::formatv("{0:f0}", most).str()
         << " bytes in all, a third of this computer's memory, but got "
         << llvm::formatv("{0:f0}", bytes).str();
}

/// Fills the inputs of an attention.
static void drawInputs(const Attention &attention,
                       std::vector<HostBytes> &arrays, Inputs inputs,
                       uint64_t seed) {
  double scale = inputs == Inputs::large ? 8 : 1;
  HostBytes &k = arrays[attention.input("k")];
  fillRandom(arrays[attention.input("q")], 3 * seed, scale);
  fillRandom(k, 3 * seed + 1, scale);
  if (!attention.problem.valuesOfKeys)
    fillRandom(arrays[attention.input("v")], 3 * seed + 2, 1);
  // Seeds of their own, far from those.
  const StringLiteral others[] = {"do", "dlse"};
  for (auto [number, role] : llvm::enumerate(others))
    if (attention.inputs.count(role.str()))
      fillRandom(arrays[attention.input(role)], ~(2 * seed + number), 1);
  const Problem &problem = attention.problem;
  if (problem.batch == 0 || problem.keys == 0)
    return;
  // One element of one key; which one depends on the seed.
  auto choose = [&, state = seed](int64_t count) mutable {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % count);
  };
  SmallVector<int64_t> where;
  for (int64_t size : k.shape.sizes)
    where.push_back(choose(size));
  if (inputs == Inputs::nanKey)
    k.set(where, std::nan(""));
  if (inputs == Inputs::infinity)
    k.set(where, std::numeric_limits<double>::infinity());
}

FailureOr<Execution> run::prepare(const Function &function,
                                  const Program &program, Inputs inputs,
                                  uint64_t seed, int64_t guardBytes) {
  func::FuncOp source = function.op;
  auto compiled =
      program.module.get().lookupSymbol<func::FuncOp>(function.name);
  if (!compiled)
    return source.emitError("expects the compiled module to have a function "
                            "of this name");
  // Results of a function on tensors may have become arguments behind the
  // others, or be returned.
  std::vector<SmallVector<int64_t>> sizes = function.argumentSizes;
  size_t own = sizes.size();
  for (const Output &output : function.outputs)
    if (function.onTensors && sizes.size() < compiled.getNumArguments())
      sizes.push_back(output.sizes);
  if (sizes.size() != compiled.getNumArguments())
    return compiled.emitError("expects ")
           << sizes.size() << " arguments, but got "
           << compiled.getNumArguments();

  SmallVector<HostArray> shapes;
  double bytes = 0;
  for (auto [position, size] : llvm::enumerate(sizes)) {
    auto isHere = [&, position = position](const Output &output) {
      return !function.onTensors && output.position == position;
    };
    bool isWritten = llvm::any_of(function.outputs, isHere);
    FailureOr<HostArray> shape = layOut(compiled, position, size, isWritten);
    if (failed(shape))
      return failure();
    bytes += double(shape->extent()) * double(shape->elementBytes());
    shapes.push_back(*shape);
  }
  FailureOr<Recording> recording = record(compiled, shapes);
  if (failed(recording))
    return failure();
  for (int64_t allocated : recording->allocationBytes)
    bytes += double(allocated);
  if (failed(checkMemory(source, bytes)))
    return failure();

  Execution execution;
  for (const HostArray &shape : shapes)
    execution.arrays.emplace_back(shape, guardBytes);
  for (int64_t bytes : recording->allocationBytes)
    execution.arrays.emplace_back(
        HostArray::contiguous(0, {bytes},
                              IntegerType::get(source.getContext(), 8)),
        guardBytes);
  for (const Attention &attention : function.attentions) {
    drawInputs(attention, execution.arrays, inputs, seed);
    drawClauseInputs(attention, execution.arrays, seed);
  }
  for (const Merging &merging : function.merges)
    drawParts(merging, execution.arrays, seed);
  for (const Listing &listing : function.listings)
    drawListing(listing, execution.arrays, seed);

  size_t returned = 0;
  for (const Output &output : function.outputs) {
    if (!function.onTensors) {
      execution.outputs.push_back(output.position);
      continue;
    }
    if (own < shapes.size()) {
      execution.outputs.push_back(own++);
      continue;
    }
    if (returned == recording->results.size())
      return compiled.emitError("expects ")
             << function.outputs.size() << " results, but got " << returned;
    // The result lies in what was an allocation of bytes.
    const HostArray &result = recording->results[returned++];
    int64_t slot = SymbolicAddress(result.base).slot();
    HostBytes &array = execution.arrays[slot];
    array.shape = result;
    array.shape.base = 0;
    execution.outputs.push_back(slot);
  }
  execution.recording = std::move(*recording);
  return execution;
}

//===----------------------------------------------------------------------===//
// The interpreter
//===----------------------------------------------------------------------===//

FailureOr<tile::Traffic> run::runInterpreted(Execution &execution,
                                             Location location, Trace *trace) {
  InterpreterOptions options;
  options.trace = trace;
  InterpreterDevice device(options);
  SmallVector<uint64_t> slots;
  // Guards are not needed: memory of the interpreter notices every access
  // outside an allocation.
  for (HostBytes &array : execution.arrays) {
    int64_t bytes = array.bytes.size() - 2 * array.guardBytes;
    FailureOr<uint64_t> address = device.allocate(bytes, location);
    if (failed(address))
      return failure();
    slots.push_back(*address);
    if (std::optional<std::string> wrong = device.memory().write(
            *address, array.bytes.data() + array.guardBytes, bytes))
      return emitError(location) << *wrong;
  }
  if (failed(replay(execution.recording, device, slots, location)))
    return failure();
  for (auto [array, address] : llvm::zip_equal(execution.arrays, slots))
    if (std::optional<std::string> wrong =
            device.memory().read(address, array.bytes.data() + array.guardBytes,
                                 array.bytes.size() - 2 * array.guardBytes))
      return emitError(location) << *wrong;
  return device.traffic();
}

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

/// The whole way there and back, as one Status.
static runtime::Status runOnGpu(Execution &execution, const Program &program,
                                const runtime::Gpu &gpu, int64_t repeat,
                                std::vector<double> &seconds) {
  using runtime::Status;
  runtime::Expected<std::shared_ptr<const LoadedKernels>> kernels =
      LoadedKernels::load(gpu, /*device=*/0, program);
  if (!kernels)
    return kernels.status();
  // Every slot, also of an allocation, has memory of ours.
  std::vector<Binding::Buffer> buffers;
  for (size_t slot = 0; slot < execution.arrays.size(); ++slot)
    buffers.push_back({slot});
  runtime::Expected<std::shared_ptr<const Binding>> binding =
      Binding::make(*kernels, execution.recording, std::move(buffers));
  if (!binding)
    return binding.status();

  std::vector<runtime::Memory> memory;
  SmallVector<uint64_t> slots;
  for (HostBytes &array : execution.arrays) {
    runtime::Expected<runtime::Memory> piece = gpu.allocate(array.bytes.size());
    if (!piece)
      return piece.status();
    if (Status status = gpu.copyToDevice(piece->address, array.bytes.data(),
                                         array.bytes.size());
        !status.ok())
      return status;
    slots.push_back(piece->address + array.guardBytes);
    memory.push_back(std::move(*piece));
  }
  auto run = [&] { return (*binding)->launch(slots, /*stream=*/nullptr); };
  if (Status status = run(); !status.ok())
    return status;
  if (Status status = gpu.synchronize(); !status.ok())
    return status;
  for (auto [array, piece] : llvm::zip_equal(execution.arrays, memory))
    if (Status status = gpu.copyToHost(array.bytes.data(), piece.address,
                                       array.bytes.size());
        !status.ok())
      return status;
  if (Status status = gpu.synchronize(); !status.ok())
    return status;

  runtime::Expected<runtime::Event> first = gpu.event();
  runtime::Expected<runtime::Event> last = gpu.event();
  if (!first || !last)
    return (first ? last : first).status();
  for (int64_t i = 0; i < repeat; ++i) {
    Status status = gpu.record(*first);
    if (status.ok())
      status = run();
    if (status.ok())
      status = gpu.record(*last);
    if (!status.ok())
      return status;
    runtime::Expected<double> time = gpu.secondsBetween(*first, *last);
    if (!time)
      return time.status();
    seconds.push_back(*time);
  }
  return Status::success();
}

FailureOr<std::vector<double>>
run::runOnGpu(Execution &execution, const Program &program,
              const runtime::Gpu &gpu, int64_t repeat, Location location) {
  std::vector<double> seconds;
  runtime::Status status = ::runOnGpu(execution, program, gpu, repeat, seconds);
  if (!status.ok())
    return emitError(location) << status.message();
  return seconds;
}
