//===- Chart.cpp - Numbers along an axis ----------------------------------===//

#include "Chart.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace attn;

static constexpr int64_t kDot = 5, kMarkGap = 12, kKeySample = 28, kKeyGap = 24;
static const char *const kGridLine = "#d8dee4";

Scale::Scale(double low, double high, int64_t from, int64_t to)
    : least(low), most(high), from(from), to(to), isLog(low > 0) {}

int64_t Scale::at(double value) const {
  if (least == most)
    return (from + to) / 2;
  double share = isLog ? std::log(value / least) / std::log(most / least)
                       : (value - least) / (most - least);
  return from + std::llround(share * double(to - from));
}

std::vector<AxisMark>
attn::binaryMarks(double low, double high, size_t most,
                  const std::function<std::string(double)> &text) {
  int first = int(std::ceil(std::log2(low) - 1e-9));
  int last = int(std::floor(std::log2(high) + 1e-9));
  int step =
      std::max(1, int(std::ceil(double(last - first + 1) / double(most))));
  std::vector<AxisMark> marks;
  for (int power = first; power <= last; power += step)
    marks.push_back({std::exp2(power), text(std::exp2(power))});
  return marks;
}

std::vector<AxisMark>
attn::decimalMarks(double low, double high, size_t most,
                   const std::function<std::string(double)> &text) {
  std::vector<AxisMark> all, tens;
  for (int power = int(std::floor(std::log10(low)));
       power <= int(std::ceil(std::log10(high))); ++power)
    for (double factor : {1.0, 2.0, 5.0}) {
      double value = factor * std::pow(10, power);
      if (value < low || value > high)
        continue;
      all.push_back({value, text(value)});
      if (factor == 1)
        tens.push_back(all.back());
    }
  return all.size() <= most || tens.size() < 2 ? all : tens;
}

std::vector<AxisMark> attn::chosenMarks(const std::vector<int64_t> &values,
                                        const Scale &scale) {
  std::vector<AxisMark> marks;
  auto half = [](const AxisMark &mark) { return textWidth(mark.text) / 2; };
  auto hasRoom = [&](const AxisMark &mark) {
    return llvm::all_of(marks, [&](const AxisMark &other) {
      return std::abs(scale.at(mark.value) - scale.at(other.value)) >=
             half(mark) + half(other) + kMarkGap;
    });
  };
  auto isRound = [](int64_t value) { return (value & (value - 1)) == 0; };
  for (bool wantsRound : {true, false})
    for (int64_t value : values) {
      AxisMark mark{double(value), std::to_string(value)};
      if (isRound(value) == wantsRound && hasRoom(mark))
        marks.push_back(mark);
    }
  return marks;
}

void Plot::grid(Svg &svg, const std::vector<AxisMark> &marks) const {
  for (const AxisMark &mark : marks) {
    int64_t at = y.at(mark.value);
    svg.line(box.x, at, box.right(), at, {"none", kGridLine});
    svg.textBefore(box.x - 8, at - kLineHeight / 2, mark.text, Svg::kFaint);
  }
  svg.line(box.x, box.bottom(), box.right(), box.bottom(),
           {"none", Svg::kFaint});
}

void Plot::below(Svg &svg, const std::vector<AxisMark> &marks,
                 int64_t y) const {
  for (const AxisMark &mark : marks)
    svg.text(x.at(mark.value) - textWidth(mark.text) / 2, y, mark.text,
             Svg::kFaint);
}

void Plot::curve(Svg &svg, const std::vector<std::pair<double, double>> &points,
                 const Look &look) const {
  Look dot = {look.stroke, look.stroke, false, 1, look.isDashed ? 0 : kDot / 2};
  for (size_t i = 0; i < points.size(); ++i) {
    int64_t px = x.at(points[i].first), py = y.at(points[i].second);
    if (i + 1 < points.size())
      svg.line(px, py, x.at(points[i + 1].first), y.at(points[i + 1].second),
               look);
    svg.box({px - kDot / 2, py - kDot / 2, kDot, kDot}, dot);
  }
}

void Plot::upright(Svg &svg, double value, const Look &look) const {
  svg.line(x.at(value), box.y, x.at(value), box.bottom(), look);
}

int64_t attn::drawKeys(Svg &svg, const std::vector<Key> &keys, int64_t x,
                       int64_t y, int64_t width) {
  int64_t column = x;
  for (const Key &key : keys) {
    int64_t needed = kKeySample + 8 + textWidth(key.text);
    if (column > x && column + needed > x + width)
      column = x, y += kLineHeight + 4;
    int64_t middle = y + kLineHeight / 2;
    if (key.isFilled)
      svg.box({column, middle - 6, kKeySample, 12}, key.look);
    else
      svg.line(column, middle, column + kKeySample, middle, key.look);
    svg.text(column + kKeySample + 8, y, key.text);
    column += needed + kKeyGap;
  }
  return y + kLineHeight;
}
