//===- BandRuns.h - Blocks that unions of bands show ------------*- C++ -*-===//
//
// Of each band a tile of rows sees one run of blocks (Bands.h), and of these a
// whole band opens one.  In order and apart they are the runs that a tile
// walks: open blocks in those that bands open, cut ones in what is left of the
// others.  All of it follows from the rows of the tile.
//
// Example: j < 4 or i - 8 <= j <= i, the queries 32 .. 35, blocks of 4 keys:
//
//   runs of bands   0 .. 0, and 6 .. 8
//   open            0 .. 0, and 7 .. 7
//   cut             6 .. 6, and 8 .. 8
//
// Where tiles are keys, the transposed bands say the same of them: rows are
// keys, and columns queries.  The keys 8 .. 11 of the example, in blocks of 4
// queries: cut are 2 .. 2, where j <= i, open 3 .. 3, and cut 4 .. 4; of the
// keys 0 .. 3 all blocks are open, as far as there are queries.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_BANDRUNS_H
#define ATTN_LIB_KERNELS_WALK_BANDRUNS_H

#include "Walk/BlockLists.h"

#include <memory>

namespace attn {

class BandRuns : public TileLists {
public:
  /// For tiles of `own` rows of a side, past which blocks of `streamed` rows of
  /// the other one stream.
  BandRuns(TileBuilder &builder, const Arguments &arguments, const Bands &bands,
           int64_t own, int64_t streamed, ListSide side = ListSide::queries);

  Tile counted(Tile tile) const override;
  Tile countedOfAll(Tile tile, Scalar sharers) const override;
  BlockList partialOf(const Tile &tile) const override;
  BlockList fullOf(const Tile &tile) const override;
  ClassedBlocks allOf(const Tile &tile) const override;
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
  Run runIf(Scalar isSome, Scalar begin, Scalar end) const;
  /// What is shown and not open; all of both are in order and apart.
  Runs cutOf(const Seen &seen) const;
  /// In order and apart.
  Runs apart(Runs runs) const;

  Scalar at(const RowBound &bound) const;
  /// The first column of what a band shows to a row, and behind its last one.
  Scalar beginOf(const Band &band, Scalar row) const;
  Scalar endOf(const Band &band, Scalar row) const;

  TileBuilder &b;
  llvm::SmallVector<Band, kMostBands> bands; ///< of rows and columns
  int64_t own, streamed;
  Scalar queries, keys, rows, columns;
};

/// The lists of a problem that has some, for tiles of `own` rows of a side past
/// which blocks of `streamed` rows of the other one stream.
std::unique_ptr<TileLists> tileLists(TileBuilder &builder,
                                     const Arguments &arguments,
                                     const Problem &problem, int64_t own,
                                     int64_t streamed,
                                     ListSide side = ListSide::queries);

} // namespace attn

#endif
