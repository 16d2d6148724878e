//===- RegionClasses.h - Which pairs a region of `sees` shows ---*- C++ -*-===//
//
// A tile of queries and keys is hidden, and never loaded; or open, and needs no
// mask; or cut.  A region tells which by arithmetic of ranges: its integers are
// affine functions of the positions as long as ops keep them so, of which the
// range over a tile is exact, and ranges otherwise; a comparison of two affine
// functions is one with the range of their difference.  What is read, and
// floats, may be anything.
//
// Hidden and open are promises.  Cut is none: a tile is cut where its class is
// not found out.  Of masks with one comparison, and of bands, every class is
// exact, and so is that of a single pair of a region without reads or floats.
//
// Example: j <= i and i - j < 128 for queries 256 to 383.  Keys 0 to 127 are
// hidden, since i - j is 129 or more.  Keys 128 to 255 are cut: i - j is 1 to
// 255.
//
// From single rows follows what a query sees as runs of keys, by halving where
// a class is cut: one run, and both ends rise with the query, is a mask whose
// bounds say all.
//
// Deliberately absent: what depends on captured numbers, as documents do.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_IR_REGIONCLASSES_H
#define ATTN_IR_REGIONCLASSES_H

#include "mlir/IR/Region.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace attn {

enum class TileClass { hidden, cut, open };

/// From `first` to `last`, both of them included.
struct Interval {
  int64_t first, last;
  bool operator==(const Interval &other) const {
    return first == other.first && last == other.last;
  }
};

/// Pairs of rows, and how many rows there are in all.
struct PairsOfRows {
  Interval batch, head, query, key;
  int64_t queries, keys;
};

/// The class of some pairs, of a region that the verifier has seen.
TileClass classify(mlir::Region &sees, const PairsOfRows &pairs);

/// The runs of keys that a query sees, in order and with keys between them;
/// nothing where that depends on what is read.
std::optional<std::vector<Interval>> keysSeen(mlir::Region &sees, int64_t batch,
                                              int64_t head, int64_t query,
                                              int64_t queries, int64_t keys);

/// For each query the run of keys that it sees, if every query sees one run or
/// nothing (then last < first) and no end of a run is before that of the query
/// before; else nothing.
std::optional<std::vector<Interval>> boundsOf(mlir::Region &sees, int64_t batch,
                                              int64_t head, int64_t queries,
                                              int64_t keys);

} // namespace attn

#endif
