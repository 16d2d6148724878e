//===- Plan.cpp - Every choice, priced ------------------------------------===//

#include "attn/Schedule/Plan.h"
#include "Plan/Choice.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/RaggedQueries.h"
#include "attn/Schedule/SharedTiles.h"
#include "attn/Schedule/Time.h"
#include <algorithm>
#include <cmath>
#include <tuple>

using namespace attn;

const Plan *PlanReport::best() const {
  for (const Plan &plan : plans)
    if (!plan.kernel.empty())
      return &plan;
  return nullptr;
}

const Plan *attn::chosen(const PlanReport &report) {
  if (const Plan *best = report.best())
    return best;
  return report.plans.empty() ? nullptr : &report.plans.front();
}

static double executedFlops(const Census &counted) {
  double flops = 0;
  for (const Use &use : counted.uses)
    if (use.node->is<verb::Multiply>())
      flops += 2.0 * double(use.elements) * counted.grids[use.grid].heads;
  return flops;
}

/// Of each sequence by itself.
static double raggedFlops(const Schedule &schedule, const Problem &problem) {
  double flops = 0;
  for (const Sequences &each : sequencesOf(problem))
    if (each.lengths.keys > 0 && each.lengths.queries > 0)
      flops += double(each.count) *
               executedFlops(census(schedule, denseOf(problem, each.lengths)));
  return flops;
}

namespace {
/// What became of the choices of a space.
struct Outcome {
  std::vector<Plan> plans;
  std::vector<Refused> refused;
  std::string structure; ///< why the last non-choice is none
};
} // namespace

/// Of sequences beside others, in the same launches.
static void addTimes(std::vector<Time> &times, const std::vector<Time> &more) {
  for (size_t launch = 0; launch < times.size(); ++launch) {
    Time beside = more[launch];
    beside.seconds -= beside.overhead;
    beside.overhead = 0;
    times[launch] = inOrder({times[launch], beside});
  }
}

static Plan price(const Space &space, const Calibration &calibration,
                  const Tiles &tiles, const CheckedChoice &choice) {
  const Schedule &schedule = choice.schedule;
  const Problem problem = withSharedRows(space.problem, schedule);
  const Machine &machine = space.machine;
  Plan plan;
  plan.schedule = space.kind.name;
  plan.tiles = tiles;
  plan.family = space.family;
  plan.kernel = space.kernelOf(tiles);
  Census counted = census(schedule, problem);
  plan.flops =
      problem.ragged ? raggedFlops(schedule, problem) : executedFlops(counted);
  plan.footprint = choice.needed;
  std::vector<Time> times = launchTimes(counted, schedule, problem, machine,
                                        space.family, calibration);
  if (std::optional<Problem> others = ofOneQuery(problem))
    addTimes(times, launchTimes(census(schedule, *others), schedule, *others,
                                machine, space.family, calibration));
  std::vector<Bytes> bytes =
      launchTraffic(counted, schedule, problem, machine, calibration);
  std::vector<Footprint> footprints =
      launchFootprints(schedule, problem, machine);
  for (size_t launch = 0; launch < footprints.size(); ++launch) {
    plan.launches.push_back(
        {bytes[launch], footprints[launch], times[launch].seconds});
    plan.bytes += bytes[launch];
  }
  plan.time = inOrder(times);
  plan.seconds = plan.time.seconds;
  plan.boundBy = binding(plan.time, space.family).name;
  return plan;
}

//===----------------------------------------------------------------------===//
// All choices
//===----------------------------------------------------------------------===//

/// Gives the parameters, from one on, all combinations of their values in turn,
/// a given value standing for all others, until a visit says that it was the
/// last.  Returns whether one did.
template <typename Visit>
static bool anyCombination(const Space &space,
                           const std::vector<Parameter> &parameters,
                           const Tiles &given, Tiles &tiles, Visit &&visit,
                           size_t from = 0) {
  if (from == parameters.size())
    return visit();
  const Parameter &parameter = parameters[from];
  auto isLast = [&](int64_t value) {
    tiles.set(parameter.name, value);
    return anyCombination(space, parameters, given, tiles, visit, from + 1);
  };
  if (given.has(parameter.name))
    return isLast(given.get(parameter.name));
  std::vector<int64_t> values =
      parameter.derived ? parameter.derived(space.problem, space.machine, tiles)
                        : parameter.values;
  return std::any_of(values.begin(), values.end(), isLast);
}

/// Whether two plans of a form differ only in what takes the room that is left.
static bool differInRoom(const Form &form, const Plan &a, const Plan &b) {
  auto isRoom = [&](const std::string &name) {
    return std::any_of(form.room.begin(), form.room.end(),
                       [&](const Parameter &one) { return one.name == name; });
  };
  return a.kernel == b.kernel &&
         std::all_of(a.tiles.begin(), a.tiles.end(), [&](const auto &tile) {
           return isRoom(tile.first) || b.tiles.get(tile.first) == tile.second;
         });
}

