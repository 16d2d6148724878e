//===- Ragged.cpp - Sequences that lie one behind the other ---------------===//

#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/RaggedQueries.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace attn;

Problem attn::raggedProblem(const Problem &ofOne,
                            std::vector<Lengths> lengths) {
  Problem problem = ofOne;
  problem.batch = int64_t(lengths.size());
  problem.queries = problem.keys = 0;
  Ragged ragged;
  for (const Lengths &each : lengths) {
    problem.queries += each.queries;
    problem.keys += each.keys;
    ragged.longest.queries = std::max(ragged.longest.queries, each.queries);
    ragged.longest.keys = std::max(ragged.longest.keys, each.keys);
  }
  ragged.lengths = std::move(lengths);
  if (ofOne.place.any()) // every entry has room for the longest
    problem.keys = roundUp(std::max(ofOne.keys, ragged.longest.keys),
                           std::max<int64_t>(ofOne.place.pageRows, 1));
  problem.ragged = std::move(ragged);
  return problem;
}

Problem attn::denseOf(const Problem &problem, const Lengths &lengths) {
  Problem dense = problem;
  dense.ragged.reset();
  dense.batch = 1;
  dense.queries = lengths.queries * problem.rowHeads;
  dense.keys = lengths.keys;
  return dense;
}

/// The longest, of no more rows than there are.
static Lengths longestOf(const Problem &problem) {
  const Lengths &said = problem.ragged->longest;
  int64_t queries = problem.queries / problem.rowHeads;
  return {std::max<int64_t>(std::min(said.queries, queries), 1),
          std::max<int64_t>(std::min(said.keys, problem.keys), 1)};
}

std::vector<Sequences> attn::sequencesOf(const Problem &problem) {
  const Ragged &ragged = *problem.ragged;
  if (ragged.lengths.empty()) {
    Lengths longest = longestOf(problem);
    if (ragged.isStandIn)
      return {{problem.batch, longest}};
    if (!areKeysRagged(problem))
      return sequencesOfCache(problem, longest);
    int64_t most =
        std::max<int64_t>(ceilDiv(problem.queries, longest.queries), 1);
    return {{std::max<int64_t>(std::min(problem.batch, most), 1), longest}};
  }
  bool hasTilesOfKeys = problem.direction == Direction::backward;
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (const Lengths &each : ragged.lengths)
    if (each.queries > 0 || (hasTilesOfKeys && each.keys > 0))
      ++counts[{each.queries, each.keys}];
  std::vector<Sequences> all;
  for (const auto &[lengths, count] : counts)
    all.push_back({count, {lengths.first, lengths.second}});
  return all;
}

Problem attn::standIn(const Problem &problem) {
  if (!problem.ragged || problem.ragged->isStandIn)
    return problem;
  Lengths longest = longestOf(problem);
  Problem dense = denseOf(problem, longest);
  double pairs = 0, most = double(std::max<int64_t>(visiblePairs(dense), 1));
  std::vector<Sequences> all = sequencesOf(problem);
  for (const Sequences &each : all)
    if (areKeysRagged(problem) || !isBesideLonger(each.lengths, longest))
      pairs += double(each.count) *
               double(visiblePairs(denseOf(problem, each.lengths)));
  dense.batch = std::max<int64_t>(std::llround(std::ceil(pairs / most)), 1);
  dense.ragged = problem.ragged;
  dense.ragged->isStandIn = true;
  if (!areKeysRagged(problem))
    dense.ragged->lengths = listed(all);
  return dense;
}

int64_t attn::offsetsOf(const Problem &problem) {
  const Ragged &ragged = *problem.ragged;
  int64_t sequences =
      ragged.lengths.empty() ? problem.batch : int64_t(ragged.lengths.size());
  int64_t arrays = areKeysRagged(problem) ? 2 : 1;
  return arrays * (sequences + 1);
}

int64_t attn::bytesOfOffsets(const Problem &problem) {
  return offsetsOf(problem) * (problem.ragged->isWide ? 8 : 4);
}

Problem attn::limitedBy(const Problem &problem) {
  Problem dense = problem;
  dense.ragged.reset();
  if (!problem.ragged->isStandIn) {
    dense.batch = std::min<int64_t>(problem.batch, 1);
    dense.queries += kLeastTileRows * problem.batch;
    if (problem.direction == Direction::backward)
      dense.keys += kLeastTileRows * problem.batch;
  }
  return dense;
}

int64_t attn::slotsOf(const Problem &problem, int64_t rows) {
  return problem.batch > 0 ? problem.queries / rows + problem.batch : 0;
}

std::optional<std::string> attn::checkRagged(const Problem &problem) {
  const Ragged &ragged = *problem.ragged;
  const std::pair<const char *, int64_t> sizes[] = {
      {"queries", ragged.longest.queries}, {"keys", ragged.longest.keys}};
  for (auto [what, longest] : sizes)
    if (longest < 0 || longest > kMaxRows)
      return std::string("expects the longest ") + what + " between 0 and " +
             std::to_string(kMaxRows) + ", but got " + std::to_string(longest);
  if (problem.pattern)
    return std::string("expects no blocks of ragged sequences, whose lists "
                       "would have to be ragged too, but got some");
  if (problem.clauses.anyGradients())
    return std::string("expects no gradients of captures and sinks of ragged "
                       "sequences, but got some");
  if (problem.keepsWeights)
    return std::string("expects no weights to be kept of ragged sequences, but "
                       "got some");
  return std::nullopt;
}
