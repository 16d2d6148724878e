//===- Problem.cpp - The problem that an op poses, and where --------------===//

#include "attn/IR/CaptureGradients.h"
#include "attn/IR/CaptureShapes.h"
#include "attn/IR/OpenSizes.h"
#include "attn/IR/RegionBands.h"
#include "attn/IR/RegionCost.h"

#include "attn/Schedule/Limits.h"
#include "attn/Schedule/RaggedQueries.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include <array>
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
    int64_t row = type.getShape().back();
    if (ShapedType::isDynamic(row))
      base = std::min(base, open);
    else
      elements = row;
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

/// Of the rows of a part of another array, which are rows of that one from a
/// column on.
static int64_t alignmentOfPart(memref::SubViewOp part,
                               std::optional<int64_t> promised) {
  int64_t bytes = part.getType().getElementTypeBitWidth() / 8;
  if (part.getDroppedDims().test(part.getSourceType().getRank() - 1))
    return bytes;
  std::optional<int64_t> column =
      getConstantIntValue(part.getMixedOffsets().back());
  // The gcd with 0 is the other number.
  return std::gcd(attn::rowAlignment(part.getSource(), promised),
                  column.value_or(1) * bytes);
}

int64_t attn::rowAlignment(Value array, std::optional<int64_t> promised) {
  auto type = dyn_cast<MemRefType>(array.getType());
  // The strides of a tensor are chosen when it becomes a buffer.
  if (!type)
    return promised.value_or(kMaxAlignment);
  int64_t ofType = alignmentOfRows(type, promised);
  // Where a type leaves the offset open, that of a part is known better.
  if (auto part = array.getDefiningOp<memref::SubViewOp>())
    return std::max(ofType, alignmentOfPart(part, promised));
  if (auto cast = array.getDefiningOp<memref::CastOp>())
    if (isa<MemRefType>(cast.getSource().getType()))
      return std::max(ofType, rowAlignment(cast.getSource(), promised));
  return ofType;
}

int64_t attn::rowAlignment(AttentionOpInterface op, Value array) {
  return rowAlignment(array, op.getAlignment());
}

/// Of sizes that are equal at run time, the first that is static.
std::array<int64_t, kExtents> attn::knownSizes(AttentionOpInterface op) {
  std::array<int64_t, kExtents> sizes;
  sizes.fill(ShapedType::kDynamic);
  for (const AttentionArray &array : op.arrays())
    for (auto [extent, size] :
         llvm::zip_equal(op.shapeOf(array.role), array.type().getShape()))
      if (ShapedType::isDynamic(sizes[unsigned(extent)]))
        sizes[unsigned(extent)] = size;
  for (Value offsets : op.clauseOperands(ClauseGroup::offsets))
    if (int64_t size = cast<ShapedType>(offsets.getType()).getDimSize(0);
        !ShapedType::isDynamic(size))
      sizes[unsigned(Extent::batch)] = size - 1;
  OperandRange table = op.clauseOperands(ClauseGroup::pageTable);
  if (!table.empty()) {
    int64_t pages = cast<ShapedType>(table.front().getType()).getDimSize(1);
    int64_t rows = placeOf(op).pageRows;
    if (!ShapedType::isDynamic(pages) && !ShapedType::isDynamic(rows))
      sizes[unsigned(Extent::keys)] = pages * rows;
  }
  return sizes;
}

/// Lengths are known on the device only.
static std::optional<Ragged> raggedOf(AttentionOpInterface op) {
  auto longest = op->getAttrOfType<DenseI64ArrayAttr>(kLongestAttr);
  if (!op.isRagged() || !longest || longest.empty() || longest.size() > 2)
    return std::nullopt;
  Ragged ragged; // of a cache all keys may be used
  ragged.longest = {longest[0], longest.size() == 2 ? longest[1] : kMaxRows};
  Value offsets = op.clauseOperands(ClauseGroup::offsets).front();
  ragged.isWide =
      cast<ShapedType>(offsets.getType()).getElementType().isInteger(64);
  return ragged;
}

bool attn::hasOpenSizes(AttentionOpInterface op) {
  std::array<int64_t, kExtents> sizes = knownSizes(op);
  return llvm::any_of(
      ArrayRef({Extent::batch, Extent::queries, Extent::keys}),
      [&](Extent e) { return ShapedType::isDynamic(sizes[unsigned(e)]); });
}

