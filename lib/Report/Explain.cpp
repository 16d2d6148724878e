//===- Explain.cpp - What was chosen, and why -----------------------------===//

#include "MachineName.h"
#include "Reasons.h"
#include "attn/Report/Report.h"
#include "attn/Schedule/Advice.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Sensitivity.h"
#include "attn/Schedule/SharedTiles.h"
#include "attn/Schedule/Time.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace attn;
using llvm::format;

/// Of the two masks that are called causal, the one that few expect where rows
/// differ: of one query over many keys it leaves one key.
static void explainMask(llvm::raw_ostream &out, const Problem &problem) {
  if (!problem.mask.endsAtCorners() || problem.queries == problem.keys)
    return;
  out << "mask      causal is counted from the first key: query i sees keys 0 "
         "to i, so the last of "
      << problem.queries << " sees " << std::min(problem.queries, problem.keys)
      << " of " << problem.keys
      << "; causal_bottom_right is counted from the last key, as for new "
         "queries behind a cache of keys\n";
}

/// Of blocks, the published bound, and where schedules meet.
static void explainNonZeros(llvm::raw_ostream &out, const Problem &problem,
                            double fast) {
  if (!problem.pattern)
    return;
  PublishedBound published = publishedBound(problem, fast);
  out << "non-zeros of the order of "
      << bytesText(published.words * bytesOf(problem.dtype))
      << " for the worst instance with so many, whose sides meet at M = "
      << static_cast<int64_t>(published.dividingWords) << "; of blocks of "
      << problem.pattern->size().queries
      << " queries a spill of P moves less than flash below M = "
      << static_cast<int64_t>(dividingWords(problem)) << '\n';
}

static void explainBounds(llvm::raw_ostream &out, const PlanReport &report) {
  const Problem problem = atLeastOne(report.problem);
  const Machine &machine = report.machine;
  int64_t m = cacheWords(problem, machine);
  int64_t d = std::max(problem.headDim, problem.headDimV);
  bool isLarge = report.regime == Regime::largeCache;
  out << "regime    " << llvm::StringRef(name(report.regime))
      << ": M = " << machine.smemBytesPerBlock << " / " << leastBytes(problem)
      << " = " << m << (isLarge ? " >= " : " < ") << "d^2 = " << d * d << '\n';

  double fast = fastWords(problem, machine);
  Bounds least = bounds(problem, fast, machine.sms);
  auto line = [&](const char *what, double words) {
    out << "  " << llvm::left_justify(what, 13) << ' '
        << (words > 0 ? bytesText(words * leastBytes(problem))
                      : "says nothing here")
        << (words == least.words ? "  <- binds\n" : "\n");
  };
  out << "bound     at least " << bytesText(report.lowerBoundBytes)
      << " between L2 and the multiprocessors, which hold "
      << static_cast<int64_t>(fast)
      << " words each in shared memory and registers\n";
  line("compulsory", least.compulsoryWords);
  line("large cache", least.largeCacheWords);
  line("small cache", least.smallCacheWords);
  out << "          at least " << bytesText(report.lowerBounds.hbm)
      << " between memory and L2, " << bytesText(report.lowerBounds.smem)
      << " between shared memory and registers\n";
  explainNonZeros(out, problem, fast);
}

/// How bytes fall with fast memory, and with the bytes of an element.
static void explainExponent(llvm::raw_ostream &out, const PlanReport &report) {
  auto found = exponentOf(report.problem,
                          double(cacheWords(report.problem, report.machine)));
  if (!found)
    return;
  out << "exponent  bytes of ideal tiles, of " << found->schedule
      << format(", go with M^-%.2f: elements of half the bytes save a factor "
                "of %.2f\n",
                found->beta, found->savesByHalving());
}

/// Where small-cache schedules take over: by the theory, and as predicted.
static void explainCrossover(llvm::raw_ostream &out, const PlanReport &report) {
  Crossover where = crossover(report.problem, report.machine);
  bool isForward = report.problem.direction == Direction::forward;
  out << "crossover d = " << where.regime << " in theory (M < d^2); ";
  for (const WordsCrossover &words : where.words)
    out << "d = " << static_cast<int64_t>(words.headDim) << " where "
        << words.schedule << " and a spill of P" << (isForward ? "" : " and dS")
        << " move the same words; ";
  if (where.predicted == 0)
    out << "predicted nowhere up to d = 4096\n";
  else
    out << "predicted: d = " << where.predicted << ", by " << where.schedule
        << '\n';
}

static void explainTime(llvm::raw_ostream &out, const Plan &plan) {
  for (const TimeTerm &term : timeTerms(plan.family))
    out << "    " << llvm::left_justify(term.label, 11)
        << secondsText(plan.time.*term.seconds)
        << (plan.boundBy == term.name ? "  <- binds\n" : "\n");
}

