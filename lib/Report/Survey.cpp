//===- Survey.cpp - One problem, many machines and types ------------------===//

#include "attn/Report/Survey.h"
#include "Columns.h"
#include "MachineName.h"
#include "attn/Schedule/Advice.h"
#include "attn/Schedule/Time.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

std::string attn::whyNothingFits(const PlanReport &report) {
  if (const Refused *nearest = nearestFit(report))
    return nearest->schedule + " " + nearest->reason;
  if (!report.refused.empty())
    return report.refused.front().schedule + " " +
           report.refused.front().reason;
  return "no schedule takes it";
}

SurveyCell attn::surveyCell(const Problem &problem, const Machine &machine) {
  SurveyCell cell;
  cell.machine = machine;
  cell.problem = problem;
  if (auto sentence = check(problem)) {
    cell.whyNot = *sentence;
    return cell;
  }
  PlanReport report = plans(packing(problem).problem, machine);
  cell.regime = report.regime;
  cell.lowerBounds = report.lowerBounds;
  cell.timesOf = report.timesOf;
  cell.exponent =
      exponentOf(problem, double(cacheWords(report.problem, machine)));
  if (const Plan *plan = chosen(report)) {
    cell.plan = *plan;
    cell.gains = gains(report);
  } else {
    cell.whyNot = whyNothingFits(report);
  }
  return cell;
}

//===----------------------------------------------------------------------===//
// Cells of the tables
//===----------------------------------------------------------------------===//

using Cells = std::vector<std::string>;

static std::string typeText(const Problem &problem) {
  return std::string(name(problem.dtype));
}

static std::string factorText(double value) {
  return numberText("%.2f", value);
}

/// How many times its bound each level moves.
static Cells boundCells(const SurveyCell &cell) {
  auto times = [](int64_t bytes, int64_t bound) {
    return factorText(double(bytes) / double(std::max<int64_t>(1, bound)));
  };
  const Bytes &bytes = cell.plan.bytes, &bound = cell.lowerBounds;
  return {times(bytes.hbm, bound.hbm), times(bytes.l2, bound.l2),
          times(bytes.smem, bound.smem)};
}

static std::string limitText(const SurveyCell &cell) {
  const Gain *limit = limitOf(cell.gains);
  return limit ? limit->resource->label : "-";
}

/// What twice as much buys, of the resources with these names.
static Cells gainCells(const SurveyCell &cell,
                       llvm::ArrayRef<llvm::StringRef> names) {
  Cells cells;
  for (llvm::StringRef name : names)
    for (const Gain &gain : cell.gains)
      if (name == gain.resource->name)
        cells.push_back(factorText(gain.speedup));
  return cells;
}

static Cells exponentCells(const SurveyCell &cell) {
  if (!cell.exponent)
    return {"-", "-"};
  return {factorText(cell.exponent->beta),
          factorText(cell.exponent->savesByHalving())};
}

static Cells energyCells(const SurveyCell &cell) {
  Energy energy = cell.energy();
  return {joulesText(energy.hbm), joulesText(energy.l2),
          joulesText(energy.smem)};
}

static Cells joined(std::initializer_list<Cells> parts) {
  Cells all;
  for (const Cells &part : parts)
    llvm::append_range(all, part);
  return all;
}

static Cells nameCells(const SurveyCell &cell) {
  return {nameWithFacts(cell.machine), typeText(cell.problem)};
}

