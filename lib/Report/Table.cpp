//===- Table.cpp - Plans and machines in columns --------------------------===//

#include "attn/Report/Report.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace attn;
using llvm::format;

static constexpr size_t kRows = 10;

std::string attn::describe(const Problem &p) {
  std::string text = std::string(name(p.dtype));
  if (p.dtype == DataType::f32)
    text += " as " + std::string(name(p.precision));
  text += ", batch " + std::to_string(p.batch) + ", " +
          std::to_string(p.heads) + " heads";
  if (p.kvHeads != p.heads)
    text += " (" + std::to_string(p.kvHeads) + " of k and v)";
  text += ", " + std::to_string(p.queries) + " queries, " +
          std::to_string(p.keys) + " keys, head dim " +
          std::to_string(p.headDim);
  if (p.headDimV != p.headDim)
    text += " (" + std::to_string(p.headDimV) + " of v)";
  if (!p.mask.isOpen())
    text += ", " + str(p.mask);
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
  std::string text;
  llvm::raw_string_ostream(text) << format("%.4g ", value) << *units;
  return text;
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

std::string attn::timesText(const PlanReport &report) {
  if (report.timesOf == report.machine.name)
    return "";
  return "nobody has timed kernels on " + report.machine.name +
         ": times borrow the constants of " + report.timesOf;
}

const Plan *attn::chosen(const PlanReport &report) {
  if (const Plan *best = report.best())
    return best;
  return report.plans.empty() ? nullptr : &report.plans.front();
}

namespace {

/// Rows of text; columns are as wide as their widest cell.
class Columns {
public:
  void row(std::initializer_list<std::string> cells) {
    rows.emplace_back(cells);
    widths.resize(std::max(widths.size(), cells.size()));
    for (auto [width, cell] : llvm::zip(widths, cells))
      width = std::max(width, cell.size());
  }
  void print(llvm::raw_ostream &out) const {
    for (const auto &row : rows) {
      std::string line;
      for (auto [cell, width] : llvm::zip(row, widths))
        line += cell + std::string(width - cell.size() + 2, ' ');
      out << llvm::StringRef(line).rtrim() << '\n';
    }
  }

private:
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
};

} // namespace

static std::string number(const char *form, double value) {
  std::string text;
  llvm::raw_string_ostream(text) << format(form, value);
  return text;
}

void attn::renderTable(llvm::raw_ostream &out, const Packing &packing,
                       const PlanReport &report) {
  out << describe(packing.asked) << " on " << report.machine.name << ": "
      << llvm::StringRef(name(report.regime)) << ", at least "
      << bytesText(report.lowerBoundBytes) << '\n';
  if (std::string sentence = packing.str(); !sentence.empty())
    out << sentence << '\n';
  if (std::string sentence = timesText(report); !sentence.empty())
    out << sentence << '\n';
  out << '\n';
  Columns table;
  table.row({"schedule", "tiles", "kernel", "time", "bound by", "TFLOP/s",
             "hbm", "l2", "smem", "smem/block", "registers", "blocks/SM"});
  for (size_t i = 0; i < std::min(kRows, report.plans.size()); ++i) {
    const Plan &plan = report.plans[i];
    double rate = usefulFlops(report.problem) / plan.seconds / 1e12;
    table.row({plan.schedule, plan.tiles.str(),
               plan.kernel.empty() ? "-" : plan.kernel,
               secondsText(plan.seconds), plan.boundBy, number("%.4g", rate),
               bytesText(plan.bytes.hbm), bytesText(plan.bytes.l2),
               bytesText(plan.bytes.smem),
               std::to_string(plan.footprint.smemBytes),
               std::to_string(plan.footprint.registersPerThread),
               std::to_string(plan.footprint.blocksPerSm)});
  }
  table.print(out);
  out << '\n';
  if (report.plans.size() > kRows)
    out << report.plans.size() - kRows << " more plans; ";
  out << report.refused.size() << " refused; --explain says why\n";
}

void attn::renderMachines(llvm::raw_ostream &out) {
  Columns table;
  table.row({"machine", "chip", "tensor cores", "SMs", "smem/block", "L2",
             "memory", "memory rate", "16-bit TFLOP/s", "fp32 TFLOP/s",
             "source"});
  for (const Machine &m : machines())
    table.row({m.name, m.chip, std::string(name(m.family)),
               std::to_string(m.sms), bytesText(m.smemBytesPerBlock),
               bytesText(m.l2Bytes), bytesText(m.hbmBytes),
               number("%.4g TB/s", m.hbmBytesPerSecond / 1e12),
               m.tensor16FlopsPerClockPerSm > 0
                   ? number("%.4g", m.tensor16FlopsPerSecond() / 1e12)
                   : "-",
               number("%.4g", m.fp32FlopsPerSecond() / 1e12), m.source});
  table.print(out);
}
