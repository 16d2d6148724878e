//===- RaggedRows.h - Tiles of sequences of any length ----------*- C++ -*-===//
//
// Sequences lie one behind the other (Schedule/Ragged.h), and only the device
// knows their lengths.  Tiles are found by slots: whose slot it is follows from
// the offsets by halving, and which of its tiles from the slot that is its
// first.  A slot that has no rows is passed over by who draws tiles.
//
// Tiles are of queries, or of keys: slots are those of the offsets of either.
//
// **Ranks.**  A block may rank sequences by the rows that stream past their
// tiles.  Slots then follow each other by rank, so that who takes tiles from
// one end on has those of the longest sequence first.  A table in shared memory
// has the first slot of each rank; of more sequences than it has room for the
// slots stay as they lie in memory.
//
// On a cache (RowLocator.h) sequence n has the keys that entry n uses, whose
// number is read where there are offsets of keys otherwise.
//
// A tile of a sequence says where that lies.  Rows are counted in it, and
// arrays are addressed from its first row on, so nothing else of a kernel
// changes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_RAGGEDROWS_H
#define ATTN_LIB_KERNELS_WALK_RAGGEDROWS_H

#include "Walk/TileQueue.h"

#include "attn/Schedule/RaggedQueries.h"

namespace attn {

class RaggedRows {
public:
  /// Declares the offsets.
  static void declare(Arguments &arguments, TileBuilder &builder,
                      const Problem &problem);
  /// For tiles of so many rows, of queries or of keys.
  RaggedRows(const Arguments &arguments, const Problem &problem,
             int64_t tileRows, bool ownsKeys = false)
      : arguments(&arguments), tileRows(tileRows), ownsKeys(ownsKeys),
        areKeysOfCache(!areKeysRagged(problem)) {}

  /// Reserves a table and ranks sequences in it, the longest last or first.
  /// Before roles begin.
  mlir::Value rank(TileBuilder &builder, bool longestFirst) const;
  /// The same with slots by rank.
  RaggedRows byRank(mlir::Value table) const {
    RaggedRows rows = *this;
    rows.ranks = table;
    return rows;
  }

  /// Slots of all sequences.
  Scalar slots(TileBuilder &builder) const;
  /// The tile of a slot of that head; its rows begin behind the last one of
  /// its sequence if it has none, and then it sees nothing.
  Tile at(TileBuilder &builder, Scalar slot, Scalar head) const;
  /// Whether it has some.
  Scalar hasRows(const Tile &tile) const {
    return tile.row < (ownsKeys ? tile.keys : tile.queries);
  }
  Scalar hasNoRows(const Tile &tile) const {
    return (ownsKeys ? tile.keys : tile.queries) <= tile.row;
  }
  /// The row behind the last sequence.
  Scalar endOfQueries(TileBuilder &builder) const;
  /// The slot of a sequence's first tile.
  Scalar firstSlot(TileBuilder &builder, Scalar firstRow,
                   Scalar sequence) const {
    return firstRow / tileRows + sequence;
  }

private:
  Role owned() const { return ownsKeys ? Role::offsetsK : Role::offsetsQ; }
  /// A sequence, and its first slot.
  struct Found {
    Scalar sequence, first;
  };
  /// That of a slot.
  Found sequenceOf(TileBuilder &builder, Scalar slot) const;
  /// That of a rank; without ranks that of the number.
  Found sequenceAt(TileBuilder &builder, Scalar rank) const;
  Scalar firstSlotAt(TileBuilder &builder, Scalar rank) const;
  Scalar areRanked(TileBuilder &builder) const;
  Scalar offset(TileBuilder &builder, Role role, Scalar number) const;

  const Arguments *arguments;
  int64_t tileRows;
  bool ownsKeys;
  bool areKeysOfCache;
  mlir::Value ranks; ///< null: sequences have slots as they lie
};

/// Where a box of a map of so many rows begins, as coordinates of batch entry
/// and row: of a sequence those of a window (RaggedArrays.h).
struct Corner {
  Scalar batch, row;
  Scalar isEmpty = {}; ///< of a sequence: whether the box has no rows

  /// Loads it by its map, or by that of boxes without rows, if there is one,
  /// where it has none.  Gradients need none: who sees nothing makes no step
  /// there.
  void load(TileBuilder &builder, mlir::Value map, mlir::Value emptyMap,
            llvm::function_ref<void(mlir::Value map)> start) const;

  /// Of queries from a row of the tile's head on, and of keys.
  static Corner ofQueries(TileBuilder &builder, mlir::Value map,
                          const Tile &tile, Scalar row);
  static Corner ofKeys(TileBuilder &builder, mlir::Value map, const Tile &tile,
                       Scalar row);
};

} // namespace attn

#endif
