//===- Problem.cpp - The problem that an op poses, and where --------------===//

#include "attn/IR/Attn.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

std::optional<attn::DataType> attn::dataTypeOf(Type elementType) {
  if (elementType.isBF16())
    return DataType::bf16;
  if (elementType.isF16())
    return DataType::f16;
  if (elementType.isF32())
    return DataType::f32;
  if (isa<Float8E4M3FNType>(elementType))
    return DataType::f8e4m3;
  return std::nullopt;
}

static int64_t sizeOr(int64_t size, int64_t assumed) {
  return ShapedType::isDynamic(size) ? assumed : size;
}

/// The first of two sizes, equal at run time, that is static.
static int64_t staticOf(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) ? b : a;
}

attn::Problem attn::problemOf(ForwardOp op, DynamicSizes assumed) {
  auto q = cast<ShapedType>(op.getQ().getType());
  auto k = cast<ShapedType>(op.getK().getType());
  auto v = cast<ShapedType>(op.getV().getType());
  auto o = cast<ShapedType>(op.outputTypes().front());
  int64_t batch = staticOf(staticOf(q.getDimSize(0), k.getDimSize(0)),
                           staticOf(v.getDimSize(0), o.getDimSize(0)));
  Problem problem;
  problem.dtype = *dataTypeOf(q.getElementType());
  problem.batch = sizeOr(batch, assumed.batch);
  problem.heads = q.getDimSize(1);
  problem.kvHeads = k.getDimSize(1);
  problem.queries =
      sizeOr(staticOf(q.getDimSize(2), o.getDimSize(2)), assumed.rows);
  problem.keys =
      sizeOr(staticOf(k.getDimSize(2), v.getDimSize(2)), assumed.rows);
  problem.headDim = q.getDimSize(3);
  problem.headDimV = v.getDimSize(3);
  problem.mask = op.maskOrNone();
  problem.lse = op.hasLse();
  return problem;
}

std::optional<attn::Machine> attn::machineFor(Operation *op) {
  for (; op; op = op->getParentOp())
    if (isa<ModuleOp>(op))
      if (auto machine = op->getAttrOfType<MachineAttr>(machineAttrName))
        return machine.resolve();
  return std::nullopt;
}
