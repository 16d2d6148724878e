//===- SharedTiles.h - Tiles of rows of several heads -----------*- C++ -*-===//
///
/// The query heads of a group read the same keys.  Where their rows cannot be
/// those of one head (Packing.h), a tile may still have rows of several heads:
/// of `query` rows and `packed` heads, query / packed of each, of the same
/// queries.  So K and V stream past once for these heads, and each keeps its
/// strides, its mask and its results.
///
/// For folds that is a problem with fewer heads of more rows, of which row r is
/// one of query r / packed.  A tile sees what its queries see, so its bytes are
/// exact for any mask; no fold knows more of it.
///
/// Example: 32 query heads over 4 key heads, 3 queries under
/// causal_bottom_right, query = 128, packed = 8: 4 heads of 24 rows, one tile
/// each, with room for 16 rows of every head.  K and V are read once, not 8
/// times.
///
/// Of at most `kCloseRows` queries, as a decoding step has them, a tile has the
/// rows of its heads close to each other: warpgroups behind the last of them
/// multiply one step of the walk and pass over the others.
///
/// Deliberately absent: numbers of heads that do not divide a group.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_SHAREDTILES_H
#define ATTN_SCHEDULE_SHAREDTILES_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Schedule.h"
#include "attn/Schedule/Tiles.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

/// Query heads of a tile: `packed`, or one.
int64_t headsOfTile(const Tiles &tiles);
/// Rows that a tile has of each head.
int64_t queriesOfTile(const Tiles &tiles);

/// Rows that a head has in a close tile.
inline constexpr int64_t kCloseRows = 16;
/// Rows of a tile, from the first one on, of warpgroups that a close tile of so
/// many heads keeps busy: all, if it is no less than others.
int64_t rowsOfClose(int64_t heads, int64_t tileRows);
/// Steps of a head of such a problem that warpgroups of close tiles of so many
/// rows pass over, past keys in blocks, if they walk any, and in parts.
int64_t stepsOfResting(const Problem &problem, const Sharing &sharing,
                       int64_t queryStep, int64_t keyStep);

/// A problem as tiles with rows of so many heads see it.
Problem withSharedRows(const Problem &asked, int64_t heads);
/// The same of a schedule's tiles; the problem itself, if they are not shared.
Problem withSharedRows(const Problem &asked, const Schedule &schedule);
/// A head of such a problem, as one of its queries.
Problem queriesOf(const Problem &problem);

/// Numbers of heads, most first, that read keys fewer times than tiles of one
/// head do.
std::vector<int64_t> headsToShare(const Problem &problem,
                                  const Machine &machine, const Tiles &tiles);
/// A sentence unless tiles may have rows of so many heads, of which a warp has
/// some of one.
std::optional<std::string>
checkSharedTiles(const Tiles &tiles, const Problem &problem, int64_t warpRows);

} // namespace attn

#endif // ATTN_SCHEDULE_SHAREDTILES_H
