//===- Decision.cpp - What was decided, without its price -----------------===//

#include "attn/Schedule/Decision.h"
#include "Plan/Choice.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/SharedTiles.h"

using namespace attn;

static std::optional<Decision>
decisionOf(const Space &space, const Tiles &tiles, std::string &reason) {
  CheckedChoice choice = checkedChoice(space, tiles, tiles);
  if (!choice.isChoice || choice.refusal) {
    reason = choice.isChoice ? *choice.refusal : choice.noChoice.value_or("");
    return std::nullopt;
  }
  return Decision{
      space.kind.name,
      tiles,
      space.family,
      space.kernelOf(tiles),
      space.form.launches(tiles),
      choice.schedule,
      launchFootprints(choice.schedule,
                       withSharedRows(space.problem, choice.schedule),
                       space.machine)};
}

/// Of tiles that say everything: on the first family that has a kernel for
/// them, or else on the first.
static std::optional<Decision>
decideWhole(const ScheduleKind &kind, const Problem &problem,
            const Machine &machine, const Tiles &tiles, std::string &error) {
  std::optional<Decision> decided;
  std::string reason = whyNoFamily(kind, tiles, problem, machine);
  for (TensorCoreFamily family : familiesFor(kind, problem, machine))
    for (const Form &form : kind.forms) {
      if (!form.serves(family) || !form.hasAll(tiles) || !takes(form, problem))
        continue;
      Space space = {kind, family, problem, machine, form};
      std::optional<Decision> one = decisionOf(space, tiles, reason);
      if (one && (!decided || decided->kernel.empty()))
        decided = std::move(one);
      break;
    }
  error = decided ? "" : reason;
  return decided;
}

std::optional<Decision> attn::decide(const Problem &asked,
                                     const Machine &machine,
                                     std::string_view schedule,
                                     const Tiles &tiles, std::string &error) {
  const Problem problem = standIn(atLeastOne(asked));
  const ScheduleKind *kind = findScheduleKind(schedule);
  bool isWhole = kind && kind->direction == problem.direction &&
                 kind->formOf(tiles).saysAll(tiles);
  if (isWhole)
    return decideWhole(*kind, problem, machine, tiles, error);
  std::optional<Plan> plan = planFor(problem, machine, schedule, tiles, error);
  if (!plan)
    return std::nullopt;
  return decideWhole(*findScheduleKind(schedule), problem, machine, plan->tiles,
                     error);
}

std::vector<Bytes> attn::promisedBytes(const Decision &decided,
                                       const Problem &asked,
                                       const Machine &machine) {
  Calibration calibration;
  const Problem problem = withSharedRows(asked, decided.built);
  // Ragged sequences have a census each.
  Census counted = problem.ragged ? Census() : census(decided.built, problem);
  return launchTraffic(counted, decided.built, problem, machine, calibration);
}
