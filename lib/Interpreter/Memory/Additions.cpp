//===- Additions.cpp - Words that a launch adds to ------------------------===//

#include "Memory/Additions.h"

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

/// The instruction that has bytes among those.
static std::optional<unsigned> whose(const std::map<unsigned, Runs> &all,
                                     uint64_t begin, uint64_t end) {
  for (const auto &[instruction, runs] : all)
    if (overlaps(runs, begin, end))
      return instruction;
  return std::nullopt;
}

/// The first of the runs that has bytes from `begin` on, or lies behind.
template <typename Map> static auto firstWith(Map &runs, uint64_t begin) {
  auto next = runs.upper_bound(begin);
  if (next != runs.begin() && std::prev(next)->second.end > begin)
    --next;
  return next;
}

void Additions::write(const Event &event, uint64_t begin, uint64_t end) {
  auto next = firstWith(writes, begin);
  while (next != writes.end() && next->first < end) {
    auto [first, old] = *next;
    next = writes.erase(next);
    if (first < begin)
      writes[first] = {begin, old.event};
    if (end < old.end)
      writes[end] = {old.end, old.event};
  }
  writes[begin] = {end, event};
}

std::optional<unsigned>
Additions::add(const Addition &addition,
               function_ref<bool(const Event &)> inSight) {
  inFlight.push_back(addition);
  auto next = firstWith(writes, addition.begin);
  for (; next != writes.end() && next->first < addition.end; ++next)
    if (!inSight(next->second.event))
      return next->second.event.instruction;
  return whose(reads, addition.begin, addition.end);
}

bool Additions::Addition::isBehind(bool otherIsStored,
                                   bool otherIsNothing) const {
  switch (order) {
  case Order::behindStores:
    return otherIsStored;
  case Order::behindSums:
    return otherIsStored || (!isNothing && !otherIsNothing);
  case Order::behindAll:
    return true;
  }
  return true;
}

std::optional<unsigned>
Additions::before(const Addition &addition,
                  function_ref<bool(const Event &)> inSight) const {
  for (const Addition &one : inFlight)
    if (addition.isBehind(one.isStored(), one.isNothing) &&
        one.begin < addition.end && addition.begin < one.end)
      return one.event.instruction;
  for (const Batch &batch : completed) {
    std::pair<const RunsBy *, bool> kinds[] = {
        {&batch.stored, addition.isBehind(true, false)},
        {&batch.added, addition.isBehind(false, false)},
        {&batch.zeros, addition.isBehind(false, true)}};
    for (auto [runs, isBehind] : kinds) {
      if (!isBehind)
        continue;
      if (auto by = whose(*runs, addition.begin, addition.end);
          by && !inSight(batch.wait))
        return by;
    }
  }
  return std::nullopt;
}

void Additions::complete(const Event &event, uint64_t end) {
  Batch batch{event, {}, {}, {}};
  llvm::erase_if(inFlight, [&](const Addition &one) {
    if (one.event.block != event.block || one.event.warp != event.warp ||
        one.number >= end)
      return false;
    insert(batch.runsFor(one)[one.event.instruction], one.begin, one.end);
    return true;
  });
  if (!batch.added.empty() || !batch.zeros.empty() || !batch.stored.empty())
    completed.push_back(std::move(batch));
}

std::optional<unsigned>
Additions::access(const Event &event, bool isWrite, uint64_t address,
                  int64_t bytes, function_ref<bool(const Event &)> inSight) {
  uint64_t end = address + uint64_t(bytes);
  if (isWrite)
    write(event, address, end);
  else
    insert(reads[event.instruction], address, end);
  for (const Addition &one : inFlight)
    if (one.begin < end && address < one.end)
      return one.event.instruction;
  for (const Batch &batch : completed)
    for (const RunsBy *runs : {&batch.added, &batch.zeros, &batch.stored})
      if (auto by = whose(*runs, address, end); by && !inSight(batch.wait))
        return by;
  return std::nullopt;
}
