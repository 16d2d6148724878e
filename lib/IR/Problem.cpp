//===- Problem.cpp - The problem that an op poses, and where --------------===//

#include "attn/IR/Attn.h"
#include "mlir/IR/BuiltinOps.h"
#include <numeric>

using namespace mlir;
using namespace attn;

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

/// `promised` is the op's alignment: that of the base, and of what the type
/// leaves open.  Without it the base is aligned to kMaxAlignment.  Who launches
/// checks the base and the promise.
static int64_t alignmentOfRows(MemRefType type,
                               std::optional<int64_t> promised) {
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

int64_t attn::rowAlignment(ForwardOp op, Value operand) {
  // The strides of a tensor are chosen when it becomes a buffer.
  if (auto type = dyn_cast<MemRefType>(operand.getType()))
    return alignmentOfRows(type, op.getAlignment());
  return op.getAlignment().value_or(kMaxAlignment);
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
  problem.precision = op.precisionOrDefault();
  problem.mask = op.maskOrNone();
  problem.lse = op.hasLse();
  for (Value operand : {op.getQ(), op.getK(), op.getV()})
    problem.alignment = std::min(problem.alignment, rowAlignment(op, operand));
  for (Value out : op.getOuts().take_front())
    problem.alignment = std::min(problem.alignment, rowAlignment(op, out));
  return problem;
}

std::optional<attn::Machine> attn::machineFor(Operation *op) {
  for (; op; op = op->getParentOp())
    if (isa<ModuleOp>(op))
      if (auto machine = op->getAttrOfType<MachineAttr>(machineAttrName))
        return machine.resolve();
  return std::nullopt;
}
