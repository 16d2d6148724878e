//===- SizedSchedule.cpp - The schedule for the sizes at hand -------------===//

#include "SizedSchedule.h"

#include "attn/IR/Attn.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <mutex>

using namespace attn;

/// What another kernel must save, predicted: the median error of predictions on
/// an H100 is 3.1 % (tools/bench/results/peers-h100.json).
static constexpr double kWorthAKernel = 1.04;

/// Choices are kept, since a plan takes milliseconds; all go when there are so
/// many.
static constexpr size_t kMaxChoices = 4096;

/// Four steps per power of two, upwards, so that neighbours share a choice.
static int64_t rounded(int64_t rows) {
  if (rows < 8)
    return rows;
  int64_t step = int64_t(1) << (llvm::Log2_64(uint64_t(rows)) - 2);
  return llvm::alignTo(rows, step);
}

/// What stands for the problem where sizes are unknown.
static Problem ofUnknownSizes(Problem problem) {
  DynamicSizes sizes;
  problem.batch = sizes.batch;
  problem.queries = problem.keys = sizes.rows;
  return problem;
}

/// The best schedule, or that for unknown sizes.
static std::string derive(const Problem &problem, const Machine &machine) {
  PlanReport report = plans(problem, machine);
  const Plan *best = report.best();
  if (!best)
    return "";
  Problem unknown = ofUnknownSizes(problem);
  if (check(unknown)) // far more heads than anybody has of so many rows
    return decision(best->schedule, best->tiles);
  PlanReport usual = plans(unknown, withAnyMemory(machine));
  const Plan *chosen = best;
  for (const Plan &plan : report.plans)
    if (const Plan *other = usual.best();
        other && plan.schedule == other->schedule &&
        plan.tiles == other->tiles &&
        plan.seconds < kWorthAKernel * best->seconds)
      chosen = &plan;
  return decision(chosen->schedule, chosen->tiles);
}

/// What is given, with the best of what it leaves out.
static std::string complete(const Problem &problem, const Machine &machine,
                            llvm::StringRef given) {
  auto [name, sizes] = given.split(',');
  std::string error;
  std::optional<Tiles> tiles = parseTiles(sizes, error);
  std::optional<Plan> plan;
  if (tiles)
    plan = planFor(problem, machine, name.trim(), *tiles, error);
  if (!plan || plan->kernel.empty())
    return "";
  return decision(plan->schedule, plan->tiles);
}

static int64_t mostKeysOf(const Problem &problem) {
  return problem.ragged ? problem.ragged->longest.keys : problem.keys;
}

/// By what a choice is known: all that a kernel must know but the scale, and
/// what no type says, how many keys pages hold and how many of them are used.
static std::string keyOf(KernelClass kernelClass, const Problem &sized) {
  kernelClass.problem = sized;
  kernelClass.scale = std::nullopt;
  return textOf(kernelClass) + std::to_string(sized.rowHeads) + ' ' +
         std::to_string(sized.keys) + ' ' + std::to_string(mostKeysOf(sized)) +
         '\0';
}

std::string attn::scheduleForSizes(const SizedRequest &request) {
  const auto &[kernelClass, problem, machine, machineText, given] = request;
  Problem sized = problem;
  sized.queries = rounded(problem.queries);
  sized.keys = rounded(problem.keys);
  if (sized.ragged) {
    sized.batch = rounded(problem.batch);
    Lengths &longest = sized.ragged->longest;
    longest = {rounded(longest.queries), rounded(longest.keys)};
  }
  if (check(sized)) // rounded up beyond a limit
    sized = problem;
  if (!sized.bands.isEmpty()) { // more have the tiles of so many
    sized.queries = std::min(sized.queries, kMostRowsOfBands);
    sized.keys = std::min(sized.keys, kMostRowsOfBands);
  }
  if (isEmpty(sized)) // any kernel does
    sized = ofUnknownSizes(sized);
  if (check(sized))
    return "";
  static std::mutex mutex;
  static auto *choices = new llvm::StringMap<std::string>();
  std::string key = keyOf(kernelClass, sized) + machineText + '\0' + given;
  std::lock_guard<std::mutex> lock(mutex);
  if (auto found = choices->find(key); found != choices->end())
    return found->second;
  if (choices->size() >= kMaxChoices)
    choices->clear();
  return (*choices)[key] = given.empty() ? derive(sized, machine)
                                         : complete(sized, machine, given);
}
