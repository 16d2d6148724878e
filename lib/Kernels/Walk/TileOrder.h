//===- TileOrder.h - In which order tiles are worked off --------*- C++ -*-===//
//
// A persistent kernel numbers the tiles of all heads and batch entries.  Blocks
// take them by number, so neighbours in the order run at the same time.  Where
// every tile is a block of its own, those of a grid start in order of number.
//
// Without a mask the tiles of a head follow each other: its keys stay in L2.
// Under a mask tiles differ in length, and the longest (the last rows) go
// first, within a section of heads whose keys and values fit L2 together.  All
// sections have as many heads, or one more: a small one at the end would have
// too few short tiles to fill the gaps beside its long ones.  Sequences on a
// cache differ even more in length, and a section has all heads there are, up
// to 16: with one head at a time (8 heads, 8 chunks behind 4k to 32k of cache
// and 120 decodes) the last head's longest tile would end a tenth of the time
// behind the others.  To take slots from both ends in turns, so that decodes
// run beside prefills, took a fifth longer: tiles of a sequence that run at
// once share what streams past.
//
// Of listed blocks nobody knows which tiles are long, before they are drawn.
// What all look at, or what looks at all, mostly stands in the first rows, and
// under a mask that the lists have taken in the last queries are long, and the
// first keys.  So the first tile of every head goes first, and then head by
// head the others, of queries from the last to the second, of keys from the
// second on.
//
// Tiles of keys may have to wait for those of their head that were drawn
// before. Then heads take turns as under a mask, so that few tiles of one head
// run at once.  The shortest may be the first: they wait least then, but long
// ones are left for the end.
//
// **Lanes.**  Of the longest first all heads of a section would draw tiles of
// the same length at the same time, several of each head; all but the first of
// them wait for those before, and as each is as much shorter as it begins
// later, all end at once, draw the next ones, and wait again.  So under a
// causal mask, which makes tiles differ, heads stand in lanes instead of
// sections, one behind the other in each, and every lane *lags*: in one step
// each lane takes a tile, but its first one so many steps behind that of the
// lane before.  Blocks that come free at once then draw tiles of several heads,
// each well behind the one that it follows.  (d = 128 on an H100: 4096 rows
// took 1.43 ms and not 1.52, 16384 rows 4.7 and not 4.9.)
//
// Example: causal, 4 tiles a head, 5 heads, 2 sections: (row tile, head) =
// (3, 0) (3, 1) (2, 0) (2, 1) (1, 0) .. (0, 1), then heads 2 to 4.  In three
// lanes with a lag of 1, tiles of keys (0 is the longest): (0, 0), (1, 0)
// (0, 1), (2, 0) (1, 1) (0, 2), (3, 0) (2, 1) (1, 2), (0, 3) (3, 1) (2, 2), ..
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_TILEORDER_H
#define ATTN_LIB_KERNELS_WALK_TILEORDER_H

#include "Walk/KeyParts.h"
#include "Walk/KeyWalk.h"
#include "Walk/RaggedRows.h"
#include "Walk/TileQueue.h"

namespace attn {

/// A block of a grid that has `ofHead` of them for each of `heads` heads, of
/// every batch entry: its number in its head, and whose it is.  Blocks of a
/// head follow each other, so that they run together.
///
/// The grid has one dimension: CUDA allows 2^31 - 1 blocks along the first and
/// 65535 along others, and heads and batch entries may be more.
struct BlockOfHead {
  Scalar number, head, batch;

  static BlockOfHead of(TileBuilder &builder, Scalar inGrid, Scalar ofHead,
                        Scalar heads);
};

/// What tiles of keys ask of their order.
struct KeyOrder {
  /// The kernel also runs if there are no keys.
  bool mayBeNone = false;
  /// Tiles of a head wait for those before them, see `TileOrder::ofKeys`.
  bool isBinding = false;
  /// First tiles are drawn too, and not dealt out by numbers of blocks: who
  /// waits for a tile waits for one that has a block, however few of them run.
  bool drawsAll = false;
  bool takesShortFirst = false;
  int64_t step = 1; ///< rows that stream past at once
};

class TileOrder {
public:
  /// For tiles of `query` rows, `atOnce` of which are worked off at a time, on
  /// a machine with so many bytes of L2; each has as many rows of so many
  /// heads, from one on.
  TileOrder(TileBuilder &builder, const Arguments &arguments,
            const Problem &problem, int64_t query, int64_t atOnce,
            int64_t l2Bytes, int64_t rowHeads = 1);
  /// Likewise for tiles of `key` rows of keys, past which queries stream. Under
  /// a mask the longest are then the first, unless the shortest are to be.
  ///
  /// Where tiles wait for those of the same head before them, heads take turns
  /// without a mask too, so that few tiles of one run at once.
  static TileOrder ofKeys(TileBuilder &builder, const Arguments &arguments,
                          const Problem &problem, int64_t key, int64_t atOnce,
                          int64_t l2Bytes, const KeyOrder &how = {});

  /// The tile of that number, or none behind the last.
  Tile at(TileBuilder &builder, Scalar number) const;

  /// Heads, through all batch entries, that come first: all whose tiles are
  /// among the first `tiles`, and those that take turns with them.
  Scalar headsOfFirst(TileBuilder &builder, Scalar tiles) const;

