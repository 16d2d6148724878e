//===- Page.cpp - A plan as one page of HTML ------------------------------===//

#include "attn/Report/Page.h"
#include "Columns.h"
#include "MachineName.h"
#include "PageStyle.h"
#include "Reasons.h"
#include "attn/Report/Pictures.h"
#include "attn/Schedule/Advice.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Time.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

/// Of more candidates the fastest are told.
static constexpr size_t kMostCandidates = 500;

static std::string escaped(llvm::StringRef text) {
  std::string safe;
  llvm::raw_string_ostream stream(safe);
  llvm::printHTMLEscaped(text, stream);
  return safe;
}

namespace {

/// A cell as it is read and as it is sorted.
struct Cell {
  std::string text, value;
  bool isNumber = false;

  Cell(std::string words) : text(words), value(std::move(words)) {}
  Cell(std::string text, double value)
      : text(std::move(text)), value(numberText("%.9g", value)),
        isNumber(true) {}
  Cell(int64_t value) : Cell(std::to_string(value), double(value)) {}
};

class Page {
public:
  Page(llvm::raw_ostream &out, const Packing &packing, const PlanReport &report,
       const Plan &plan)
      : out(out), packing(packing), report(report), plan(plan) {}

  void print() {
    head();
    summary();
    bounds();
    time();
    picture("schedule", "The schedule", diagramSvg(report, plan));
    picture("timeline", "A tile in time", timelineSvg(report, plan));
    pseudocode();
    rivals();
    candidates();
    refused();
    out << "<script>" << kPageScript << "</script>\n</body>\n</html>\n";
  }

private:
  llvm::raw_ostream &out;
  const Packing &packing;
  const PlanReport &report;
  const Plan &plan;

  std::string title() const {
    return plan.schedule + " on " + nameWithFacts(report.machine) + ": " +
           secondsText(plan.seconds);
  }

  void head() {
    out << "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" "
           "lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
           "<meta name=\"viewport\" content=\"width=device-width, "
           "initial-scale=1\"/>\n<title>"
        << escaped(title()) << "</title>\n<style>" << kPageStyle
        << "</style>\n</head>\n<body>\n";
  }

  void section(const char *id, llvm::StringRef words) {
    out << "<h2 id=\"" << id << "\">" << escaped(words) << "</h2>\n";
  }
  void paragraph(llvm::StringRef words, const char *kind = "") {
    if (!words.empty())
      out << "<p class=\"" << kind << "\">" << escaped(words) << "</p>\n";
  }

  void row(llvm::ArrayRef<Cell> cells, const char *kind) {
    out << "<tr class=\"" << kind << "\">";
    for (const Cell &cell : cells)
      out << "<td class=\"" << (cell.isNumber ? "number" : "")
          << "\" data-value=\"" << escaped(cell.value) << "\">"
          << escaped(cell.text) << "</td>";
    out << "</tr>\n";
  }
  /// Heads of columns of numbers begin with a blank.
  void beginTable(llvm::ArrayRef<llvm::StringRef> heads, bool isSortable) {
    out << "<div class=\"wide" << (isSortable ? " tall" : "")
        << "\"><table class=\"" << (isSortable ? "sortable" : "")
        << "\">\n<thead><tr>";
    for (llvm::StringRef head : heads) {
      out << "<th class=\"" << (head.starts_with(" ") ? "number" : "") << "\">"
          << (isSortable ? "<button type=\"button\">" : "")
          << escaped(head.trim()) << (isSortable ? "</button>" : "") << "</th>";
    }
    out << "</tr></thead>\n<tbody>\n";
  }
  void endTable() { out << "</tbody></table></div>\n"; }

  void summary() {
    out << "<h1>" << escaped(title()) << "</h1>\n";
    double rate = usefulFlops(report.problem) / plan.seconds / 1e12;
    paragraph(describe(packing.asked));
    paragraph(packing.str());
    const Machine &m = report.machine;
    paragraph(numberText("%.4g", rate) + " TFLOP/s, bound by " +
              binding(plan.time, plan.family).label + "; " +
              (plan.kernel.empty() ? "no kernel is written for it yet"
                                   : "the kernel is " + plan.kernel));
    out << "<p>Tiles: <code>" << escaped(plan.tiles.str()) << "</code></p>\n";
    paragraph(m.name + " (" + m.chip + "): " + std::to_string(m.sms) +
                  " multiprocessors, " + std::to_string(m.smemBytesPerBlock) +
                  " bytes of shared memory per block, " +
                  std::string(name(m.family)),
              "faint");
    paragraph(timesText(report), "faint");
  }

