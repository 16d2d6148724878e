//===- SweepPicture.cpp - Where one schedule takes over from another ------===//
//
// For each sweep two plots, of bytes between L2 and the multiprocessors and of
// time, and below each two strips: which schedule is the fastest, and the
// regime of the theory.  A curve is a schedule's plan that would be built.
// Schedules for small caches are dashed and have square dots, so that the
// picture can be read without its colours.
//
//===----------------------------------------------------------------------===//

#include "Chart.h"
#include "Columns.h"
#include "attn/Report/Sweep.h"
#include "attn/Schedule/Advice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace attn;

static constexpr int64_t kLeft = 92, kPlotWidth = 420, kPlotHeight = 240,
                         kGap = 104, kRight = 24, kStrip = 12, kMargin = 20;
static constexpr int64_t kWidth =
    kLeft + kPlotWidth + kGap + kPlotWidth + kRight;
static constexpr size_t kMarks = 7;
static const char *const kLargeCache = "#eaeef2", *const kSmallCache =
                                                      "#afb8c1";

/// Of eight that people with any sight of colours tell apart (Okabe, Ito).
static const char *colourOf(llvm::StringRef schedule) {
  return llvm::StringSwitch<const char *>(schedule)
      .Cases({"flash", "flash_backward"}, "#0072b2")
      .Cases({"streamed_query", "split_backward"}, "#009e73")
      .Case("column_split", "#d55e00")
      .Case("output_spill", "#cc79a7")
      .Cases({"score_spill", "spill_backward"}, "#e69f00")
      .Default(Svg::kFaint);
}

static Look lookOf(const std::string &schedule) {
  return {"none", colourOf(schedule), isForSmallCache(schedule), 2};
}

static const Look kBound = {"none", Svg::kInk, false, 2};
static const Look kTakeover = {"none", Svg::kFaint, true, 1};

/// A number of a plan, and one of a point if it has a bound.
struct Quantity {
  const char *title;
  double (*ofPlan)(const Plan &plan);
  double (*ofBound)(const SweepPoint &point);
  std::vector<AxisMark> (*marks)(double low, double high);
};

static std::vector<AxisMark> byteMarks(double low, double high) {
  return binaryMarks(low, high, kMarks, bytesText);
}
static std::vector<AxisMark> timeMarks(double low, double high) {
  return decimalMarks(low, high, kMarks, secondsText);
}

static const Quantity kQuantities[] = {
    {"bytes between L2 and the multiprocessors",
     [](const Plan &plan) { return double(plan.bytes.l2); },
     [](const SweepPoint &point) { return double(point.lowerBounds.l2); },
     byteMarks},
    {"time", [](const Plan &plan) { return plan.seconds; }, nullptr,
     timeMarks}};

/// Everything of a sweep that a quantity has.
static std::vector<double> valuesOf(const Sweep &sweep,
                                    const Quantity &quantity) {
  std::vector<double> values;
  for (const SweepPoint &point : sweep.points) {
    for (const Plan &plan : point.plans)
      values.push_back(quantity.ofPlan(plan));
    if (quantity.ofBound && point.hasPlan())
      values.push_back(std::max(1.0, quantity.ofBound(point)));
  }
  return values;
}

static Plot plotOf(const Sweep &sweep, const Quantity &quantity,
                   const Rectangle &box) {
  std::vector<double> values = valuesOf(sweep, quantity);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  constexpr double room = 1.15;
  constexpr int64_t inset = 12;
  return {box,
          Scale(double(sweep.points.front().value),
                double(sweep.points.back().value), box.x + inset,
                box.right() - inset),
          Scale(*low / room, *high * room, box.bottom(), box.y)};
}

static void drawCurves(Svg &svg, const Sweep &sweep, const Plot &plot,
                       const Quantity &quantity) {
  using Points = std::vector<std::pair<double, double>>;
  if (quantity.ofBound) {
    Points points;
    for (const SweepPoint &point : sweep.points)
      if (point.hasPlan())
        points.push_back(
            {double(point.value), std::max(1.0, quantity.ofBound(point))});
    svg.begin("bound", "lower bound");
    plot.curve(svg, points, kBound);
    svg.end();
  }
  for (const std::string &schedule : sweep.schedules()) {
    Points points;
    for (const SweepPoint &point : sweep.points)
      for (const Plan &plan : point.plans)
        if (plan.schedule == schedule)
          points.push_back({double(point.value), quantity.ofPlan(plan)});
    svg.begin("curve", schedule);
    plot.curve(svg, points, lookOf(schedule));
    svg.end();
  }
}

