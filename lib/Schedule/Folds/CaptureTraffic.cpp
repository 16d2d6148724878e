//===- CaptureTraffic.cpp - Bytes of gradients of captures ----------------===//
//
// Gradients of scores are worked out in one grid or two, and the first of these
// has those of captures: of every block of scores each element is a word that
// is added, hidden or not, for each read of a pair; and of a head every warp
// leaves a word for its rows.  Sums of sinks are left where D is.
//
//===----------------------------------------------------------------------===//

#include "CaptureTraffic.h"

#include <algorithm>

using namespace attn;

static constexpr int64_t kWordBytes = 4;
/// Rows of a warp that leaves a word.
static constexpr int64_t kRows = 16;

/// The first grid that has such a use.
template <typename Test>
static bool isFirst(const Census &census, size_t grid, Test test) {
  auto found = std::find_if(census.uses.begin(), census.uses.end(), test);
  return found != census.uses.end() && found->grid == grid;
}

static bool differentiates(const Use &use) {
  return use.node->is<verb::Differentiate>();
}

/// D by itself, or beside what is added to scores.
static bool leavesDelta(const Use &use) {
  Tensor tensor = tensorOf(*use.node);
  return use.node->is<verb::Spill>() &&
         (tensor == Tensor::Delta || tensor == Tensor::Stats);
}

int64_t attn::captureBytes(const Census &census, size_t grid,
                           const Problem &problem) {
  const ScoreClauses &clauses = problem.clauses;
  if (problem.direction == Direction::forward || !clauses.anyGradients())
    return 0;
  int64_t words = 0;
  int64_t ofHeads =
      problem.batch * problem.heads * ceilDiv(problem.queries, kRows);
  if (isFirst(census, grid, differentiates)) {
    for (const Use &use : census.uses)
      if (use.grid == grid && differentiates(use))
        words += clauses.pairGradients * use.count * use.tile.rows *
                 use.tile.cols * census.grids[grid].heads;
    words += clauses.headGradients * ofHeads;
  }
  if (clauses.sinkGradients && isFirst(census, grid, leavesDelta))
    words += ofHeads;
  return words * kWordBytes;
}