  void bounds() {
    section("bounds", "Regime and lower bounds");
    int64_t d = std::max(report.problem.headDim, report.problem.headDimV);
    int64_t m = cacheWords(atLeastOne(report.problem), report.machine);
    bool isLarge = report.regime == Regime::largeCache;
    paragraph("The cache is " + std::string(isLarge ? "large" : "small") +
              ": M = " + std::to_string(m) + (isLarge ? " >= " : " < ") +
              "d^2 = " + std::to_string(d * d) +
              ", M being elements of shared memory per block.");
    beginTable({"level", " at least", " moved", " times the bound"}, false);
    auto level = [&](const char *what, int64_t bytes, int64_t bound) {
      double times = double(bytes) / double(std::max<int64_t>(1, bound));
      row({std::string(what), Cell(bytesText(double(bound)), double(bound)),
           Cell(bytesText(double(bytes)), double(bytes)),
           Cell(numberText("%.2f", times), times)},
          "");
    };
    level("hbm: memory and L2", plan.bytes.hbm, report.lowerBounds.hbm);
    level("l2: L2 and multiprocessors", plan.bytes.l2, report.lowerBounds.l2);
    level("smem: shared memory and registers", plan.bytes.smem,
          report.lowerBounds.smem);
    endTable();
  }

  void time() {
    section("time", "Time");
    paragraph("Resources run beside each other; the terms below them come on "
              "top of the longest.",
              "faint");
    double longest = 0;
    for (const TimeTerm &term : timeTerms(plan.family))
      longest = std::max(longest, plan.time.*term.seconds);
    out << "<div class=\"bars\">\n";
    for (const TimeTerm &term : timeTerms(plan.family)) {
      double seconds = plan.time.*term.seconds;
      const char *binds = plan.boundBy == term.name ? "binds" : "";
      out << "<span class=\"" << binds << "\">" << term.label
          << "</span><span class=\"" << binds << " bar\" style=\"width: "
          << numberText("%.1f", 100 * seconds / longest)
          << "%\"></span><span class=\"" << binds << "\">"
          << secondsText(seconds) << "</span>\n";
    }
    out << "</div>\n";
  }

  /// A picture stays on its paper, in the dark too.
  void picture(const char *id, const char *words, const std::string &svg) {
    section(id, words);
    out << "<div class=\"wide picture\">" << svg << "</div>\n";
  }

  void pseudocode() {
    section("pseudocode", "Pseudocode");
    Schedule schedule = findScheduleKind(plan.schedule)->build(plan.tiles);
    out << "<div class=\"wide\"><pre>"
        << escaped(attn::pseudocode(schedule, atLeastOne(report.problem)))
        << "</pre></div>\n";
  }

  void candidates() {
    section("candidates", "Candidates");
    size_t count = std::min(report.plans.size(), kMostCandidates);
    paragraph(std::to_string(report.plans.size()) +
                  " choices are possible; the fastest " +
                  std::to_string(count) + " stand below. A head sorts by it.",
              "faint");
    beginTable({" #", "schedule", "kernel", " time", "bound by", " hbm", " l2",
                " smem", " smem/block", " registers", " blocks/SM", "tiles"},
               true);
    auto bytes = [](int64_t count) {
      return Cell(bytesText(double(count)), double(count));
    };
    for (size_t i = 0; i < count; ++i) {
      const Plan &one = report.plans[i];
      row({Cell(int64_t(i) + 1), one.schedule,
           one.kernel.empty() ? std::string("-") : one.kernel,
           Cell(secondsText(one.seconds), one.seconds), one.boundBy,
           bytes(one.bytes.hbm), bytes(one.bytes.l2), bytes(one.bytes.smem),
           one.footprint.smemBytes, one.footprint.registersPerThread,
           one.footprint.blocksPerSm, one.tiles.str()},
          &one == &plan        ? "chosen"
          : one.kernel.empty() ? "unbuilt"
                               : "");
    }
    endTable();
  }

  void rivals() {
    section("rivals", "Those that lost");
    for (const Rival &rival : rivalsOf(report, plan))
      out << "<details" << (rival.isRunnerUp ? " open=\"open\"" : "")
          << "><summary>" << (rival.isRunnerUp ? "Runner-up " : "")
          << escaped(rival.plan->schedule) << ": " << escaped(rival.why)
          << "</summary><p><code>" << escaped(rival.plan->tiles.str())
          << "</code></p></details>\n";
  }

  void refused() {
    section("refused", "Refused");
    paragraph(std::to_string(report.refused.size()) +
                  " choices are not possible. Reasons that differ only in "
                  "their numbers are told once.",
              "faint");
    for (const RefusedGroup &group : groupsOfRefused(report))
      out << "<details><summary>" << group.count << " x "
          << escaped(group.example->schedule) << ": "
          << escaped(group.example->reason) << "</summary><p>for example <code>"
          << escaped(group.example->tiles.str()) << "</code></p></details>\n";
  }
};

} // namespace

void attn::renderPage(llvm::raw_ostream &out, const Packing &packing,
                      const PlanReport &report) {
  Page(out, packing, report, *chosen(report)).print();
}
