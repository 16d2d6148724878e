//===- SmemTraffic.cpp - Bytes of shared memory, exact --------------------===//
//
// What a verb reads and writes in shared memory, in the whole tiles that lie
// there: by the copy engine, by tensor cores that read their factors there, and
// by warps that have the same rows.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Traffic.h"

using namespace attn;

int64_t attn::smemBytes(const Use &use, const Problem &problem) {
  using namespace verb;
  const Node &node = *use.node;
  Tensor tensor = tensorOf(node);
  const TileExtent &tile = use.tile;
  auto tileElements = [&](Tensor tensor, int64_t rows, int64_t cols) {
    return use.count * rows * padded(tensor, cols, problem, use.columnParts());
  };
  auto tileBytes = [&](Tensor tensor, int64_t rows, int64_t cols) {
    return tileElements(tensor, rows, cols) * bytesPerElement(tensor, problem);
  };
  auto factorBytes = [&](Tensor tensor, int64_t rows, int64_t cols) {
    return tileElements(tensor, rows, cols) * bytesAsFactor(tensor, problem);
  };
  // The copy engine moves whole panels.
  auto panelledBytes = [&] {
    return use.count * tile.rows *
           roundUp(tile.cols * bytesPerElement(tensorOf(node), problem),
                   kPanelBytes);
  };
  // Warps on the same rows hand each other a statistic: each writes its own and
  // reads those of all.
  auto exchangedBytes = [&] {
    int64_t parts = use.columnParts();
    constexpr int64_t valueBytes = 4;
    return parts == 1
               ? 0
               : use.count * tile.rows * valueBytes * parts * (1 + parts);
  };
  // Likewise maxima and sums that are handed over beside weights, as lanes have
  // them: by each once, to each of the others.
  auto handedBytes = [&] {
    constexpr int64_t statistics = 2, valueBytes = 4;
    return use.count * tile.rows * kThreadsPerRow * statistics * valueBytes *
           use.across * use.across;
  };
  // What a tile has along the keys is half as much in some.
  auto keyBytes = [&](int64_t bytes) {
    return use.count ? bytes / (2 * use.count) * (2 * use.count - use.halves)
                     : 0;
  };
  auto columnBytes = [&](Tensor statistic) {
    return use.count * use.warps * tile.cols *
           bytesPerElement(statistic, problem);
  };
  auto read = [&](Level level) -> int64_t {
    if (level != Level::Smem)
      return 0;
    if (use.isPanelled && !shapeOf(tensor).cols)
      return use.count * tile.rows * bytesPerElement(tensor, problem);
    if (scratchOf(node).partColumns > 0)
      return use.count * tile.rows * tile.cols * bytesMoved(node, problem);
    if (use.isPanelled)
      return keyBytes(panelledBytes());
    return tileBytes(tensor, tile.rows, tile.cols);
  };
  auto wholeTile = [&] { return tileBytes(tensor, tile.rows, tile.cols); };
  // Written whole, read back as far as rows exist.
  auto staged = [&] { return wholeTile() + slowBytes(use, problem); };
  // Every warp reads its own rows of a, and all of b, or its part of b if
  // others have the same rows.  The tile of b lies in memory as the tensor
  // does: its columns are the product's or its depth.
  auto factors = [&](const Multiply &product) {
    bool bIsTransposed =
        shapeOf(product.b).cols != shapeOf(product.tensor).cols;
    int64_t bytes = 0;
    bool isOwnKept = use.handsOver && product.a == Tensor::P;
    if (use.aInSmem)
      bytes += (use.across - (isOwnKept ? 1 : 0)) *
               factorBytes(product.a, tile.rows, tile.depth);
    if (use.bInSmem)
      bytes += use.warps *
               keyBytes(bIsTransposed
                            ? factorBytes(product.b, tile.cols, tile.depth)
                            : factorBytes(product.b, tile.depth, tile.cols));
    // Of parts, for every product of theirs.
    if (use.partProducts > 1)
      bytes = bytes / bytesOf(problem.dtype) * (use.partProducts * kPartBytes);
    return bytes;
  };
  return node.match(
      [&](const Load &load) { return read(load.level); },
      [&](const Stream &stream) { return read(stream.level); },
      [&](const Transpose &) { return 2 * wholeTile(); },
      [&](const Widen &) { // read, and written in another type
        return wholeTile() + factorBytes(tensor, tile.rows, tile.cols);
      },
      [&](const Split &) { // read, and written in parts
        return wholeTile() + wholeTile() / bytesPerElement(tensor, problem) *
                                 (kSplitParts * kPartBytes);
      },
      [&](const Multiply &product) { return factors(product); },
      [&](const Store &store) -> int64_t {
        if (!shapeOf(tensor).cols)
          return 0;
        // Directly, scaled by the sums of the rows.
        return store.isDirect ? exchangedBytes() : staged();
      },
      // With the maxima of the rows.
      [&](const Softmax &) {
        return use.handsOver ? handedBytes() : exchangedBytes();
      },
      // A number for each column, where those are the queries.
      [&](const Weigh &) { return use.aInSmem ? columnBytes(Tensor::Lse) : 0; },
      [&](const Differentiate &) {
        return use.aInSmem ? columnBytes(Tensor::Delta) : 0;
      },
      [&](const Hold &hold) { // put there once, or taken from there
        return hold.level == Level::Smem || use.aInSmem ? wholeTile() : 0;
      },
      [&](const Reduce &) { // by the copy engine, what warpgroups put there
        return use.isPanelled ? 2 * slowBytes(use, problem) : 0;
      },
      [&](const Spill &spill) -> int64_t {
        if (!spill.isStaged)
          return 0;
        return spill.scratch.isKept ? staged() : 2 * slowBytes(use, problem);
      },
      [&](const Rescale &scaled) {
        return scaled.isStaged ? panelledBytes() : 0;
      },
      [](OneOf<Loop, Share, Absorb>) -> int64_t { return 0; });
}
