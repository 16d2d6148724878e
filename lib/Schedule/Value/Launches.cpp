//===- Launches.cpp - What a schedule's tiles mean: its launches ----------===//

#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Schedule.h"
#include <algorithm>

using namespace attn;

int64_t LaunchShape::tilesOfRows(const Problem &problem) const {
  return columns == 0 || keyRows > 0 ? keyBlocks
                                     : tilesOfColumns(problem, ownsKeys);
}

int64_t LaunchShape::tilesOfKeys(const Problem &problem) const {
  return tilesOfColumns(problem, /*areOfKeys=*/true);
}

int64_t LaunchShape::tilesOfColumns(const Problem &problem,
                                    bool areOfKeys) const {
  int64_t ofHeadDim = ceilDiv(problem.headDim, columns);
  int64_t ofHeadDimV = ceilDiv(problem.headDimV, columns);
  if (problem.direction == Direction::forward)
    return ofHeadDimV;
  return areOfKeys ? ofHeadDim + ofHeadDimV : ofHeadDim;
}

int64_t Launches::flags(const Problem &problem) const {
  if (!hasFlags)
    return 0;
  return rounds.heads * (problem.heads / problem.kvHeads) *
         ceilDiv(rounds.strip, rounds.queryTile);
}

LaunchSizes<Integers> attn::sizesOf(const Launches &launches,
                                    const Problem &problem) {
  return {launches,
          problem,
          {problem.batch, problem.heads, problem.kvHeads, problem.queries,
           problem.keys},
          Integers()};
}

std::array<int64_t, 3> attn::gridOf(const Launches &launches,
                                    const Problem &problem,
                                    const Residency &residency,
                                    int64_t launch) {
  LaunchSizes<Integers> sizes = sizesOf(launches, problem);
  return {sizes.blocks(launches.shapes[size_t(launch)], residency), 1, 1};
}

//===----------------------------------------------------------------------===//
// Rounds of a problem
//===----------------------------------------------------------------------===//

RoundOrder::RoundOrder(const Launches &launches, const Problem &problem)
    : heads(problem.batch * problem.kvHeads), strip(problem.keys), blocks(1),
      rows(0), columns(0), cutsQueries(launches.rounds.cutsQueries()),
      allHeads(heads), groups(1), strips(1) {
  const Rounds &rounds = launches.rounds;
  if (!rounds)
    return;
  LaunchSizes<Integers> sizes = sizesOf(launches, problem);
  RoundArrays<int64_t> arrays = sizes.roundArrays();
  blocks = arrays.blocks, rows = arrays.rows, columns = arrays.columns;
  heads = sizes.roundHeads();
  strip = rounds.strip;
  groups = heads == 0 ? 0 : ceilDiv(allHeads, heads);
  int64_t all = cutsQueries ? problem.queries : problem.keys;
  strips = ceilDiv(std::max<int64_t>(all, 1), strip);
}

Round RoundOrder::at(int64_t number) const {
  int64_t first = number / strips * heads, begin = number % strips * strip;
  return {first, std::min(heads, allHeads - first), cutsQueries ? 0 : begin,
          cutsQueries ? begin : 0, rows};
}
