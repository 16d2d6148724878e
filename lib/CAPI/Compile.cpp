//===- Compile.cpp - Runs the pipelines, collects what they made ----------===//

#include "attn/CAPI/Compile.h"

#include "attn/IR/Attn.h"
#include "attn/Kernels/Kernels.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Runtime/Cubin.h"
#include "attn/Schedule/Plan.h"
#include "attn/Tile/SharedMemory.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"

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

/// Takes the cubins out of a module after attn-to-binary.
static LogicalResult collectBinaries(ModuleOp module, Program &program) {
  for (gpu::BinaryOp op : module.getOps<gpu::BinaryOp>()) {
    auto object = cast<gpu::ObjectAttr>(op.getObjects()[0]);
    Binary binary;
    if (auto target = dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()))
      binary.chip = target.getChip().str();
    binary.cubin = object.getObject().getValue().str();
    runtime::Expected<std::vector<runtime::CubinKernel>> kernels =
        runtime::readCubin(binary.cubin);
    if (!kernels)
      return op.emitError(kernels.message());
    for (const runtime::CubinKernel &compiled : *kernels)
      for (KernelInfo &info : program.kernels) {
        if (info.name != op.getName().str() + "::" + compiled.name)
          continue;
        info.binary = program.binaries.size();
        info.registersPerThread = compiled.registersPerThread;
        info.stackBytesPerThread = compiled.stackBytesPerThread;
      }
    program.binaries.push_back(std::move(binary));
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

  // The host function stays with its launches; a copy becomes the binary.
  OwningOpRef<ModuleOp> binary = program.module->clone();
  PassManager toBinary(context);
  buildTileToNVVMPipeline(toBinary);
  buildNVVMToBinaryPipeline(toBinary, BinaryFormat::bin);
  if (failed(toBinary.run(*binary)) ||
      failed(collectBinaries(*binary, program)))
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
    json.attribute("predicted_seconds", kernel.predictedSeconds);
    json.attribute("bound_by", kernel.boundBy);
    json.attributeObject("planned_for", [&] {
      json.attribute("batch", kernel.plannedFor.batch);
      json.attribute("queries", kernel.plannedFor.queries);
      json.attribute("keys", kernel.plannedFor.keys);
    });
  });
}
