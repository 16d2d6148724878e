//===- Explain.cpp - What was chosen, and why -----------------------------===//

#include "attn/Report/Report.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <map>

using namespace attn;
using llvm::format;

static void explainBounds(llvm::raw_ostream &out, const PlanReport &report) {
  const Problem &problem = report.problem;
  const Machine &machine = report.machine;
  int64_t m = cacheWords(problem, machine);
  int64_t d = std::max(problem.headDim, problem.headDimV);
  bool isLarge = report.regime == Regime::largeCache;
  out << "regime    " << llvm::StringRef(name(report.regime))
      << ": M = " << machine.smemBytesPerBlock << " / "
      << bytesOf(problem.dtype) << " = " << m << (isLarge ? " >= " : " < ")
      << "d^2 = " << d * d << '\n';

  Bounds least = bounds(problem, m);
  auto line = [&](const char *what, double words) {
    out << "  " << llvm::left_justify(what, 13) << ' '
        << (words > 0 ? bytesText(words * bytesOf(problem.dtype))
                      : "says nothing here")
        << (words == least.words ? "  <- binds\n" : "\n");
  };
  out << "bound     at least " << bytesText(report.lowerBoundBytes)
      << " between L2 and the multiprocessors\n";
  line("compulsory", least.compulsoryWords);
  line("large cache", least.largeCacheWords);
  line("small cache", least.smallCacheWords);
}

static void explainTime(llvm::raw_ostream &out, const Plan &plan) {
  const Time &t = plan.time;
  bool isFma = plan.family == TensorCoreFamily::none;
  std::pair<const char *, double> units[] = {
      {"hbm", t.hbm},   {"l2", t.l2},
      {"smem", t.smem}, {isFma ? "fma" : "tensor", t.tensor},
      {"exp", t.exp},   {"issue", t.issue}};
  for (auto &[unit, seconds] : units)
    out << "    " << llvm::left_justify(unit, 11) << secondsText(seconds)
        << (plan.boundBy == unit ? "  <- binds\n" : "\n");
  std::pair<const char *, double> extras[] = {{"exposed", t.exposed},
                                              {"contention", t.contention},
                                              {"last wave", t.tail},
                                              {"overhead", t.overhead}};
  for (auto &[what, seconds] : extras)
    out << "    " << llvm::left_justify(what, 11) << secondsText(seconds)
        << '\n';
}

static void explainPlan(llvm::raw_ostream &out, const PlanReport &report,
                        const Plan &plan) {
  double bound = std::max<int64_t>(1, report.lowerBoundBytes);
  out << "chosen    " << plan.schedule << ": " << plan.tiles.str() << '\n';
  out << "  kernel    "
      << (plan.kernel.empty() ? "none yet for " + std::string(name(plan.family))
                              : plan.kernel)
      << '\n';
  out << "  hbm       " << bytesText(plan.bytes.hbm)
      << format("  (%.2f x bound)\n", plan.bytes.hbm / bound);
  out << "  l2        " << bytesText(plan.bytes.l2)
      << format("  (%.2f x bound)\n", plan.bytes.l2 / bound);
  out << "  smem      " << bytesText(plan.bytes.smem)
      << format("  (%.2f x bound)\n", plan.bytes.smem / bound);
  out << "  footprint " << plan.footprint.smemBytes
      << " bytes of shared memory, " << plan.footprint.registersPerThread
      << " registers x " << plan.footprint.threads << " threads, "
      << plan.footprint.blocksPerSm
      << (plan.footprint.blocksPerSm == 1 ? " block" : " blocks") << " per SM";
  if (plan.footprint.scratchBytes > 0)
    out << ", " << bytesText(plan.footprint.scratchBytes) << " of scratch";
  out << "\n  time      " << secondsText(plan.seconds)
      << format(", %.4g TFLOP/s",
                usefulFlops(report.problem) / plan.seconds / 1e12)
      << ", bound by " << plan.boundBy << '\n';
  explainTime(out, plan);
}

/// The next best plan, the best of every other schedule, and any faster plan
/// that has no kernel.
static void explainRivals(llvm::raw_ostream &out, const PlanReport &report,
                          const Plan &winner) {
  std::vector<std::string> seen = {};
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
    out << (isNext ? "runner-up " : "rival     ") << plan.schedule << ": "
        << plan.tiles.str() << "\n  ";
    if (isFaster)
      out << "would take " << secondsText(plan.seconds)
          << ", but has no kernel yet\n";
    else
      out << whyLost(plan, winner) << '\n';
  }
}

/// Reasons that differ only in their numbers are told once, with an example.
static void explainRefused(llvm::raw_ostream &out, const PlanReport &report) {
  struct Group {
    const Refused *example;
    size_t count = 0;
  };
  std::map<std::string, Group> groups;
  for (const Refused &refused : report.refused) {
    std::string key = refused.schedule + ' ';
    for (char c : refused.reason)
      if (!llvm::isDigit(c))
        key += c;
    Group &group = groups[key];
    if (group.count++ == 0)
      group.example = &refused;
  }
  out << "refused   " << report.refused.size() << '\n';
  for (auto &[key, group] : groups) {
    const Refused &example = *group.example;
    out << "  " << group.count << " x " << example.schedule;
    if (!example.tiles.empty())
      out << ", as " << example.tiles.str();
    out << ":\n    " << example.reason << '\n';
  }
}

void attn::renderExplanation(llvm::raw_ostream &out, const PlanReport &report) {
  const Machine &machine = report.machine;
  out << "problem   " << describe(report.problem) << '\n';
  out << "machine   " << machine.name << " (" << machine.chip
      << "): " << machine.sms << " SMs, " << machine.smemBytesPerBlock
      << " bytes of shared memory per block, "
      << llvm::StringRef(name(machine.family)) << '\n';
  explainBounds(out, report);
  if (const Plan *plan = chosen(report)) {
    explainPlan(out, report, *plan);
    explainRivals(out, report, *plan);
    explainRefused(out, report);
    out << "pseudocode\n";
    Schedule schedule = findScheduleKind(plan->schedule)->build(plan->tiles);
    llvm::SmallVector<llvm::StringRef> lines;
    std::string text = pseudocode(schedule, report.problem);
    llvm::StringRef(text).rtrim().split(lines, '\n');
    for (llvm::StringRef line : lines)
      out << "  " << line << '\n';
    return;
  }
  explainRefused(out, report);
}
