//===- Plan.cpp - Every choice, priced ------------------------------------===//

#include "attn/Schedule/Plan.h"
#include "Folds/WarpRows.h"
#include "attn/Schedule/Families.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
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

//===----------------------------------------------------------------------===//
// Families: which unit takes the products
//===----------------------------------------------------------------------===//

static bool takes(const Form &form, const Problem &problem) {
  return form.keeps == problem.keepsWeights &&
         (!form.takes || form.takes(problem));
}

/// The first that takes the problem, or else the first.
static const Form *formFor(const ScheduleKind &kind, TensorCoreFamily family,
                           const Problem &problem) {
  const Form *first = nullptr;
  for (const Form &form : kind.forms) {
    if (!form.serves(family))
      continue;
    if (takes(form, problem))
      return &form;
    if (!first)
      first = &form;
  }
  return first;
}

/// Why a schedule cannot run on a family here.
static std::optional<std::string> checkFamilyOf(const ScheduleKind &kind,
                                                TensorCoreFamily family,
                                                const Problem &problem,
                                                const Machine &machine) {
  const Form *form = formFor(kind, family, problem);
  WgmmaUse use;
  if (form)
    use = {form->mostHeadDim, form->splits, form->rewrites};
  if (auto sentence = checkFamily(family, problem, machine, use))
    return sentence;
  if (form && form->keeps != problem.keepsWeights)
    return kind.name + " keeps no weights with " + std::string(name(family)) +
           "; score_spill does forward and spill_backward backward, both with "
           "wgmma only";
  if (form)
    return std::nullopt;
  std::string text =
      kind.name + " is not written for " + std::string(name(family));
  bool isPortable = formFor(kind, TensorCoreFamily::mmaSync, problem);
  return text + (isPortable ? " yet; mma_sync is the portable choice" : "");
}

static constexpr TensorCoreFamily tensorCores[] = {TensorCoreFamily::tcgen05,
                                                   TensorCoreFamily::wgmma,
                                                   TensorCoreFamily::mmaSync};

/// The families on which a schedule can run.  The FMA pipes, which every
/// machine has, are for what no tensor core takes.
static std::vector<TensorCoreFamily> familiesFor(const ScheduleKind &kind,
                                                 const Problem &problem,
                                                 const Machine &machine) {
  std::vector<TensorCoreFamily> families;
  for (TensorCoreFamily family : tensorCores)
    if (!checkFamilyOf(kind, family, problem, machine))
      families.push_back(family);
  if (const Form *form = formFor(kind, TensorCoreFamily::none, problem);
      form && families.empty() && form->keeps == problem.keepsWeights)
    families.push_back(TensorCoreFamily::none);
  return families;
}

/// The kernel of a schedule on a family, if there is one.
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

static std::optional<std::string> checkWarps(const Schedule &schedule) {
  for (const Node &grid : schedule.grids)
    if (auto sentence = checkWarpRows(grid.step, grid.warps, grid.across))
      return sentence;
  return std::nullopt;
}

/// A sentence when a tile is no multiple of its unit or out of its range.
static std::optional<std::string> checkTile(const Parameter &p, int64_t value) {
  if (value >= p.least && value <= p.most && value % p.unit == 0)
    return std::nullopt;
  std::string range =
      p.isChoice() ? (p.most == 1 ? "0 or " : "0 to ") + std::to_string(p.most)
                   : "a multiple of " + std::to_string(p.unit) + " up to " +
                         std::to_string(p.most);
  return "expects " + p.name + " to be " + range + ", but got " +
         std::to_string(value);
}

static std::optional<std::string> checkTiles(const Form &form,
                                             const Tiles &tiles) {
  for (const auto *group : {&form.sizes, &form.room, &form.choices})
    for (const Parameter &parameter : *group)
      if (auto sentence = checkTile(parameter, tiles.get(parameter.name)))
        return sentence;
  return std::nullopt;
}

static double executedFlops(const Census &counted) {
  double flops = 0;
  for (const Use &use : counted.uses)
    if (use.node->verb == Verb::multiply)
      flops += 2.0 * double(use.elements) * counted.grids[use.grid].heads;
  return flops;
}

