//===- Steps.h - Extents of the tiles around a node -------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_FOLDS_STEPS_H
#define ATTN_LIB_SCHEDULE_FOLDS_STEPS_H

#include "attn/Schedule/Schedule.h"

#include <algorithm>

namespace attn {

/// The steps of the loops around a node, by axis; 0 where none cuts it.
struct Steps {
  int64_t step[4] = {0, 0, 0, 0};
  int64_t group = 1; ///< blocks among which an axis is shared

  Steps inside(const verb::Loop &loop) const {
    Steps result = *this;
    result.step[static_cast<size_t>(loop.axis)] = loop.step;
    return result;
  }
  Steps inside(const verb::Share &share, const Problem &problem) const {
    Steps result = *this;
    result.step[static_cast<size_t>(share.axis)] =
        share.step ? share.step : equalPart(problem, share.axis, group);
    return result;
  }
  /// In the body of a node that has one.
  Steps inside(const Node &node, const Problem &problem) const {
    if (auto *loop = node.as<verb::Loop>())
      return inside(*loop);
    auto *share = node.as<verb::Share>();
    return share ? inside(*share, problem) : *this;
  }
  static Steps of(const Grid &grid) {
    Steps result;
    result.group = grid.sharing.group;
    result.step[static_cast<size_t>(grid.axis)] = grid.step;
    return result;
  }
  /// Extent of a tile; a kernel's buffers do not shrink with the problem.
  int64_t tile(Axis axis, const Problem &problem, bool isClipped) const {
    int64_t step = this->step[static_cast<size_t>(axis)];
    int64_t whole = extent(problem, axis);
    if (step == 0)
      return whole;
    bool isRow = axis == Axis::Query || axis == Axis::Key;
    return isRow && !isClipped ? step : std::min(step, whole);
  }
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_FOLDS_STEPS_H
