//===- Timeline.cpp - The picture of a tile's first steps -----------------===//

#include "MachineName.h"
#include "Svg.h"

#include "attn/Report/Pictures.h"
#include "attn/Report/Report.h"
#include "attn/Schedule/Diagram.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/SharedTiles.h"
#include "attn/Schedule/Timeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <algorithm>
#include <cmath>

using namespace attn;
using llvm::Twine;

namespace {

constexpr int64_t kMargin = 150, kWidth = 1000, kRow = 22, kBar = 18,
                  kBusy = 110;
/// Six steps of flash.
constexpr int64_t kMostJobs = 30;
constexpr const char *kNone = "none";

/// A unit's row; workers are light and dark in turn.
struct UnitLook {
  Unit unit;
  const char *name, *light, *dark, *line;
};
constexpr UnitLook kUnits[] = {
    {Unit::copies, "copies", "#ffe4bd", "#ffcf8f", "#9a4d00"},
    {Unit::helpers, "helper warps", "#f3dcef", "#e3b5da", "#7a2767"},
    {Unit::products, "tensor cores", "#dfeafb", "#a9c8f5", "#0a4a8f"},
    {Unit::arithmetic, "arithmetic", "#d9f0de", "#a0d8ad", "#14662a"},
    {Unit::results, "results", "#e6e8eb", "#c3c8ce", "#1f2328"}};

class Picture : Sheet {
public:
  Picture(const PlanReport &report, const Plan &plan)
      : Sheet(kMargin + kWidth + kBusy),
        problem(withSharedRows(atLeastOne(report.problem),
                               headsOfTile(plan.tiles))),
        report(report), plan(plan),
        schedule(findScheduleKind(plan.schedule)->build(plan.tiles)),
        launch(longest(plan)),
        shown(timeline(schedule, launch, problem, report.machine, plan.family,
                       kMostJobs)) {}

  std::string draw() {
    std::string title =
        "one tile of " + decision(plan.schedule, plan.tiles) + ", by the model";
    line("One tile, by the model: " + decision(plan.schedule, plan.tiles),
         true);
    line(describe(problem) + " on " + nameWithFacts(report.machine));
    line(stepsText());
    y += kRow / 2;
    int64_t top = y;
    for (const UnitLook &look : kUnits)
      unit(look);
    axis(top);
    legend();
    return svg.file(width + kEdge, y + kEdge, title);
  }

private:
  const Problem problem;
  const PlanReport &report;
  const Plan &plan;
  const Schedule schedule;
  const size_t launch;
  const Timeline shown;

  static size_t longest(const Plan &plan) {
    return size_t(std::max_element(plan.launches.begin(), plan.launches.end(),
                                   [](const auto &a, const auto &b) {
                                     return a.seconds < b.seconds;
                                   }) -
                  plan.launches.begin());
  }

  std::string stepsText() const {
    std::string text;
    llvm::raw_string_ostream out(text);
    if (plan.launches.size() > 1)
      out << "launch " << launch + 1 << " of " << plan.launches.size() << ", ";
    out << shown.steps << " of " << llvm::format("%.4g", shown.stepsOfTile)
        << " steps, " << shown.workers
        << (shown.workers == 1 ? " worker" : " workers")
        << "; rates and latencies of the machine, one block by itself";
    return text;
  }

  /// A tile that does nothing takes no time.
  double all() const { return std::max(1.0, shown.clocks); }

  int64_t at(double clocks) const {
    return kMargin + std::llround(clocks / all() * double(kWidth));
  }

  //===--------------------------------------------------------------------===//
  // Units
  //===--------------------------------------------------------------------===//

  /// Its spans, one under the other where they overlap; those of arithmetic by
  /// worker.
  void unit(const UnitLook &look) {
    std::vector<const BusySpan *> spans;
    for (const BusySpan &span : shown.spans)
      if (span.unit == look.unit)
        spans.push_back(&span);
    if (spans.empty())
      return;
    llvm::sort(spans, [](const BusySpan *a, const BusySpan *b) {
      return a->begin != b->begin ? a->begin < b->begin : a < b;
    });
    std::vector<double> rows;
    for (const BusySpan *span : spans) {
      size_t row = look.unit == Unit::arithmetic ? size_t(span->worker) : 0;
      while (row < rows.size() && rows[row] > span->begin)
        ++row;
      rows.resize(std::max(rows.size(), row + 1), 0);
      rows[row] = span->end;
      this->span(look, *span, y + int64_t(row) * kRow);
    }
    text(kEdge, y + 1, look.name, look.line);
    busy(look.unit);
    y += int64_t(rows.size()) * kRow + 6;
  }

