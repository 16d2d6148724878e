//===- SelectSchedule.cpp - Decide how each op is computed ----------------===//
//
// A client of the cost model: it turns ops into problems, plans into
// attributes, and reasons into diagnostics.  Every number is the plan's.
//
//===----------------------------------------------------------------------===//

#include "attn/Transforms/SelectSchedule.h"

#include "attn/IR/OpenSizes.h"
#include "attn/IR/Packing.h"
#include "attn/IR/RegionCost.h"
#include "attn/Schedule/Advice.h"
#include "attn/Schedule/Registry.h"
#include "attn/Transforms/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {
#define GEN_PASS_DEF_SELECTSCHEDULEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static std::string decision(const Plan &plan) {
  return attn::decision(plan.schedule, plan.tiles);
}

static std::string duration(double seconds) {
  if (seconds < 1e-3)
    return llvm::formatv("{0:f1} us", seconds * 1e6);
  return llvm::formatv("{0:f2} ms", seconds * 1e3);
}

/// The machines on which some plan has a kernel.
static std::string machinesThatFit(const Problem &problem) {
  SmallVector<StringRef> names;
  for (const Machine &machine : machines())
    if (plans(problem, machine).best())
      names.push_back(machine.name);
  if (names.empty())
    return "none";
  const Machine *smallest = smallestMachine(problem, /*hasKernel=*/true);
  return llvm::join(names, ", ") + "; the smallest is " + smallest->name +
         " with " + std::to_string(smallest->smemBytesPerBlock) + " bytes";
}

/// Why nothing fits: of schedules with a kernel, reasons that differ only in
/// their numbers are told once for each family, whose kernels have needs of
/// their own; then what would fit.
static void noteRefused(InFlightDiagnostic &error, const PlanReport &report) {
  for (const Plan &plan : report.plans)
    if (plan.kernel.empty()) {
      error.attachNote() << decision(plan) << " fits, but has no kernel yet";
      break;
    }
  llvm::StringSet<> told;
  for (const Refused &refused : report.refused) {
    if (refused.kernel.empty())
      continue;
    std::string reason = (Twine(refused.schedule) +
                          StringRef(name(refused.family)) + refused.reason)
                             .str();
    llvm::erase_if(reason, [](char c) { return llvm::isDigit(c); });
    if (told.insert(reason).second)
      error.attachNote() << attn::decision(refused.schedule, refused.tiles)
                         << ": " << refused.reason;
  }
  if (const Refused *nearest = nearestFit(report, /*hasKernel=*/true))
    error.attachNote() << "nearest to fitting: "
                       << attn::decision(nearest->schedule, nearest->tiles)
                       << " needs " << nearest->smemBytes
                       << " bytes of shared memory";
  error.attachNote() << "known machines that fit: "
                     << machinesThatFit(report.problem);
}

//===----------------------------------------------------------------------===//
// Decide
//===----------------------------------------------------------------------===//

/// Prices a schedule that somebody wrote; an error if it cannot be built.
static FailureOr<Plan> planOfGiven(AttentionOpInterface op, ScheduleAttr given,
                                   const Problem &problem,
                                   const Machine &machine) {
  std::string reason;
  std::optional<Plan> plan =
      planFor(problem, machine, given.getName().str(), given.tiles(), reason);
  if (plan && !plan->kernel.empty())
    return *plan;
  InFlightDiagnostic error = op->emitOpError("expects a schedule that ");
  if (plan)
    error << "has a kernel, but got " << decision(*plan) << " on "
          << machine.name;
  else
    error << "fits " << machine.name << ", but got "
          << attn::decision(given.getName().str(), given.tiles()) << ": "
          << reason;
  PlanReport report = plans(problem, machine);
  if (const Plan *best = report.best())
    error.attachNote() << "the best that fits: " << decision(*best);
  return error;
}

static FailureOr<Plan> bestPlan(AttentionOpInterface op, const Problem &problem,
                                const Machine &machine) {
  PlanReport report = plans(problem, machine);
  if (const Plan *best = report.best())
    return *best;
  InFlightDiagnostic error = op->emitOpError("expects a schedule that fits ")
                             << machine.name
                             << " and has a kernel, but got none";
  noteRefused(error, report);
  return error;
}

FailureOr<Plan> attn::choosePlan(AttentionOpInterface op,
                                 const Machine &machine, ScheduleAttr given,
                                 DynamicSizes assumed) {
  if (failed(refuseClauses(op)))
    return failure();
  Packing packing = packingOf(op, assumed);
  if (std::optional<std::string> error = check(packing.asked))
    return op->emitOpError(*error);
  Machine room = machineForPlans(op, machine);
  return given ? planOfGiven(op, given, packing.problem, room)
               : bestPlan(op, packing.problem, room);
}

