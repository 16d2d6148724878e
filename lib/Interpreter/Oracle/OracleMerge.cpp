//===- OracleMerge.cpp - Parts of an attention made whole, in fp64 --------===//

#include "attn/Interpreter/Oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn::oracle;

static constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// Calls `body` with the batch entry, head and query of each row, and its
/// number.
template <typename Body> static void forEachRow(const Rows &rows, Body body) {
  int64_t number = 0;
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t h = 0; h < rows.heads; ++h)
      for (int64_t i = 0; i < rows.queries; ++i)
        body(b, h, i, number++);
}

static const float *rowOf(const Array &array, int64_t b, int64_t h, int64_t i) {
  const std::array<int64_t, 4> &s = array.strides;
  return array.data + b * s[0] + h * s[1] + i * s[2];
}

static double at(const Array &array, const float *row, int64_t column) {
  return row[column * array.strides[3]];
}

/// Rows that are not finite do not count.
static double ifFinite(double square) {
  return std::isfinite(square) ? square : 0;
}

double attn::oracle::merge(const Rows &rows, const std::vector<Part> &parts,
                           double *o, double *lse) {
  double squares = 0;
  forEachRow(rows, [&](int64_t b, int64_t h, int64_t i, int64_t n) {
    double largest = kNothing, sum = 0;
    for (const Part &part : parts)
      largest = std::max(largest, double(part.lse[n]));
    for (const Part &part : parts)
      if (part.lse[n] != kNothing)
        sum += std::exp(part.lse[n] - largest);
    double whole = sum == 0 ? kNothing : largest + std::log(sum);
    if (lse)
      lse[n] = whole;
    double *target = o + n * rows.columns, own = 0;
    std::fill_n(target, rows.columns, 0.0);
    for (const Part &part : parts) {
      if (part.lse[n] == kNothing)
        continue;
      double weight = std::exp(part.lse[n] - whole);
      const float *source = rowOf(part.o, b, h, i);
      for (int64_t c = 0; c < rows.columns; ++c) {
        double term = weight * at(part.o, source, c);
        target[c] += term;
        own += term * term;
      }
    }
    squares += ifFinite(own);
  });
  return std::sqrt(squares);
}

PartGradientSizes attn::oracle::mergeGradients(
    const Rows &rows, const Array &dO, const float *dlse, const Array &o,
    const float *lse, const Part &part, double *dPart, double *dPartLse) {
  double ofRows = 0, ofLses = 0;
  forEachRow(rows, [&](int64_t b, int64_t h, int64_t i, int64_t n) {
    double *target = dPart + n * rows.columns;
    std::fill_n(target, rows.columns, 0.0);
    dPartLse[n] = 0;
    if (part.lse[n] == kNothing)
      return;
    double weight = std::exp(double(part.lse[n]) - lse[n]);
    const float *gradient = rowOf(dO, b, h, i), *whole = rowOf(o, b, h, i),
                *own = rowOf(part.o, b, h, i);
    double sum = dlse ? dlse[n] : 0, squares = sum * sum, row = 0;
    for (int64_t c = 0; c < rows.columns; ++c) {
      double g = at(dO, gradient, c);
      double term = g * (at(part.o, own, c) - at(o, whole, c));
      target[c] = weight * g;
      sum += term;
      squares += term * term;
      row += target[c] * target[c];
    }
    dPartLse[n] = weight * sum;
    ofRows += ifFinite(row);
    ofLses += ifFinite(weight * weight * squares);
  });
  return {std::sqrt(ofRows), std::sqrt(ofLses)};
}
