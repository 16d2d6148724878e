//===- FunctionListings.cpp - Lists of blocks in a function ---------------===//

#include "FunctionReader.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace attn;
using namespace attn::run;
using namespace mlir;

FailureOr<ArraySource> FunctionReader::sourceOf(Operation *op, Value value,
                                                StringRef operand) {
  for (auto [number, listing] : llvm::enumerate(result.listings))
    if (value.getDefiningOp() == listing.op)
      return ArraySource{0, number, cast<OpResult>(value).getResultNumber()};
  FailureOr<unsigned> position = argumentOf(op, value, operand);
  if (failed(position))
    return failure();
  return ArraySource{*position};
}

FailureOr<int64_t> FunctionReader::sizeOf(Operation *op, Value size) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return *known;
  Operation *source = size.getDefiningOp();
  StringRef name = source ? source->getName().getStringRef() : "";
  if (name == "tensor.dim" || name == "memref.dim") {
    std::optional<int64_t> dim = getConstantIntValue(source->getOperand(1));
    FailureOr<unsigned> position =
        argumentOf(op, source->getOperand(0), "what it takes a size of");
    if (failed(position))
      return failure();
    int64_t known = result.argumentSizes[*position][dim.value_or(0)];
    if (dim && !ShapedType::isDynamic(known))
      return known;
  }
  return op->emitError("expects queries and keys that are constants or sizes "
                       "of arguments, which are known");
}

LogicalResult FunctionReader::readListing(Operation *op, ValueRange inputs,
                                          ValueRange outs) {
  Listing listing;
  listing.op = op;
  int64_t most = 1;
  if (auto lists = dyn_cast<BlockListsOp>(op)) {
    FailureOr<int64_t> queries = sizeOf(op, lists.getQueries()),
                       keys = sizeOf(op, lists.getKeys());
    if (failed(queries) || failed(keys))
      return failure();
    listing.queries = *queries;
    listing.keys = *keys;
    most = std::max<int64_t>({*queries, *keys, int64_t(lists.getBatch()),
                              int64_t(lists.getHeads())});
  }
  for (Value input : inputs) {
    FailureOr<ArraySource> source = sourceOf(op, input, "an input");
    if (failed(source))
      return failure();
    listing.inputs.push_back(*source);
    if (!source->listing)
      for (int64_t &size : result.argumentSizes[source->position])
        if (ShapedType::isDynamic(size))
          size = most; // every position is one of an element
  }
  result.onTensors = outs.empty() || op->getNumResults() != 0;
  result.listings.push_back(listing);
  for (auto [number, target] : llvm::enumerate(outs))
    if (!result.onTensors &&
        failed(readOut(op, target,
                       outputOfListing(result.listings.size() - 1, number))))
      return failure();
  return success();
}

Output FunctionReader::outputOfListing(size_t number, unsigned of) {
  static constexpr StringLiteral names[] = {"partial_counts", "partial_blocks",
                                            "full_counts", "full_blocks"};
  const Listing &listing = result.listings[number];
  Output output;
  output.of = Output::Of::listing;
  output.attention = number;
  output.result = of;
  output.role = names[of].str();
  if (auto lists = dyn_cast<BlockListsOp>(listing.op)) {
    ArrayRef<int64_t> size = lists.getBlocks();
    output.sizes = {int64_t(lists.getBatch()), int64_t(lists.getHeads()),
                    int64_t(llvm::divideCeil(listing.queries, size[0])),
                    int64_t(llvm::divideCeil(listing.keys, size[1]))};
  } else {
    // Those of the indices that come in, by columns.
    const ArraySource &indices = listing.inputs[1];
    output.sizes = indices.listing ? outputOfListing(*indices.listing, 1).sizes
                                   : result.argumentSizes[indices.position];
    std::swap(output.sizes[2], output.sizes[3]);
  }
  if (of % 2 == 0)
    output.sizes.pop_back();
  return output;
}
