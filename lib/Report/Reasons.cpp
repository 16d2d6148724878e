//===- Reasons.cpp - Why the others were not chosen -----------------------===//

#include "Reasons.h"
#include "attn/Report/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace attn;

std::vector<Rival> attn::rivalsOf(const PlanReport &report,
                                  const Plan &winner) {
  std::vector<Rival> rivals;
  std::vector<std::string> seen;
  bool hasRunnerUp = false;
  for (const Plan &plan : report.plans) {
    if (&plan == &winner)
      continue;
    bool isFaster = plan.seconds < winner.seconds;
    bool isNext = !isFaster && !hasRunnerUp;
    bool isNew = plan.schedule != winner.schedule &&
                 !llvm::is_contained(seen, plan.schedule);
    if (isNew)
      seen.push_back(plan.schedule);
    if (!isNext && !isNew)
      continue;
    hasRunnerUp |= isNext;
    rivals.push_back({&plan, isNext,
                      isFaster ? "would take " + secondsText(plan.seconds) +
                                     ", but has no kernel yet"
                               : whyLost(plan, winner)});
  }
  return rivals;
}

std::vector<RefusedGroup> attn::groupsOfRefused(const PlanReport &report) {
  std::map<std::string, RefusedGroup> groups;
  for (const Refused &refused : report.refused) {
    std::string key = refused.schedule + ' ';
    for (char c : refused.reason)
      if (!llvm::isDigit(c))
        key += c;
    RefusedGroup &group = groups[key];
    if (group.count++ == 0)
      group.example = &refused;
  }
  std::vector<RefusedGroup> all;
  for (const auto &[key, group] : groups)
    all.push_back(group);
  return all;
}
