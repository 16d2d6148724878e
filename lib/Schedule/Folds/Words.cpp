//===- Words.cpp - What fast memory holds, by the two-level model ---------===//

#include "Folds/PipelineFootprint.h"
#include "Folds/Steps.h"
#include "attn/Schedule/Footprint.h"

using namespace attn;

int64_t attn::padded(Tensor tensor, int64_t cols, const Problem &problem,
                     int64_t parts) {
  std::optional<Axis> axis = shapeOf(tensor).cols;
  if (axis == Axis::HeadDim)
    return roundUp(cols,
                   std::max<int64_t>(16, kStepBytes / bytesOf(problem.dtype)));
  return axis == Axis::HeadDimV ? roundUp(cols, 16 * parts) : cols;
}

namespace {

/// A walk over the leaves with what their scopes hold.
class Holder {
public:
  explicit Holder(const Problem &problem) : problem(problem) {}
  std::vector<HeldWords> leaves;

  void grid(const Grid &grid) {
    hasUnits = grid.sharing.units > 0;
    body(grid.body, Steps::of(grid), {});
  }

private:
  const Problem &problem;
  bool hasUnits = false; ///< what streams comes unit by unit

  void body(const Body &nodes, Steps steps, HeldWords held) {
    for (const Node &node : nodes)
      if (occupies(node))
        (levelOf(node) == Level::Smem ? held.smem : held.registers) +=
            words(node, steps);
    for (const Node &node : nodes)
      if (node.is<verb::Loop>() || node.is<verb::Share>())
        body(bodyOf(node), steps.inside(node, problem), held);
      else
        leaves.push_back(held);
  }

  int64_t words(const Node &node, const Steps &steps) const {
    Shape shape = shapeOf(tensorOf(node));
    int64_t words = steps.tile(shape.rows, problem, true) *
                    wordsPerElement(tensorOf(node), problem);
    if (shape.cols)
      words *= steps.tile(*shape.cols, problem, true);
    int64_t unit = kUnitBytes / bytesPerElement(tensorOf(node), problem);
    return hasUnits && node.is<verb::Stream>() ? std::min(words, unit) : words;
  }
};

} // namespace

std::vector<HeldWords> attn::heldWords(const Schedule &schedule,
                                       const Problem &problem) {
  Holder holder(problem);
  for (const Grid *grid : schedule.grids())
    holder.grid(*grid);
  return std::move(holder.leaves);
}

int64_t attn::peakWords(const Schedule &schedule, const Problem &problem) {
  int64_t most = 0;
  for (const HeldWords &held : heldWords(schedule, problem))
    most = std::max(most, held.all());
  return most;
}
