//===- Table.cpp - Plans and machines in columns --------------------------===//

#include "Columns.h"
#include "MachineName.h"
#include "attn/Report/Survey.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/RaggedQueries.h"
#include "attn/Schedule/Registry.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

static constexpr size_t kRows = 10;

std::string attn::describe(const Problem &p) {
  std::string text = std::string(name(p.dtype));
  if (p.dtype == DataType::f32)
    text += " as " + std::string(name(p.precision));
  if (p.precision == Precision::f8_qk)
    text += " with q and k in f8e4m3";
  text += p.ragged ? ", " + std::to_string(p.batch) + " ragged sequences, "
                   : ", batch " + std::to_string(p.batch) + ", ";
  text += std::to_string(p.heads) + " heads";
  if (p.kvHeads != p.heads)
    text += " (" + std::to_string(p.kvHeads) + " of k and v)";
  text += ", " + std::to_string(p.queries) + " queries, " +
          std::to_string(p.keys) + " keys";
  if (p.ragged && !areKeysRagged(p))
    text += " of each (at most " + std::to_string(p.ragged->longest.queries) +
            " queries)";
  if (areKeysRagged(p))
    text += " (at most " + std::to_string(p.ragged->longest.queries) + " and " +
            std::to_string(p.ragged->longest.keys) + " each)";
  text += ", head dim " + std::to_string(p.headDim);
  if (p.valuesOfKeys)
    text += " (v is the first " + std::to_string(p.headDimV) + " of k)";
  else if (p.headDimV != p.headDim)
    text += " (" + std::to_string(p.headDimV) + " of v)";
  if (!p.mask.isOpen())
    text += ", " + str(p.mask);
  if (p.pattern)
    text += ", " + str(*p.pattern);
  if (p.place.any())
    text += ", " + str(p.place);
  if (p.alignment != kMaxAlignment)
    text += ", rows aligned to " + std::to_string(p.alignment) + " bytes";
  if (p.deterministic)
    text += ", deterministic";
  if (isEmpty(p))
    text += ", empty (planned with 1 in place of 0)";
  return text;
}

static std::string scaled(double value, double step, const char *const *units) {
  while (value >= step && units[1]) {
    value /= step;
    ++units;
  }
  return numberText("%.4g ", value) + *units;
}

std::string attn::bytesText(double bytes) {
  static const char *const units[] = {"B",   "KiB", "MiB",  "GiB",
                                      "TiB", "PiB", nullptr};
  return scaled(bytes, 1024, units);
}

std::string attn::secondsText(double seconds) {
  static const char *const units[] = {"us", "ms", "s", nullptr};
  return scaled(seconds * 1e6, 1000, units);
}

std::string attn::joulesText(double joules) {
  static const char *const units[] = {"uJ", "mJ", "J", "kJ", nullptr};
  return scaled(joules * 1e6, 1000, units);
}

std::string attn::timesText(const PlanReport &report) {
  if (report.timesOf == report.machine.name)
    return "";
  return "nobody has timed kernels on " + report.machine.name +
         ": times borrow the constants of " + report.timesOf;
}

/// Whether a plan is what would be built, or cannot be, or neither.
static Emphasis emphasisOf(const PlanReport &report, const Plan &plan) {
  if (&plan == chosen(report))
    return Emphasis::chosen;
  return plan.kernel.empty() ? Emphasis::faint : Emphasis::none;
}

/// What every table says of a plan: all cells but those of its footprint.
static std::vector<std::string> costCells(const PlanReport &report,
                                          const Plan &plan) {
  double rate = usefulFlops(report.problem) / plan.seconds / 1e12;
  return {secondsText(plan.seconds),        plan.boundBy,
          numberText("%.4g", rate),         bytesText(double(plan.bytes.hbm)),
          bytesText(double(plan.bytes.l2)), bytesText(double(plan.bytes.smem))};
}

/// One line a plan, and its tiles below.
static Columns narrowTable(const PlanReport &report, size_t count) {
  Columns table;
  table.row({"schedule", "kernel", "time", "bound by", "TFLOP/s", "hbm", "l2",
             "smem"},
            Emphasis::head);
  for (const Plan &plan : llvm::ArrayRef(report.plans).take_front(count)) {
    std::vector<std::string> cells = {
        plan.schedule,
        plan.kernel.empty() ? "-" : std::string(name(plan.family))};
    llvm::append_range(cells, costCells(report, plan));
    table.row(std::move(cells), emphasisOf(report, plan));
    table.note(plan.tiles.str());
  }
  return table;
}

/// Everything in one line.
static Columns wideTable(const PlanReport &report, size_t count) {
  Columns table;
  table.row({"schedule", "tiles", "kernel", "time", "bound by", "TFLOP/s",
             "hbm", "l2", "smem", "smem/block", "registers", "blocks/SM"},
            Emphasis::head);
  for (const Plan &plan : llvm::ArrayRef(report.plans).take_front(count)) {
    std::vector<std::string> cells = {plan.schedule, plan.tiles.str(),
                                      plan.kernel.empty() ? "-" : plan.kernel};
    llvm::append_range(cells, costCells(report, plan));
    cells.push_back(std::to_string(plan.footprint.smemBytes));
    cells.push_back(std::to_string(plan.footprint.registersPerThread));
    cells.push_back(std::to_string(plan.footprint.blocksPerSm));
    table.row(std::move(cells), emphasisOf(report, plan));
  }
  return table;
}

void attn::renderTable(llvm::raw_ostream &out, const Packing &packing,
                       const PlanReport &report, TableForm form) {
  bool isNarrow = form == TableForm::narrow;
  auto sentence = [&](const std::string &text) {
    if (!text.empty())
      out << (isNarrow ? wrapped(text, 2) : text) << '\n';
  };
  sentence(describe(packing.asked) + " on " + nameWithFacts(report.machine) +
           ": " + std::string(name(report.regime)) + ", at least " +
           bytesText(double(report.lowerBoundBytes)));
  sentence(packing.str());
  sentence(timesText(report));
  out << '\n';
  if (isNarrow)
    narrowTable(report, kRows).print(out);
  else if (form == TableForm::wide)
    wideTable(report, kRows).print(out);
  else
    wideTable(report, kRows).printMarkdown(out);
  out << '\n';
  if (report.plans.size() > kRows)
    out << report.plans.size() - kRows << " more plans; ";
  out << report.refused.size() << " refused; --explain says why\n";
}

void attn::renderMachines(llvm::raw_ostream &out) {
  Columns table;
  table.row({"machine", "chip", "tensor cores", "SMs", "smem/block", "L2",
             "memory", "memory rate", "16-bit TFLOP/s", "fp32 TFLOP/s",
             "source"},
            Emphasis::head);
  for (const Machine &m : machines())
    table.row({m.name, m.chip, std::string(name(m.family)),
               std::to_string(m.sms), bytesText(m.smemBytesPerBlock),
               bytesText(m.l2Bytes), bytesText(m.hbmBytes),
               numberText("%.4g TB/s", m.hbmBytesPerSecond / 1e12),
               m.tensor16FlopsPerClockPerSm > 0
                   ? numberText("%.4g", m.tensor16FlopsPerSecond() / 1e12)
                   : "-",
               numberText("%.4g", m.fp32FlopsPerSecond() / 1e12), m.source});
  table.print(out);
}