static double timesBound(int64_t bytes, int64_t bound) {
  return double(bytes) / std::max<int64_t>(1, bound);
}

/// The bounds of a plan: blocks that load together have all their memory.
static Bytes boundsOf(const PlanReport &report, const Plan &plan) {
  int64_t together = plan.tiles.get("cluster", 1);
  if (together == 1)
    return report.lowerBounds;
  LevelBounds least =
      levelBounds(atLeastOne(report.problem), report.machine, together);
  return {least.hbmBytes, least.l2Bytes, least.smemBytes};
}

/// Of walks over keys that are dealt out: to how many blocks, and how they fill
/// the machine.
static void explainParts(llvm::raw_ostream &out, const PlanReport &report,
                         const Plan &plan) {
  int64_t parts = plan.tiles.get("parts");
  if (parts == 0)
    return;
  const Problem problem =
      withSharedRows(atLeastOne(report.problem), headsOfTile(plan.tiles));
  // Blocks of a group have one tile, and each its keys of a step.
  int64_t query = plan.tiles.get("query"), group = plan.tiles.get("group", 1);
  int64_t tiles =
      problem.batch * problem.heads * ceilDiv(problem.queries, query);
  int64_t steps =
      visits(problem, Axis::Query, query, plan.tiles.get("key") * group)
          .mostPairs;
  out << "  parts     " << parts << " of the keys of each of " << tiles
      << " tiles: " << tiles * parts * group << " blocks on "
      << report.machine.sms << " multiprocessors, of at most "
      << ceilDiv(steps, parts) << " of " << steps << " steps\n";
}

/// Of tiles with rows of several heads: whose, and how many of each.
static void explainSharedTiles(llvm::raw_ostream &out, const Plan &plan) {
  int64_t heads = headsOfTile(plan.tiles);
  if (heads > 1)
    out << "  packed    a tile has " << queriesOfTile(plan.tiles)
        << " rows of each of " << heads
        << " query heads, which read their keys together\n";
}

/// Of a cache: how often its blocks fill the machine, how far its bytes are
/// from those that nobody can do without, and what a table adds to them.
static void explainCache(llvm::raw_ostream &out, const PlanReport &report,
                         const Plan &plan) {
  const Placement &place = report.problem.place;
  int64_t query = plan.tiles.get("query");
  if (!place.any() || query == 0)
    return;
  const Problem problem =
      withSharedRows(atLeastOne(report.problem), headsOfTile(plan.tiles));
  // Blocks of a group have one tile.
  int64_t parts = plan.tiles.get("parts", 1);
  int64_t group = plan.tiles.get("group", 1);
  int64_t blocks = problem.batch * problem.heads *
                   ceilDiv(problem.queries, query) * parts * group;
  int64_t atOnce = report.machine.sms * plan.footprint.blocksPerSm / group *
                   group * plan.tiles.get("pairs", 1);
  int64_t waves = ceilDiv(blocks, atOnce);
  out << "  waves     " << waves << ": " << blocks << " blocks, " << atOnce
      << " at a time, "
      << format("%.0f %% of the last wave filled\n",
                100.0 * double(blocks - (waves - 1) * atOnce) / double(atOnce));
  int64_t keyBytes =
      problem.batch * problem.kvHeads * problem.keys * bytesOfKey(problem);
  out << "  cache     " << bytesText(keyBytes)
      << (problem.valuesOfKeys ? " of K, with V" : " of K and V")
      << format("; moves %.2f times that from L2",
                timesBound(plan.bytes.l2, keyBytes));
  if (place.isPaged()) {
    int64_t table = problem.batch * (problem.keys / place.pageRows) * 4;
    out << format(", and a table of %lld bytes beside it, %.3f %%",
                  static_cast<long long>(table),
                  100.0 * double(table) /
                      double(std::max<int64_t>(keyBytes, 1)));
  }
  out << '\n';
}

static std::string kernelText(const Plan &plan) {
  return plan.kernel.empty() ? "no kernel" : plan.kernel;
}

/// Every schedule at its best: bytes by level, and how many times the bound of
/// that level they are.
static void explainCandidates(llvm::raw_ostream &out,
                              const PlanReport &report) {
  out << "schedules each at its best: time, bytes and how many times the bound "
         "they are\n";
  std::vector<std::string> seen;
  for (const Plan &plan : report.plans) {
    if (llvm::is_contained(seen, plan.schedule))
      continue;
    seen.push_back(plan.schedule);
    Bytes least = boundsOf(report, plan);
    auto level = [&](const char *what, int64_t bytes, int64_t bound) {
      std::string text;
      llvm::raw_string_ostream(text)
          << what << ' ' << bytesText(bytes)
          << format(" (%.2f)", timesBound(bytes, bound));
      text.resize(std::max<size_t>(text.size(), 26), ' ');
      return text;
    };
    out << "  " << llvm::left_justify(plan.schedule, 15)
        << llvm::left_justify(secondsText(plan.seconds), 10)
        << level("hbm", plan.bytes.hbm, least.hbm)
        << level("l2", plan.bytes.l2, least.l2)
        << level("smem", plan.bytes.smem, least.smem) << kernelText(plan)
        << '\n';
  }
}

