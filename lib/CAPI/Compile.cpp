//===- Compile.cpp - Runs the pipelines, collects what they made ----------===//

#include "attn/CAPI/Compile.h"

#include "attn/CAPI/Assembler.h"
#include "attn/CAPI/KernelCache.h"
#include "attn/IR/Attn.h"
#include "attn/Kernels/Kernels.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Runtime/Cubin.h"
#include "attn/Schedule/Plan.h"
#include "attn/Tile/SharedMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"

#include <atomic>

using namespace attn;
using namespace mlir;

std::string attn::qualifiedName(tile::KernelOp kernel) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  return (module ? module.getName().str() : "") + "::" + kernel.getName().str();
}

/// What the cost model says about a kernel.
static void addPrediction(tile::KernelOp kernel, MachineAttr machine,
                          ScheduleAttr schedule, KernelInfo &info) {
  auto attribute = kernel->getAttrOfType<DictionaryAttr>(kProblemAttr);
  std::optional<Problem> problem;
  if (attribute)
    problem = problemFromAttr(attribute);
  if (!problem)
    return;
  info.plannedFor = *problem;
  std::string error;
  std::optional<Plan> plan =
      planFor(*problem, machine.resolve(), schedule.getName().getValue().str(),
              schedule.tiles(), error);
  if (!plan)
    return;
  info.predictedSeconds = plan->seconds;
  info.boundBy = plan->boundBy;
}

static KernelInfo describe(tile::KernelOp kernel) {
  KernelInfo info;
  info.name = qualifiedName(kernel);
  info.threads = kernel.threads();
  info.smemBytes = tile::SharedMemory(kernel).totalBytes();
  info.cluster = kernel.getCluster();
  info.isCooperative = kernel.getCooperative();
  auto machine = kernel->getAttrOfType<MachineAttr>("machine");
  auto schedule = kernel->getAttrOfType<ScheduleAttr>("schedule");
  if (machine)
    info.machine = machine.getName().getValue().str();
  if (schedule)
    info.schedule =
        schedule.getName().getValue().str() + ", " + schedule.tiles().str();
  if (machine && schedule)
    addPrediction(kernel, machine, schedule, info);
  return info;
}

static std::atomic<int64_t> compiled = 0;

int64_t attn::compiledCount() { return compiled; }

/// What the cache knows a kernel module by: its text, less what only tells
/// for which sizes it was planned.
static std::string textOf(gpu::GPUModuleOp kernels) {
  OwningOpRef<gpu::GPUModuleOp> copy = kernels.clone();
  copy->walk([](tile::KernelOp kernel) { kernel->removeAttr(kProblemAttr); });
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().enableDebugInfo(false));
  return text;
}

/// The PTX of a kernel module, and the chip that it is for.
static LogicalResult translate(gpu::GPUModuleOp kernels, Binary &binary) {
  auto parent = kernels->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(parent.getLoc());
  (*module)->setAttrs(parent->getAttrDictionary());
  module->push_back(kernels.clone());
  PassManager passes(module->getContext());
  buildTileToNVVMPipeline(passes);
  buildNVVMToBinaryPipeline(passes, BinaryFormat::isa);
  if (failed(passes.run(*module)))
    return failure();
  gpu::BinaryOp op = *module->getOps<gpu::BinaryOp>().begin();
  auto object = cast<gpu::ObjectAttr>(op.getObjects()[0]);
  if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()))
    binary.chip = target.getChip().str();
  binary.ptx = object.getObject().getValue().rtrim('\0').str();
  return success();
}

/// Nothing if a cubin, where there is one, has all of these kernels.
static std::optional<std::string> whyOther(gpu::GPUModuleOp kernels,
                                           StringRef cubin) {
  if (cubin.empty())
    return std::nullopt;
  runtime::Expected<std::vector<runtime::CubinKernel>> inside =
      runtime::readCubin(cubin);
  if (!inside)
    return inside.message();
  for (auto kernel : kernels.getOps<tile::KernelOp>())
    if (llvm::none_of(*inside, [&](const runtime::CubinKernel &each) {
          return each.name == kernel.getName();
        }))
      return "a cubin without kernel '" + kernel.getName().str() + "'";
  return std::nullopt;
}

