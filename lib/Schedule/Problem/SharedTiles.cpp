//===- SharedTiles.cpp - Tiles of rows of several heads -------------------===//

#include "attn/Schedule/SharedTiles.h"
#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/RaggedQueries.h"

#include <algorithm>

using namespace attn;

/// Heads whose rows may share a tile, and the rows that each has at least, of a
/// warp.
static constexpr int64_t kSharingHeads[] = {8, 4, 2}, kWarpRows = 16;

int64_t attn::headsOfTile(const Tiles &tiles) { return tiles.get("packed", 1); }

int64_t attn::queriesOfTile(const Tiles &tiles) {
  return tiles.get("query") / headsOfTile(tiles);
}

int64_t attn::rowsOfClose(int64_t heads, int64_t tileRows) {
  if (heads <= 1)
    return tileRows;
  return std::min(roundUp(heads * kCloseRows, kWarpgroupRows), tileRows);
}

// The last tile of a head is close, or none.
int64_t attn::stepsOfResting(const Problem &problem, const Sharing &sharing,
                             int64_t queryStep, int64_t keyStep) {
  int64_t heads = sharing.rowHeads, queries = problem.queries / heads;
  int64_t resting =
      (queryStep - rowsOfClose(heads, queryStep)) / kWarpgroupRows;
  if (resting == 0 || keyStep == 0 || queries == 0 ||
      (queries - 1) % (queryStep / heads) >= kCloseRows)
    return 0;
  int64_t steps = pairsOfTiles(problem, Axis::Query, queryStep, keyStep).back();
  // One of each part is multiplied.
  return resting * std::max<int64_t>(steps - sharing.keyParts, 0);
}

Problem attn::withSharedRows(const Problem &asked, int64_t heads) {
  if (heads <= 1)
    return asked;
  Problem rows = asked;
  rows.heads /= heads;
  rows.queries *= heads;
  rows.rowHeads = heads;
  return rows;
}

Problem attn::withSharedRows(const Problem &asked, const Schedule &schedule) {
  return withSharedRows(asked, schedule.launches.front().main.sharing.rowHeads);
}

Problem attn::queriesOf(const Problem &problem) {
  Problem one = problem;
  one.heads *= problem.rowHeads;
  one.queries /= problem.rowHeads;
  one.rowHeads = 1;
  return one;
}

std::vector<int64_t> attn::headsToShare(const Problem &problem, const Machine &,
                                        const Tiles &tiles) {
  std::vector<int64_t> numbers;
  int64_t query = tiles.get("query");
  int64_t group = problem.heads / problem.kvHeads;
  if (problem.pattern || problem.clauses.any())
    return {};
  bool hasOthers = ofOneQuery(problem).has_value();
  for (int64_t heads : kSharingHeads) {
    if (group % heads != 0 || query / heads < kWarpRows)
      continue;
    int64_t walks = ceilDiv(problem.queries, query / heads);
    int64_t alone = heads * ceilDiv(problem.queries, query);
    if (hasOthers || 8 * walks < 7 * alone) // or the last tile alone is better
      numbers.push_back(heads);
  }
  return numbers;
}

std::optional<std::string> attn::checkSharedTiles(const Tiles &tiles,
                                                  const Problem &problem,
                                                  int64_t warpRows) {
  auto number = [](int64_t value) { return std::to_string(value); };
  int64_t heads = headsOfTile(tiles), query = tiles.get("query");
  int64_t group = problem.heads / problem.kvHeads;
  if (heads != 2 && heads != 4 && heads != 8)
    return "expects rows of 2, 4 or 8 heads in a tile, but got " +
           number(heads);
  if (group % heads != 0)
    return "expects tiles with rows of a number of heads that divides the " +
           number(group) + " query heads of a key head, but got " +
           number(heads);
  if (query % (heads * warpRows) != 0)
    return "expects a multiple of " + number(warpRows) +
           " rows of each head of a tile, but got " + number(query) +
           " rows of " + number(heads) + " heads";
  if (problem.pattern)
    return std::string("expects what a mask shows where a tile has rows of "
                       "several heads, but got blocks that are listed");
  if (problem.clauses.any())
    return "expects no " + str(problem.clauses) +
           " where a tile has rows of several heads";
  return std::nullopt;
}
