//===- BlockLists.h - Blocks that a pattern lists ---------------*- C++ -*-===//
//
// For each row of blocks of queries a pattern has two lists of blocks of keys:
// *full* ones, of which every query sees all keys, and *partial* ones, of which
// a mask hides some.  A list is a count and so many numbers, each once and in
// any order; what stands behind them means nothing.  Counts are arrays [batch,
// heads, rows], numbers [batch, heads, rows, blocks of keys], each with strides
// of its own, which are 0 where batch entries or heads share lists.
//
// Full blocks need no mask, so they are walked in a loop of their own.  Who
// draws a tile reads the counts and tells them with it.  The number of a block
// is read in its step, ahead of what waits there anyway.
//
// Blocks of a pattern may be larger than those of the kernel, whose tiles then
// take several steps for each.  Example: 256 keys in the pattern, 128 in the
// kernel: the list 3 0 is walked as blocks 6, 7, 0 and 1.
//
// What tiles see may also follow from their rows (BandRuns.h); their blocks are
// then walked in the same way, and computed where lists are read.
//
// *Transposed* lists say the same of rows of blocks of keys, for kernels whose
// tiles are keys.  Query heads that share the keys have lists of their own.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_BLOCKLISTS_H
#define ATTN_LIB_KERNELS_WALK_BLOCKLISTS_H

#include "Walk/TileQueue.h"

#include <functional>

namespace attn {

/// A run of blocks, `begin .. end - 1`.
struct Run {
  Scalar begin, end;

  Scalar count() const { return end - begin; }
  Scalar has(Scalar block) const { return (begin <= block) & (block < end); }
};

/// A list of a tile, from a step on.
class BlockList {
public:
  /// Of an array of numbers, those from `begin` on, each of which has so many
  /// blocks of the kernel.
  BlockList(mlir::Value numbers, Scalar begin, Scalar steps, int64_t ofNumber)
      : steps(steps), numbers(numbers), begin(begin), ofNumber(ofNumber) {}
  /// The blocks of runs that end nowhere before they begin, one behind the
  /// other; no numbers are in memory.
  BlockList(TileBuilder &builder, llvm::ArrayRef<Run> runs);

  /// The block of a step, which must exist.
  Scalar block(TileBuilder &builder, Scalar step) const;
  /// The steps from one on; none, if there are less.
  BlockList from(TileBuilder &builder, Scalar step) const;

  Scalar steps;

private:
  /// From a step on, blocks are so many more than their steps.
  struct Stage {
    Scalar step, more;
  };
  llvm::SmallVector<Stage> stages; ///< of runs

  mlir::Value numbers;
  Scalar begin;
  Scalar before; ///< steps that it begins behind, if any
  int64_t ofNumber = 1;
};

/// One list, or one behind the other.
class ListWalk {
public:
  ListWalk(TileBuilder &builder, llvm::ArrayRef<BlockList> lists)
      : lists(lists), b(&builder) {}

  Scalar steps() const;
  /// The block of a step, which must exist.
  Scalar block(Scalar step) const;
  /// Those of the first step and of the last, or 0 if there is none.
  Scalar firstIfAny() const { return ifAny(b->i32(0)); }
  Scalar lastIfAny() const { return ifAny(steps() - 1); }

  llvm::SmallVector<BlockList, 2> lists;

private:
  Scalar ifAny(Scalar step) const;

  TileBuilder *b;
};

/// Blocks of both classes behind each other, in any order: the one of a step,
/// which must exist, and whether a mask is to be asked in it.
struct ClassedBlocks {
  struct Block {
    Scalar number, isCut;
  };
  Scalar steps;
  std::function<Block(Scalar step)> at;

  /// Cut blocks, and behind them open ones.
  static ClassedBlocks of(TileBuilder &builder, const BlockList &cut,
                          const BlockList &open);
};

/// The blocks that a tile sees, by class.
class TileLists {
public:
  virtual ~TileLists() = default;

  /// A tile, if there is one, with the numbers of its steps.
  virtual Tile counted(Tile tile) const = 0;
  /// A tile of keys likewise, with those of all `sharers` query heads.
  virtual Tile countedOfAll(Tile tile, Scalar sharers) const = 0;
  /// The lists of such a tile.
  virtual BlockList partialOf(const Tile &tile) const = 0;
  virtual BlockList fullOf(const Tile &tile) const = 0;
  /// Both lists, for who walks them in one loop.
  virtual ClassedBlocks allOf(const Tile &tile) const = 0;
  /// Keys of a block of the lists, the last of which may end behind the keys,
  /// full as it is; 0 where such a block is partial.
  virtual int64_t keysOfFull() const = 0;
};

/// Which lists: for each row of blocks of queries, or of keys.
enum class ListSide { queries, keys };

class BlockLists : public TileLists {
public:
  /// Declares the arrays.
  static void declare(Arguments &arguments, TileBuilder &builder,
                      ListSide side = ListSide::queries);
  /// For tiles of kernels past which blocks of `step` rows stream.
  BlockLists(TileBuilder &builder, const Arguments &arguments,
             const BlockSize &size, int64_t step,
             ListSide side = ListSide::queries);

  Tile counted(Tile tile) const override;
  Tile countedOfAll(Tile tile, Scalar sharers) const override;
  BlockList partialOf(const Tile &tile) const override;
  BlockList fullOf(const Tile &tile) const override;
  ClassedBlocks allOf(const Tile &tile) const override;
  int64_t keysOfFull() const override { return size.keys; }

  const BlockSize size;

private:
  /// The roles of the arrays.
  struct Roles {
    Role partialCounts, partialBlocks, fullCounts, fullBlocks;
  };
  static Roles rolesOf(ListSide side);
  BlockList listOf(Role blocks, const Tile &tile, Scalar steps) const;
  Scalar stepsOf(Role counts, const Tile &tile) const;
  Scalar rowOf(const Tile &tile) const { return tile.row / rows; }

  TileBuilder &b;
  const Arguments &arguments;
  const Roles roles;
  int64_t rows;     ///< of a block, on the side of tiles
  int64_t ofNumber; ///< blocks of the kernel that a number names
};

} // namespace attn

#endif
