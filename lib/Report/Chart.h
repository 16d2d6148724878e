//===- Chart.h - Numbers along an axis --------------------------*- C++ -*-===//
//
// A scale says where a value lies and which values have a mark.  A plot is a
// box with two of them.  What is drawn into it comes from its client; here is
// nothing that knows what the numbers mean.
//
// Both scales are logarithms, unless values are 0 or a range is so short that
// they would mislead.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REPORT_CHART_H
#define ATTN_LIB_REPORT_CHART_H

#include "Svg.h"
#include <functional>
#include <vector>

namespace attn {

class Scale {
public:
  /// From a least to a greatest value, at these places.
  Scale(double low, double high, int64_t from, int64_t to);

  int64_t at(double value) const;
  double low() const { return least; }
  double high() const { return most; }

private:
  double least, most;
  int64_t from, to;
  bool isLog;
};

struct AxisMark {
  double value;
  std::string text;
};

/// Marks at powers of two, or at 1, 2 and 5 times powers of ten, about as many
/// as asked for or fewer.
std::vector<AxisMark>
binaryMarks(double low, double high, size_t most,
            const std::function<std::string(double)> &text);
std::vector<AxisMark>
decimalMarks(double low, double high, size_t most,
             const std::function<std::string(double)> &text);
/// Of these values, powers of two first, those whose texts have room.
std::vector<AxisMark> chosenMarks(const std::vector<int64_t> &values,
                                  const Scale &scale);

struct Plot {
  Rectangle box;
  Scale x, y;

  /// Lines across at the marks of y, and their texts to the left.
  void grid(Svg &svg, const std::vector<AxisMark> &marks) const;
  /// Texts of x below, so far down.
  void below(Svg &svg, const std::vector<AxisMark> &marks, int64_t y) const;
  /// From point to point, with a dot at each.
  void curve(Svg &svg, const std::vector<std::pair<double, double>> &points,
             const Look &look) const;
  /// From top to bottom.
  void upright(Svg &svg, double value, const Look &look) const;
};

/// What a colour means: a sample and a text.
struct Key {
  std::string text;
  Look look;
  bool isFilled = false; ///< the sample is a box
};
/// In lines that fill the width, from there on; the end of the last line.
int64_t drawKeys(Svg &svg, const std::vector<Key> &keys, int64_t x, int64_t y,
                 int64_t width);

} // namespace attn

#endif // ATTN_LIB_REPORT_CHART_H