  /// A number from the counter that the grid shares, from 0 on.
  Scalar draw(TileBuilder &builder, const Arguments &arguments) const;
  /// The next tile for a block: the first ones go to blocks by their numbers.
  Tile drawNext(TileBuilder &builder, const Arguments &arguments) const;
  /// The first tile of a block, and the only one if it does not go on.
  Tile first(TileBuilder &builder, const Arguments &arguments,
             bool goesOn = true) const;
  /// Works off a block's tiles where all its warps are alike.  Behind each,
  /// `buffer` brings them the number of the next one: nobody may read or write
  /// there any more.
  void forEachTile(TileBuilder &builder, const Arguments &arguments,
                   mlir::Value buffer,
                   llvm::function_ref<void(const Tile &)> workOff) const;
  /// Feeds the block's tiles to the queue; `begin` comes before others hear of
  /// a tile, or of there being none, and says what they hear of it.
  void feedTiles(TileBuilder &builder, const Arguments &arguments,
                 const TileQueue &queue, mlir::ValueRange init, TileBody body,
                 llvm::function_ref<Tile(const Tile &)> begin = {}) const;

  /// The same tiles, each once for every part of its keys (KeyParts.h): parts
  /// of a tile follow each other.
  TileOrder inParts(const KeyParts &parts) const {
    TileOrder order = *this;
    order.parts = parts.count;
    order.count = count * parts.count;
    return order;
  }

  /// The same of sequences in the order of a table (RaggedRows.h).
  TileOrder byRank(mlir::Value table) const {
    TileOrder order = *this;
    order.ragged = ragged->byRank(table);
    return order;
  }

  /// The same for one of several who take tiles in every block.
  TileOrder ofWorker(int64_t worker, int64_t workers) const {
    TileOrder order = *this;
    order.worker = worker;
    order.workers = workers;
    return order;
  }

  Scalar count;

private:
  /// What tiles are made of: rows of some heads, past which others stream.
  struct Rows {
    int64_t tile;
    Scalar count, heads, streamed;
    bool areKeys;
    KeyOrder how = {};
    int64_t rowHeads = 1; ///< of a tile, which count as one
    /// Slots of sequences, which are those of one batch entry.
    std::optional<RaggedRows> ragged = {};
  };
  TileOrder(TileBuilder &builder, const Arguments &arguments,
            const Problem &problem, const Rows &rows, int64_t atOnce,
            int64_t l2Bytes);
  static Rows rowsOfQueries(TileBuilder &builder, const Arguments &arguments,
                            const Problem &problem, int64_t query,
                            int64_t rowHeads);
  static void makeSlots(TileBuilder &builder, const Arguments &arguments,
                        const Problem &problem, Rows &rows);
  static Scalar headsAtOnce(TileBuilder &builder, const Rows &rows,
                            const Problem &problem, int64_t l2Bytes);
  /// How often a launch draws from the counter.
  Scalar draws(TileBuilder &builder) const;
  /// The tile of a number that was drawn.
  Tile ofDrawn(TileBuilder &builder, Scalar number) const;

  /// The heads of the section of one of them.
  Run sectionOf(TileBuilder &builder, Scalar head) const;
  /// For so many heads, `least` of them at a time if there are as many, and so
  /// many steps of an average tile.
  void chooseLanes(TileBuilder &builder, Scalar heads, Scalar least,
                   Scalar steps, int64_t atOnce);

  /// A tile of a head, from the one that is drawn first, as numbers.
  struct Position {
    Scalar tile, head;
  };
  Position positionOf(TileBuilder &builder, Scalar number) const;
  /// The tile of a slot, which has a number with its part and one without.
  Tile tileOfSlot(TileBuilder &builder, Scalar number, Scalar inOrder,
                  const Position &at) const;
  Position positionInLanes(TileBuilder &builder, Scalar number) const;
  /// So many lanes of one length, from `first` on.
  struct Lanes {
    Scalar first, count, length, lag;

    /// Tiles that they take before a step.
    Scalar takenBefore(TileBuilder &builder, Scalar step) const;
    /// Those that take one in a step.
    Run at(TileBuilder &builder, Scalar step) const;
  };
  /// Lanes with as many heads as any, and those with one less.
  std::array<Lanes, 2> lanes(TileBuilder &builder) const;
  /// The step in which a tile is taken.
  Scalar stepOf(TileBuilder &builder, Scalar number) const;

  /// A tile that was drawn, or the next one that has rows.
  Tile orNextWithRows(TileBuilder &builder, const Arguments &arguments,
                      const Tile &tile) const;

  /// Of those who take tiles without drawing them: which one this is, and how
  /// many they are.
  Scalar numberOfWorker(TileBuilder &builder) const;
  Scalar numberOfWorkers(TileBuilder &builder) const;

  int64_t tileRows, rowHeads, parts = 1, worker = 0, workers = 1;
  std::optional<RaggedRows> ragged;
  bool hasSections, startsAtEnd, drawsAll, hasLanes;
  bool takesFirstRows; ///< of all heads before the others
  Scalar heads, allHeads, tilesOfHead, sections;
  Scalar laneCount, lag; ///< in steps
};

} // namespace attn

#endif
