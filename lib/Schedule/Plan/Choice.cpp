//===- Choice.cpp - Is a choice possible, and what does it occupy? --------===//

#include "Plan/Choice.h"
#include "attn/Schedule/SharedTiles.h"

#include "Folds/WarpRows.h"
#include "attn/Schedule/Footprint.h"
#include <algorithm>

using namespace attn;

//===----------------------------------------------------------------------===//
// Families: which unit takes the products
//===----------------------------------------------------------------------===//

bool attn::takes(const Form &form, const Problem &problem) {
  return form.keeps == problem.keepsWeights &&
         (!form.takes || form.takes(problem));
}

const Form *attn::formFor(const ScheduleKind &kind, TensorCoreFamily family,
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

std::vector<const Form *> attn::rivalsFor(const ScheduleKind &kind,
                                          TensorCoreFamily family,
                                          const Problem &problem) {
  std::vector<const Form *> rivals;
  for (const Form &form : kind.forms)
    if (form.isRival && form.serves(family) && takes(form, problem))
      rivals.push_back(&form);
  return rivals;
}

std::optional<std::string> attn::checkFamilyOf(const ScheduleKind &kind,
                                               TensorCoreFamily family,
                                               const Problem &problem,
                                               const Machine &machine) {
  const Form *form = formFor(kind, family, problem);
  WgmmaUse use;
  if (form)
    use = {form->mostHeadDim, form->splits, form->rewrites, form->widens};
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

std::vector<TensorCoreFamily> attn::familiesFor(const ScheduleKind &kind,
                                                const Problem &problem,
                                                const Machine &machine) {
  std::vector<TensorCoreFamily> families;
  for (TensorCoreFamily family : kTensorCores)
    if (!checkFamilyOf(kind, family, problem, machine))
      families.push_back(family);
  if (const Form *form = formFor(kind, TensorCoreFamily::none, problem);
      form && families.empty() && form->keeps == problem.keepsWeights &&
      problem.precision != Precision::f8_qk && !needsWidening(problem))
    families.push_back(TensorCoreFamily::none);
  return families;
}

std::string attn::kernelFor(const ScheduleKind &kind, TensorCoreFamily family) {
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
  for (const Grid *grid : schedule.grids())
    if (auto sentence = checkWarpRows(grid->step, grid->workers.warps,
                                      grid->workers.across))
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

/// Whether scratch memory is used in places that are written again and again;
/// whole tensors there were asked for.
static bool hasPlaces(const Body &body) {
  return std::any_of(body.begin(), body.end(), [](const Node &node) {
    return scratchOf(node).slots > 0 || hasPlaces(bodyOf(node));
  });
}

static bool hasPlaces(const Schedule &schedule) {
  std::vector<const Grid *> grids = schedule.grids();
  return std::any_of(grids.begin(), grids.end(),
                     [](const Grid *grid) { return hasPlaces(grid->body); });
}

/// A sentence when places in scratch memory exceed what any plan may have;
/// tensors with rows like an operand's do not count (Plan.h).
static std::optional<std::string> checkScratch(const Footprint &needed,
                                               const Schedule &schedule) {
  int64_t places = needed.scratchBytes - needed.rowScratchBytes;
  if (places <= kMostScratchBytes || !hasPlaces(schedule))
    return std::nullopt;
  return "needs " + std::to_string(places) +
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

CheckedChoice attn::checkedChoice(const Space &space, const Tiles &tiles,
                                  const Tiles &given) {
  CheckedChoice result;
  const Form &form = space.form;
  result.noChoice = checkTiles(form, tiles);
  if (!result.noChoice && form.checkStructure)
    result.noChoice = form.checkStructure(tiles, space.problem);
  if (result.noChoice)
    return result;
  result.schedule = form.build(tiles);
  if (!form.checkStructure)
    result.noChoice = checkWarps(result.schedule);
  if (result.noChoice || hasIdleRounds(space, given, result.schedule)) {
    result.isChoice = false;
    return result;
  }
  result.isChoice = true;
  result.needed =
      footprint(result.schedule, withSharedRows(space.problem, result.schedule),
                space.machine);
  result.refusal =
      checkChoice(space, tiles, given, result.needed, result.schedule);
  return result;
}

std::vector<Footprint> attn::launchFootprints(const Schedule &schedule,
                                              const Problem &problem,
                                              const Machine &machine) {
  std::vector<Footprint> all;
  for (const Schedule::Launch &launch : schedule.launches) {
    Footprint space = launchFootprint(launch, problem, machine);
    for (const Grid &beside : launch.beside)
      space.registersPerThread =
          std::max(space.registersPerThread,
                   gridFootprint(beside, problem, machine).registersPerThread);
    all.push_back(space);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Why not
//===----------------------------------------------------------------------===//

std::string attn::join(const std::vector<std::string> &names) {
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

std::string attn::whyNoFamily(const ScheduleKind &kind, const Tiles &tiles,
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
