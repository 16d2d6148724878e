//===- RandomProblem.h - Problems nobody thought of -------------*- C++ -*-===//

#ifndef ATTN_TEST_RANDOM_PROBLEM_H
#define ATTN_TEST_RANDOM_PROBLEM_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Problem.h"
#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

namespace attn {

inline std::ostream &operator<<(std::ostream &out, const Problem &p) {
  return out << name(p.dtype) << " b" << p.batch << " h" << p.heads << "/"
             << p.kvHeads << " " << p.queries << "x" << p.keys << " d"
             << p.headDim << "/" << p.headDimV << " " << str(p.mask) << " "
             << (p.pattern ? str(*p.pattern) + " " : "") << name(p.direction)
             << (p.deterministic ? " in order" : "")
             << (p.lseLow ? " in two words" : "");
}

class Random {
public:
  explicit Random(unsigned seed) : engine(seed) {}

  int64_t number(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine);
  }

  Mask mask() {
    Mask mask{static_cast<MaskKind>(number(0, 4))};
    if (mask.kind == MaskKind::window)
      mask = {MaskKind::window, number(0, 70), number(0, 70)};
    if (mask.kind == MaskKind::prefix)
      mask.keys = number(0, 70);
    return mask;
  }

  /// Ragged rows and head dimensions, grouped heads, any mask.
  Problem problem(int64_t mostRows) {
    Problem p;
    p.dtype = number(0, 1) ? DataType::bf16 : DataType::f16;
    p.batch = number(1, 3);
    p.kvHeads = number(1, 2);
    p.heads = p.kvHeads * number(1, 3);
    p.queries = number(1, mostRows);
    p.keys = number(1, mostRows);
    p.headDim = number(1, 80);
    p.headDimV = number(1, 80);
    p.mask = mask();
    p.lse = number(0, 1);
    p.lseLow = p.lse && number(0, 1);
    return p;
  }

  /// Blocks of any size, of which few or many are visible; some rows and
  /// columns of them may be empty.  One list, or one for each head.
  Pattern pattern(const Problem &p, int64_t mostBlock) {
    BlockSize size = {number(1, mostBlock), number(1, mostBlock)};
    int64_t choices[] = {1, p.kvHeads, p.heads};
    std::vector<BlockRows> lists(static_cast<size_t>(choices[number(0, 2)]));
    for (BlockRows &list : lists)
      list = blockRows((p.queries + size.queries - 1) / size.queries,
                       (p.keys + size.keys - 1) / size.keys, number(0, 100));
    return Pattern(size, std::move(lists));
  }