namespace {
/// Where a choice is made: one schedule on one family.
struct Space {
  const ScheduleKind &kind;
  TensorCoreFamily family;
  const Problem &problem;
  const Machine &machine;
  const Calibration &calibration;
  const Form &form;
  bool isAskedFor = false;
  std::string kernel = kernelFor(kind, family);

  /// The kernel that may be chosen for tiles.
  std::string kernelOf(const Tiles &tiles) const {
    bool isChoice = isAskedFor || !form.isOnRequest;
    bool isWritten = !form.hasKernel || form.hasKernel(problem, tiles);
    return isChoice && isWritten ? kernel : "";
  }
};

/// What became of the choices of a space.
struct Outcome {
  std::vector<Plan> plans;
  std::vector<Refused> refused;
  std::string structure; ///< why the last non-choice is none
};
} // namespace

/// Whether scratch memory is used in places that are written again and again;
/// whole tensors there were asked for.
static bool hasPlaces(const Body &body) {
  return std::any_of(body.begin(), body.end(), [](const Node &node) {
    return node.slots > 0 || hasPlaces(node.body);
  });
}

/// A sentence when places in scratch memory exceed what any plan may have.
static std::optional<std::string> checkScratch(const Footprint &needed,
                                               const Schedule &schedule) {
  if (needed.scratchBytes <= kMostScratchBytes || !hasPlaces(schedule.grids))
    return std::nullopt;
  return "needs " + std::to_string(needed.scratchBytes) +
         " bytes of scratch memory, but a plan has at most " +
         std::to_string(kMostScratchBytes);
}

/// Bytes of Q, K, V, O and dO and of the gradients.
static int64_t operandBytes(const Problem &problem) {
  int64_t rows =
      problem.heads * problem.queries + problem.kvHeads * problem.keys;
  return 2 * problem.batch * rows * (problem.headDim + problem.headDimV) *
         bytesOf(problem.dtype);
}

/// A sentence when scores of a round take more room than they may unasked.
static std::optional<std::string> checkRounds(const Space &space,
                                              const Tiles &given,
                                              const Footprint &needed,
                                              const Rounds &rounds) {
  if (!rounds || (given.has("strip") && given.has("heads")))
    return std::nullopt;
  int64_t bytes = needed.stripScratchBytes;
  bool cutsQueries = rounds.axis == Axis::Query;
  int64_t most = cutsQueries ? kMostWeightScratchBytes : kMostStripScratchBytes;
  if (cutsQueries && needsSplit(space.problem))
    most *= kScaledParts;
  bool isUsual = rounds.heads == 1 && rounds.strip <= kUsualStrip &&
                 bytes <= operandBytes(space.problem);
  bool isLeast = rounds.heads == 1 && rounds.strip <= kLeastStrip;
  if (bytes <= most || (!cutsQueries && (isUsual || isLeast)))
    return std::nullopt;
  return "needs " + std::to_string(bytes) +
         " bytes of scratch memory for the scores of a round, but a plan has "
         "at most " +
         std::to_string(most) + " unless its strip and heads are asked for";
}

/// Whether rounds for half as many heads or keys would be the same: no choice,
/// unless somebody asks for it.
static bool hasIdleRounds(const Space &space, const Tiles &given,
                          const Schedule &schedule) {
  const Rounds &rounds = schedule.rounds;
  const Problem &problem = space.problem;
  int64_t heads = problem.batch * problem.kvHeads;
  bool hasIdleHeads = !given.has("heads") && rounds.heads >= 2 * heads;
  int64_t rows = extent(problem, rounds.axis);
  bool hasIdleRows = !given.has("strip") && rounds.strip >= 2 * kLeastStrip &&
                     rounds.strip >= 2 * rows;
  return rounds && (hasIdleHeads || hasIdleRows);
}

/// A sentence when the choice is not possible for this problem here.
static std::optional<std::string>
checkChoice(const Space &space, const Tiles &tiles, const Tiles &given,
            const Footprint &needed, const Schedule &schedule) {
  if (space.form.check)
    if (auto sentence = space.form.check(tiles, space.problem))
      return sentence;
  if (auto sentence =
          checkFootprint(needed, schedule, space.problem, space.machine))
    return sentence;
  if (auto sentence = checkScratch(needed, schedule))
    return sentence;
  return checkRounds(space, given, needed, schedule.rounds);
}

