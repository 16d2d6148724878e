//===- Listings.h - Lists of blocks that are made, and their reference ----===//
//
// `attn.block_lists` and `attn.transpose_blocks` have HostBlocks.h as their
// reference, to the last number: of indices those that are counted.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_LISTINGS_H
#define ATTN_TOOLS_RUN_LISTINGS_H

#include "Reference.h"

#include "attn/IR/HostBlocks.h"

namespace attn::run {

/// The numbers of an array that a clause takes.
CapturedArray capturedArray(const HostBytes &array);
/// The same of what may be a list that the function makes.
CapturedArray capturedArray(const Function &function, const ArraySource &source,
                            const std::vector<HostBytes> &arrays);

/// What a listing makes of these inputs.
HostBlocks blocksOf(const Function &function, const Listing &listing,
                    const std::vector<HostBytes> &arrays);

/// Fills what a listing reads.
void drawListing(const Listing &listing, std::vector<HostBytes> &arrays,
                 uint64_t seed);

/// Compares the outputs of the listing of that number.
std::vector<Comparison> compareListing(const Function &function, size_t number,
                                       const std::vector<HostBytes> &arrays,
                                       const std::vector<size_t> &outputs);

} // namespace attn::run

#endif