  /// Copies that are on their way overlap, so their sum says nothing.
  void busy(Unit unit) {
    if (unit == Unit::copies)
      return;
    std::string words;
    llvm::raw_string_ostream(words)
        << llvm::format("busy %.0f %%", 100 * shown.busy(unit) / all());
    text(kMargin + kWidth + kEdge, y + 1, words, Svg::kFaint);
  }

  /// `K 3`: of step 3; of what is too short for that just `K`, or nothing.
  static std::string labelOf(const BusySpan &span, int64_t space) {
    const Node &node = *span.node;
    Tensor made = node.is<verb::Softmax>() || node.is<verb::Weigh>() ? Tensor::P
                  : node.is<verb::Differentiate>() ? Tensor::GradS
                                                   : tensorOf(node);
    std::string text(name(made));
    std::string whole =
        span.step < 0 ? text : text + " " + std::to_string(span.step);
    auto fits = [&](const std::string &words) {
      return textWidth(words) + 4 <= space;
    };
    return fits(whole) ? whole : fits(text) ? text : "";
  }

  std::string titleOf(const BusySpan &span) const {
    std::string caption = captionOf(*span.node, problem), text;
    bool isMove = moveOf(*span.node) != Move::none;
    llvm::raw_string_ostream out(text);
    out << (isMove ? std::string(name(tensorOf(*span.node))) + " " : "")
        << caption;
    if (span.step >= 0)
      out << ", step " << span.step;
    if (shown.workers > 1 && span.unit != Unit::copies)
      out << ", worker " << span.worker;
    out << ": clocks " << std::llround(span.begin) << " to "
        << std::llround(span.end);
    return text;
  }

  void span(const UnitLook &look, const BusySpan &span, int64_t top) {
    int64_t left = at(span.begin);
    Rectangle box = {left, top, std::max<int64_t>(1, at(span.end) - left),
                     kBar};
    svg.begin("span", titleOf(span),
              " data-unit=\"" + Twine(look.name) + "\" data-worker=\"" +
                  Twine(span.worker) + "\" data-step=\"" + Twine(span.step) +
                  "\"");
    svg.box(box,
            {span.worker % 2 ? look.dark : look.light, look.line, false, 1, 2});
    if (std::string label = labelOf(span, box.width); !label.empty())
      svg.text(left + 2, top + 1, label);
    svg.end();
  }

  //===--------------------------------------------------------------------===//
  // Below
  //===--------------------------------------------------------------------===//

  /// 1, 2 or 5 times a power of ten, so that there are ten ticks at most.
  double tick() const {
    double step = std::pow(10, std::floor(std::log10(all()))) / 10;
    for (double factor : {1, 2, 5, 10})
      if (all() / (step * factor) <= 10)
        return step * factor;
    return step * 20;
  }

  void axis(int64_t top) {
    for (double clocks = 0; clocks <= all(); clocks += tick()) {
      int64_t x = at(clocks);
      svg.line(x, top, x, y + 4, {kNone, "#c3c8ce", true});
      svg.text(x + 2, y + 4, grouped(std::llround(clocks)), Svg::kFaint);
      width = std::max(width, x + 2 + textWidth(grouped(std::llround(clocks))));
    }
    svg.line(kMargin, y + 4, kMargin + kWidth, y + 4, {kNone, Svg::kInk});
    text(kEdge, y + 4, "clocks", Svg::kFaint);
    y += kLineHeight + 12;
    line("all " + grouped(std::llround(shown.clocks)) + " clocks are " +
         secondsText(shown.clocks / shown.clockHz));
  }

  void legend() {
    line("A label says what is brought or made, and in which step" +
         std::string(shown.workers > 1 ? "; light and dark are workers in turn"
                                       : ""));
  }
};

} // namespace

std::string attn::timelineSvg(const PlanReport &report, const Plan &plan) {
  return Picture(report, plan).draw();
}
