//===- Ring.h - Where a role stands in a ring of buffers --------*- C++ -*-===//
//
// A ring of n buffers has n slots, each with two barriers: "full", on which who
// reads waits, and "empty", on which who writes waits.  Everybody goes round by
// himself, with a slot and a parity that flips with every round: readers begin
// with parity 0, writers, who find all slots empty, with parity 1.
//
// Example, two slots, a reader: (0, 0) (1, 0) (0, 1) (1, 1) (0, 0) ...
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_BUILD_RING_H
#define ATTN_LIB_KERNELS_BUILD_RING_H

#include "Build/TileBuilder.h"

namespace attn {

/// A place in a ring, as two scalars that loops carry.
struct Place {
  Scalar slot, parity;

  static Place reader(TileBuilder &b) { return {b.i32(0), b.i32(0)}; }
  static Place writer(TileBuilder &b) { return {b.i32(0), b.i32(1)}; }
  /// The same place of a ring that begins with that slot, if it is given.
  Place from(Scalar first) const {
    return {mlir::Value(first) ? first : slot, parity};
  }
  /// The next place of a ring of so many slots, from the first one on if that
  /// is not slot 0.
  Place next(TileBuilder &builder, int64_t slots, Scalar first = {}) const;

  /// The place behind a loop that begins at this one, and behind one of two
  /// branches, where neither carries anything else.
  using LoopBody = llvm::function_ref<Place(Scalar index, Place place)>;
  Place loop(TileBuilder &builder, Scalar lower, Scalar upper,
             LoopBody body) const;
  using Branch = llvm::function_ref<Place(Place place)>;
  Place choose(TileBuilder &builder, Scalar condition, Branch yes,
               Branch no) const;
};

/// Columns of an array from one on, or all; so many, or as many as a buffer
/// has.
struct BoxColumns {
  Scalar first = {};
  std::optional<int64_t> count = {};
};

/// A ring of buffers (or of one) and its barriers.
class Ring {
public:
  Ring() = default;
  /// Reserves the barriers; `readers` warps hand every slot back, `inCluster`
  /// to all blocks of their cluster, and `writers` hand it over (TMA is one).
  Ring(TileBuilder &builder, llvm::StringRef name, int64_t slots,
       int64_t readers, int64_t writers = 1, bool inCluster = false,
       int64_t rings = 1);

  /// Of several rings in one, each of so many slots: goes round in that one.
  void enter(Scalar ring) { first = ring * slots; }
  Place reader(TileBuilder &b) const { return Place::reader(b).from(first); }
  Place writer(TileBuilder &b) const { return Place::writer(b).from(first); }
  Place next(TileBuilder &builder, Place place) const {
    return place.next(builder, slots, first);
  }
  void awaitFull(TileBuilder &builder, Place place) const;
  void awaitEmpty(TileBuilder &builder, Place place) const;
  /// Hands the slot over to its readers, as one of several writing warps.
  void handOver(TileBuilder &builder, Place place) const;
  /// Hands the slot back, if the condition holds.
  void release(TileBuilder &builder, Place place, Scalar condition = {}) const;
  /// Waits for the slot, then starts loading rows of a head into it; with the
  /// rank of a block in its cluster, its part of them into those of all; from a
  /// column on, or all; so many columns, or as many as the buffer has.
  void load(TileBuilder &builder, Place place, mlir::Value map, Scalar batch,
            Scalar head, Scalar row, mlir::Value buffer, Scalar rank = {},
            Scalar column = {}, std::optional<int64_t> columns = {}) const;
  /// The same in pieces: waits for the slot and announces all of its bytes,
  /// then loads boxes, each to the rows of the buffer from one on.
  void announce(TileBuilder &builder, Place place, mlir::Value buffer,
                const BoxColumns &columns = {}) const;
  void loadRows(TileBuilder &builder, Place place, mlir::Value map,
                Scalar batch, Scalar head, Scalar row, mlir::Value buffer,
                Scalar targetRow, const BoxColumns &columns = {}) const;
  /// Waits for a slot that others have written, starts what copies it away, and
  /// hands it back when that has been read.
  void storeFrom(TileBuilder &builder, Place place,
                 llvm::function_ref<void()> start) const {
    startFrom(builder, place, start);
    releaseStored(builder, place);
  }
  /// The first half of that, and the second: behind it so many stores may not
  /// have been read.
  void startFrom(TileBuilder &builder, Place place,
                 llvm::function_ref<void()> start) const;
  void releaseStored(TileBuilder &builder, Place place,
                     int64_t younger = 0) const;

  mlir::Value fullBarrier() const { return full; }

private:
  int64_t slots = 1;
  bool inCluster = false;
  Scalar first; ///< slot, unless that is 0
  mlir::Value full, empty;
};

} // namespace attn

#endif
