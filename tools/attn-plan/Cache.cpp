//===- Cache.cpp - Where keys of a cache lie, as options ------------------===//

#include "Cache.h"

#include "attn/Schedule/Arithmetic.h"

#include <algorithm>

using namespace attn;
namespace cl = llvm::cl;

CacheOptions::CacheOptions(cl::OptionCategory &category)
    : page("page", cl::value_desc("keys"),
           cl::desc("Keys lie in pages of so many, which a table names; with "
                    "--lengths"),
           cl::cat(category)),
      lengths("lengths",
              cl::desc("Each batch entry uses as many keys as the device says, "
                       "at most --keys"),
              cl::cat(category)) {}

std::optional<std::string> CacheOptions::read(Problem &problem) const {
  bool isPaged = page.getNumOccurrences() > 0;
  if (!isPaged && !lengths)
    return std::nullopt;
  if (isPaged && page < kPageMultiple)
    return "expects --page, a multiple of " + std::to_string(kPageMultiple) +
           " keys, but got " + std::to_string(page);
  problem.place.usedKeysBits = 32;
  problem.place.pageRows = isPaged ? page : 0;
  if (problem.ragged) // every sequence has room for the longest
    problem.keys = roundUp(problem.ragged->longest.keys,
                           std::max<int64_t>(problem.place.pageRows, 1));
  if (isPaged && problem.keys % page != 0)
    return "expects --keys to be those of whole pages of " +
           std::to_string(page) + ", but got " + std::to_string(problem.keys);
  return check(problem);
}
