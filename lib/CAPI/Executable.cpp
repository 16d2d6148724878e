//===- Executable.cpp - Compile once, call often --------------------------===//

#include "Executable.h"

#include "attn/InitAll.h"
#include "attn/Machine/Machine.h"
#include "attn/Pipelines/Nesting.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace attn;
using namespace mlir;

/// The name under which diagnostics show the text.
static constexpr StringLiteral kInputName = "<input>";
/// The base of an array must be a multiple of this: kernels rely on it.
static constexpr uint64_t kBaseAlignment = 16;
/// More shapes than this and the oldest notes are thrown away.
static constexpr size_t kMaxRecordings = 4096;

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// The function to call: the named one, or the only one with a body.
static func::FuncOp chooseFunction(ModuleOp module, StringRef name,
                                   std::string &error) {
  SmallVector<std::string> names;
  func::FuncOp chosen;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    names.push_back(function.getSymName().str());
    if (name.empty() || function.getSymName() == name)
      chosen = function;
  }
  if (chosen && (names.size() == 1 || !name.empty()))
    return chosen;
  if (name.empty())
    error = "expects one function, but got " + std::to_string(names.size());
  else
    error = "expects a function '" + name.str() + "', but there is none";
  if (!names.empty())
    error += "; functions: " + llvm::join(names, ", ");
  return nullptr;
}

std::unique_ptr<Executable> Executable::compile(const Request &request,
                                                std::string &error) {
  if (!request.machine.empty() &&
      !findMachine(std::string_view(request.machine))) {
    error = "expects a known machine, but got '" + request.machine.str() +
            "'; known machines: " + machineNames();
    return nullptr;
  }
  llvm::raw_string_ostream stream(error);
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBufferCopy(request.text, kInputName);
  if (failed(checkNesting(*buffer, stream)))
    return nullptr;
  std::unique_ptr<Executable> executable(new Executable());
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext &context = executable->context;
  context.appendDialectRegistry(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context, stream);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return nullptr;
  if (!chooseFunction(*module, request.function, error))
    return nullptr;

  CompileOptions options;
  options.machine = request.machine.str();
  options.schedule = request.schedule.str();
  FailureOr<Program> program = attn::compile(*module, options);
  if (failed(program))
    return nullptr;
  executable->program = std::move(*program);
  executable->function =
      chooseFunction(*executable->program.module, request.function, error);
  if (!executable->function)
    return nullptr;
  // What was said on the way to success (remarks, warnings) is no error.
  error.clear();
  return executable;
}

std::string Executable::info() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  auto types = [&](StringRef key, TypeRange range) {
    json.attributeArray(key, [&] {
      for (Type type : range) {
        std::string shown;
        llvm::raw_string_ostream(shown) << type;
        json.value(shown);
      }
    });
  };
  func::FuncOp op = function;
  json.object([&] {
    json.attribute("function", op.getSymName());
    types("arguments", op.getArgumentTypes());
    types("results", op.getResultTypes());
    json.attributeArray("kernels", [&] {
      for (const KernelInfo &kernel : program.kernels)
        writeJson(json, kernel);
    });
    json.attributeArray("binaries", [&] {
      for (const Binary &binary : program.binaries)
        json.object([&] {
          json.attribute("chip", binary.chip);
          json.attribute("bytes", static_cast<int64_t>(binary.cubin.size()));
        });
    });
  });
  return text;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

runtime::Status Executable::load(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  runtime::Expected<runtime::Gpu> opened = runtime::Gpu::open(device);
  if (!opened)
    return opened.status();
  runtime::Expected<LoadedKernels> loaded =
      LoadedKernels::load(*opened, program);
  if (!loaded)
    return loaded.status();
  kernels = std::move(*loaded);
  gpu = *opened;
  return runtime::Status::success();
}

/// Whether a run-time number fits the number of a type.
static bool fits(int64_t actual, int64_t expected) {
  return ShapedType::isDynamic(expected) || actual == expected;
}

/// "[2, 8, 100, 64]".
static std::string show(ArrayRef<int64_t> numbers) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(numbers, stream);
  stream << "]";
  return text;
}

/// Whether the array fits the type; a stride is free where nothing is strided.
static std::optional<std::string>
checkArray(const CallerArray &array, MemRefType type, HostArray &argument) {
  auto mismatch = [&](const std::string &got) {
    std::string text;
    llvm::raw_string_ostream(text) << "expects " << type << ", but got " << got;
    return text;
  };
  if (static_cast<int64_t>(array.sizes.size()) != type.getRank())
    return mismatch("rank " + std::to_string(array.sizes.size()));
  for (auto [size, expected] : llvm::zip_equal(array.sizes, type.getShape()))
    if (size < 0 || !fits(size, expected))
      return mismatch("sizes " + show(array.sizes));
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return mismatch("strides " + show(array.strides));
  for (auto [dim, expected] : llvm::enumerate(strides)) {
    bool isFree = array.sizes[dim] <= 1;
    if (array.strides[dim] < 0 ||
        (!isFree && !fits(array.strides[dim], expected)))
      return mismatch("strides " + show(array.strides));
  }

  argument.elementType = type.getElementType();
  argument.sizes = array.sizes;
  argument.strides = array.strides;
  argument.offset = ShapedType::isDynamic(offset) ? 0 : offset;
  // Code was made for the strides of the type, so these are what it gets.
  for (auto [dim, expected] : llvm::enumerate(strides))
    if (!ShapedType::isDynamic(expected))
      argument.strides[dim] = expected;
  // An identity layout means row-major, also where sizes are dynamic.
  if (type.getLayout().isIdentity()) {
    HostArray dense =
        HostArray::contiguous(0, array.sizes, type.getElementType());
    for (auto [dim, stride] : llvm::enumerate(dense.strides))
      if (array.sizes[dim] > 1 && array.strides[dim] != stride)
        return mismatch("strides " + show(array.strides));
    argument.strides = dense.strides;
  }
  uint64_t base = array.address - argument.offset * argument.elementBytes();
  if (base % kBaseAlignment != 0)
    return "expects memory aligned to " + std::to_string(kBaseAlignment) +
           " bytes, but got an address that is " +
           std::to_string(base % kBaseAlignment) + " bytes off";
  return std::nullopt;
}

