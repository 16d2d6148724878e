//===- CaptureShapes.cpp - How large captured arrays must be --------------===//

#include "attn/IR/CaptureShapes.h"

#include "Constraints.h"

using namespace mlir;
using namespace attn;

static StringRef wordsFor(Extent extent) {
  switch (extent) {
  case Extent::batch:
    return "batch entries";
  case Extent::heads:
    return "heads";
  case Extent::queries:
    return "queries";
  default:
    return "keys";
  }
}

std::string attn::wantedOf(const ReadDimension &read, Extent extent,
                           int64_t size) {
  return (keywordOf(read.form) + "(..) with " + Twine(size) +
          " elements or more in dimension " + Twine(read.dimension) +
          ", one for each of the " + wordsFor(extent))
      .str();
}

SmallVector<ReadDimension> attn::dimensionsRead(AttentionOpInterface op) {
  SmallVector<ReadDimension> all;
  for (Region *region : {op.sees(), op.score()})
    if (region)
      llvm::append_range(all, dimensionsRead(*region));
  if (op.isRagged())
    for (ReadDimension &read : all)
      llvm::erase_if(read.extents, [](Extent extent) {
        return extent == Extent::queries || extent == Extent::keys;
      });
  return all;
}

static LogicalResult verifyShapes(Operation *op, TypeRange captures,
                                  ArrayRef<ReadDimension> all,
                                  ArrayRef<int64_t> sizes) {
  for (const ReadDimension &read : all) {
    Type array = captures[read.capture];
    int64_t actual = cast<ShapedType>(array).getDimSize(read.dimension);
    for (Extent extent : read.extents) {
      int64_t least = sizes[unsigned(extent)];
      if (!ShapedType::isDynamic(actual) && !ShapedType::isDynamic(least) &&
          actual < least)
        return op->emitOpError("expects an array of ")
               << wantedOf(read, extent, least) << ", or 1 for all, but got "
               << array;
    }
  }
  return success();
}

LogicalResult attn::verifyCaptureShapes(AttentionOpInterface op) {
  return verifyShapes(op, op.captures().getTypes(), dimensionsRead(op),
                      knownSizes(op));
}

LogicalResult attn::verifyCaptureShapes(Operation *op, TypeRange captures,
                                        Region &sees,
                                        const ListedSizes &listed) {
  std::array<int64_t, kExtents> sizes;
  sizes.fill(ShapedType::kDynamic);
  sizes[unsigned(Extent::batch)] = listed.batch;
  sizes[unsigned(Extent::heads)] = listed.heads;
  sizes[unsigned(Extent::queries)] = listed.queries;
  sizes[unsigned(Extent::keys)] = listed.keys;
  return verifyShapes(op, captures, dimensionsRead(sees), sizes);
}
