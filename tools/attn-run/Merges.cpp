//===- Merges.cpp - Parts that are merged, and their reference ------------===//

#include "Comparer.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace attn;
using namespace attn::run;

static constexpr double kNothing = -std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Whether a part has seen nothing of a row, the `count`-th of all: of every
/// seventh row no part, and of the others some.
static bool sawNothing(int64_t row, unsigned part) {
  return row % 7 == 3 || (row + 2 * part) % 5 == 0;
}

/// The number of a part behind the last `_` of a role.
static unsigned partOf(llvm::StringRef role) {
  unsigned number = 0;
  role.rsplit('_').second.getAsInteger(10, number);
  return number;
}

/// Calls `body` with the place of each row and its number.
template <typename Body>
static void forEachRow(const Merging &merging, Body body) {
  int64_t row = 0;
  forEachIndex(merging.sizesOf("lse"),
               [&](llvm::ArrayRef<int64_t> place) { body(place, row++); });
}

/// No part weighs more than the whole, whose LSE a gradient takes.
static void raiseWhole(const Merging &merging, std::vector<HostBytes> &arrays) {
  HostBytes &whole = arrays[merging.input("lse")];
  const HostBytes &part = arrays[merging.input("lse_0")];
  forEachRow(merging, [&](llvm::ArrayRef<int64_t> place, int64_t) {
    whole.set(place, std::max(whole.get(place), part.get(place)));
  });
}

void run::drawParts(const Merging &merging, std::vector<HostBytes> &arrays,
                    uint64_t seed) {
  constexpr double spread = 3; // weights of all sizes
  uint64_t number = 0;
  for (const auto &[role, position] : merging.inputs) {
    bool isLse = isStatisticOfMerge(role) && role.front() == 'l';
    fillRandom(arrays[position], seed * 64 + number++, isLse ? spread : 1);
  }
  for (const auto &[role, position] : merging.inputs) {
    llvm::StringRef name = role;
    if (name.front() == 'd' || !name.contains('_'))
      continue;
    HostBytes &array = arrays[position];
    bool isLse = isStatisticOfMerge(name);
    forEachRow(merging, [&](llvm::ArrayRef<int64_t> place, int64_t row) {
      if (!sawNothing(row, partOf(name)))
        return;
      if (isLse)
        return array.set(place, kNothing);
      llvm::SmallVector<int64_t> element(place);
      element.push_back(0);
      for (; element.back() < merging.merge.headDim; ++element.back())
        array.set(element, std::nan(""));
    });
  }
  if (merging.merge.direction == Direction::backward)
    raiseWhole(merging, arrays);
}

//===----------------------------------------------------------------------===//
// The comparison
//===----------------------------------------------------------------------===//

/// Half a unit in the last place of the largest error, and what weights lose.
static double toleranceOf(mlir::Type element) {
  constexpr double ofWeights = 0x1p-20;
  if (element.isBF16())
    return 0x1p-9 + ofWeights;
  if (element.isF16())
    return 0x1p-12 + ofWeights;
  return ofWeights;
}

/// Compares an output with its reference, row-major, whose terms have that
/// size.
static Comparison compare(const HostBytes &array, const Output &output,
                          const std::vector<double> &reference, double size) {
  Comparison result;
  result.name = output.role;
  llvm::raw_string_ostream type(result.type);
  llvm::interleave(output.sizes, type, "x");
  type << 'x' << output.elementType;
  result.unwritten = array.unwritten();
  result.damaged = array.damaged();
  result.tolerance = toleranceOf(output.elementType);
  result.rows = result.checkedRows = output.sizes[2];
  double squaredError = 0, squaredNorm = 0;
  const double *next = reference.data();
  forEachIndex(output.sizes, [&](llvm::ArrayRef<int64_t> place) {
    double exact = *next++, got = array.get(place);
    if (!std::isfinite(exact)) {
      result.wrongNan += std::isnan(exact) ? !std::isnan(got) : got != exact;
      return;
    }
    if (!std::isfinite(got)) {
      ++result.wrongNan;
      return;
    }
    double error = std::abs(got - exact);
    // Rows that see nothing are exactly 0.
    result.wrongMasked += exact == 0 && got != 0;
    result.maxError = std::max(result.maxError, error);
    result.lseError =
        std::max(result.lseError, error / std::max(1.0, std::abs(exact)));
    squaredError += error * error;
    squaredNorm += exact * exact;
  });
  if (squaredError > 0)
    result.relativeError =
        std::sqrt(squaredError) / std::max(std::sqrt(squaredNorm), size);
  return result;
}

namespace {
/// An output of the reference, and the size of what it is summed from.
struct Reference {
  std::vector<double> values;
  double size = 0;
};
} // namespace

static std::map<std::string, Reference>
referencesOf(const Merging &merging, const std::vector<HostBytes> &arrays) {
  const Merge &merge = merging.merge;
  oracle::Rows rows = {merge.batch, merge.heads, merge.queries, merge.headDim};
  int64_t count = rows.batch * rows.heads * rows.queries;
  std::map<std::string, Floats> inputs;
  for (const auto &[role, position] : merging.inputs)
    inputs.emplace(role, arrays[position]);
  auto view = [&](const std::string &role) { return inputs.at(role).view; };
  auto numbers = [&](const std::string &role) -> const float * {
    auto found = inputs.find(role);
    return found == inputs.end() ? nullptr : found->second.values.data();
  };
  Reference ofRows, ofLse;
  ofRows.values.resize(count * rows.columns);
  ofLse.values.resize(count);
  std::vector<oracle::Part> parts;
  for (size_t i = 0; i < merge.parts.size(); ++i)
    parts.push_back(
        {view("o_" + std::to_string(i)), numbers("lse_" + std::to_string(i))});
  if (merge.direction == Direction::forward) {
    ofRows.size =
        oracle::merge(rows, parts, ofRows.values.data(), ofLse.values.data());
    return {{"o", ofRows}, {"lse", ofLse}};
  }
  oracle::PartGradientSizes sizes = oracle::mergeGradients(
      rows, view("do"), numbers("dlse"), view("o"), numbers("lse"),
      parts.front(), ofRows.values.data(), ofLse.values.data());
  ofRows.size = sizes.o;
  ofLse.size = sizes.lse;
  return {{"do_0", ofRows}, {"dlse_0", ofLse}};
}

std::vector<Comparison> run::compareMerge(const Function &function,
                                          size_t number,
                                          const std::vector<HostBytes> &arrays,
                                          const std::vector<size_t> &outputs) {
  auto references = referencesOf(function.merges[number], arrays);
  std::vector<Comparison> comparisons;
  for (auto [output, slot] : llvm::zip_equal(function.outputs, outputs)) {
    if (output.of != Output::Of::merge || output.attention != number)
      continue;
    const Reference &reference = references.at(output.role);
    comparisons.push_back(
        compare(arrays[slot], output, reference.values, reference.size));
  }
  return comparisons;
}
