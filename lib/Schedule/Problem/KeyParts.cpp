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

/// The walk of a tile, which blocks of a group may share.
static const verb::Loop *walkOverKeys(const Body &body) {
  for (const Node &node : body) {
    if (auto *loop = node.as<verb::Loop>(); loop && loop->axis == Axis::Key)
      return loop;
    if (auto *share = node.as<verb::Share>())
      if (const verb::Loop *loop = walkOverKeys(share->body))
        return loop;
  }
  return nullptr;
}

Visits attn::dealtOut(const Visits &visits, const Problem &problem,
                      const Grid &grid) {
  int64_t parts = grid.sharing.keyParts;
  const verb::Loop *walk = parts == 1 ? nullptr : walkOverKeys(grid.body);
  return walk ? dealtOut(visits, problem, grid.step, walk->step, parts)
              : visits;
}

std::vector<int64_t> attn::partsToTry(const Problem &asked,
                                      const Machine &machine,
                                      const Tiles &tiles) {
  const Problem problem = withSharedRows(asked, headsOfTile(tiles));
  int64_t group = tiles.get("group", 1), sms = machine.sms;
  int64_t query = tiles.get("query", 1), key = tiles.get("key", 1);
  // As given, which is refused elsewhere; or all keys in one step.
  if (query < 1 || key < 1 || key >= problem.keys)
    return {};
  key *= group; // a group of blocks has one tile, and each its keys of a step
  sms = std::max<int64_t>(1, sms / group);
  int64_t queryTiles = ceilDiv(problem.queries, query);
  int64_t blocks = problem.batch * problem.heads * queryTiles;
  if (blocks < 1 || queryTiles > kMostTilesInParts ||
      blocks >= kMostWaves * sms)
    return {};
  Visits seen = visits(problem, Axis::Query, query, key);
  std::set<int64_t> numbers;
  for (int64_t wave = 1; wave <= kMostWaves; ++wave)
    for (int64_t more : {0, 1}) {
      int64_t parts = std::min(wave * sms / blocks + more,
                               std::min(seen.mostPairs, kMostKeyParts));
      if (parts < 2)
        continue;
      numbers.insert(ceilDiv(seen.mostPairs, ceilDiv(seen.mostPairs, parts)));
    }
  numbers.erase(1);
  return {numbers.begin(), numbers.end()};
}

Parameter attn::partsParameter() {
  Parameter parts = countParameter("parts", {});
  parts.most = kMostKeyParts;
  parts.derived = partsToTry;
  return parts;
}

static std::string number(int64_t value) { return std::to_string(value); }

std::optional<std::string> attn::checkKeyParts(const Tiles &t,
                                               const Problem &problem) {
  if (t.get("parts") < 2)
    return "expects two parts of the keys or more, but got " +
           number(t.get("parts"));
  if (problem.lseLow)
    return std::string("expects one word of LSE where keys are in parts, but "
                       "got two");
  if (problem.clauses.sinks)
    return std::string("expects no sinks where keys are in parts, each of "
                       "which would count them");
  if (problem.pattern)
    return std::string("expects what a mask shows where keys are in parts, but "
                       "got blocks that are listed");
  if (!problem.bands.isEmpty())
    return "expects what a mask shows where keys are in parts, but got runs "
           "of " +
           str(problem.bands);
  int64_t tiles = ceilDiv(problem.queries, t.get("query"));
  if (tiles > kMostTilesInParts)
    return "expects at most " + number(kMostTilesInParts) +
           " tiles of queries where keys are in parts, but got " +
           number(tiles);
  return std::nullopt;
}

Grid attn::mergeOfParts(int64_t parts) {
  Body merge = {hold(Tensor::O), always(ofKeyParts(parts, absorb(Tensor::Lse))),
                always(ofKeyParts(parts, absorb(Tensor::O))),
                storeDirectly(Tensor::O)};
  return grid(Axis::Query, kMergedRows, /*warps=*/1,
              {parallel(Axis::HeadDimV, kMergedColumns, std::move(merge)),
               store(Tensor::Lse)});
}

Launches attn::inParts(Launches launches, int64_t parts,
                       std::string_view suffix) {
  LaunchShape &walks = launches.shapes.front();
  walks.suffix = suffix;
  walks.keyBlocks = parts;
  walks.holdsNext = true;
  LaunchShape &merge = launches.shapes.emplace_back();
  merge.suffix = "_merge";
  merge.rows = kMergedRows;
  merge.columns = kMergedColumns;
  return launches;
}