/// Compiles a kernel module, or finds it in the cache.
static FailureOr<Binary> makeBinary(gpu::GPUModuleOp kernels,
                                    const Machine &machine,
                                    const std::optional<Assembler> &assembler) {
  KernelCache &cache = KernelCache::get();
  std::string text = textOf(kernels);
  std::string version = assembler ? assembler->version : "";
  std::string key = KernelCache::key({text, machine.name, version});
  Binary binary;
  binary.chip = machine.chip;
  if (std::optional<CachedKernel> found = cache.find(key);
      found && !whyOther(kernels, found->cubin)) {
    binary.ptx = std::move(found->ptx);
    binary.cubin = std::move(found->cubin);
    binary.assembler = std::move(found->assembler);
    return binary;
  }
  if (failed(translate(kernels, binary)))
    return failure();
  if (assembler) {
    runtime::Expected<std::string> cubin =
        assembler->assemble(binary.ptx, binary.chip);
    if (!cubin)
      return kernels.emitError() << cubin.message();
    if (std::optional<std::string> wrong = whyOther(kernels, *cubin))
      return kernels.emitError() << assembler->path << " made " << *wrong;
    binary.cubin = std::move(*cubin);
    binary.assembler = version;
  }
  ++compiled;
  cache.store(key, {binary.assembler, binary.ptx, binary.cubin});
  return binary;
}

/// Notes what the cubin says about the kernels in it.
static LogicalResult readCubin(gpu::GPUModuleOp kernels, Program &program) {
  size_t position = program.binaries.size() - 1;
  const Binary &binary = program.binaries.back();
  for (KernelInfo &info : program.kernels)
    if (StringRef(info.name).starts_with(kernels.getName().str() + "::"))
      info.binary = position;
  if (binary.cubin.empty())
    return success();
  runtime::Expected<std::vector<runtime::CubinKernel>> inside =
      runtime::readCubin(binary.cubin);
  if (!inside)
    return kernels.emitError(inside.message());
  for (const runtime::CubinKernel &kernel : *inside)
    for (KernelInfo &info : program.kernels) {
      if (info.name != kernels.getName().str() + "::" + kernel.name)
        continue;
      info.registersPerThread = kernel.registersPerThread;
      info.stackBytesPerThread = kernel.stackBytesPerThread;
    }
  return success();
}

static LogicalResult makeBinaries(Program &program) {
  runtime::Expected<std::optional<Assembler>> assembler = findAssembler();
  if (!assembler)
    return program.module->emitError() << assembler.message();
  for (auto kernels : program.module->getOps<gpu::GPUModuleOp>()) {
    if (kernels.getOps<tile::KernelOp>().empty())
      continue; // somebody else's
    std::optional<Machine> machine = machineFor(kernels);
    if (!machine)
      return kernels.emitError("expects a machine to compile for");
    FailureOr<Binary> binary = makeBinary(kernels, *machine, *assembler);
    if (failed(binary))
      return failure();
    program.binaries.push_back(std::move(*binary));
    if (failed(readCubin(kernels, program)))
      return failure();
  }
  return success();
}

FailureOr<Program> attn::compile(ModuleOp source,
                                 const CompileOptions &options) {
  MLIRContext *context = source.getContext();
  Program program;
  program.module = source.clone();

  PassManager toTile(context);
  LoweringOptions lowering;
  lowering.machine = options.machine;
  lowering.schedule = options.schedule;
  buildAttnToTilePipeline(toTile, lowering);
  if (failed(toTile.run(*program.module)))
    return failure();
  program.module->walk([&](tile::KernelOp kernel) {
    program.kernels.push_back(describe(kernel));
  });
  if (!options.withBinary)
    return program;

  if (failed(makeBinaries(program)))
    return failure();
  return program;
}

void attn::writeJson(llvm::json::OStream &json, const KernelInfo &kernel) {
  json.object([&] {
    json.attribute("name", kernel.name);
    json.attribute("machine", kernel.machine);
    json.attribute("schedule", kernel.schedule);
    json.attribute("threads", kernel.threads);
    json.attribute("smem_bytes", kernel.smemBytes);
    json.attribute("registers", kernel.registersPerThread);
    json.attribute("stack_bytes", kernel.stackBytesPerThread);
    json.attribute("binary", static_cast<int64_t>(kernel.binary));
    json.attribute("predicted_seconds", kernel.predictedSeconds);
    json.attribute("bound_by", kernel.boundBy);
    json.attributeObject("planned_for", [&] {
      json.attribute("batch", kernel.plannedFor.batch);
      json.attribute("queries", kernel.plannedFor.queries);
      json.attribute("keys", kernel.plannedFor.keys);
    });
  });
}
