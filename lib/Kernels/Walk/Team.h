//===- Team.h - Blocks that work on the same rows ---------------*- C++ -*-===//
//
// A *group* of G blocks shares 128 rows of queries; each has a *part*, its
// number in the group.  A cluster is made of blocks of equal part in groups of
// neighbouring rows.  The groups of a cluster are a *team*, which works off
// tiles together; blocks that make no whole team do nothing.
//
//   block = (team * G + part) * cluster + rank
//
// Example, G = 2 and clusters of 2: blocks 0 to 3 are a team.  Blocks 0 and 2
// are the group of the tile's first 128 rows (rank 0), 1 and 3 that of the
// next; blocks 0 and 1 are a cluster, of part 0.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_WALK_TEAM_H
#define ATTN_LIB_KERNELS_WALK_TEAM_H

#include "Walk/TileOrder.h"

namespace attn {

class Team {
public:
  Team(TileBuilder &builder, int64_t groupSize, int64_t cluster);

  /// The part that is `distance` < G parts further, going round.
  Scalar partAfter(TileBuilder &builder, Scalar distance) const;
  /// The number of the group's block of that part, of all blocks in groups.
  Scalar member(Scalar part) const { return rowGroup * groupSize + part; }
  /// The number of the group of the team's cluster of that rank.
  Scalar groupOf(int64_t rank) const { return team * cluster + rank; }

  /// The number of the team's first tile; behind the last one without a team.
  Scalar first(TileBuilder &builder, const TileOrder &order) const;
  /// The number of the first tile that no team begins with.
  Scalar afterFirst() const { return teams; }

  const int64_t groupSize, cluster;
  Scalar rank, part;
  Scalar rowGroup; ///< the group's number in the grid
  Scalar isWhole;  ///< whether the block is in a team
  Scalar leads;    ///< whether it is the first of one

private:
  Scalar team, teams;
};

} // namespace attn

#endif