std::optional<std::string>
Executable::checkArrays(ArrayRef<CallerArray> arrays,
                        SmallVectorImpl<HostArray> &arguments) {
  size_t expected = function.getNumArguments() + function.getNumResults();
  if (arrays.size() != expected)
    return "expects " + std::to_string(expected) +
           " buffers (arguments, then results), but got " +
           std::to_string(arrays.size());
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return "expects arguments that are arrays, but argument " +
             std::to_string(position) + " of the function is none";
    HostArray argument;
    if (std::optional<std::string> wrong =
            checkArray(arrays[position], memref, argument))
      return "buffer " + std::to_string(position) + ": " + *wrong;
    arguments.push_back(argument);
  }
  return std::nullopt;
}

const Recording *Executable::recordingFor(ArrayRef<HostArray> arguments,
                                          std::string &error) {
  std::vector<int64_t> key;
  for (const HostArray &argument : arguments) {
    llvm::append_range(key, argument.sizes);
    llvm::append_range(key, argument.strides);
  }
  auto known = recordings.find(key);
  if (known != recordings.end())
    return &known->second;
  llvm::raw_string_ostream stream(error);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    stream << diagnostic << "\n";
    return success();
  });
  FailureOr<Recording> recording = record(function, arguments);
  if (failed(recording))
    return nullptr;
  if (recordings.size() == kMaxRecordings)
    recordings.clear();
  return &(recordings[key] = std::move(*recording));
}

std::optional<Executable::CallError>
Executable::call(ArrayRef<CallerArray> arrays, runtime::Stream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!gpu)
    return CallError{true, "expects attn_load before attn_call"};
  SmallVector<HostArray> arguments;
  if (std::optional<std::string> wrong = checkArrays(arrays, arguments))
    return CallError{true, *wrong};
  std::string error;
  const Recording *recording = recordingFor(arguments, error);
  if (!recording)
    return CallError{true, error};

  SmallVector<uint64_t> slots(recording->slotCount(), 0);
  for (auto [slot, argument] : llvm::enumerate(arguments))
    slots[slot] =
        arrays[slot].address - argument.offset * argument.elementBytes();
  // The caller's memory takes the place of the results' allocations.
  for (auto [number, result] : llvm::enumerate(recording->results)) {
    const CallerArray &array = arrays[arguments.size() + number];
    bool dense = ArrayRef(array.sizes) == ArrayRef(result.sizes);
    for (size_t dim = 0; dense && dim < array.sizes.size(); ++dim)
      dense =
          array.sizes[dim] <= 1 || array.strides[dim] == result.strides[dim];
    if (!dense || array.address % kBaseAlignment != 0)
      return CallError{true, "result " + std::to_string(number) +
                                 ": expects sizes " + show(result.sizes) +
                                 " and strides " + show(result.strides) +
                                 " in memory aligned to 16 bytes, but got "
                                 "sizes " +
                                 show(array.sizes) + " and strides " +
                                 show(array.strides)};
    SymbolicAddress address(result.base);
    if (address.slot() < static_cast<int64_t>(arguments.size()))
      return CallError{true, "result " + std::to_string(number) +
                                 " is one of the arguments, which has its own "
                                 "memory"};
    slots[address.slot()] = array.address;
  }

  llvm::raw_string_ostream messages(error);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages << diagnostic << "\n";
    return success();
  });
  GpuDevice device(*gpu, kernels, stream);
  bool hasScratch = false;
  for (auto [number, bytes] : llvm::enumerate(recording->allocationBytes)) {
    uint64_t &slot = slots[recording->argumentCount + number];
    if (slot != 0)
      continue;
    FailureOr<uint64_t> scratch = device.allocate(bytes, function.getLoc());
    if (failed(scratch))
      return CallError{false, error};
    slot = *scratch;
    hasScratch = true;
  }
  if (failed(replay(*recording, device, slots, function.getLoc())))
    return CallError{false, error};
  // Scratch is freed with the device, so the stream must be done with it.
  if (hasScratch)
    if (runtime::Status status = gpu->synchronize(stream); !status.ok())
      return CallError{false, status.message()};
  return std::nullopt;
}
