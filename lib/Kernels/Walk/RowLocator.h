//===- RowLocator.h - Where the device says that rows lie -------*- C++ -*-===//
//
// Of a problem with a `Placement` (Problem.h) a kernel asks the device, tile by
// tile, where rows lie.  How many keys a batch entry uses is read where a tile
// is drawn, and goes with the tile: keys end there, and the bottom-right corner
// of its mask is at the last of them.
//
// Rows behind the used ones may hold anything, NaN too.  What scores have there
// is hidden, as behind the end of the keys.  Values are multiplied by weights
// of 0, so they must be numbers: the copy engine brings the rows that are used,
// and zeros from outside of the array for the others.  A box in which they end
// comes by boxes of 8 rows, and of one.
//
// Of keys in pages a block comes in boxes that lie in one page each, all with a
// page of their own.  Their numbers are read before the producer waits for
// room, and so are there when there is.  Numbers behind the used keys are not
// looked at.
//
// Example: 100 of 128 keys are used, blocks of 64, pages of 16.  Of block 1
// come the boxes of pages 4 and 5, of page 6 four rows by themselves and an
// octet of zeros below, and a box of zeros.  Without pages there are four boxes
// of 8 rows, 4 of one, and zeros.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_ROWLOCATOR_H
#define ATTN_LIB_KERNELS_WALK_ROWLOCATOR_H

#include "Walk/Mask.h"
#include "Walk/TileQueue.h"

namespace attn {

class RowLocator {
public:
  /// Declares what tells where rows lie.
  static void declare(Arguments &arguments, TileBuilder &builder,
                      const Placement &place);
  /// For blocks of so many keys.
  RowLocator(TileBuilder &builder, const Arguments &arguments,
             const Placement &place, int64_t key);

  /// The keys that a batch entry uses, none of those that are not there.
  static Scalar usedKeys(TileBuilder &builder, const Arguments &arguments,
                         Scalar batch);
  /// A tile, if there is one, with what is read for it.  One of a sequence has
  /// that as its keys.
  Tile located(Tile tile) const;

  //===--------------------------------------------------------------------===//
  // Of what the copy engine brings
  //===--------------------------------------------------------------------===//

  /// Declares the map of K, and those of V.
  void declareMapOfKeys(Arguments &arguments, const Problem &problem) const;
  void declareMapsOfValues(Arguments &arguments, const Problem &problem) const;
  /// Starts loading a block of a tile's keys, or of its values, into a slot of
  /// a ring.
  void loadKeys(const Ring &ring, Place slot, const Tile &tile, Scalar head,
                Scalar block, mlir::Value buffer,
                const BoxColumns &columns = {}) const;
  void loadValues(const Ring &ring, Place slot, const Tile &tile, Scalar head,
                  Scalar block, mlir::Value buffer,
                  const BoxColumns &columns = {}) const;

  /// Asks that columns of a block of a tile's keys come to L2, by a map of keys
  /// or of values.
  void prefetchKeys(const Tile &tile, Scalar head, Scalar block,
                    const ArgumentRole &map, Scalar column,
                    int64_t columns) const;

private:
  /// A block that goes to a slot.
  struct Block {
    const Ring &ring;
    Place slot;
    const Tile &tile;
    Scalar head, first; ///< first key
    mlir::Value buffer;
    BoxColumns columns;
  };
  /// Keys that are used of those of a tile's batch entry.
  static Scalar usedOf(const Tile &tile) {
    return tile.isOfSequence() ? tile.keys : tile.usedKeys;
  }
  /// Where some keys lie: a batch entry, or a page, and a row.
  struct Source {
    Scalar outer, row;
  };
  /// The entry, or the page, in which a key of a tile lies, if it is used; who
  /// asks for another gets any.
  Scalar outerOf(const Tile &tile, Scalar key) const;
  /// Where a key's box lies, or a place outside of the array.
  Source sourceOf(const Tile &tile, Scalar outer, Scalar key) const;
  /// The row behind the last one.
  Scalar outside() const;
  /// The outers of the boxes of a block, in order.
  llvm::SmallVector<Scalar> outersOf(const Tile &tile, Scalar first) const;
  void loadRows(const Block &block, const ArgumentRole &map,
                const Source &source, Scalar target) const;
  /// The box in which used keys end, of which `used` are: octets and rows.
  void loadCutBox(const Block &block, Scalar outer, Scalar box,
                  Scalar used) const;

  TileBuilder &b;
  const Arguments &arguments;
  const Placement place;
  int64_t key, boxRows;
};

} // namespace attn

#endif