/// A cell for every point, from halfway to its neighbours.
static void drawStrip(Svg &svg, const Sweep &sweep, const Plot &plot, int64_t y,
                      const char *what,
                      const char *(*colour)(const SweepPoint &point)) {
  svg.textBefore(plot.box.x - 8, y + (kStrip - kLineHeight) / 2, what,
                 Svg::kFaint);
  auto place = [&](size_t i) {
    return plot.x.at(double(sweep.points[i].value));
  };
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    int64_t from = i == 0 ? plot.box.x : (place(i - 1) + place(i)) / 2;
    int64_t to = i + 1 == sweep.points.size() ? plot.box.right()
                                              : (place(i) + place(i + 1)) / 2;
    if (sweep.points[i].hasPlan())
      svg.box({from, y, to - from, kStrip},
              {colour(sweep.points[i]), Svg::kPaper});
  }
}

/// One plot with its strips and texts; the end of them.
static int64_t drawPlot(Svg &svg, const Sweep &sweep, const Quantity &quantity,
                        const Rectangle &box) {
  Plot plot = plotOf(sweep, quantity, box);
  svg.text(box.x, box.y - kLineHeight - 6, quantity.title, Svg::kInk, true);
  plot.grid(svg, quantity.marks(plot.y.low(), plot.y.high()));
  if (auto value = sweep.takeover())
    plot.upright(svg, double(*value), kTakeover);
  drawCurves(svg, sweep, plot, quantity);
  int64_t y = box.bottom() + 8;
  drawStrip(svg, sweep, plot, y, "fastest", [](const SweepPoint &point) {
    return colourOf(point.plans.front().schedule);
  });
  y += kStrip + 4;
  drawStrip(svg, sweep, plot, y, "regime", [](const SweepPoint &point) {
    return point.regime == Regime::largeCache ? kLargeCache : kSmallCache;
  });
  y += kStrip + 4;
  std::vector<int64_t> values;
  for (const SweepPoint &point : sweep.points)
    values.push_back(point.value);
  plot.below(svg, chosenMarks(values, plot.x), y);
  y += kLineHeight;
  svg.text(box.x + (box.width - textWidth(sweep.field)) / 2, y, sweep.field);
  return y + kLineHeight;
}

/// A text in lines; the end of the last.
static int64_t drawLines(Svg &svg, int64_t y, const std::string &text,
                         bool isBold) {
  std::string broken = wrapped(text, 0);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(broken).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    svg.text(kMargin, y, line, Svg::kInk, isBold);
    y += kLineHeight;
  }
  return y;
}

/// A row of plots; the end of it.
static int64_t drawSweep(Svg &svg, const Sweep &sweep, int64_t y) {
  y = drawLines(svg, y, sweepTitle(sweep), true);
  if (llvm::none_of(sweep.points,
                    [](const SweepPoint &point) { return point.hasPlan(); }))
    return drawLines(svg, y, "nothing fits: " + sweep.points.front().whyNot,
                     false);
  int64_t x = kLeft, end = y;
  for (const Quantity &quantity : kQuantities) {
    Rectangle box = {x, y + kLineHeight + 12, kPlotWidth, kPlotHeight};
    end = drawPlot(svg, sweep, quantity, box);
    x += kPlotWidth + kGap;
  }
  return end;
}

static std::vector<Key> keysOf(const std::vector<Sweep> &sweeps) {
  std::vector<Key> keys;
  std::vector<std::string> seen;
  for (const Sweep &sweep : sweeps)
    for (const std::string &schedule : sweep.schedules())
      if (!llvm::is_contained(seen, schedule)) {
        seen.push_back(schedule);
        keys.push_back({schedule, lookOf(schedule)});
      }
  keys.push_back({"lower bound", kBound});
  if (llvm::any_of(sweeps, [](const Sweep &one) { return one.takeover(); }))
    keys.push_back({"schedules for small caches take over", kTakeover});
  keys.push_back({"large cache, M >= d^2", {kLargeCache, Svg::kFaint}, true});
  keys.push_back({"small cache", {kSmallCache, Svg::kFaint}, true});
  return keys;
}

std::string attn::sweepsSvg(const std::vector<Sweep> &sweeps) {
  Svg svg;
  int64_t y = kMargin;
  for (const Sweep &sweep : sweeps)
    y = drawSweep(svg, sweep, y) + kMargin;
  y = drawKeys(svg, keysOf(sweeps), kMargin, y, kWidth - 2 * kMargin);
  return svg.file(kWidth, y + kMargin, sweepTitle(sweeps.front()));
}
