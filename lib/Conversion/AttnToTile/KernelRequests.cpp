//===- KernelRequests.cpp - What kernel an attn op asks for ---------------===//

#include "KernelRequests.h"
#include "KernelModule.h"

#include "attn/IR/CaptureGradients.h"
#include "attn/IR/OpenSizes.h"
#include "attn/IR/Packing.h"
#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"

#include <tuple>

using namespace mlir;
using namespace attn;

FailureOr<std::vector<KernelChoice>> attn::kernelsFor(AttentionOpInterface op,
                                                      const Machine &machine) {
  if (op.isOnTensors())
    return op->emitOpError("expects memrefs here: bufferize first");
  if (failed(refuseClauses(op)))
    return failure();
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return op->emitOpError(
        "expects a schedule: run -attn-select-schedule first "
        "or give one");
  Problem problem = packingOf(op).problem;
  std::string error;
  std::optional<Decision> decided =
      decide(problem, machineForPlans(op, machine),
             schedule.getName().getValue().str(), schedule.tiles(), error);
  if (!decided)
    return op->emitOpError() << error;
  if (decided->kernel.empty()) {
    InFlightDiagnostic diagnostic =
        op->emitOpError("expects a schedule with a kernel, but got ")
        << decided->schedule;
    // Then it is the tiles that nobody writes.
    std::string ofFamily =
        decided->schedule + "_" + std::string(name(decided->family));
    if (llvm::is_contained(kernelNames(), ofFamily))
      diagnostic << " with " << decided->tiles.str();
    diagnostic << ", which has none yet on " << machine.name;
    auto isFor = [](StringRef kernel, const std::string &schedule) {
      return kernel.consume_front(schedule + "_") &&
             llvm::is_contained({name(TensorCoreFamily::mmaSync),
                                 name(TensorCoreFamily::wgmma)},
                                std::string_view(kernel));
    };
    for (const std::string &kernel : kernelNames()) {
      if ((problem.pattern && !walksLists(kernel)) ||
          (problem.clauses.any() && !takesClauses(kernel)) ||
          (problem.ragged && !takesRagged(kernel)) ||
          (problem.place.any() && !locatesRows(kernel)) ||
          (problem.scales.any() && !takesScales(kernel)))
        continue;
      for (const std::string &schedule : scheduleNames(problem.direction))
        if (isFor(kernel, schedule))
          diagnostic.attachNote() << "there is a kernel " << kernel;
    }
    return diagnostic;
  }

  KernelChoice choice;
  choice.builder = decided->kernel;
  choice.request.problem = problem;
  choice.request.tiles = decided->tiles;
  choice.request.launches = decided->launches;
  choice.request.scale = op.scaleOrDefault();
  choice.request.sees = op.sees();
  choice.request.score = op.score();
  choice.request.gradients.assign(gradientNumbers(op).begin(),
                                  gradientNumbers(op).end());
  choice.request.sms = machine.sms;
  choice.request.l2Bytes = machine.l2Bytes;
  choice.request.smemBytes = machine.smemBytesPerBlock;
  for (const AttentionArray &array : op.arrays())
    if (!isStatistic(array.role))
      choice.request.alignments[array.role.str()] =
          rowAlignment(op, array.value);
  std::vector<KernelChoice> launches;
  for (const Footprint &footprint : decided->footprints) {
    choice.request.launch = int64_t(launches.size());
    choice.request.minBlocksPerSm = footprint.blocksPerSm;
    launches.push_back(choice);
  }
  return launches;
}

/// Of ragged sequences; 0 of others.
static int64_t offsetBits(const Problem &problem) {
  if (!problem.ragged)
    return 0;
  return problem.ragged->isWide ? 64 : 32;
}

bool attn::sameKernel(const KernelChoice &a, const KernelChoice &b) {
  auto key = [](const KernelChoice &choice) {
    const KernelRequest &r = choice.request;
    const Problem &p = r.problem;
    // A kernel says how many flags it has.
    int64_t flags = r.launches.flags(p);
    BlockSize blocks = p.pattern ? p.pattern->size() : BlockSize();
    return std::tuple(
        choice.builder, p.dtype, p.precision, p.headDim, p.headDimV,
        p.mask.kind, p.lse, p.direction, p.deterministic, p.dlse, p.lseLow,
        p.keepsWeights, p.valuesOfKeys, p.clauses.sinks, r.gradients,
        offsetBits(p), p.place.usedKeysBits, p.place.pageRows, kvTypeOf(p),
        p.scales.q, p.scales.k, p.scales.v, r.tiles.str(), r.launch,
        r.minBlocksPerSm, r.sms, r.l2Bytes, r.smemBytes, r.scale > 0,
        r.alignments, flags, blocks.queries, blocks.keys, numbersOf(p.bands));
  };
  return key(a) == key(b) && sameRegion(a.request.sees, b.request.sees) &&
         sameRegion(a.request.score, b.request.score);
}

std::string attn::kernelName(const KernelChoice &choice) {
  const Problem &p = choice.request.problem;
  std::string result = choice.builder + "_" + std::string(name(p.dtype)) + "_" +
                       std::to_string(p.headDim);
  if (p.headDimV != p.headDim)
    result += "_" + std::to_string(p.headDimV);
  if (p.dtype == DataType::f32)
    result += "_" + std::string(name(p.precision));
  if (p.kvDtype)
    result += "_kv_" + std::string(name(*p.kvDtype));
  std::string mask = str(p.mask);
  if (!p.mask.isOpen())
    result += "_" + mask.substr(0, mask.find('<'));
  if (p.pattern)
    result += "_blocks_" + str(p.pattern->size());
  if (!p.bands.isEmpty())
    result += "_bands_" + std::to_string(p.bands.all().size());
  const std::pair<bool, const char *> clauses[] = {
      {p.clauses.sees, "_sees"},
      {p.clauses.score, "_score"},
      {p.clauses.sinks, "_sinks"},
      {p.clauses.anyGradients(), "_captured"}};
  for (auto [isThere, suffix] : clauses)
    result += isThere ? suffix : "";
  if (p.place.usesSome())
    result += p.place.usedKeysBits == 64 ? "_lengths64" : "_lengths";
  if (p.place.isPaged())
    result += "_pages_" + std::to_string(p.place.pageRows);
  if (p.scales.any())
    result += std::string("_scales") + (p.scales.q ? "_q" : "") +
              (p.scales.k ? "_k" : "") + (p.scales.v ? "_v" : "");
  if (int64_t bits = offsetBits(p))
    result += bits == 64 ? "_ragged64" : "_ragged";
  result += choice.request.shape().suffix;
  if (p.deterministic)
    result += "_deterministic";
  if (p.dlse)
    result += "_dlse";
  if (p.keepsWeights)
    result += "_kept";
  bool storesLse = p.lse && p.direction == Direction::forward;
  if (storesLse || p.lseLow)
    result += "_lse";
  return p.lseLow ? result + "_low" : result;
}
