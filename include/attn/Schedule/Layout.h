//===- Layout.h - Where the elements of an array lie ------------*- C++ -*-===//
//
// Element (i, j, ...) of an array lies offset + i s0 + j s1 + ... elements
// behind the beginning of its memory.  Types say so, and so do callers; which
// layouts there can be is said here, once for both.
//
//   sizes 2 x 8 x 100 x 64
//     strides 51200, 6400, 64, 1    row-major
//     strides 51200, 64, 512, 1     [batch, rows, heads, columns] in memory
//     strides 51200, 0, 64, 1       all heads on one another: to read only
//     strides 51200, 6400, 8, 1     rows on one another: to read only
//
// What is written lies apart.  From the smallest stride to the largest, each is
// beyond all that the smaller ones reach: dimensions are nested, as those of
// every dense, permuted or sliced array are.
//
// Two arrays of one memory may be interleaved, as slices of a packed one are;
// so whether they overlap is a question about elements.
//
// Deliberately absent: alignment, which is no question of right and wrong.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_LAYOUT_H
#define ATTN_SCHEDULE_LAYOUT_H

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// A size, stride or offset that is known only at run time.
inline constexpr int64_t kOpen = std::numeric_limits<int64_t>::min();

/// The most bytes from the beginning of an array's memory to the end of its
/// last element, more than any GPU has.
inline constexpr int64_t kMostArrayBytes = int64_t(1) << 44;

struct Layout {
  /// As many of each, in elements; the innermost dimension is the last.
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  int64_t elementBytes = 1;

  bool isEmpty() const;
  /// From the element with index zero to behind the last one; 0 if there is
  /// none.  Of a layout without open numbers that `wrongLayout` accepts.
  int64_t spanBytes() const;
};

/// What an array must have that this one has not, as in "expects k with strides
/// of 0 or more"; nothing where all is fine.  An open size counts as 2, the
/// fewest for which a stride matters; an open stride or offset may be right.
std::optional<std::string> wrongLayout(const Layout &layout, bool isWritten);

/// Whether two arrays have a byte in common, with the elements of index zero at
/// these addresses; both layouts as `spanBytes` wants them.  Exact where the
/// strides of both together are nested; elsewhere the search ends after some
/// thousand steps, and what it has not found counts as apart.
bool overlap(const Layout &a, uint64_t addressOfA, const Layout &b,
             uint64_t addressOfB);

} // namespace attn

#endif // ATTN_SCHEDULE_LAYOUT_H