static Emphasis emphasisOf(const SurveyCell &cell) {
  return cell.hasPlan() && !cell.plan.kernel.empty() ? Emphasis::none
                                                     : Emphasis::faint;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// What a cell's plan costs.
static Columns costTable(const std::vector<SurveyCell> &cells) {
  Columns table;
  table.row({"machine", "type", "schedule", "time", "bound by", "regime", "hbm",
             "l2", "smem", "energy"},
            Emphasis::head);
  for (const SurveyCell &cell : cells) {
    if (!cell.hasPlan()) {
      table.row(joined({nameCells(cell), {"-"}}), Emphasis::faint);
      table.note(cell.whyNot);
      continue;
    }
    llvm::StringRef regime(name(cell.regime));
    table.row(joined({nameCells(cell),
                      {cell.plan.schedule, secondsText(cell.plan.seconds),
                       cell.plan.boundBy, regime.split('_').first.str()},
                      boundCells(cell),
                      {joulesText(cell.energy().joules())}}),
              emphasisOf(cell));
  }
  return table;
}

static constexpr llvm::StringRef kShown[] = {"shared_memory", "hbm_rate",
                                             "l2_rate", "tensor_rate"};

/// What more of something would buy.
static Columns gainTable(const std::vector<SurveyCell> &cells) {
  Columns table;
  table.row({"machine", "type", "limited by", "2x smem", "2x hbm/s", "2x l2/s",
             "2x tensor", "beta", "halving"},
            Emphasis::head);
  for (const SurveyCell &cell : cells)
    if (cell.hasPlan())
      table.row(joined({nameCells(cell),
                        {limitText(cell)},
                        gainCells(cell, kShown),
                        exponentCells(cell)}),
                emphasisOf(cell));
  return table;
}

static Columns wholeTable(const std::vector<SurveyCell> &cells) {
  Columns table;
  Cells head = {"machine",   "type",        "schedule",  "kernel",
                "time",      "TFLOP/s",     "bound by",  "regime",
                "hbm",       "l2",          "smem",      "hbm energy",
                "l2 energy", "smem energy", "limited by"};
  std::vector<llvm::StringRef> names;
  for (const Resource &resource : resources()) {
    head.push_back(std::string("2x ") + resource.label);
    names.push_back(resource.name);
  }
  llvm::append_range(head, Cells{"beta", "halving"});
  table.row(head, Emphasis::head);
  for (const SurveyCell &cell : cells) {
    if (!cell.hasPlan()) {
      table.row(joined({nameCells(cell), {"-", cell.whyNot}}), Emphasis::faint);
      continue;
    }
    const Plan &plan = cell.plan;
    double rate = usefulFlops(cell.problem) / plan.seconds / 1e12;
    table.row(joined({nameCells(cell),
                      {plan.schedule, plan.kernel.empty() ? "-" : plan.kernel,
                       secondsText(plan.seconds), numberText("%.4g", rate),
                       plan.boundBy, std::string(name(cell.regime))},
                      boundCells(cell),
                      energyCells(cell),
                      {limitText(cell)},
                      gainCells(cell, names),
                      exponentCells(cell)}),
              emphasisOf(cell));
  }
  return table;
}

/// What the columns mean, and where their constants come from.
static void explainColumns(llvm::raw_ostream &out,
                           const std::vector<SurveyCell> &cells, bool isTwo) {
  auto sentence = [&](const std::string &text) {
    out << (isTwo ? wrapped(text, 2) : text) << '\n';
  };
  sentence("hbm, l2 and smem are bytes as multiples of the lower bound; energy "
           "is that of transfers (" +
           std::string(kEnergySource) + ")");
  sentence("2x: how many times as fast with twice as much, with tiles chosen "
           "anew; bytes of the ideal schedule go with M^-beta, and fall by "
           "halving = 2^(1 + beta) with elements of half the bytes");
  std::vector<std::string> borrowed;
  for (const SurveyCell &cell : cells)
    if (cell.hasPlan() && cell.timesOf != cell.machine.name &&
        !llvm::is_contained(borrowed, cell.machine.name))
      borrowed.push_back(cell.machine.name);
  std::string names;
  for (const std::string &name : borrowed)
    names += (names.empty() ? "" : ", ") + name;
  if (!names.empty())
    sentence("nobody has timed kernels on " + names +
             ": their times borrow the constants of a machine that somebody "
             "has timed");
}

void attn::renderSurvey(llvm::raw_ostream &out,
                        const std::vector<SurveyCell> &cells, TableForm form) {
  std::string what = describe(cells.front().problem);
  // Its type is that of one cell.
  what = what.substr(what.find("batch"));
  bool isNarrow = form == TableForm::narrow;
  out << (isNarrow ? wrapped(what, 2) : what) << "\n\n";
  if (isNarrow) {
    costTable(cells).print(out);
    out << '\n';
    gainTable(cells).print(out);
  } else if (form == TableForm::wide) {
    wholeTable(cells).print(out);
  } else {
    wholeTable(cells).printMarkdown(out);
  }
  out << '\n';
  explainColumns(out, cells, isNarrow);
}