/// Of plans from `first` on that differ in the room they take, the fastest
/// stands for all, of equals the first.  So whatever fits a smaller machine is
/// a candidate on a larger one.
static void keepFastest(const Form &form, std::vector<Plan> &plans,
                        size_t first, Plan plan) {
  auto rival = std::find_if(
      plans.begin() + ptrdiff_t(first), plans.end(),
      [&](const Plan &other) { return differInRoom(form, other, plan); });
  if (rival == plans.end())
    plans.push_back(std::move(plan));
  else if (plan.seconds < rival->seconds)
    *rival = std::move(plan);
}

/// Prices the choices that need no memory, for tiles that say all the rest,
/// beside plans from `first` on for the same sizes.  If the tiles do not fit,
/// the first refusal stands for all choices.
static void priceSizes(const Space &space, const Calibration &calibration,
                       const Tiles &given, Tiles &tiles, size_t first,
                       Outcome &outcome, std::optional<Refused> &refused) {
  auto isRefused = [&] {
    CheckedChoice choice = checkedChoice(space, tiles, given);
    if (choice.noChoice)
      outcome.structure = *choice.noChoice;
    if (!choice.isChoice)
      return false;
    if (choice.refusal) {
      int64_t smemBytes = choice.needed.smemBytes;
      bool isSmem = smemBytes > space.machine.smemBytesPerBlock;
      refused = {space.kind.name,       tiles,
                 space.family,          *choice.refusal,
                 space.kernelOf(tiles), isSmem ? smemBytes : 0};
      return true;
    }
    keepFastest(space.form, outcome.plans, first,
                price(space, calibration, tiles, choice));
    return false;
  };
  anyCombination(space, space.form.choices, given, tiles, isRefused);
}

/// Prices every choice that agrees with what is given.
static void priceAll(const Space &space, const Calibration &calibration,
                     const Tiles &given, Outcome &outcome) {
  Tiles tiles; // in the order of the parameters, as these are set in it
  anyCombination(space, space.form.sizes, given, tiles, [&] {
    std::optional<Refused> refused;
    size_t first = outcome.plans.size();
    anyCombination(space, space.form.room, given, tiles, [&] {
      priceSizes(space, calibration, given, tiles, first, outcome, refused);
      return false;
    });
    if (outcome.plans.size() == first && refused)
      outcome.refused.push_back(std::move(*refused));
    return false;
  });
}

/// Faster first; of equals, the one that occupies less, and of these the one
/// that overlaps more, since what hides in its time may be longer; then by its
/// text, so that the order is the same everywhere.
static bool isBetter(const Plan &a, const Plan &b) {
  auto key = [](const Plan &plan) {
    return std::make_tuple(plan.seconds, plan.footprint.smemBytes,
                           plan.footprint.registersPerThread,
                           plan.footprint.scratchBytes,
                           -plan.tiles.get("overlap"));
  };
  if (key(a) != key(b))
    return key(a) < key(b);
  return a.schedule + a.tiles.str() < b.schedule + b.tiles.str();
}

/// Why nothing runs a schedule that is priced, and which kernels of its
/// direction can.
static std::string whyNot(const Space &space, const std::string &what,
                          bool (*can)(std::string_view)) {
  std::string others;
  for (const ScheduleKind &kind : scheduleKinds())
    for (TensorCoreFamily family :
         {TensorCoreFamily::mmaSync, TensorCoreFamily::wgmma})
      if (std::string kernel = kernelFor(kind, family);
          kind.direction == space.kind.direction && can(kernel))
        others += (others.empty() ? "; " : ", ") + kernel;
  return space.kernel + " " + what + " yet" +
         (others.empty() ? "" : others + " do");
}
static std::string whyNoLists(const Space &space) {
  return whyNot(space, "does not walk along lists of blocks", walksLists);
}
static std::string whyNoClauses(const Space &space) {
  return whyNot(space, "does not take " + str(space.problem.clauses),
                takesClauses);
}
static std::string whyNoPlace(const Space &space) {
  return whyNot(space, "does not take " + str(space.problem.place),
                locatesRows);
}
static std::string whyNoScales(const Space &space) {
  return whyNot(space, "does not take " + str(space.problem.scales),
                takesScales);
}
static std::string whyNotRagged(const Space &space) {
  return whyNot(space, "does not take ragged sequences", takesRagged);
}

/// Bounds at level l2, and at every level: of ragged sequences those of each.
static void addBounds(PlanReport &report, const Problem &problem,
                      int64_t count = 1) {
  if (problem.ragged) {
    for (const Sequences &each : sequencesOf(problem))
      addBounds(report, atLeastOne(denseOf(problem, each.lengths)), each.count);
    return;
  }
  report.lowerBoundBytes += count * lowerBoundBytes(problem, report.machine);
  LevelBounds least = levelBounds(problem, report.machine);
  report.lowerBounds.hbm += count * least.hbmBytes;
  report.lowerBounds.l2 += count * least.l2Bytes;
  report.lowerBounds.smem += count * least.smemBytes;
}
static std::string whyNoSums(const Space &space) {
  return whyNot(space, "does not take gradients of captures of a head",
                sumsOfHeads);
}

