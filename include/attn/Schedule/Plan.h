//===- Plan.h - Every choice, priced ----------------------------*- C++ -*-===//
///
/// The question "which schedule, with which tiles, and why?" in three roles, as
/// in a scheduling library: the *problem* and the *machine* are data; the
/// *enumeration* below prices every choice with the same folds; the *clients*
/// (passes, command line, Python) only read the answer.  Nobody else computes a
/// byte.
///
///   PlanReport report = plans(problem, *findMachine("h100_sxm"));
///   report.plans.front()     the fastest by the model, kernel or not
///   report.best()            the fastest that a kernel builder can build
///   report.refused           what was not possible, each with its reason
///
/// A schedule is priced for every *family* of tensor cores that the machine has
/// and the problem allows: a Hopper part runs wgmma and the portable mma_sync.
/// Tiles name parameters that only one of them has, so their text is a full
/// decision: `warps` belongs to mma_sync, `staging` to wgmma.
///
/// Nothing is tabulated by shape.  A choice is legal if its footprint fits the
/// machine and its kernel's demands are met; legal choices are ranked by
/// predicted time.  What is legal does not depend on time: whatever fits with
/// less shared memory fits with more, and whatever a larger batch may have a
/// smaller one may.  So the best plan of the one is no slower.
///
/// Scratch memory has one limit, `kMostScratchBytes`, for all problems.  Only a
/// spill of all scores, which nobody chooses unasked, goes beyond it.  Tensors
/// with rows like an operand's, D or sums of dQ, do not count: they grow as the
/// arrays do that the caller has anyway.  Nor do P and dS of a round, which
/// have a limit of their own.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PLAN_H
#define ATTN_SCHEDULE_PLAN_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Costs.h"
#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Tiles.h"

namespace attn {

/// The most that P and dS of a round take, unless strip and heads are asked
/// for: what two heads of 16384 queries and 8192 keys need, or four of 4096, so
/// that a launch has several waves of tiles and few of them are needed (d =
/// 256, 16384 causal rows took 5.16 ms, and with half as much 5.86;
/// 2026-11-23).  One key head may have more for `kUsualStrip` keys, up to what
/// operands and gradients take themselves, and for `kLeastStrip` keys in any
/// case.  They grow with the rows of queries, not with the square.
inline constexpr int64_t kMostStripScratchBytes = int64_t(1) << 30,
                         kUsualStrip = 4096, kLeastStrip = 1024;
/// The most that P of a round of forward takes, likewise: what 16 heads of 2048
/// queries and keys need with their statistics, so that a launch has several
/// waves of tiles; in parts as much for each of them.
inline constexpr int64_t kMostWeightScratchBytes = int64_t(132) << 20;

/// One launch: a grid of a schedule, with the one that is done beside it.
struct LaunchPlan {
  Bytes bytes;
  Footprint footprint;
  double seconds = 0; ///< of all its rounds
};

struct Plan {
  std::string schedule;
  Tiles tiles;
  TensorCoreFamily family = TensorCoreFamily::none;
  /// The kernel builder, `flash_mma_sync`; empty when none exists.
  std::string kernel;
  Bytes bytes;         ///< of the whole problem, per level
  double flops = 0;    ///< matrix arithmetic on visited tiles, without padding
  Footprint footprint; ///< the most of all launches
  std::vector<LaunchPlan> launches; ///< in order
  double seconds = 0;
  std::string boundBy; ///< the longest term of `time`, by its name
  Time time;           ///< every term of `seconds`
};

struct Refused {
  std::string schedule;
  Tiles tiles; ///< empty when no tile size could help
  TensorCoreFamily family = TensorCoreFamily::none;
  std::string reason;
  std::string kernel;    ///< the builder, if there is one
  int64_t smemBytes = 0; ///< of a block, if those are what does not fit
};

struct PlanReport {
  Problem problem;
  Machine machine;
  Regime regime = Regime::largeCache;
  int64_t lowerBoundBytes = 0; ///< at level l2
  Bytes lowerBounds;           ///< at every level
  /// The machine whose constants of time were used; another one's are borrowed.
  std::string timesOf;
  std::vector<Plan> plans; ///< best first
  std::vector<Refused> refused;

  /// The first plan that a kernel builder exists for, or null.
  const Plan *best() const;
};

/// The plan that would be built: the best with a kernel, else the best; or
/// null.
const Plan *chosen(const PlanReport &report);

/// Prices every choice.  The problem must pass `check`.
PlanReport plans(const Problem &problem, const Machine &machine);

/// Prices one given choice.  Parameters left out of `tiles` take the values of
/// the best plan that agrees with the rest, over all families whose parameters
/// include the given ones; plans that have a kernel come first.  On failure
/// returns nothing and sets `error` to a sentence.
std::optional<Plan> planFor(const Problem &problem, const Machine &machine,
                            std::string_view schedule, const Tiles &tiles,
                            std::string &error);

/// Why one plan lost to another: by how much, and the term of the time that
/// grew most.
std::string whyLost(const Plan &loser, const Plan &winner);

/// A decision as text, the way `#attn.schedule<...>` holds it: `flash, query =
/// 128, key = 64`.
std::string decision(std::string_view schedule, const Tiles &tiles);

/// The names of all schedules, in order, of those of a direction, and of their
/// tile parameters.
std::vector<std::string> scheduleNames();
std::vector<std::string> scheduleNames(Direction direction);
/// ", which ..": what to ask for instead of a schedule that there was; empty if
/// there was none of this name.
std::string whatReplaced(std::string_view schedule);
std::vector<std::string> tileNames(std::string_view schedule);
/// Whether a tile parameter may be 0: a choice, or a size of nothing at all.
bool mayBeZero(std::string_view schedule, std::string_view tile);
/// One sentence about a schedule.
std::string summary(std::string_view schedule);
/// The kernel builders that exist: `flash_mma_sync`.
std::vector<std::string> kernelNames();

} // namespace attn

#endif // ATTN_SCHEDULE_PLAN_H
