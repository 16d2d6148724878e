//===- KernelRequests.cpp - What kernel an attn op asks for ---------------===//

#include "KernelRequests.h"

#include <numeric>
#include <tuple>

using namespace mlir;
using namespace attn;

/// Bytes that divide the address of every row, at most kMaxAlignment.
/// `promised` is the op's alignment: that of the base, and of what the type
/// leaves open.  Without it the base is aligned to kMaxAlignment.  Who launches
/// checks the base and the promise.
static int64_t rowAlignment(MemRefType type, std::optional<int64_t> promised) {
  SmallVector<int64_t> strides;
  int64_t offset;
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  int64_t base = promised.value_or(kMaxAlignment),
          open = promised.value_or(elementBytes);
  if (failed(type.getStridesAndOffset(strides, offset)))
    return open;
  // The gcd with 0 is the other number.
  int64_t elements = ShapedType::isDynamic(offset) ? 0 : offset;
  if (type.getLayout().isIdentity()) {
    // Outer strides may be unknown but are multiples of a row.
    elements = type.getShape().back();
  } else {
    for (auto [size, stride] :
         llvm::drop_end(llvm::zip(type.getShape(), strides))) {
      if (size == 1)
        continue;
      if (ShapedType::isDynamic(stride))
        base = std::min(base, open);
      else
        elements = std::gcd(elements, stride);
    }
    if (ShapedType::isDynamic(offset))
      base = std::min(base, open);
  }
  return std::gcd(elements * elementBytes, base);
}

FailureOr<KernelChoice> attn::kernelFor(ForwardOp op, const Machine &machine) {
  if (op.isOnTensors())
    return op.emitOpError("expects memrefs here: bufferize first");
  ScheduleAttr schedule = op.getScheduleAttr();
  if (!schedule)
    return op.emitOpError("expects a schedule: run -attn-select-schedule first "
                          "or give one");
  Problem problem = problemOf(op);
  std::string error;
  std::optional<Plan> plan =
      planFor(problem, machine, schedule.getName().getValue().str(),
              schedule.tiles(), error);
  if (!plan)
    return op.emitOpError() << error;
  if (plan->kernel.empty()) {
    InFlightDiagnostic diagnostic =
        op.emitOpError("expects a schedule with a kernel, but got ")
        << plan->schedule << ", which has none yet on " << machine.name;
    for (const std::string &name : kernelNames())
      diagnostic.attachNote() << "there is a kernel " << name;
    return diagnostic;
  }

  KernelChoice choice;
  choice.builder = plan->kernel;
  choice.request.problem = problem;
  choice.request.tiles = plan->tiles;
  choice.request.minBlocksPerSm = plan->footprint.blocksPerSm;
  choice.request.scale = op.scaleOrDefault();
  choice.request.l2Bytes = machine.l2Bytes;
  auto align = [&](Value v) {
    return rowAlignment(cast<MemRefType>(v.getType()), op.getAlignment());
  };
  choice.request.align = {align(op.getQ()), align(op.getK()), align(op.getV()),
                          align(op.getOuts().front())};
  return choice;
}

bool attn::sameKernel(const KernelChoice &a, const KernelChoice &b) {
  auto key = [](const KernelChoice &choice) {
    const KernelRequest &r = choice.request;
    const Problem &p = r.problem;
    return std::tuple(choice.builder, p.dtype, p.headDim, p.headDimV,
                      p.mask.kind, p.lse, r.tiles.str(), r.minBlocksPerSm,
                      r.l2Bytes, r.scale > 0, r.align.q, r.align.k, r.align.v,
                      r.align.o);
  };
  return key(a) == key(b);
}

std::string attn::kernelName(const KernelChoice &choice) {
  const Problem &p = choice.request.problem;
  std::string result = choice.builder + "_" + std::string(name(p.dtype)) + "_" +
                       std::to_string(p.headDim);
  if (p.headDimV != p.headDim)
    result += "_" + std::to_string(p.headDimV);
  std::string mask = str(p.mask);
  if (p.mask.kind != MaskKind::none)
    result += "_" + mask.substr(0, mask.find('<'));
  return p.lse ? result + "_lse" : result;
}
