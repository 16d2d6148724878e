//===- KeyParts.h - A tile's walk, dealt out to blocks ----------*- C++ -*-===//
//
// A tile of a kernel whose keys are in parts (Schedule/KeyParts.h) is some rows
// and a part: it walks that part of the blocks that the rows see, and leaves
// their O and LSE in scratch, all rows of a part together:
//
//   O    [batch, head, part, query, column]    LSE  [batch, head, part, query]
//
// Rows of O are aligned to 16 bytes.  LSE are natural.  Sequences that lie one
// behind the other are one batch entry.
//
// Example: 5 blocks, 3 parts: blocks 0 1, 2 3 and 4.  Of 2 blocks the last part
// has none.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_KEYPARTS_H
#define ATTN_LIB_KERNELS_WALK_KEYPARTS_H

#include "Walk/KeyWalk.h"
#include "Walk/TileQueue.h"

namespace attn {

class KeyParts {
public:
  explicit KeyParts(int64_t count) : count(count) {}
  /// As many as tiles say.
  explicit KeyParts(const Tiles &tiles) : count(tiles.get("parts", 1)) {}

  int64_t count;
  bool areSeveral() const { return count > 1; }

  /// What a part has of the steps of a walk.
  Run of(TileBuilder &builder, Scalar steps, Scalar part) const;

  /// The arrays that parts are left in.
  void declare(Arguments &arguments, TileBuilder &builder,
               const Problem &problem) const;
  /// Of a tile's part, or of one given by number; of sequences, which are one
  /// entry, the first of their rows and how many there are.
  struct Owner {
    Scalar batch, head, part;
    Scalar firstQuery = {}, queries = {};
  };
  static Owner ownerOf(const Tile &tile) {
    return {tile.batch, tile.head, tile.part, tile.firstQuery, tile.queries};
  }
  /// The rows of O, from a column on, and the numbers of LSE.
  mlir::Value output(TileBuilder &builder, const Arguments &arguments,
                     const Problem &problem, const Owner &owner,
                     Scalar column = Scalar()) const;
  mlir::Value lse(TileBuilder &builder, const Arguments &arguments,
                  const Owner &owner) const;

private:
  /// Rows of queries before those of a part, and of one.
  Scalar rowsBefore(TileBuilder &builder, const Arguments &arguments,
                    const Owner &owner) const;
  Scalar rowsOf(TileBuilder &builder, const Arguments &arguments,
                const Owner &owner) const;
};

} // namespace attn

#endif
