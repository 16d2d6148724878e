//===- Ranks.cpp - The order of sequences by length -----------------------===//

#include "attn/Tile/Ranks.h"

#include "attn/Tile/Tile.h"

#include <algorithm>
#include <numeric>

using namespace attn::tile;

std::vector<Rank>
attn::tile::rankSequences(llvm::ArrayRef<UnrankedSequence> sequences,
                          bool descending) {
  std::vector<int32_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    int64_t left = sequences[a].length, right = sequences[b].length;
    return left == right ? a < b : (left < right) != descending;
  });
  std::vector<Rank> ranks;
  int64_t slots = 0;
  for (int32_t sequence : order) {
    ranks.push_back({int32_t(slots), sequence});
    slots += sequences[sequence].slots;
  }
  return ranks;
}

std::optional<std::vector<Rank>>
attn::tile::runRank(RankOp op, const RankScalars &s, ReadRanked read) {
  std::vector<UnrankedSequence> sequences;
  if (s.count > op.entries())
    return std::vector<Rank>();
  auto offset = [&](int64_t i) { return read(false, s.at + i * s.stride); };
  auto length = [&](int64_t i) {
    return read(true, s.lengthsAt + i * s.lengthsStride);
  };
  for (int64_t i = 0; i < s.count; ++i) {
    std::optional<int64_t> begin = offset(i), end = offset(i + 1),
                           own = length(i), next = 0;
    if (op.getDifferences())
      next = length(i + 1);
    if (!begin || !end || !own || !next)
      return std::nullopt;
    int64_t rows = op.getRows();
    sequences.push_back({*end / rows - *begin / rows + 1,
                         op.getDifferences() ? *next - *own : *own});
  }
  return rankSequences(sequences, op.getDescending());
}
