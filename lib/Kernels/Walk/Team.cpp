//===- Team.cpp - Blocks that work on the same rows -----------------------===//

#include "Walk/Team.h"

using namespace attn;
using namespace attn::tile;

Team::Team(TileBuilder &b, int64_t groupSize, int64_t cluster)
    : groupSize(groupSize), cluster(cluster) {
  Scalar block = b.programId(0);
  rank = cluster == 1 ? b.i32(0)
                      : b.wrap(ClusterRankOp::create(b, b.getI32Type()));
  Scalar inGrid = block / cluster;
  team = inGrid / groupSize;
  part = inGrid - team * groupSize;
  teams = b.gridSize(0) / (groupSize * cluster);
  rowGroup = team * cluster + rank;
  isWhole = team < teams;
  leads = block == team * (groupSize * cluster);
}

Scalar Team::partAfter(TileBuilder &b, Scalar distance) const {
  Scalar sum = part + distance;
  return b.select(sum < b.i32(groupSize), sum, sum - groupSize);
}

Scalar Team::first(TileBuilder &b, const TileOrder &order) const {
  return b.select(isWhole, team, order.count);
}