  BlockRows blockRows(int64_t rows, int64_t columns, int64_t percent) {
    BlockRows list;
    list.columns = columns;
    int64_t emptyRow = number(0, 2 * rows),
            emptyColumn = number(0, 2 * columns);
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> blocks;
      for (int64_t block = 0; block < columns; ++block)
        if (row != emptyRow && block != emptyColumn &&
            number(1, 100) <= percent)
          blocks.push_back(int32_t(block));
      list.add(blocks);
    }
    return list;
  }

  /// A number whose logarithm is as likely to be anywhere.
  int64_t magnitude(int64_t least, int64_t most) {
    double log = std::uniform_real_distribution<double>(
        std::log(double(least)), std::log(double(most) + 1))(engine);
    return std::clamp(int64_t(std::exp(log)), least, most);
  }

  const Machine &anyMachine() {
    return machines()[size_t(number(0, int64_t(machines().size()) - 1))];
  }

  /// What people run and what nobody does: any type and direction, few rows and
  /// many, narrow heads and wide ones.
  Problem anyProblem() {
    Problem p;
    p.dtype = static_cast<DataType>(number(0, 3));
    p.precision = number(0, 1) ? Precision::tf32 : Precision::tf32x3;
    p.batch = magnitude(1, 8);
    p.kvHeads = magnitude(1, 16);
    p.heads = p.kvHeads * magnitude(1, 8);
    p.queries = magnitude(1, 16384);
    p.keys = number(0, 1) ? p.queries : magnitude(1, 65536);
    p.headDim = width(p.dtype);
    p.headDimV = number(0, 3) ? p.headDim : width(p.dtype);
    p.alignment = kMaxAlignment;
    while (isUnaligned(p))
      p.alignment /= 2;
    p.mask = {static_cast<MaskKind>(number(0, 4))};
    if (p.mask.kind == MaskKind::window)
      p.mask = {MaskKind::window, magnitude(1, 4096) - 1,
                magnitude(1, 4096) - 1};
    if (p.mask.kind == MaskKind::prefix)
      p.mask.keys = magnitude(1, 4096) - 1;
    p.lse = number(0, 1);
    p.lseLow = p.lse && number(0, 3) == 0;
    if (number(0, 2) == 0) {
      p.direction = Direction::backward;
      p.lse = false;
      p.lseLow = number(0, 3) == 0;
      p.deterministic = number(0, 3) == 0;
      p.dlse = number(0, 3) == 0;
    }
    return p;
  }

  /// Hides all blocks but a share of them, of one list or of one for each head,
  /// where a problem may have a pattern.
  void hideBlocks(Problem &p) {
    p.pattern.emplace(BlockSize{64 * number(1, 4), 64 * number(1, 4)},
                      double(number(1, 9)) / 10, number(0, 1) == 0);
    if (check(p))
      p.pattern.reset();
  }

private:
  /// Four of five times what copy engines take.
  int64_t width(DataType type) {
    int64_t unit = kMaxAlignment / bytesOf(type);
    return number(0, 4) ? unit * magnitude(1, 2048 / unit) : magnitude(1, 2048);
  }
  /// Whether rows are not so aligned, one behind the other.
  static bool isUnaligned(const Problem &p) {
    return p.headDim * bytesOf(p.dtype) % p.alignment != 0 ||
           p.headDimV * bytesOf(p.dtype) % p.alignment != 0;
  }

  std::mt19937 engine;
};

/// Visibility by definition, for every pair.
inline bool isVisible(const Problem &p, int64_t i, int64_t j) {
  switch (p.mask.kind) {
  case MaskKind::none:
    return true;
  case MaskKind::causal:
    return j <= i;
  case MaskKind::causalBottomRight:
    return j <= i + p.keys - p.queries;
  case MaskKind::prefix:
    return j < p.mask.keys || j <= i + p.keys - p.queries;
  case MaskKind::window: {
    int64_t middle = i + p.keys - p.queries;
    return middle - p.mask.left <= j && j <= middle + p.mask.right;
  }
  }
  return false;
}

/// The same of a query head, with its blocks.
inline bool isVisible(const Problem &p, int64_t head, int64_t i, int64_t j) {
  if (!isVisible(p, i, j))
    return false;
  if (!p.pattern)
    return true;
  BlockSize size = p.pattern->size();
  return p.pattern->byQueries(p.pattern->listOf(head, p.heads))
      .sees(i / size.queries, j / size.keys);
}

/// Does any of those queries see any of those keys?  Both end with the problem.
inline bool sees(const Problem &p, int64_t i0, int64_t rows, int64_t j0,
                 int64_t cols) {
  for (int64_t i = i0; i < std::min(i0 + rows, p.queries); ++i)
    for (int64_t j = j0; j < std::min(j0 + cols, p.keys); ++j)
      if (isVisible(p, i, j))
        return true;
  return false;
}

/// How many of `size` rows, or columns, from `first` on there are.
inline int64_t clipped(int64_t first, int64_t size, int64_t limit) {
  return std::max<int64_t>(0, std::min(first + size, limit) - first);
}

} // namespace attn

#endif // ATTN_TEST_RANDOM_PROBLEM_H
