//===- MergeLaunches.cpp - Merges as launches of their kernels ------------===//

#include "MergeLaunches.h"

#include "SizeLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <tuple>

using namespace mlir;
using namespace attn;

static Value index(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIndexOp::create(b, value);
}

static Value sizeOf(ImplicitLocOpBuilder &b, Value memref, int64_t dimension) {
  return b.createOrFold<memref::DimOp>(memref, dimension);
}

/// Sizes that types leave open may turn out too large.
static void assertSizes(ImplicitLocOpBuilder &b, const Merge &merge,
                        Value rows) {
  Problem problem = limitsOf(merge);
  assertLimits(b, [&](Size size) -> Value {
    if (size == Size::batch)
      return sizeOf(b, rows, 0);
    if (size == Size::queries)
      return sizeOf(b, rows, 2);
    return index(b, valueOf(size, problem));
  });
}

LogicalResult MergeConverter::convert(MergeOpInterface op) {
  if (failed(checkPlace(op, module)))
    return failure();
  if (op.isOnTensors())
    return op->emitOpError("expects memrefs here: bufferize first");
  OpBuilder builder(op);
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  Merge merge = mergeOf(op);
  SmallVector<Array> arrays, parts;
  std::optional<int64_t> promised = op.getAlignment();
  for (const AttentionArray &array : op.arrays()) {
    FailureOr<ArgumentRole> role = roleOfArray(op, array.role);
    if (failed(role))
      return failure();
    bool isPart = merge.direction == Direction::forward && !array.isOutput;
    (isPart ? parts : arrays).push_back({*role, array.value, promised});
  }
  assertSizes(b, merge, op->getOperand(0));
  FailureOr<SmallVector<Array>> some = gathered(b, merge, parts);
  if (failed(some))
    return failure();
  llvm::append_range(arrays, *some);
  if (failed(launch(b, merge, arrays)))
    return failure();
  op->erase();
  return success();
}

/// Memory of f32 of the sizes of another array.
static Value scratchLike(ImplicitLocOpBuilder &b, Value array) {
  auto type = cast<MemRefType>(array.getType());
  SmallVector<Value> sizes;
  for (auto [dimension, size] : llvm::enumerate(type.getShape()))
    if (ShapedType::isDynamic(size))
      sizes.push_back(sizeOf(b, array, dimension));
  return tile::ScratchOp::create(
      b, MemRefType::get(type.getShape(), b.getF32Type()), sizes);
}

// All O come first and then all LSE, so that part i has places i and n + i.
FailureOr<SmallVector<MergeConverter::Array>>
MergeConverter::gathered(ImplicitLocOpBuilder &b, Merge &merge,
                         ArrayRef<Array> parts) {
  SmallVector<Array> os(parts.take_front(parts.size() / 2)),
      lses(parts.drop_front(parts.size() / 2));
  while (int64_t(os.size()) > kMostParts) {
    SmallVector<Array> wholeOs, wholeLses;
    std::vector<DataType> types;
    for (size_t first = 0; first < os.size(); first += kMostParts) {
      size_t count = std::min<size_t>(kMostParts, os.size() - first);
      if (count == 1) {
        wholeOs.push_back(os[first]);
        wholeLses.push_back(lses[first]);
        types.push_back(merge.parts[first]);
        continue;
      }
      Merge some = merge;
      some.dtype = DataType::f32;
      some.lse = true;
      some.parts.assign(merge.parts.begin() + first,
                        merge.parts.begin() + first + count);
      wholeOs.push_back({Role::o, scratchLike(b, os[first].value)});
      wholeLses.push_back({Role::lse, scratchLike(b, lses[first].value)});
      types.push_back(DataType::f32);
      SmallVector<Array> arrays = {wholeOs.back(), wholeLses.back()};
      for (size_t i = 0; i < count; ++i) {
        arrays.push_back(os[first + i]);
        arrays.back().role = partRole(Role::oPart, i);
        arrays.push_back(lses[first + i]);
        arrays.back().role = partRole(Role::lsePart, i);
      }
      if (failed(launch(b, some, arrays)))
        return failure();
    }
    os = std::move(wholeOs);
    lses = std::move(wholeLses);
    merge.parts = std::move(types);
  }
  SmallVector<Array> all;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(os, lses)))
    for (auto [role, array] : {std::pair(Role::oPart, std::get<0>(pair)),
                               {Role::lsePart, std::get<1>(pair)}}) {
      all.push_back(array);
      if (merge.direction == Direction::forward)
        all.back().role = partRole(role, i);
    }
  return all;
}

LogicalResult MergeConverter::launch(ImplicitLocOpBuilder &b,
                                     const Merge &merge,
                                     ArrayRef<Array> arrays) {
  MergeRequest request;
  request.merge = merge;
  ArgumentValues values;
  Value rows;
  for (const Array &array : arrays) {
    values.setArray(b, array.role, array.value);
    if (array.role.facts().element == Element::f32)
      continue;
    request.alignments[str(array.role)] =
        rowAlignment(array.value, array.promised);
    rows = array.value;
  }
  Value batch = sizeOf(b, rows, 0), heads = sizeOf(b, rows, 1),
        queries = sizeOf(b, rows, 2);
  auto narrow = [&](Value size) {
    return b.createOrFold<arith::IndexCastOp>(b.getI32Type(), size);
  };
  values.set(Role::queries, narrow(queries));
  values.set(Role::heads, narrow(heads));
  FailureOr<tile::KernelOp> kernel = findOrBuild(b, request);
  if (failed(kernel))
    return failure();
  Value blocks =
      b.createOrFold<arith::CeilDivSIOp>(queries, index(b, kMergeRows));
  blocks = b.createOrFold<arith::MulIOp>(
      blocks, b.createOrFold<arith::MulIOp>(heads, batch));
  Value one = index(b, 1);
  return attn::launch(b, kernels.symbolOf(*kernel), *kernel, {blocks, one, one},
                      values);
}

/// What tells kernels apart.
static auto keyOf(const MergeRequest &request) {
  const Merge &m = request.merge;
  return std::tuple(m.direction, m.headDim, m.dtype, m.parts, m.lse, m.dlse,
                    request.alignments);
}

FailureOr<tile::KernelOp>
MergeConverter::findOrBuild(ImplicitLocOpBuilder &b,
                            const MergeRequest &request) {
  for (auto &[known, kernel] : built)
    if (keyOf(known) == keyOf(request))
      return kernel;
  gpu::GPUModuleOp into = kernels.at(b.getLoc());
  MergeRequest named = request;
  named.name = kernels.uniqueName(mergeName(request.merge));
  OpBuilder builder(b.getContext());
  builder.setInsertionPointToEnd(into.getBody());
  tile::KernelOp kernel = buildMerge(builder, b.getLoc(), named);
  Problem problem = limitsOf(request.merge);
  problem.direction = request.merge.direction;
  if (failed(checkRoles(kernel, problem)))
    return failure();
  kernel->setAttr("machine", machine);
  kernel->setAttr(kMergeAttr, mergeAttr(b.getContext(), request.merge));
  built.push_back({named, kernel});
  return kernel;
}
