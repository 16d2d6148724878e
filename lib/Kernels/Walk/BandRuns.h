//===- BandRuns.h - Blocks that unions of bands show ------------*- C++ -*-===//
//
// Of each band a tile of queries sees one run of blocks (Bands.h), and of these
// a whole band opens one.  In order and apart they are the runs that a tile
// walks: open blocks in those that bands open, cut ones in what is left of the
// others.  All of it follows from the rows of the tile.
//
// Example: j < 4 or i - 8 <= j <= i, the queries 32 .. 35, blocks of 4 keys:
//
//   runs of bands   0 .. 0, and 6 .. 8
//   open            0 .. 0, and 7 .. 7
//   cut             6 .. 6, and 8 .. 8
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_BANDRUNS_H
#define ATTN_LIB_KERNELS_WALK_BANDRUNS_H

#include "Walk/BlockLists.h"

#include <memory>

namespace attn {

class BandRuns : public TileLists {
public:
  /// For tiles of `query` rows and blocks of `key` keys.
  BandRuns(TileBuilder &builder, const Arguments &arguments, const Bands &bands,
           int64_t query, int64_t key);

  Tile counted(Tile tile) const override;
  BlockList partialOf(const Tile &tile) const override;
  BlockList fullOf(const Tile &tile) const override;
  int64_t keysOfFull() const override { return 0; }

private:
  using Runs = llvm::SmallVector<Run, 4>;
  /// Of a tile from a row on: those of each band.
  struct Seen {
    Runs shown, open;
  };
  Seen seenFrom(Scalar row) const;
  Run shownTo(const Band &band, Scalar first, Scalar last) const;
  Run openTo(const Band &band, Scalar first, Scalar last) const;
  /// What is shown and not open; all of both are in order and apart.
  Runs cutOf(const Seen &seen) const;
  /// In order and apart.
  Runs apart(Runs runs) const;

  Scalar at(const RowBound &bound) const;
  /// The first key of what a band shows to a query, and behind its last one.
  Scalar beginOf(const Band &band, Scalar row) const;
  Scalar endOf(const Band &band, Scalar row) const;

  TileBuilder &b;
  Bands bands;
  int64_t query, key;
  Scalar queries, keys;
};

/// The lists of a problem that has some, for tiles of `query` rows past which
/// blocks of `key` keys stream.
std::unique_ptr<TileLists> tileLists(TileBuilder &builder,
                                     const Arguments &arguments,
                                     const Problem &problem, int64_t query,
                                     int64_t key);

} // namespace attn

#endif
