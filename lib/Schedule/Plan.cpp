//===- Plan.cpp - Every choice, priced ------------------------------------===//

#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include <algorithm>
#include <tuple>

using namespace attn;

const Plan *PlanReport::best() const {
  for (const Plan &plan : plans)
    if (!plan.kernel.empty())
      return &plan;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Families: which unit takes the products
//===----------------------------------------------------------------------===//

/// Why a family cannot be used for this problem on this machine.
static std::optional<std::string> checkFamily(TensorCoreFamily family,
                                              const Problem &problem,
                                              const Machine &machine) {
  switch (family) {
  case TensorCoreFamily::none:
    return std::nullopt;
  case TensorCoreFamily::mmaSync:
    if (machine.computeCapability < 80)
      return "mma_sync expects compute capability 80 or more, but " +
             machine.name + " has " + std::to_string(machine.computeCapability);
    if (problem.dtype != DataType::bf16 && problem.dtype != DataType::f16)
      return "mma_sync expects bf16 or f16, but got " +
             std::string(name(problem.dtype));
    return std::nullopt;
  case TensorCoreFamily::wgmma:
  case TensorCoreFamily::tcgen05:
    if (machine.family != family)
      return std::string(name(family)) +
             " expects a machine that has it, but " + machine.name + " has " +
             std::string(name(machine.family));
    return "no schedule has a kernel for " + std::string(name(family)) +
           " yet; mma_sync is the portable choice";
  }
  return std::nullopt;
}

/// The newest usable family; every machine has FMA pipes.
static TensorCoreFamily familyFor(const Problem &problem,
                                  const Machine &machine) {
  for (TensorCoreFamily family :
       {TensorCoreFamily::tcgen05, TensorCoreFamily::wgmma,
        TensorCoreFamily::mmaSync})
    if (!checkFamily(family, problem, machine))
      return family;
  return TensorCoreFamily::none;
}

static std::string kernelFor(const ScheduleKind &kind,
                             TensorCoreFamily family) {
  std::string wanted = kind.name + "_" + std::string(name(family));
  for (const std::string &kernel : kernelNames())
    if (kernel == wanted)
      return kernel;
  return "";
}

//===----------------------------------------------------------------------===//
// One choice
//===----------------------------------------------------------------------===//

/// Rows of a tile are dealt out to warps in fragments of 16, at most two.
static std::optional<std::string> checkWarps(const Schedule &schedule) {
  for (const Node &grid : schedule.grids) {
    int64_t rows = grid.step / grid.warps;
    if (grid.step % grid.warps != 0 || (rows != 16 && rows != 32))
      return "expects 16 or 32 rows per warp, but got " +
             std::to_string(grid.step) + " rows and " +
             std::to_string(grid.warps) + " warps";
  }
  return std::nullopt;
}

static std::optional<std::string> checkTiles(const ScheduleKind &kind,
                                             const Tiles &tiles) {
  for (const auto &[tile, value] : tiles) {
    bool isCount = tile == "stages" || tile == "warps";
    int64_t unit = isCount ? 1 : 16, most = isCount ? 32 : 65536;
    if (value < unit || value > most || value % unit != 0)
      return "expects " + tile + " to be a multiple of " +
             std::to_string(unit) + " up to " + std::to_string(most) +
             ", but got " + std::to_string(value);
  }
  return std::nullopt;
}

static double executedFlops(const Schedule &schedule, const Problem &problem) {
  double flops = 0;
  for (const Use &use : census(schedule, problem).uses)
    if (use.node->verb == Verb::multiply)
      flops += 2.0 * use.elements;
  return flops * problem.batch * problem.heads;
}

/// A sentence when the tiles are no choice at all, on any machine.
static std::optional<std::string> checkStructure(const ScheduleKind &kind,
                                                 const Tiles &tiles,
                                                 const Schedule &schedule) {
  if (auto sentence = checkTiles(kind, tiles))
    return sentence;
  return checkWarps(schedule);
}

/// A sentence when the choice is not possible for this problem here.
static std::optional<std::string> checkChoice(const ScheduleKind &kind,
                                              const Tiles &tiles,
                                              const Schedule &schedule,
                                              const Problem &problem,
                                              const Machine &machine) {
  if (kind.check)
    if (auto sentence = kind.check(tiles, problem))
      return sentence;
  return checkFootprint(schedule, problem, machine);
}

static Plan price(const ScheduleKind &kind, const Tiles &tiles,
                  const Schedule &schedule, TensorCoreFamily family,
                  const Problem &problem, const Machine &machine,
                  const Calibration &calibration) {
  Plan plan;
  plan.schedule = kind.name;
  plan.tiles = tiles;
  plan.family = family;
  plan.kernel = kernelFor(kind, family);
  plan.bytes = traffic(schedule, problem, machine, calibration);
  plan.flops = executedFlops(schedule, problem);
  plan.footprint = footprint(schedule, problem, machine);
  plan.time = time(schedule, problem, machine, family, calibration);
  plan.seconds = plan.time.seconds;
  plan.boundBy = plan.time.boundBy;
  return plan;
}

//===----------------------------------------------------------------------===//
// All choices
//===----------------------------------------------------------------------===//

/// All combinations of a schedule's parameter values.
static std::vector<Tiles> combinations(const ScheduleKind &kind) {
  std::vector<Tiles> all = {Tiles()};
  for (const Parameter &parameter : kind.parameters) {
    std::vector<Tiles> longer;
    for (const Tiles &prefix : all)
      for (int64_t value : parameter.values) {
        longer.push_back(prefix);
        longer.back().set(parameter.name, value);
      }
    all = std::move(longer);
  }
  return all;
}

/// Faster first; of equals, the one that occupies less; then by its text, so
/// that the order is the same everywhere.
static bool isBetter(const Plan &a, const Plan &b) {
  auto key = [](const Plan &plan) {
    return std::make_tuple(plan.seconds, plan.footprint.smemBytes,
                           plan.footprint.registersPerThread);
  };
  if (key(a) != key(b))
    return key(a) < key(b);
  return a.schedule + a.tiles.str() < b.schedule + b.tiles.str();
}

PlanReport attn::plans(const Problem &problem, const Machine &machine,
                       const Calibration &calibration) {
  PlanReport report;
  report.problem = problem;
  report.machine = machine;
  report.regime = regime(problem, machine);
  report.lowerBoundBytes = lowerBoundBytes(problem, machine);

  TensorCoreFamily family = familyFor(problem, machine);
  for (const ScheduleKind &kind : scheduleKinds()) {
    // What the machine has but this problem cannot use, once per schedule.
    for (TensorCoreFamily other :
         {TensorCoreFamily::mmaSync, TensorCoreFamily::wgmma,
          TensorCoreFamily::tcgen05}) {
      bool isRelevant = other == TensorCoreFamily::mmaSync
                            ? family == TensorCoreFamily::none
                            : machine.family == other;
      if (auto reason = checkFamily(other, problem, machine);
          reason && isRelevant)
        report.refused.push_back({kind.name, {}, other, *reason});
    }
    for (const Tiles &tiles : combinations(kind)) {
      Schedule schedule = kind.build(tiles);
      if (checkStructure(kind, tiles, schedule))
        continue;
      if (auto reason = checkChoice(kind, tiles, schedule, problem, machine))
        report.refused.push_back({kind.name, tiles, family, *reason});
      else
        report.plans.push_back(price(kind, tiles, schedule, family, problem,
                                     machine, calibration));
    }
  }
  std::sort(report.plans.begin(), report.plans.end(), isBetter);
  return report;
}

//===----------------------------------------------------------------------===//
// A given choice
//===----------------------------------------------------------------------===//

static std::string join(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The given tiles in the schedule's order; what is missing is tried with every
/// value of its own.
static std::vector<Tiles> completions(const ScheduleKind &kind,
                                      const Tiles &given) {
  ScheduleKind narrowed = kind;
  for (Parameter &parameter : narrowed.parameters)
    if (given.has(parameter.name))
      parameter.values = {given.get(parameter.name)};
  return combinations(narrowed);
}

std::optional<Plan> attn::planFor(const Problem &problem,
                                  const Machine &machine,
                                  std::string_view schedule, const Tiles &tiles,
                                  std::string &error) {
  const ScheduleKind *kind = findScheduleKind(schedule);
  if (!kind) {
    error = "expects a schedule out of " + join(scheduleNames()) +
            ", but got '" + std::string(schedule) + "'";
    return std::nullopt;
  }
  std::vector<std::string> known = tileNames(schedule);
  for (const auto &[name, value] : tiles)
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      error = "expects tiles of " + kind->name + " out of " + join(known) +
              ", but got '" + name + "'";
      return std::nullopt;
    }

  std::optional<Plan> best;
  TensorCoreFamily family = familyFor(problem, machine);
  error.clear();
  std::string structure;
  for (const Tiles &candidate : completions(*kind, tiles)) {
    Schedule built = kind->build(candidate);
    if (auto sentence = checkStructure(*kind, candidate, built)) {
      structure = *sentence;
      continue;
    }
    auto sentence = checkChoice(*kind, candidate, built, problem, machine);
    if (sentence && error.empty())
      error = *sentence;
    if (sentence)
      continue;
    Plan plan = price(*kind, candidate, built, family, problem, machine, {});
    if (!best || isBetter(plan, *best))
      best = std::move(plan);
  }
  if (error.empty())
    error = structure;
  if (best)
    error.clear();
  return best;
}