attn::Machine attn::machineForPlans(AttentionOpInterface op,
                                    const Machine &machine) {
  return hasOpenSizes(op) ? withAnyMemory(machine) : machine;
}

/// What lists show is known on the device only.
static std::optional<attn::Pattern> patternOf(AttentionOpInterface op) {
  std::optional<BlockSize> size = op.blockSize();
  if (!size)
    return std::nullopt;
  bool isShared = true;
  for (ClauseGroup group : {ClauseGroup::partial, ClauseGroup::full})
    for (Value list : op.clauseOperands(group))
      isShared &= cast<ShapedType>(list.getType()).getDimSize(1) == 1;
  return attn::Pattern(*size, kAssumedDensity, isShared);
}

attn::Problem attn::problemWithoutRegions(AttentionOpInterface op,
                                          DynamicSizes assumed) {
  std::array<int64_t, kExtents> sizes = knownSizes(op);
  Problem problem;
  problem.lse = false;
  for (const AttentionArray &array : op.arrays()) {
    if (!isStatistic(array.role))
      problem.alignment =
          std::min(problem.alignment, rowAlignment(op, array.value));
    problem.lse |= array.role == "lse" && array.isOutput;
    problem.lseLow |= array.role == "lse_low";
    problem.dlse |= array.role == "dlse";
    problem.keepsWeights |= array.role == "weights";
    problem.valuesOfKeys |= array.columns != 0;
  }
  auto q = cast<ShapedType>(op.array("q").getType());
  auto k = cast<ShapedType>(op.array("k").getType());
  problem.dtype = *dataTypeOf(q.getElementType());
  problem = withKvType(problem, *dataTypeOf(k.getElementType()));
  problem.heads = sizes[unsigned(Extent::heads)];
  problem.kvHeads = sizes[unsigned(Extent::kvHeads)];
  problem.headDim = sizes[unsigned(Extent::headDim)];
  problem.headDimV = sizes[unsigned(Extent::headDimV)];
  problem.precision = op.precisionOrDefault();
  problem.mask = op.maskOrNone();
  problem.pattern = patternOf(op);
  problem.clauses = {op.sees() != nullptr, op.score() != nullptr,
                     !op.clauseOperands(ClauseGroup::sinks).empty()};
  problem.ragged = raggedOf(op);
  problem.place = placeOf(op);
  auto isScaled = [&](ClauseGroup scale) {
    return !op.clauseOperands(scale).empty();
  };
  problem.scales = {isScaled(ClauseGroup::scaleQ),
                    isScaled(ClauseGroup::scaleK),
                    isScaled(ClauseGroup::scaleV)};
  problem.direction = op.direction();
  problem.deterministic = op.isDeterministic();
  auto sizeOr = [&](Extent extent, int64_t assumedSize) {
    int64_t size = sizes[unsigned(extent)];
    return ShapedType::isDynamic(size) ? assumedSize : size;
  };
  auto assume = [&] {
    problem.batch = sizeOr(Extent::batch, assumed.batch);
    problem.queries = sizeOr(Extent::queries, assumed.rows);
    problem.keys = sizeOr(Extent::keys, assumed.rows);
    if (problem.ragged && !areKeysRagged(problem))
      problem.ragged->longest.keys = problem.keys;
  };
  // What is only assumed breaks no limit.
  for (assume(); check(problem) && assumed.batch * assumed.rows > 1; assume())
    (assumed.batch > 1 ? assumed.batch : assumed.rows) /= 2;
  return problem;
}

attn::Problem attn::problemOf(AttentionOpInterface op, DynamicSizes assumed) {
  Problem problem = problemWithoutRegions(op, assumed);
  countGradients(op, problem.clauses);
  if (Region *score = op.score())
    problem.clauses.scoreCost = costOf(*score, problem.dtype);
  if (Region *sees = op.sees()) {
    problem.clauses.seesCost = costOf(*sees, problem.dtype);
    if (!whyNoRuns(problem))
      problem.bands = bandsOfRegion(*sees, problem.mask);
  }
  return problem;
}

attn::MachineAttr attn::machineAttrOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (isa<ModuleOp>(op))
      if (auto machine = op->getAttrOfType<MachineAttr>(machineAttrName))
        return machine;
  return {};
}

std::optional<attn::Machine> attn::machineFor(Operation *op) {
  if (MachineAttr machine = machineAttrOf(op))
    return machine.resolve();
  return std::nullopt;
}
