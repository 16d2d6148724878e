//===- Packing.h - Query heads as rows of one head --------------*- C++ -*-===//
///
/// The query heads of a group read the same keys.  Row i of head h of a group
/// is row h·N + i of one head of all of them, N being the queries: the array
/// [B, H, N, d] over G key heads is [B, G, (H/G)·N, d].  Planned like that, the
/// keys are read once for the group and not once for each of its heads, and few
/// rows fill a tile.
///
/// Two things must hold.
///
///   - One stride leads through the rows of all heads, in every array that has
///     them (Q, O, LSE and their gradients).  With one query it is that of the
///     heads.
///   - A row's keys do not depend on its number.  They do not without a mask.
///     With one query a band is a range of keys, the same for all heads: K and
///     V are cut to it.  Gradients of keys that are cut off would stay
///     unwritten, so those are packed only under masks that hide no key.
///
/// Example: batch 64, 32 query heads over 8 key heads, 1 query, 32768 keys,
/// window<1023, 0>.  Planned, bound and launched are 8 heads of 4 rows and 1024
/// keys without a mask, and K and V begin at key 31744.
///
/// What is planned is a problem like any other: no schedule, fold or kernel
/// knows of packing.  Where one of the two does not hold, tiles may have rows
/// of several heads (SharedTiles.h), which is a choice of a schedule.
/// Deliberately absent: a price for both ways.  Heads are
/// packed wherever they can be.  With one query that is predicted to be as fast
/// or faster.  With several, few heads may leave multiprocessors idle: 3 of 504
/// random problems were predicted to be slower by more than 2 %.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PACKING_H
#define ATTN_SCHEDULE_PACKING_H

#include "attn/Schedule/Problem.h"

namespace attn {

struct Packing {
  /// What is computed.
  Problem asked;
  /// What is planned, bound and launched: the same where nothing is packed.
  Problem problem;
  /// Query heads that are rows of one head; 1 where nothing is packed.
  int64_t heads = 1;
  /// Whether K and V are cut to the keys that the only query sees.
  bool cutsKeys = false;
  /// Why heads that share their keys are not packed; else empty.
  std::string whyNot;

  explicit operator bool() const { return heads > 1; }
  /// A sentence about heads that share their keys, or nothing if none do.
  std::string str() const;
};

/// How a problem is planned.  `headsAreRows` says whether one stride leads
/// through the rows of all heads, as it does in arrays without gaps, and of
/// what is known to be one query.
Packing packing(const Problem &asked, bool headsAreRows = true);

} // namespace attn

#endif // ATTN_SCHEDULE_PACKING_H
