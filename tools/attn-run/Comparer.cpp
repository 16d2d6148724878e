//===- Comparer.cpp - The distance from a reference -----------------------===//

#include "Comparer.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;
using namespace attn::run;

static std::vector<double> rowNorms(const Floats &array, int64_t columns) {
  std::vector<double> result;
  for (size_t begin = 0; begin < array.values.size(); begin += columns) {
    double sum = 0;
    for (int64_t column = 0; column < columns; ++column)
      sum +=
          double(array.values[begin + column]) * array.values[begin + column];
    result.push_back(std::isfinite(sum) ? std::sqrt(sum) : 0);
  }
  return result;
}

ScoreSizes::ScoreSizes(const Attention &attention, const Floats &q,
                       const Floats &k)
    : problem(attention.problem), scale(std::abs(attention.scale)),
      queries(rowNorms(q, problem.headDim)) {
  std::vector<double> keys = rowNorms(k, problem.headDim);
  largestKeys.assign(problem.batch * problem.kvHeads, 0);
  for (size_t row = 0; row < keys.size(); ++row) {
    double &largest = largestKeys[row / problem.keys];
    largest = std::max(largest, keys[row]);
  }
}

double ScoreSizes::at(int64_t batch, int64_t head, int64_t row) const {
  int64_t keyHead = head / (problem.heads / problem.kvHeads);
  return scale *
         queries[(batch * problem.heads + head) * problem.queries + row] *
         largestKeys[batch * problem.kvHeads + keyHead];
}

double ScoreSizes::largest() const {
  double largest = 0;
  for (size_t line = 0; line < queries.size(); ++line) {
    int64_t row = line % problem.queries, heads = line / problem.queries;
    largest = std::max(largest,
                       at(heads / problem.heads, heads % problem.heads, row));
  }
  return largest;
}

Comparer::Comparer(const HostBytes &array, const Output &output,
                   const AttentionOracle &oracle, const ScoreSizes &scores,
                   Inputs inputs)
    : array(array), oracle(oracle), scores(scores),
      undefinedIsFree(inputs == Inputs::infinity) {
  AttentionOpInterface op = oracle.attention.op;
  hasSinks = !op.clauseOperands(ClauseGroup::sinks).empty();
  result.name = output.role;
  llvm::raw_string_ostream stream(result.type);
  llvm::interleave(output.sizes, stream, "x");
  stream << 'x' << output.elementType;
  result.unwritten = array.unwritten();
  result.damaged = array.damaged();
}

void Comparer::add(llvm::ArrayRef<int64_t> index, int64_t row,
                   double reference) {
  double got = array.get(index);
  // A sink is the LSE of a row that sees nothing else.
  if (!takesPart(index, row) && !(result.isLse() && hasSinks)) {
    result.wrongMasked += got != result.ofNothing();
    return;
  }
  if (!std::isfinite(reference)) {
    if (!undefinedIsFree)
      result.wrongNan +=
          std::isnan(reference) ? !std::isnan(got) : got != reference;
    return;
  }
  if (!std::isfinite(got)) {
    ++result.wrongNan;
    return;
  }
  double error = std::abs(got - reference);
  result.maxError = std::max(result.maxError, error);
  if (result.isLse()) {
    // Infinite inputs give scores of the largest f32, whatever their row's
    // norm.
    double size =
        std::max(scores.at(index[0], index[1], row), std::abs(reference));
    result.lseError =
        std::max(result.lseError, error / std::max(1.0, size / 32));
  }
  squaredError += error * error;
  squaredNorm += reference * reference;
}

Comparison Comparer::finish(int64_t checkedRows, int64_t rows, double tolerance,
                            double size) {
  result.checkedRows = checkedRows;
  result.rows = rows;
  // That of an LSE is no relative one.
  double largest = result.isLse() ? tolerance : kLargestTolerance;
  result.comparable = tolerance <= largest;
  result.tolerance = std::min(tolerance, largest);
  if (squaredError > 0)
    result.relativeError =
        std::sqrt(squaredError) / std::max(std::sqrt(squaredNorm), size);
  return result;
}

bool Comparer::takesPart(llvm::ArrayRef<int64_t> index, int64_t row) {
  std::array<int64_t, 3> place = {index[0], index[1], row};
  if (place != lastRow) {
    bool isKey = shapeOf(result.name)[2] == Extent::keys;
    lastTakesPart = oracle.takesPart(isKey, index[0], index[1], row);
    lastRow = place;
  }
  return lastTakesPart;
}

std::vector<Comparer> run::comparersOf(const Function &function, size_t number,
                                       const std::vector<HostBytes> &arrays,
                                       const std::vector<size_t> &outputs,
                                       const AttentionOracle &oracle,
                                       const ScoreSizes &scores,
                                       Inputs inputs) {
  std::vector<Comparer> comparers;
  for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs))
    if (output.of == Output::Of::attention && output.attention == number)
      comparers.emplace_back(arrays[slot], output, oracle, scores, inputs);
  return comparers;
}
