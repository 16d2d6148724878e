//===- Layout.cpp - Where the elements of an array lie --------------------===//

#include "attn/Schedule/Layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace attn;

bool Layout::isEmpty() const {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

int64_t Layout::spanBytes() const {
  if (isEmpty())
    return 0;
  int64_t last = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim)
    if (sizes[dim] > 1)
      last += (sizes[dim] - 1) * strides[dim];
  return (last + 1) * elementBytes;
}

namespace {
/// A dimension in which something is strided.
struct Dimension {
  size_t number;
  int64_t steps, stride; ///< of each step
};
} // namespace

/// Those with a stride that matters and is known.
static std::vector<Dimension> stridedDimensions(const Layout &layout) {
  std::vector<Dimension> result;
  for (size_t dim = 0; dim < layout.sizes.size(); ++dim) {
    int64_t size = layout.sizes[dim] == kOpen ? 2 : layout.sizes[dim];
    if (size > 1 && layout.strides[dim] != kOpen)
      result.push_back({dim, size - 1, layout.strides[dim]});
  }
  return result;
}

std::optional<std::string> attn::wrongLayout(const Layout &layout,
                                             bool isWritten) {
  if (layout.isEmpty() || layout.sizes.empty()) // no place, or no stride
    return std::nullopt;
  if (layout.sizes.back() != 1 && layout.strides.back() != 1)
    return "an innermost stride of 1";
  if (layout.offset != kOpen && layout.offset < 0)
    return "an offset of 0 or more";
  std::vector<Dimension> dimensions = stridedDimensions(layout);
  for (const Dimension &each : dimensions)
    if (each.stride < 0)
      return "strides of 0 or more";

  const int64_t most = kMostArrayBytes / layout.elementBytes;
  int64_t last = layout.offset == kOpen ? 0 : layout.offset;
  for (const Dimension &each : dimensions) {
    if (last >= most || (each.stride > 0 && each.steps >= most / each.stride))
      last = most;
    else
      last += each.steps * each.stride;
  }
  if (last >= most)
    return "an end within " + std::to_string(kMostArrayBytes) +
           " bytes of its beginning";
  if (!isWritten)
    return std::nullopt;

  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension &a, const Dimension &b) {
              return std::pair(a.stride, -int64_t(a.number)) <
                     std::pair(b.stride, -int64_t(b.number));
            });
  int64_t reach = 0;
  for (const Dimension &each : dimensions) {
    // With a stride of 0 it is the dimensions inside that it has to pass.
    int64_t passed = reach;
    for (const Dimension &other : dimensions)
      if (each.stride == 0 && other.number > each.number)
        passed += other.steps * other.stride;
    if (each.stride <= passed || each.stride == 0)
      return "rows that do not lie on each other, so a stride of " +
             std::to_string(passed + 1) + " or more in dimension " +
             std::to_string(each.number);
    reach += each.steps * each.stride;
  }
  return std::nullopt;
}

namespace {

/// Numbers 0 <= c <= steps, one for each dimension of both arrays, such that
/// the sum of the strides' multiples lies between two bounds.
class Search {
public:
  /// By stride, the largest first; equal strides are one dimension.
  explicit Search(std::vector<Dimension> all) {
    std::sort(all.begin(), all.end(),
              [](const Dimension &a, const Dimension &b) {
                return a.stride > b.stride;
              });
    for (const Dimension &each : all) {
      if (!dimensions.empty() && dimensions.back().stride == each.stride)
        dimensions.back().steps += each.steps;
      else
        dimensions.push_back(each);
    }
    reach.assign(dimensions.size() + 1, 0);
    divisor.assign(dimensions.size() + 1, 0);
    for (size_t at = dimensions.size(); at-- > 0;) {
      const Dimension &each = dimensions[at];
      reach[at] = reach[at + 1] + each.steps * each.stride;
      divisor[at] = std::gcd(divisor[at + 1], each.stride);
    }
  }

  bool finds(int64_t least, int64_t most, size_t at = 0) {
    least = std::max<int64_t>(least, 0);
    most = std::min(most, reach[at]);
    if (most < least || ++steps > kMostSteps)
      return false;
    if (at == dimensions.size())
      return true;
    if (most / divisor[at] * divisor[at] < least)
      return false; // all sums are multiples
    auto [number, count, stride] = dimensions[at];
    int64_t rest = reach[at + 1];
    int64_t first = least <= rest ? 0 : (least - rest + stride - 1) / stride;
    for (int64_t c = first; c <= std::min(count, most / stride); ++c)
      if (finds(least - c * stride, most - c * stride, at + 1))
        return true;
    return false;
  }

private:
  static constexpr int kMostSteps = 4096;
  std::vector<Dimension> dimensions;
  /// Of those from a position on: the largest sum, and what divides all sums.
  std::vector<int64_t> reach, divisor;
  int steps = 0;
};

} // namespace

bool attn::overlap(const Layout &a, uint64_t addressOfA, const Layout &b,
                   uint64_t addressOfB) {
  int64_t spanOfA = a.spanBytes(), spanOfB = b.spanBytes();
  if (spanOfA == 0 || spanOfB == 0)
    return false;
  if (addressOfB - addressOfA >= uint64_t(spanOfA) &&
      addressOfA - addressOfB >= uint64_t(spanOfB))
    return false;
  // Bytes from a of B's first element, and from there backwards to its last:
  // with i counted upwards in A and downwards in B all strides are positive.
  int64_t distance = int64_t(addressOfB - addressOfA);
  std::vector<Dimension> all;
  auto add = [&](const Layout &layout) {
    int64_t reach = 0;
    for (Dimension each : stridedDimensions(layout)) {
      each.stride *= layout.elementBytes;
      reach += each.steps * each.stride;
      if (each.stride > 0)
        all.push_back(each);
    }
    return reach;
  };
  add(a);
  int64_t reachOfB = add(b);
  // An element of A begins at sum(A), one of B at distance + reachOfB - sum(B).
  int64_t target = distance + reachOfB;
  return Search(std::move(all))
      .finds(target - (a.elementBytes - 1), target + (b.elementBytes - 1));
}
