//===- KeyParts.cpp - A walk over keys, dealt out to blocks ---------------===//

#include "attn/Schedule/KeyParts.h"

#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/SharedTiles.h"
#include <algorithm>
#include <set>

using namespace attn;

/// Waves of parts that are looked at, and waves of tiles from which on there is
/// nothing to look for.
static constexpr int64_t kMostWaves = 4;

Span attn::stepsOfPart(int64_t steps, int64_t parts, int64_t part) {
  int64_t all = steps / parts, more = steps % parts;
  int64_t begin = part * all + std::min(part, more);
  return {begin, begin + all + (part < more ? 1 : 0)};
}

Visits attn::dealtOut(Visits visits, const Problem &problem, int64_t queryStep,
                      int64_t keyStep, int64_t parts) {
  visits.outerTiles *= parts;
  visits.visitedTiles = visits.visitedRows = visits.mostPairs = 0;
  int64_t step = std::min(queryStep, problem.queries), row = 0;
  for (int64_t steps : pairsOfTiles(problem, Axis::Query, queryStep, keyStep)) {
    int64_t rows = std::min(step, problem.queries - row);
    int64_t visited = std::min(steps, parts);
    visits.visitedTiles += visited;
    visits.visitedRows += visited * rows;
    visits.mostPairs = std::max(visits.mostPairs, ceilDiv(steps, parts));
    row += rows;
  }
  return visits;
}

Visits attn::dealtOut(const Visits &visits, const Problem &problem,
                      const Grid &grid) {
  int64_t parts = grid.sharing.keyParts;
  if (parts == 1)
    return visits;
  for (const Node &node : grid.body)
    if (auto *loop = node.as<verb::Loop>(); loop && loop->axis == Axis::Key)
      return dealtOut(visits, problem, grid.step, loop->step, parts);
  return visits;
}

std::vector<int64_t> attn::partsToTry(const Problem &asked,
                                      const Machine &machine,
                                      const Tiles &tiles) {
  const Problem problem = withSharedRows(asked, headsOfTile(tiles));
  int64_t query = tiles.get("query", 1), key = tiles.get("key", 1);
  if (query < 1 || key < 1) // as given, which is refused elsewhere
    return {};
  int64_t queryTiles = ceilDiv(problem.queries, query);
  int64_t blocks = problem.batch * problem.heads * queryTiles;
  if (blocks < 1 || queryTiles > kMostTilesInParts ||
      blocks >= kMostWaves * machine.sms)
    return {};
  Visits seen = visits(problem, Axis::Query, query, key);
  std::set<int64_t> numbers;
  for (int64_t wave = 1; wave <= kMostWaves; ++wave)
    for (int64_t more : {0, 1}) {
      int64_t parts = std::min(wave * machine.sms / blocks + more,
                               std::min(seen.mostPairs, kMostKeyParts));
      if (parts < 2)
        continue;
      numbers.insert(ceilDiv(seen.mostPairs, ceilDiv(seen.mostPairs, parts)));
    }
  numbers.erase(1);
  return {numbers.begin(), numbers.end()};
}