PlanReport attn::plans(const Problem &asked, const Machine &machine) {
  const Calibration &calibration = calibrationOf(machine);
  const Problem problem = standIn(atLeastOne(asked));
  PlanReport report;
  report.problem = asked;
  report.machine = machine;
  report.regime = regime(problem, machine);
  addBounds(report, problem);
  report.timesOf = calibration.machine;

  Outcome outcome;
  for (const ScheduleKind &kind : scheduleKinds()) {
    if (kind.direction != problem.direction)
      continue;
    std::vector<TensorCoreFamily> families =
        familiesFor(kind, problem, machine);
    // What the machine has but this schedule cannot use, once.
    for (TensorCoreFamily other : kTensorCores) {
      bool isRelevant =
          other == TensorCoreFamily::mmaSync
              ? families.empty() || families.front() == TensorCoreFamily::none
              : machine.family == other;
      if (!isRelevant)
        continue;
      if (auto reason = checkFamilyOf(kind, other, problem, machine))
        outcome.refused.push_back(
            {kind.name,
             {},
             other,
             *reason,
             Space{kind, other, problem, machine, kind.forms.front()}.kernelOf(
                 {})});
    }
    for (TensorCoreFamily family : families) {
      Space space = {kind, family, problem, machine,
                     *formFor(kind, family, problem)};
      if (space.lacksLists())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNoLists(space), "", 0});
      if (space.lacksClauses())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNoClauses(space), "", 0});
      else if (space.lacksSums())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNoSums(space), "", 0});
      if (space.lacksPlace())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNoPlace(space), "", 0});
      if (space.lacksScales())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNoScales(space), "", 0});
      if (space.lacksRagged())
        outcome.refused.push_back(
            {kind.name, {}, family, whyNotRagged(space), "", 0});
      priceAll(space, calibration, {}, outcome);
      for (const Form *rival : rivalsFor(kind, family, problem))
        priceAll({kind, family, problem, machine, *rival}, calibration, {},
                 outcome);
    }
  }
  report.plans = std::move(outcome.plans);
  report.refused = std::move(outcome.refused);
  std::sort(report.plans.begin(), report.plans.end(), isBetter);
  return report;
}

//===----------------------------------------------------------------------===//
// A given choice
//===----------------------------------------------------------------------===//

/// Plans that can be built come first.
static bool isBetterGiven(const Plan &a, const Plan &b) {
  if (a.kernel.empty() != b.kernel.empty())
    return b.kernel.empty();
  return isBetter(a, b);
}

/// Whether tiles ask for walks that are not dealt out: one part, of a schedule
/// that has a form with several.
static bool asksForOnePart(const ScheduleKind &kind, const Tiles &tiles) {
  return tiles.get("parts") == 1 &&
         std::any_of(kind.forms.begin(), kind.forms.end(),
                     [](const Form &form) {
                       return form.isRival && form.has("parts");
                     });
}

std::optional<Plan> attn::planFor(const Problem &asked, const Machine &machine,
                                  std::string_view schedule, const Tiles &given,
                                  std::string &error) {
  const Problem problem = standIn(atLeastOne(asked));
  const ScheduleKind *kind = findScheduleKind(schedule);
  if (!kind || kind->direction != problem.direction) {
    std::string names = join(scheduleNames(problem.direction));
    error = "expects a schedule out of " + (names.empty() ? "none" : names) +
            ", but got '" + std::string(schedule) + "'" +
            (kind ? ", which is " + std::string(name(kind->direction))
                  : whatReplaced(schedule));
    return std::nullopt;
  }
  const Calibration &calibration = calibrationOf(machine);
  Outcome outcome;
  bool hasFamily = false;
  bool isOnePart = asksForOnePart(*kind, given);
  Tiles tiles;
  for (const Tiles::Item &item : given)
    if (!isOnePart || item.first != "parts")
      tiles.set(item.first, item.second);
  // Tiles that say everything tell their form: a rival has more of them.
  bool isWhole = kind->formOf(tiles).saysAll(tiles);
  for (TensorCoreFamily family : familiesFor(*kind, problem, machine)) {
    bool hasForm = false; // that is no rival
    for (const Form &form : kind->forms) {
      if (!form.serves(family) || !form.hasAll(tiles) ||
          !takes(form, problem) || (hasForm && !form.isRival) ||
          (isOnePart && form.has("parts")) || (isWhole && !form.saysAll(tiles)))
        continue;
      hasFamily = true;
      hasForm |= !form.isRival;
      priceAll({*kind, family, problem, machine, form}, calibration, tiles,
               outcome);
    }
  }
  if (!hasFamily) {
    error = whyNoFamily(*kind, tiles, problem, machine);
    return std::nullopt;
  }
  if (outcome.plans.empty()) {
    error = outcome.refused.empty() ? outcome.structure
                                    : outcome.refused.front().reason;
    return std::nullopt;
  }
  error.clear();
  return *std::min_element(outcome.plans.begin(), outcome.plans.end(),
                           isBetterGiven);
}
