//===- Additions.cpp - Words that a launch adds to ------------------------===//

#include "Additions.h"

#include <algorithm>
#include <iterator>

using namespace attn::interpreter;
using llvm::function_ref;

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

std::optional<unsigned> Additions::add(const Event &event, uint64_t number,
                                       uint64_t address, int64_t bytes) {
  uint64_t end = address + uint64_t(bytes);
  inFlight.push_back({event, number, address, end});
  for (const auto &[instruction, runs] : others)
    if (overlaps(runs, address, end))
      return instruction;
  return std::nullopt;
}

void Additions::complete(const Event &event, uint64_t end) {
  Batch batch{event, {}};
  llvm::erase_if(inFlight, [&](const Addition &one) {
    if (one.event.block != event.block || one.event.warp != event.warp ||
        one.number >= end)
      return false;
    insert(batch.added[one.event.instruction], one.begin, one.end);
    return true;
  });
  if (!batch.added.empty())
    completed.push_back(std::move(batch));
}

std::optional<unsigned>
Additions::access(unsigned instruction, uint64_t address, int64_t bytes,
                  function_ref<bool(const Event &)> inSight) {
  uint64_t end = address + uint64_t(bytes);
  insert(others[instruction], address, end);
  for (const Addition &one : inFlight)
    if (one.begin < end && address < one.end)
      return one.event.instruction;
  for (const Batch &batch : completed)
    for (const auto &[by, runs] : batch.added)
      if (overlaps(runs, address, end) && !inSight(batch.wait))
        return by;
  return std::nullopt;
}
