//===- Choice.h - Is a choice possible, and what does it occupy? -*- C++
//-*-===//
///
/// One schedule, on one family of tensor cores, with one set of tiles, for one
/// problem and machine: what its form says of it, whether it fits, and why not.
/// Nothing here knows how long anything takes.
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_PLAN_CHOICE_H
#define ATTN_LIB_SCHEDULE_PLAN_CHOICE_H

#include "attn/Schedule/Families.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"

namespace attn {

inline constexpr TensorCoreFamily kTensorCores[] = {TensorCoreFamily::tcgen05,
                                                    TensorCoreFamily::wgmma,
                                                    TensorCoreFamily::mmaSync};

/// Whether a form accepts a problem.
bool takes(const Form &form, const Problem &problem);
/// The form of a schedule for a family: the first that accepts the problem, or
/// else the first.
const Form *formFor(const ScheduleKind &kind, TensorCoreFamily family,
                    const Problem &problem);
/// Those that are priced beside it.
std::vector<const Form *> rivalsFor(const ScheduleKind &kind,
                                    TensorCoreFamily family,
                                    const Problem &problem);
/// Why a schedule cannot run on a family here.
std::optional<std::string> checkFamilyOf(const ScheduleKind &kind,
                                         TensorCoreFamily family,
                                         const Problem &problem,
                                         const Machine &machine);
/// The families on which a schedule can run.  The FMA pipes, which every
/// machine has, are for what no tensor core takes.
std::vector<TensorCoreFamily> familiesFor(const ScheduleKind &kind,
                                          const Problem &problem,
                                          const Machine &machine);
/// The kernel of a schedule on a family, or empty if there is none.
std::string kernelFor(const ScheduleKind &kind, TensorCoreFamily family);

/// Where a choice is made: one schedule on one family.
struct Space {
  const ScheduleKind &kind;
  TensorCoreFamily family;
  const Problem &problem;
  const Machine &machine;
  const Form &form;
  std::string kernel = kernelFor(kind, family);

  /// The kernel for tiles, if there is one.
  std::string kernelOf(const Tiles &tiles) const {
    bool isWritten = problem.precision != Precision::f8_qk &&
                     (!form.hasKernel || form.hasKernel(problem, tiles));
    bool lacks = lacksLists() || lacksClauses() || lacksSums() ||
                 lacksRagged() || lacksPlace() || lacksScales();
    return isWritten && !lacks ? kernel : "";
  }
  /// Whether there is a kernel, but none for a pattern.
  bool lacksLists() const {
    return problem.pattern && !kernel.empty() && !walksLists(kernel);
  }
  /// The same for what clauses make of scores.
  bool lacksClauses() const {
    return problem.clauses.any() && !kernel.empty() && !takesClauses(kernel);
  }
  /// The same for sequences that lie one behind the other.
  bool lacksRagged() const {
    return problem.ragged && !kernel.empty() && !takesRagged(kernel);
  }
  /// The same for rows that lie where the device says.
  bool lacksPlace() const {
    return problem.place.any() && !kernel.empty() && !locatesRows(kernel);
  }
  /// The same for scales of operands.
  bool lacksScales() const {
    return problem.scales.any() && !kernel.empty() && !takesScales(kernel);
  }
  /// The same for gradients of captures that are one for a head.
  bool lacksSums() const {
    return problem.clauses.headGradients > 0 && !kernel.empty() &&
           !sumsOfHeads(kernel);
  }
};

/// What is known of a choice before it is priced.
struct CheckedChoice {
  bool isChoice = false;
  /// Why it is none, if there is a reason to tell.
  std::optional<std::string> noChoice;
  /// Why it is not possible here.
  std::optional<std::string> refusal;
  Schedule schedule;
  Footprint needed;
};

/// Of tiles that say everything; `given` are those that somebody asked for.
CheckedChoice checkedChoice(const Space &space, const Tiles &tiles,
                            const Tiles &given);

/// What each launch occupies.
std::vector<Footprint> launchFootprints(const Schedule &schedule,
                                        const Problem &problem,
                                        const Machine &machine);

/// Why no family here has all these tiles: one is unknown, two belong to
/// different families, or the family that has them cannot be used.
std::string whyNoFamily(const ScheduleKind &kind, const Tiles &tiles,
                        const Problem &problem, const Machine &machine);
/// `a, b, c`.
std::string join(const std::vector<std::string> &names);

} // namespace attn

#endif
