//===- Listing.h - The kernels that make lists of blocks --------*- C++ -*-===//
//
// What `attn.block_lists` and `attn.transpose_blocks` launch.  Warps work apart
// from each other, so nothing depends on their order:
//
//   block_classes      A warp has 16 blocks of keys of one row of blocks.  It
//                      asks a region for pairs of a block, 16 queries and 64
//                      keys at a time, until it has met a pair that is seen and
//                      one that is not, and leaves a word with two bits for
//                      each block: hidden 0, partial 1, full 2.
//   listed_blocks      A warp has a row of these words, and lists the partial
//                      and the full blocks in order.
//   transposed_blocks  A warp has a block of keys, and looks it up in the lists
//                      of 16 rows of blocks at a time, 64 numbers each.
//
// The words are a quarter of a byte for each block, of a pair's nothing is
// kept.  Pairs are those that there are: behind the last query and key the last
// one is asked again.  What all blocks of a word have in common is not asked.
//
// Roles are those of Roles.h: of lists `list_counts_0`, `list_blocks_0` for the
// partial ones, 1 for the full ones, and 2 and 3 for those that come out of
// transposed_blocks, whose `queries` and `keys` are blocks of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNELS_LISTING_H
#define ATTN_KERNELS_LISTING_H

#include "attn/Kernels/Kernels.h"

namespace attn {

/// Warps of a block of threads.
inline constexpr int64_t kListingWarps = 4;
/// Blocks of keys that a word has the classes of.
inline constexpr int64_t kBlocksOfWord = 16;

enum class Listing { classes, listed, transposed };

/// What is asked of the builder.
struct ListingRequest {
  std::string name; ///< symbol of the kernel
  Listing kind;
  BlockSize size = {1, 1};      ///< not of `transposed`
  mlir::Region *sees = nullptr; ///< of `classes`
};

tile::KernelOp buildListing(mlir::OpBuilder &builder, mlir::Location loc,
                            const ListingRequest &request);

/// A name that says what a kernel does, `block_classes_128x128`.
std::string listingName(const ListingRequest &request);

} // namespace attn

#endif