static void explainPlan(llvm::raw_ostream &out, const PlanReport &report,
                        const Plan &plan) {
  Bytes least = boundsOf(report, plan);
  out << "chosen    " << plan.schedule << ": " << plan.tiles.str() << '\n';
  out << "  kernel    "
      << (plan.kernel.empty() ? "none yet for " + std::string(name(plan.family))
                              : plan.kernel)
      << '\n';
  out << "  hbm       " << bytesText(plan.bytes.hbm)
      << format("  (%.2f x bound)\n", timesBound(plan.bytes.hbm, least.hbm));
  out << "  l2        " << bytesText(plan.bytes.l2)
      << format("  (%.2f x bound)\n", timesBound(plan.bytes.l2, least.l2));
  out << "  smem      " << bytesText(plan.bytes.smem)
      << format("  (%.2f x bound)\n", timesBound(plan.bytes.smem, least.smem));
  explainSharedTiles(out, plan);
  explainParts(out, report, plan);
  explainCache(out, report, plan);
  out << "  footprint " << plan.footprint.smemBytes
      << " bytes of shared memory, " << plan.footprint.registersPerThread
      << " registers x " << plan.footprint.threads << " threads, "
      << plan.footprint.blocksPerSm
      << (plan.footprint.blocksPerSm == 1 ? " block" : " blocks") << " per SM";
  if (plan.footprint.scratchBytes > 0)
    out << ", " << bytesText(plan.footprint.scratchBytes) << " of scratch";
  if (plan.footprint.rowScratchBytes > 0)
    out << " (" << bytesText(plan.footprint.rowScratchBytes)
        << " for rows of queries)";
  out << "\n  time      " << secondsText(plan.seconds)
      << format(", %.4g TFLOP/s",
                usefulFlops(report.problem) / plan.seconds / 1e12)
      << ", bound by " << binding(plan.time, plan.family).label << '\n';
  explainTime(out, plan);
}

static void explainRivals(llvm::raw_ostream &out, const PlanReport &report,
                          const Plan &winner) {
  for (const Rival &rival : rivalsOf(report, winner))
    out << (rival.isRunnerUp ? "runner-up " : "rival     ")
        << rival.plan->schedule << ": " << rival.plan->tiles.str() << "\n  "
        << rival.why << '\n';
}

/// Reasons that differ only in their numbers are told once, with an example.
static void explainRefused(llvm::raw_ostream &out, const PlanReport &report) {
  out << "refused   " << report.refused.size() << '\n';
  for (const RefusedGroup &group : groupsOfRefused(report)) {
    const Refused &example = *group.example;
    out << "  " << group.count << " x " << example.schedule;
    if (!example.tiles.empty())
      out << ", as " << example.tiles.str();
    out << ":\n    " << example.reason << '\n';
  }
}

void attn::renderExplanation(llvm::raw_ostream &out, const Packing &packing,
                             const PlanReport &report) {
  const Machine &machine = report.machine;
  out << "problem   " << describe(packing.asked) << '\n';
  explainMask(out, packing.asked);
  if (std::string sentence = packing.str(); !sentence.empty())
    out << (packing ? "packed    " : "unpacked  ") << sentence << '\n';
  out << "machine   " << nameWithFacts(machine) << " (" << machine.chip
      << "): " << machine.sms << " SMs, " << machine.smemBytesPerBlock
      << " bytes of shared memory per block, "
      << llvm::StringRef(name(machine.family)) << '\n';
  if (std::string sentence = timesText(report); !sentence.empty())
    out << "times     " << sentence << '\n';
  explainBounds(out, report);
  explainExponent(out, report);
  explainCrossover(out, report);
  explainCandidates(out, report);
  if (const Plan *plan = chosen(report)) {
    explainPlan(out, report, *plan);
    explainRivals(out, report, *plan);
    explainRefused(out, report);
    out << "pseudocode\n";
    Schedule schedule = findScheduleKind(plan->schedule)->build(plan->tiles);
    llvm::SmallVector<llvm::StringRef> lines;
    std::string text = pseudocode(schedule, atLeastOne(report.problem));
    llvm::StringRef(text).rtrim().split(lines, '\n');
    for (llvm::StringRef line : lines)
      out << "  " << line << '\n';
    return;
  }
  explainRefused(out, report);
}
