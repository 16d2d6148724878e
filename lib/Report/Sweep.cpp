//===- Sweep.cpp - One problem, many sizes --------------------------------===//

#include "attn/Report/Sweep.h"
#include "Columns.h"
#include "MachineName.h"
#include "attn/Schedule/Advice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace attn;

SweepPoint attn::sweepPoint(int64_t value, const Problem &problem,
                            const Machine &machine) {
  SweepPoint point;
  point.value = value;
  point.problem = problem;
  point.machine = machine;
  if (auto sentence = check(problem))
    point.whyNot = *sentence;
  else if (auto other = check(machine))
    point.whyNot = *other;
  if (!point.whyNot.empty())
    return point;
  PlanReport report = plans(packing(problem).problem, machine);
  point.regime = report.regime;
  point.lowerBounds = report.lowerBounds;
  for (bool hasKernel : {true, false})
    for (const Plan &plan : report.plans)
      if (plan.kernel.empty() != hasKernel &&
          llvm::none_of(point.plans, [&](const Plan &other) {
            return other.schedule == plan.schedule;
          }))
        point.plans.push_back(plan);
  if (!point.hasPlan())
    point.whyNot = whyNothingFits(report);
  return point;
}

std::vector<std::string> Sweep::schedules() const {
  std::vector<std::string> found;
  for (const std::string &name : scheduleNames(problem().direction))
    if (llvm::any_of(points, [&](const SweepPoint &point) {
          return llvm::any_of(point.plans, [&](const Plan &plan) {
            return plan.schedule == name;
          });
        }))
      found.push_back(name);
  return found;
}

std::optional<int64_t> Sweep::takeover() const {
  std::optional<int64_t> found;
  for (const SweepPoint &point : points) {
    if (!point.hasPlan())
      continue;
    if (!isForSmallCache(point.plans.front().schedule))
      found = std::nullopt;
    else if (!found)
      found = point.value;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `head dim 64 to 2048`, of two texts that differ in a word.
static std::string fromTo(llvm::StringRef from, llvm::StringRef to) {
  llvm::SmallVector<llvm::StringRef> a, b;
  from.split(a, ' ');
  to.split(b, ' ');
  std::string text;
  for (size_t i = 0; i < a.size(); ++i) {
    text += (i ? " " : "") + a[i].str();
    if (i < b.size() && a[i] != b[i])
      text += " to " + b[i].str();
  }
  return text;
}

std::string attn::sweepTitle(const Sweep &sweep) {
  std::string first = describe(sweep.problem()),
              last = describe(sweep.points.back().problem);
  llvm::SmallVector<llvm::StringRef> a, b;
  llvm::StringRef(first).split(a, ", ");
  llvm::StringRef(last).split(b, ", ");
  std::string text;
  for (size_t i = 0; i < a.size(); ++i)
    text += (i ? ", " : "") + fromTo(a[i], i < b.size() ? b[i] : a[i]);
  // The swept fact has its range behind.
  Machine machine = sweep.machine();
  if (const Machine *row = findMachine(machine.name))
    if (std::optional<double> own = fieldValue(*row, sweep.field))
      (void)overrideField(machine, sweep.field, *own);
  text += " on " + nameWithFacts(machine);
  if (fieldValue(sweep.machine(), sweep.field))
    text += ", " + sweep.field + " " +
            std::to_string(sweep.points.front().value) + " to " +
            std::to_string(sweep.points.back().value);
  return text;
}

static Columns tableOf(const Sweep &sweep, bool isNarrow) {
  Columns table;
  std::vector<std::string> head = {sweep.field, "regime", "schedule",
                                   "kernel",    "time",   "TFLOP/s",
                                   "bound by",  "l2",     "x bound"};
  if (!isNarrow)
    head.push_back("tiles");
  table.row(head, Emphasis::head);
  for (const SweepPoint &point : sweep.points) {
    std::string value = std::to_string(point.value);
    if (!point.hasPlan()) {
      table.row({value, "-"}, Emphasis::faint);
      table.note(point.whyNot);
      continue;
    }
    const Plan &plan = point.plans.front();
    double least = double(std::max<int64_t>(1, point.lowerBounds.l2));
    std::vector<std::string> cells = {
        value,
        std::string(name(point.regime)),
        plan.schedule,
        plan.kernel.empty() ? "-" : std::string(name(plan.family)),
        secondsText(plan.seconds),
        numberText("%.4g", usefulFlops(point.problem) / plan.seconds / 1e12),
        plan.boundBy,
        bytesText(double(plan.bytes.l2)),
        numberText("%.2f", double(plan.bytes.l2) / least)};
    if (!isNarrow)
      cells.push_back(plan.tiles.str());
    table.row(cells, plan.kernel.empty() ? Emphasis::faint : Emphasis::none);
  }
  return table;
}

void attn::renderSweeps(llvm::raw_ostream &out,
                        const std::vector<Sweep> &sweeps, TableForm form) {
  bool isNarrow = form == TableForm::narrow;
  for (const Sweep &sweep : sweeps) {
    std::string what = sweepTitle(sweep);
    out << (isNarrow ? wrapped(what, 2) : what) << "\n\n";
    Columns table = tableOf(sweep, isNarrow);
    form == TableForm::markdown ? table.printMarkdown(out) : table.print(out);
    out << '\n';
    if (auto value = sweep.takeover())
      out << "schedules for small caches take over at " << sweep.field << " = "
          << *value << "\n";
    if (&sweep != &sweeps.back())
      out << '\n';
  }
}
