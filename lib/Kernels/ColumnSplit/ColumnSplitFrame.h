//===- ColumnSplitFrame.h - What its roles share ----------------*- C++ -*-===//
//
// Sizes, arguments, buffers, barriers and flags of the kernel that
// column_split_wgmma.cpp describes.
//
// **Lists.**  The strips of a tile whose blocks are listed (BlockLists.h) are
// cut from its list and not from the keys: part p of strip n has the keys of
// entry n * G + p, the partial blocks first.  Where the list has ended a part
// has keys behind the last one, of which nothing is loaded and all is hidden.
// Example, G = 2: the list 7 2 5 is two strips, of blocks 7 and 2, and of 5 and
// nothing.
//
// **Used keys.**  Of a cache (RowLocator.h) the keys that a batch entry uses go
// with the tile, and its strips end with them.  Keys come by panels of all the
// rows of a part, values by pieces of 32 rows, so that each has boxes of its
// own.
//
// **Parts.**  A tile's strips may be dealt out to teams (KeyParts.h).  Of a
// part without strips the first one is walked, with every score hidden.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_COLUMNSPLIT_COLUMNSPLITFRAME_H
#define ATTN_LIB_KERNELS_COLUMNSPLIT_COLUMNSPLITFRAME_H

#include "Build/Ring.h"
#include "Walk/Mask.h"
#include "Walk/RowLocator.h"
#include "Walk/Team.h"
#include "Walk/TileBlocks.h"

namespace attn {

struct ColumnSplitFrame {
  static constexpr int64_t kGroups = 2; ///< consumer warpgroups
  static constexpr int64_t kRows = kGroups * kGroupRows;
  static constexpr int64_t kConsumers = kGroups * kWarpsPerGroup;
  static constexpr int64_t kKeys = 128;     ///< of a strip, a block's own
  static constexpr int64_t kPanel = 64;     ///< columns of Q and K in a unit
  static constexpr int64_t kPieceKeys = 32; ///< rows of V in a unit
  static constexpr int64_t kPieces = kKeys / kPieceKeys;
  static constexpr int64_t kMostColumns = 256; ///< of O, a block's own
  static constexpr int64_t kExchangeSlots = 4;
  static constexpr int64_t kDrawnSlots = 4; ///< tiles told between blocks
  static constexpr int64_t kLeft = 1 << 30; ///< more than any number of strips

  ColumnSplitFrame(TileBuilder &builder, const KernelRequest &request);

  /// The kernel with its arguments, buffers and barriers; the builder stands in
  /// it.
  tile::KernelOp declare();

  mlir::Value map(llvm::StringRef operand) const {
    return arguments.get(b, mapRole(operand));
  }

  /// A tile, as the others hear of it from who has drawn it.
  Tile drawn(const Tile &tile) const {
    if (keysAt)
      return keysAt->located(tile);
    return lists ? lists->counted(tile) : tile;
  }
  /// The strips of a tile, one after the other: each is traded with the one
  /// before.  Of a list they are numbered, and there is one at least.
  KeyWalk walkOf(const Tile &tile) const;
  /// The first key that a part has of a strip.
  Scalar keyOf(const Tile &tile, Scalar strip, Scalar part) const;
  /// What hides keys of the own part of a strip: of full blocks only their end.
  KeyBand bandOf(const Tile &tile, Scalar strip) const;

  /// Whether a panel of Q stays for the tile, and where.  The last one does not
  /// if any does not: it may have fewer columns.
  std::optional<int64_t> placeOf(int64_t panel) const;

  /// The flag of a part of the own group and of a warpgroup.
  Scalar flag(Scalar part, int64_t group) const {
    return team->member(part) * kGroups + group;
  }
  /// The flag, behind those of all blocks, that tells a group of its tile.
  Scalar drawnFlag(Scalar rowGroup, Scalar slot) const {
    return b.gridSize(0) * kGroups + rowGroup * kDrawnSlots + slot;
  }
  Scalar parityOf(Scalar count) const { return count & b.i32(1); }

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  int64_t groupSize, cluster, resident, slots;
  int64_t panels;  ///< of Q and K
  int64_t columns; ///< of O, a block's own
  int64_t strip;   ///< keys
  KeyParts parts;  ///< whose O and LSE another kernel makes whole

  Arguments arguments;
  std::optional<KeyBand> band;
  std::optional<BlockLists> lists; ///< of a pattern
  /// Of rows that lie where the device says.
  std::optional<RowLocator> keysAt, valuesAt;
  std::optional<TileBlocks> blocks;
  std::optional<TileOrder> order;
  std::optional<Team> team;
  Scalar queries;
  mlir::Value bufferQ, units, pieces;
  mlir::Value queryFull, queryEmpty, written, ready;
  TileQueue queue;
  Ring ring;

private:
  tile::SmemType bufferType(int64_t stages, int64_t rows,
                            int64_t columns) const;
  mlir::Value barriers(llvm::StringRef name, int64_t count, int64_t arrivals);
  void declareKeysAndValues();
  void reserve();
  TileQueue queueFor(int64_t readers) const;
  /// The number of a part's entry in the list.
  Scalar entryOf(Scalar strip, Scalar part) const {
    return strip * groupSize + part;
  }
};

/// The bodies of the roles.
void produceStrips(const ColumnSplitFrame &frame);
void publishStrips(const ColumnSplitFrame &frame, int64_t group);

} // namespace attn

#endif
