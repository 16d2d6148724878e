//===- SurveyPicture.cpp - Machines and types side by side ----------------===//
//
// A line for each cell: its time, how many times the lower bounds it moves, and
// in words what binds and what limits.  What a dot is of, its place and its
// shape say; colours only help.
//
//===----------------------------------------------------------------------===//

#include "Chart.h"
#include "Columns.h"
#include "attn/Report/Survey.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;

static constexpr int64_t kMargin = 20, kMachine = 84, kType = 64, kTime = 320,
                         kGap = 24, kBytes = 280, kWords = 320, kRow = 20,
                         kHead = 48, kInset = 16;
static constexpr int64_t kTimeLeft = kMargin + kMachine + kType,
                         kBytesLeft = kTimeLeft + kTime + kGap,
                         kWordsLeft = kBytesLeft + kBytes + kGap,
                         kWidth = kWordsLeft + kWords + kMargin;

/// Of a level of memory: round, square, and an upright bar.
struct Level {
  const char *name, *colour;
  int64_t Bytes::*bytes;
  int64_t width, radius;
};
static const Level kLevels[] = {{"hbm", "#0072b2", &Bytes::hbm, 9, 4},
                                {"l2", "#d55e00", &Bytes::l2, 9, 0},
                                {"smem", "#009e73", &Bytes::smem, 4, 0}};

static double timesBound(const SurveyCell &cell, const Level &level) {
  return double(cell.plan.bytes.*level.bytes) /
         double(std::max<int64_t>(1, cell.lowerBounds.*level.bytes));
}

static void drawDot(Svg &svg, int64_t x, int64_t middle, const char *colour,
                    int64_t width, int64_t radius) {
  svg.box({x - width / 2, middle - 4, width, 9},
          {colour, Svg::kPaper, false, 1, radius});
}

namespace {

class Picture {
public:
  explicit Picture(const std::vector<SurveyCell> &cells)
      : cells(cells), time(scaleOf(kTimeLeft, kTime,
                                   [](const SurveyCell &c) {
                                     return std::vector<double>{c.plan.seconds};
                                   })),
        bytes(scaleOf(kBytesLeft, kBytes, [](const SurveyCell &c) {
          std::vector<double> values = {1};
          for (const Level &level : kLevels)
            values.push_back(timesBound(c, level));
          return values;
        })) {}

  std::string draw() {
    std::string title = describe(cells.front().problem);
    title = title.substr(title.find("batch")); // the type is a cell's
    svg.text(kMargin, kMargin, title, Svg::kInk, true);
    int64_t top = kMargin + kHead + kLineHeight;
    int64_t bottom = top + kRow * int64_t(cells.size());
    axis(time, "time", kTimeLeft, top, bottom,
         decimalMarks(time.low(), time.high(), 5, secondsText));
    axis(bytes, "bytes, times the lower bound", kBytesLeft, top, bottom,
         decimalMarks(bytes.low(), bytes.high(), 7,
                      [](double value) { return numberText("%g", value); }));
    svg.text(kWordsLeft, top - 2 * kLineHeight - 8,
             "schedule: what binds; what limits", Svg::kInk, true);
    for (size_t i = 0; i < cells.size(); ++i)
      row(i, top + kRow * int64_t(i));
    std::vector<Key> keys;
    for (const Level &level : kLevels)
      keys.push_back({level.name, {level.colour, Svg::kPaper}, true});
    svg.text(kWordsLeft, bottom + 12, "pale: no kernel yet", Svg::kFaint);
    int64_t end = drawKeys(svg, keys, kBytesLeft, bottom + 12, kBytes);
    return svg.file(kWidth, end + kMargin, title);
  }

private:
  const std::vector<SurveyCell> &cells;
  Svg svg;
  Scale time, bytes;

  template <typename Values>
  Scale scaleOf(int64_t left, int64_t width, Values &&valuesOf) const {
    std::vector<double> all;
    for (const SurveyCell &cell : cells)
      if (cell.hasPlan())
        llvm::append_range(all, valuesOf(cell));
    auto [low, high] = std::minmax_element(all.begin(), all.end());
    constexpr double room = 1.2;
    return {*low / room, *high * room, left + kInset, left + width - kInset};
  }

  void axis(const Scale &scale, const char *title, int64_t left, int64_t top,
            int64_t bottom, const std::vector<AxisMark> &marks) {
    svg.text(left, top - 2 * kLineHeight - 8, title, Svg::kInk, true);
    int64_t free = left; // of texts before
    for (const AxisMark &mark : marks) {
      int64_t x = scale.at(mark.value), half = textWidth(mark.text) / 2;
      svg.line(x, top, x, bottom, {"none", "#d8dee4"});
      if (x - half < free)
        continue;
      svg.text(x - half, top - kLineHeight - 4, mark.text, Svg::kFaint);
      free = x + half + 8;
    }
  }

  void row(size_t number, int64_t y) {
    const SurveyCell &cell = cells[number];
    bool isFirst =
        number == 0 || cells[number - 1].machine.name != cell.machine.name;
    if (isFirst) {
      svg.line(kMargin, y, kWidth - kMargin, y, {"none", "#d8dee4"});
      svg.text(kMargin, y + 2, cell.machine.name, Svg::kInk, true);
    }
    svg.text(kMargin + kMachine, y + 2, name(cell.problem.dtype));
    if (!cell.hasPlan()) {
      svg.begin("none", cell.whyNot);
      svg.text(kTimeLeft + kInset, y + 2, "no plan", Svg::kFaint);
      svg.end();
      return;
    }
    int64_t middle = y + kRow / 2;
    svg.begin("cell", cell.machine.name + ", " +
                          std::string(name(cell.problem.dtype)) + ": " +
                          secondsText(cell.plan.seconds));
    drawDot(svg, time.at(cell.plan.seconds), middle, Svg::kInk, 9, 4);
    for (const Level &level : kLevels)
      drawDot(svg, bytes.at(timesBound(cell, level)), middle, level.colour,
              level.width, level.radius);
    svg.end();
    const Gain *limit = limitOf(cell.gains);
    svg.text(kWordsLeft, y + 2,
             cell.plan.schedule + ": " + cell.plan.boundBy + "; " +
                 (limit ? limit->resource->label : "-"),
             cell.plan.kernel.empty() ? Svg::kFaint : Svg::kInk);
  }
};

} // namespace

std::string attn::surveySvg(const std::vector<SurveyCell> &cells) {
  return Picture(cells).draw();
}
