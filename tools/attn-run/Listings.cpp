//===- Listings.cpp - Lists of blocks that are made, and their reference --===//

#include "Listings.h"

#include "ClauseInputs.h"

#include "llvm/Support/raw_ostream.h"

using namespace attn;
using namespace attn::run;

CapturedArray run::capturedArray(const HostBytes &array) {
  CapturedArray captured;
  captured.sizes.assign(array.shape.sizes.begin(), array.shape.sizes.end());
  bool isReal = llvm::isa<mlir::FloatType>(array.shape.elementType);
  forEachIndex(array.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    if (isReal)
      captured.reals.push_back(array.get(index));
    else
      captured.wholes.push_back(array.getWhole(index));
  });
  return captured;
}

/// Number `result` of the four lists.
static CapturedArray listOf(const HostBlocks &blocks, unsigned result) {
  const HostBlockList &list = result < 2 ? blocks.partial : blocks.full;
  CapturedArray array;
  array.sizes = {blocks.batch, blocks.heads, blocks.rows};
  const std::vector<int32_t> *numbers = &list.counts;
  if (result % 2) {
    array.sizes.push_back(blocks.columns);
    numbers = &list.indices;
  }
  array.wholes.assign(numbers->begin(), numbers->end());
  return array;
}

CapturedArray run::capturedArray(const Function &function,
                                 const ArraySource &source,
                                 const std::vector<HostBytes> &arrays) {
  if (!source.listing)
    return capturedArray(arrays[source.position]);
  return listOf(blocksOf(function, function.listings[*source.listing], arrays),
                source.result);
}

HostBlocks run::blocksOf(const Function &function, const Listing &listing,
                         const std::vector<HostBytes> &arrays) {
  std::vector<CapturedArray> inputs;
  for (const ArraySource &source : listing.inputs)
    inputs.push_back(capturedArray(function, source, arrays));
  if (auto op = llvm::dyn_cast<BlockListsOp>(listing.op))
    return blockListsOf(op.getSees(), inputs, op.getBatch(), op.getHeads(),
                        listing.queries, listing.keys,
                        {op.getBlocks()[0], op.getBlocks()[1]});
  const std::vector<int64_t> &sizes = inputs[1].sizes;
  auto list = [&](unsigned first) {
    auto numbers = [&](unsigned array) {
      return std::vector<int32_t>(inputs[array].wholes.begin(),
                                  inputs[array].wholes.end());
    };
    return HostBlockList{numbers(first), numbers(first + 1)};
  };
  return transposed({sizes[0], sizes[1], sizes[2], sizes[3], list(0), list(2)});
}

void run::drawListing(const Listing &listing, std::vector<HostBytes> &arrays,
                      uint64_t seed) {
  constexpr uint64_t ofListings = 0x6c69737473; // far from other seeds
  bool isTransposing = llvm::isa<TransposeBlocksOp>(listing.op);
  for (auto [number, source] : llvm::enumerate(listing.inputs)) {
    if (source.listing)
      continue;
    uint64_t own = mixed(seed ^ ofListings);
    if (!isTransposing)
      drawCapture(arrays[source.position], own + number);
    else if (number % 2)
      drawBlocks(arrays[listing.inputs[number - 1].position],
                 arrays[source.position], number / 2, own);
  }
}

/// Wrong numbers of a list; those behind as many as are counted do not count.
static int64_t wrongNumbers(const HostBytes &got, const CapturedArray &wanted,
                            const CapturedArray &counts, bool isIndices) {
  int64_t wrong = 0, place = 0, columns = wanted.sizes.back();
  forEachIndex(wanted.sizes, [&](llvm::ArrayRef<int64_t> index) {
    bool isFree = isIndices && index.back() >= counts.wholes[place / columns];
    wrong += !isFree && got.getWhole(index) != wanted.wholes[place];
    ++place;
  });
  return wrong;
}

std::vector<Comparison>
run::compareListing(const Function &function, size_t number,
                    const std::vector<HostBytes> &arrays,
                    const std::vector<size_t> &outputs) {
  HostBlocks blocks = blocksOf(function, function.listings[number], arrays);
  std::vector<Comparison> comparisons;
  for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs)) {
    if (output.of != Output::Of::listing || output.attention != number)
      continue;
    unsigned result = output.result;
    const HostBytes &array = arrays[slot];
    CapturedArray wanted = listOf(blocks, result);
    Comparison comparison;
    comparison.name = output.role;
    llvm::raw_string_ostream type(comparison.type);
    llvm::interleave(output.sizes, type, "x");
    type << 'x' << output.elementType;
    comparison.rows = comparison.checkedRows =
        blocks.batch * blocks.heads * blocks.rows;
    comparison.maxError = comparison.relativeError = double(wrongNumbers(
        array, wanted, listOf(blocks, result & ~1u), result % 2 != 0));
    comparison.unwritten = result % 2 ? 0 : array.unwritten();
    comparison.damaged = array.damaged();
    comparisons.push_back(comparison);
  }
  return comparisons;
}
