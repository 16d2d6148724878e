//===- RaggedQueries.cpp - Ragged queries on a cache of keys --------------===//

#include "attn/Schedule/RaggedQueries.h"

#include "attn/Schedule/Arithmetic.h"

#include <algorithm>
#include <cmath>

using namespace attn;

bool attn::areKeysRagged(const Problem &problem) {
  return problem.ragged && !problem.place.any();
}

bool attn::isOfSequences(Role role, const Problem &problem) {
  return problem.ragged &&
         shapeOf(role, /*isRagged=*/true, problem.place).size() <
             factsOf(role).shape.size();
}

std::vector<Sequences> attn::sequencesOfCache(const Problem &problem,
                                              const Lengths &longest) {
  if (problem.batch < 1)
    return {};
  int64_t more =
      std::max<int64_t>(problem.queries / problem.rowHeads - problem.batch, 0);
  int64_t ofLongest =
      longest.queries == 1
          ? problem.batch
          : std::min(ceilDiv(more, longest.queries - 1), problem.batch);
  std::vector<Sequences> all;
  if (ofLongest > 0)
    all.push_back({ofLongest, longest});
  if (ofLongest < problem.batch)
    all.push_back({problem.batch - ofLongest, {1, longest.keys}});
  return all;
}

bool attn::isBesideLonger(const Lengths &lengths, const Lengths &longest) {
  return lengths.queries == 1 && longest.queries > 1;
}

std::vector<Lengths> attn::listed(const std::vector<Sequences> &all) {
  std::vector<Lengths> lengths;
  for (const Sequences &each : all) {
    if (int64_t(lengths.size()) + each.count > kMostListed)
      return {};
    lengths.insert(lengths.end(), size_t(each.count), each.lengths);
  }
  return lengths;
}

std::optional<Problem> attn::ofOneQuery(const Problem &standIn) {
  if (!standIn.ragged || areKeysRagged(standIn))
    return std::nullopt;
  Lengths longest{standIn.queries / standIn.rowHeads, standIn.keys};
  double keys = 0;
  for (const Lengths &each : standIn.ragged->lengths)
    if (isBesideLonger(each, longest))
      keys += double(each.keys);
  if (keys == 0)
    return std::nullopt;
  Problem others = denseOf(standIn, {1, standIn.keys});
  others.batch = std::llround(std::ceil(keys / double(standIn.keys)));
  return others;
}
