//===- Additions.cpp - Words that a launch adds to ------------------------===//

#include "Additions.h"

#include <algorithm>
#include <iterator>

using namespace attn::interpreter;

using Runs = std::map<uint64_t, uint64_t>;

static bool overlaps(const Runs &runs, uint64_t begin, uint64_t end) {
  auto next = runs.lower_bound(begin);
  return (next != runs.end() && next->first < end) ||
         (next != runs.begin() && std::prev(next)->second > begin);
}

/// Joins the bytes with the runs that they overlap or touch.
static void insert(Runs &runs, uint64_t begin, uint64_t end) {
  auto next = runs.upper_bound(begin);
  if (next != runs.begin() && std::prev(next)->second >= begin)
    --next;
  while (next != runs.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = runs.erase(next);
  }
  runs[begin] = end;
}

std::optional<unsigned> Additions::access(Kind kind, uint64_t address,
                                          int64_t bytes, unsigned instruction) {
  bool adds = kind == Kind::addition;
  uint64_t end = address + uint64_t(bytes);
  insert((adds ? additions : others)[instruction], address, end);
  for (const auto &[other, runs] : adds ? others : additions)
    if (overlaps(runs, address, end))
      return other;
  return std::nullopt;
}
