//===- Packing.cpp - How an op's heads become rows ------------------------===//

#include "attn/IR/Packing.h"

using namespace mlir;
using namespace attn;

bool attn::hasRowsOfQueries(StringRef role) {
  ArrayRef<Extent> shape = shapeOf(role);
  return shape.size() > 2 && shape[1] == Extent::heads &&
         shape[2] == Extent::queries;
}

/// Whether a type says that one stride leads through the rows of all heads.
static bool hasOneStride(ShapedType type, int64_t queries) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getLayout().isIdentity())
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return false;
  int64_t ofHeads = strides[1], ofRows = strides[2];
  return !ShapedType::isDynamic(queries) && !ShapedType::isDynamic(ofHeads) &&
         !ShapedType::isDynamic(ofRows) && ofHeads == queries * ofRows;
}

static bool headsAreRows(AttentionOpInterface op) {
  // Regions, lists and sinks tell heads and queries apart, and ragged rows lie
  // otherwise.
  if (op->getNumRegions() != 0 || op.blockSize() || op.isRagged() ||
      !op.clauseOperands(ClauseGroup::sinks).empty())
    return false;
  int64_t queries = ShapedType::kDynamic;
  for (const AttentionArray &array : op.arrays())
    if (hasRowsOfQueries(array.role) && ShapedType::isDynamic(queries))
      queries = array.type().getShape()[2];
  if (queries == 1)
    return true;
  // An assumed number of queries is not one of which a mask may be dropped.
  if (ShapedType::isDynamic(queries) && !op.maskOrNone().isOpen())
    return false;
  return llvm::all_of(op.arrays(), [&](const AttentionArray &array) {
    return !hasRowsOfQueries(array.role) || hasOneStride(array.type(), queries);
  });
}

Packing attn::packingOf(AttentionOpInterface op, DynamicSizes assumed) {
  return packing(problemOf(op, assumed), headsAreRows(op));
}