std::string attn::textOf(ScheduleAttr schedule) {
  return attn::decision(schedule.getName().str(), schedule.tiles());
}

/// Which tiles ask a region of `sees`.
static StringRef askedIn(const Problem &problem) {
  if (problem.pattern)
    return " of partial blocks";
  return problem.bands.isEmpty() ? " of every visited tile"
                                 : " of tiles that are cut, along runs";
}

/// What was chosen, what binds it, the runner-up, and what would be faster.
static void explainChoice(AttentionOpInterface op, const Packing &packing,
                          const Plan &chosen, const PlanReport &report) {
  InFlightDiagnostic remark = op->emitRemark();
  remark << decision(chosen) << ": predicted " << duration(chosen.seconds)
         << " on " << report.machine.name << ", bound by " << chosen.boundBy;
  if (std::string sentence = packing.str(); !sentence.empty())
    remark.attachNote() << sentence;
  const ScoreClauses &clauses = packing.problem.clauses;
  if (clauses.sees)
    remark.attachNote() << "sees costs " << str(clauses.seesCost)
                        << askedIn(packing.problem);
  if (clauses.score)
    remark.attachNote() << "score costs " << str(clauses.scoreCost);
  const Plan *faster = nullptr, *runnerUp = nullptr;
  for (const Plan &plan : report.plans) {
    if (plan.schedule == chosen.schedule && plan.tiles == chosen.tiles)
      continue;
    bool isSlower = plan.seconds >= chosen.seconds;
    if (!isSlower && !faster)
      faster = &plan;
    if (isSlower && !runnerUp)
      runnerUp = &plan;
  }
  if (faster)
    remark.attachNote() << "faster: " << decision(*faster) << ": predicted "
                        << duration(faster->seconds)
                        << (faster->kernel.empty() ? ", but has no kernel yet"
                                                   : ", but was not asked for");
  if (runnerUp)
    remark.attachNote() << "runner-up: " << decision(*runnerUp) << ": "
                        << whyLost(*runnerUp, chosen);
}

namespace {
struct SelectSchedulePass
    : attn::impl::SelectSchedulePassBase<SelectSchedulePass> {
  using SelectSchedulePassBase::SelectSchedulePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ScheduleAttr wanted;
    if (!schedule.empty()) {
      wanted = llvm::dyn_cast_or_null<ScheduleAttr>(
          parseAttribute("#attn.schedule<" + schedule + ">", &getContext()));
      if (!wanted) {
        emitError(module.getLoc(), "expects the option schedule to be a "
                                   "schedule, but got '")
            << schedule << "'";
        return signalPassFailure();
      }
    }
    // Gradients and attention have schedules of their own; where no op is of
    // the schedule's direction, all refuse it.
    const ScheduleKind *kind =
        wanted ? findScheduleKind(wanted.getName().str()) : nullptr;
    auto isMeant = [&](AttentionOpInterface op) {
      return kind && kind->direction == op.direction();
    };
    bool isForSome = module
                         .walk([&](AttentionOpInterface op) {
                           return isMeant(op) ? WalkResult::interrupt()
                                              : WalkResult::advance();
                         })
                         .wasInterrupted();
    bool failedOnce = false;
    module.walk([&](AttentionOpInterface op) {
      ScheduleAttr given = isMeant(op) || !isForSome ? wanted : ScheduleAttr();
      failedOnce |= failed(select(op, given));
    });
    if (failedOnce)
      signalPassFailure();
  }

private:
  LogicalResult select(AttentionOpInterface op, ScheduleAttr wanted) {
    std::optional<Machine> machine = machineFor(op);
    if (!machine)
      return op->emitOpError("expects a module with '")
             << machineAttrName
             << "', but got none: run -attn-attach-machine first";
    DynamicSizes assumed = {assumeBatch, assumeRows};
    ScheduleAttr given = op.getScheduleAttr() ? op.getScheduleAttr() : wanted;
    FailureOr<Plan> plan = choosePlan(op, *machine, given, assumed);
    if (failed(plan))
      return failure();
    op.setScheduleAttr(
        ScheduleAttr::get(&getContext(), plan->schedule, plan->tiles));
    if (!explain)
      return success();
    Packing packing = packingOf(op, assumed);
    explainChoice(op, packing, *plan,
                  plans(packing.problem, machineForPlans(op, *machine)));
    return success();
  }
};
} // namespace
