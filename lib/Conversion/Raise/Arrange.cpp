//===- Arrange.cpp - Other dimensions for a tensor ------------------------===//

#include "Arrange.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace attn::raise;
using namespace mlir;

/// Groups of dimensions, one for each that has atoms; the others go with the
/// one before, or with the first.
static SmallVector<ReassociationIndices> groupsWithUnits(const Dims &dims) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices waiting;
  for (auto [position, dim] : llvm::enumerate(dims)) {
    if (dim.empty() && groups.empty()) {
      waiting.push_back(position);
      continue;
    }
    if (!dim.empty())
      groups.push_back(std::exchange(waiting, {}));
    groups.back().push_back(position);
  }
  return groups;
}

static bool hasUnits(const Dims &dims) {
  return llvm::any_of(dims, [](const Indices &dim) { return dim.empty(); });
}

/// [1, 1, n, 1] becomes [n].
Value Arranger::dropUnits(Value tensor, const Dims &from) {
  if (!hasUnits(from))
    return tensor;
  return tensor::CollapseShapeOp::create(b, loc, tensor, groupsWithUnits(from));
}

/// [n] becomes [1, 1, n, 1].
Value Arranger::addUnits(Value tensor, const Dims &to) {
  if (!hasUnits(to))
    return tensor;
  SmallVector<int64_t> shape = llvm::map_to_vector(
      to, [&](const Indices &dim) { return loops.size(dim); });
  auto type = cast<RankedTensorType>(tensor.getType()).clone(shape);
  return tensor::ExpandShapeOp::create(b, loc, type, tensor,
                                       groupsWithUnits(to));
}

/// Each dimension becomes several.
Value Arranger::split(Value tensor, ArrayRef<Dims> into) {
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape;
  for (const Dims &blocks : into) {
    groups.emplace_back();
    for (const Indices &block : blocks) {
      groups.back().push_back(shape.size());
      shape.push_back(loops.size(block));
    }
  }
  if (shape.size() == into.size())
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType()).clone(shape);
  return tensor::ExpandShapeOp::create(b, loc, type, tensor, groups);
}

/// So many dimensions each become one.
Value Arranger::join(Value tensor, ArrayRef<size_t> counts) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (size_t count : counts) {
    groups.emplace_back();
    for (size_t i = 0; i < count; ++i)
      groups.back().push_back(next++);
  }
  if (next == int64_t(groups.size()))
    return tensor;
  return tensor::CollapseShapeOp::create(b, loc, tensor, groups);
}

/// Cuts the atoms of a dimension where those of the other side do not follow
/// each other in one dimension.
static Dims blocksFor(const Indices &dim, const Dims &other) {
  auto follows = [&](Index first, Index second) {
    for (const Indices &each : other) {
      const auto *found = llvm::find(each, first);
      if (found != each.end() && std::next(found) != each.end())
        return *std::next(found) == second;
    }
    return false;
  };
  Dims blocks;
  for (Index atom : dim) {
    if (blocks.empty() || !follows(blocks.back().back(), atom))
      blocks.emplace_back();
    blocks.back().push_back(atom);
  }
  return blocks;
}

Value Arranger::arrange(Value tensor, const Dims &from, const Dims &to) {
  moved = false;
  if (from == to)
    return tensor;
  tensor = dropUnits(tensor, from);

  SmallVector<Dims> sources, targets;
  Dims inOrder, wanted;
  for (const Indices &dim : from)
    if (!dim.empty()) {
      sources.push_back(blocksFor(dim, to));
      llvm::append_range(inOrder, sources.back());
    }
  for (const Indices &dim : to)
    if (!dim.empty()) {
      targets.push_back(blocksFor(dim, from));
      llvm::append_range(wanted, targets.back());
    }
  tensor = split(tensor, sources);

  SmallVector<int64_t> permutation, shape;
  for (const Indices &block : wanted) {
    permutation.push_back(llvm::find(inOrder, block) - inOrder.begin());
    shape.push_back(loops.size(block));
  }
  if (!llvm::is_sorted(permutation)) {
    moved = permutation.back() != int64_t(permutation.size()) - 1;
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
    SmallVector<OpFoldResult> permuted = llvm::map_to_vector(
        permutation, [&](int64_t dim) { return sizes[dim]; });
    Value empty =
        tensor::EmptyOp::create(b, loc, permuted, getElementTypeOrSelf(tensor));
    tensor = linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
                 ->getResult(0);
  }
  tensor = join(tensor, llvm::map_to_vector(targets, [](const Dims &blocks) {
                  return blocks.size();
                }));
  return addUnits(tensor, to);
}
