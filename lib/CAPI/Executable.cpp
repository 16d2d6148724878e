//===- Executable.cpp - Compile once, call often --------------------------===//

#include "Executable.h"

#include "attn/IR/Attn.h"
#include "attn/InitAll.h"
#include "attn/Machine/MachineText.h"
#include "attn/Pipelines/Nesting.h"

#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace attn;
using namespace mlir;

/// The name under which diagnostics show the text.
static constexpr StringLiteral kInputName = "<input>";
/// More shapes than this and the bindings are made again.
static constexpr size_t kMaxBindings = 4096;

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
      !parseMachine(std::string_view(request.machine), error))
    return nullptr;
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
  func::FuncOp source = chooseFunction(*module, request.function, error);
  if (!source)
    return nullptr;
  executable->demands = demandsOf(source);
  executable->apart = argumentsApart(source);
  executable->equalSizes = equalSizesOf(source);
  executable->leastSizes = leastSizesOf(source);

  CompileOptions options;
  options.machine = request.machine.str();
  options.schedule = request.schedule.str();
  options.withBinary = request.withBinary;
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
    if (auto machine =
            program.module.get()->getAttrOfType<MachineAttr>(machineAttrName))
      json.attribute("machine", machine.getName().getValue());
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
          json.attribute("assembler", binary.assembler.empty()
                                          ? llvm::json::Value(nullptr)
                                          : binary.assembler);
          json.attribute("bytes", static_cast<int64_t>(binary.image().size()));
        });
    });
  });
  return text;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static Fault caller(const std::string &message) {
  return {ATTN_INVALID_ARGUMENT, message};
}

Outcome Executable::load(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  runtime::Expected<runtime::Gpu> opened = runtime::Gpu::open(device);
  if (!opened)
    return Fault{ATTN_DEVICE_ERROR, opened.message()};
  runtime::Expected<std::shared_ptr<const LoadedKernels>> loaded =
      LoadedKernels::load(*opened, device, program);
  if (!loaded)
    return Fault{ATTN_DEVICE_ERROR, loaded.message()};
  kernels = *loaded;
  bindings.clear();
  return std::nullopt;
}

Outcome Executable::record(ArrayRef<CallerArray> arrays,
                           SmallVectorImpl<HostArray> &arguments,
                           Recording &recording) {
  size_t expected = function.getNumArguments() + function.getNumResults();
  if (arrays.size() != expected)
    return caller("expects " + std::to_string(expected) +
                  " buffers (arguments, then results), but got " +
                  std::to_string(arrays.size()));
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref)
      return caller("expects arguments that are arrays, but argument " +
                    std::to_string(position) + " of the function is none");
    HostArray argument;
    if (std::optional<std::string> wrong =
            checkArray(arrays[position], memref, demands[position], argument))
      return caller("buffer " + std::to_string(position) + ": " + *wrong);
    arguments.push_back(argument);
  }
  if (std::optional<std::string> wrong = checkSizes(arrays, equalSizes))
    return caller(*wrong);
  if (std::optional<std::string> wrong = checkSizes(arrays, leastSizes))
    return caller(*wrong);
  std::string error;
  llvm::raw_string_ostream stream(error);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    stream << diagnostic << "\n";
    return success();
  });
  FailureOr<Recording> notes = attn::record(function, arguments);
  if (failed(notes))
    return caller(error);
  recording = std::move(*notes);
  return std::nullopt;
}

/// The caller's memory takes the place of the result's allocation.
std::optional<std::string>
Executable::placeResult(size_t number, const CallerArray &array,
                        const Recording &recording,
                        Binding::Buffer &buffer) const {
  const HostArray &result = recording.results[number];
  bool dense = ArrayRef(array.sizes) == ArrayRef(result.sizes);
  for (size_t dim = 0; dense && dim < array.sizes.size(); ++dim)
    dense = array.sizes[dim] <= 1 || array.strides[dim] == result.strides[dim];
  if (!dense || array.address % kMaxAlignment != 0)
    return "expects sizes " + show(result.sizes) + " and strides " +
           show(result.strides) + " in memory aligned to " +
           std::to_string(kMaxAlignment) + " bytes, but got sizes " +
           show(array.sizes) + " and strides " + show(array.strides);
  SymbolicAddress address(result.base);
  if (address.slot() < recording.argumentCount)
    return "is one of the arguments, which has its own memory";
  buffer.slot = address.slot();
  buffer.alignment = kMaxAlignment;
  buffer.isEmpty = result.count() == 0;
  buffer.offsetBytes = address.offset() + result.offset * result.elementBytes();
  return std::nullopt;
}

Outcome Executable::place(ArrayRef<CallerArray> arrays, Recording &recording,
                          Callers &callers) {
  SmallVector<HostArray> arguments;
  if (Outcome fault = record(arrays, arguments, recording))
    return fault;
  callers.apart = apart;
  for (auto [slot, argument] : llvm::enumerate(arguments)) {
    int64_t bytes = argument.elementBytes();
    callers.buffers.push_back({slot, demands[slot].base, argument.count() == 0,
                               argument.offset * bytes, /*isMapped=*/false,
                               demands[slot].isOfAttention
                                   ? layoutOf(arrays[slot], bytes)
                                   : Layout()});
  }
  for (size_t number = 0; number < recording.results.size(); ++number) {
    Binding::Buffer buffer;
    if (std::optional<std::string> wrong = placeResult(
            number, arrays[arguments.size() + number], recording, buffer))
      return caller("result " + std::to_string(number) + ": " + *wrong);
    size_t position = callers.buffers.size();
    buffer.layout =
        layoutOf(arrays[position], recording.results[number].elementBytes());
    callers.buffers.push_back(buffer);
    auto nameOf = [&](size_t at) {
      return at < arguments.size()
                 ? "argument " + std::to_string(at)
                 : "result " + std::to_string(at - arguments.size());
    };
    for (size_t other = 0; other < position; ++other)
      if (other >= arguments.size() || demands[other].isOfAttention)
        callers.apart.push_back(
            {position, other, nameOf(position), nameOf(other)});
  }
  return std::nullopt;
}

Outcome Executable::scratchBytes(ArrayRef<CallerArray> arrays, int64_t &bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  Recording recording;
  Callers callers;
  if (Outcome fault = place(arrays, recording, callers))
    return fault;
  bytes = Binding::scratchOf(recording, callers.buffers).bytes();
  return std::nullopt;
}

Outcome Executable::bind(ArrayRef<CallerArray> arrays,
                         std::shared_ptr<const Binding> &binding) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!kernels)
    return caller("expects attn_load before attn_call or attn_bind");
  std::vector<int64_t> key;
  for (const CallerArray &array : arrays) {
    key.push_back(array.sizes.size());
    llvm::append_range(key, array.sizes);
    llvm::append_range(key, array.strides);
  }
  if (auto known = bindings.find(key); known != bindings.end()) {
    binding = known->second;
    return std::nullopt;
  }

  Recording recording;
  Callers callers;
  if (Outcome fault = place(arrays, recording, callers))
    return fault;
  if (bindings.size() == kMaxBindings)
    bindings.clear();
  runtime::Expected<std::shared_ptr<const Binding>> made = Binding::make(
      kernels, recording, std::move(callers.buffers), std::move(callers.apart));
  if (!made)
    return Fault{ATTN_DEVICE_ERROR, made.message()};
  binding = *made;
  bindings[key] = binding;
  return std::nullopt;
}