static Plan price(const Space &space, const Tiles &tiles,
                  const Footprint &needed, const Schedule &schedule) {
  const Problem &problem = space.problem;
  const Machine &machine = space.machine;
  Plan plan;
  plan.schedule = space.kind.name;
  plan.tiles = tiles;
  plan.family = space.family;
  plan.kernel = space.kernelOf(tiles);
  Census counted = census(schedule, problem);
  plan.flops = executedFlops(counted);
  plan.footprint = needed;
  std::vector<Time> times = launchTimes(counted, schedule, problem, machine,
                                        space.family, space.calibration);
  std::vector<Bytes> bytes =
      launchTraffic(counted, schedule, problem, machine, space.calibration);
  for (const Schedule::Launch &grids : schedule.launches()) {
    size_t launch = plan.launches.size();
    Footprint space =
        gridFootprint(schedule.grids[grids.main], problem, machine);
    for (size_t beside = grids.main + 1; beside < grids.end; ++beside)
      space.registersPerThread =
          std::max(space.registersPerThread,
                   gridFootprint(schedule.grids[beside], problem, machine)
                       .registersPerThread);
    plan.launches.push_back({bytes[launch], space, times[launch].seconds});
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
static bool anyCombination(const std::vector<Parameter> &parameters,
                           const Tiles &given, Tiles &tiles, Visit &&visit,
                           size_t from = 0) {
  if (from == parameters.size())
    return visit();
  const Parameter &parameter = parameters[from];
  auto isLast = [&](int64_t value) {
    tiles.set(parameter.name, value);
    return anyCombination(parameters, given, tiles, visit, from + 1);
  };
  if (given.has(parameter.name))
    return isLast(given.get(parameter.name));
  return std::any_of(parameter.values.begin(), parameter.values.end(), isLast);
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
static void priceSizes(const Space &space, const Tiles &given, Tiles &tiles,
                       size_t first, Outcome &outcome,
                       std::optional<Refused> &refused) {
  auto isRefused = [&] {
    std::optional<std::string> sentence = checkTiles(space.form, tiles);
    if (!sentence && space.form.checkStructure)
      sentence = space.form.checkStructure(tiles, space.problem);
    Schedule schedule = sentence ? Schedule() : space.form.build(tiles);
    if (!sentence && !space.form.checkStructure)
      sentence = checkWarps(schedule);
    if (sentence) {
      outcome.structure = *sentence;
      return false;
    }
    if (hasIdleRounds(space, given, schedule))
      return false;
    Footprint needed = footprint(schedule, space.problem, space.machine);
    if (auto reason = checkChoice(space, tiles, given, needed, schedule)) {
      bool isSmem = needed.smemBytes > space.machine.smemBytesPerBlock;
      refused = {space.kind.name,       tiles,
                 space.family,          *reason,
                 space.kernelOf(tiles), isSmem ? needed.smemBytes : 0};
      return true;
    }
    keepFastest(space.form, outcome.plans, first,
                price(space, tiles, needed, schedule));
    return false;
  };
  anyCombination(space.form.choices, given, tiles, isRefused);
}

/// Prices every choice that agrees with what is given.
static void priceAll(const Space &space, const Tiles &given, Outcome &outcome) {
  Tiles tiles; // in the order of the parameters, as these are set in it
  anyCombination(space.form.sizes, given, tiles, [&] {
    std::optional<Refused> refused;
    size_t first = outcome.plans.size();
    anyCombination(space.form.room, given, tiles, [&] {
      priceSizes(space, given, tiles, first, outcome, refused);
      return false;
    });
    if (outcome.plans.size() == first && refused)
      outcome.refused.push_back(std::move(*refused));
    return false;
  });
}

/// Faster first; of equals, the one that occupies less; then by its text, so
/// that the order is the same everywhere.
static bool isBetter(const Plan &a, const Plan &b) {
  auto key = [](const Plan &plan) {
    return std::make_tuple(plan.seconds, plan.footprint.smemBytes,
                           plan.footprint.registersPerThread,
                           plan.footprint.scratchBytes);
  };
  if (key(a) != key(b))
    return key(a) < key(b);
  return a.schedule + a.tiles.str() < b.schedule + b.tiles.str();
}

PlanReport attn::plans(const Problem &asked, const Machine &machine,
                       const Calibration &calibration) {
  const Problem problem = atLeastOne(asked);
  PlanReport report;
  report.problem = asked;
  report.machine = machine;
  report.regime = regime(problem, machine);
  report.lowerBoundBytes = lowerBoundBytes(problem, machine);
  LevelBounds least = levelBounds(problem, machine);
  report.lowerBounds = {least.hbmBytes, least.l2Bytes, least.smemBytes};

  Outcome outcome;
  for (const ScheduleKind &kind : scheduleKinds()) {
    if (kind.direction != problem.direction)
      continue;
    std::vector<TensorCoreFamily> families =
        familiesFor(kind, problem, machine);
    // What the machine has but this schedule cannot use, once.
    for (TensorCoreFamily other : tensorCores) {
      bool isRelevant =
          other == TensorCoreFamily::mmaSync
              ? families.empty() || families.front() == TensorCoreFamily::none
              : machine.family == other;
      if (!isRelevant)
        continue;
      if (auto reason = checkFamilyOf(kind, other, problem, machine))
        outcome.refused.push_back({kind.name,
                                   {},
                                   other,
                                   *reason,
                                   Space{kind, other, problem, machine,
                                         calibration, kind.forms.front()}
                                       .kernelOf({})});
    }
    for (TensorCoreFamily family : families)
      priceAll({kind, family, problem, machine, calibration,
                *formFor(kind, family, problem)},
               {}, outcome);
  }
  report.plans = std::move(outcome.plans);
  report.refused = std::move(outcome.refused);
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

/// `query, key, stages, warps`.
static std::string namesOf(const Form &form) {
  std::vector<std::string> names;
  for (const Parameter &parameter : form.parameters())
    names.push_back(parameter.name);
  return join(names);
}

/// Why no family here has all these tiles: one is unknown, two belong to
/// different families, or the family that has them cannot be used.
static std::string whyNoFamily(const ScheduleKind &kind, const Tiles &tiles,
                               const Problem &problem, const Machine &machine) {
  std::vector<std::string> known = tileNames(kind.name);
  for (const auto &[name, value] : tiles)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return "expects tiles of " + kind.name + " out of " + join(known) +
             ", but got '" + name + "'";
  for (const Form &form : kind.forms)
    for (TensorCoreFamily family : form.families)
      if (form.hasAll(tiles) && family != TensorCoreFamily::none)
        if (auto sentence = checkFamilyOf(kind, family, problem, machine))
          return *sentence;
  std::string text = "expects tiles of one family";
  for (const Form &form : kind.forms)
    text += "; " + std::string(name(form.families.back())) + " has " +
            namesOf(form);
  return text + "; but got " + tiles.str();
}

/// Plans that can be built come first.
static bool isBetterGiven(const Plan &a, const Plan &b) {
  if (a.kernel.empty() != b.kernel.empty())
    return b.kernel.empty();
  return isBetter(a, b);
}

std::optional<Plan> attn::planFor(const Problem &asked, const Machine &machine,
                                  std::string_view schedule, const Tiles &tiles,
                                  std::string &error) {
  const Problem problem = atLeastOne(asked);
  const ScheduleKind *kind = findScheduleKind(schedule);
  if (!kind || kind->direction != problem.direction) {
    std::string names = join(scheduleNames(problem.direction));
    error = "expects a schedule out of " + (names.empty() ? "none" : names) +
            ", but got '" + std::string(schedule) + "'" +
            (kind ? ", which is " + std::string(name(kind->direction)) : "");
    return std::nullopt;
  }
  Calibration calibration;
  Outcome outcome;
  bool hasFamily = false;
  for (TensorCoreFamily family : familiesFor(*kind, problem, machine)) {
    for (const Form &form : kind->forms) {
      if (!form.serves(family) || !form.hasAll(tiles) || !takes(form, problem))
        continue;
      hasFamily = true;
      priceAll({*kind, family, problem, machine, calibration, form,
                /*isAskedFor=*/true},
               tiles, outcome);
      break;
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
