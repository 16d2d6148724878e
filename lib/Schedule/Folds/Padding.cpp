//===- Padding.cpp - Columns as shared memory and fragments have them -----===//

#include "attn/Schedule/Census.h"

using namespace attn;

int64_t attn::padded(Tensor tensor, int64_t cols, const Problem &problem,
                     int64_t parts) {
  std::optional<Axis> axis = shapeOf(tensor).cols;
  if (axis == Axis::HeadDim)
    return roundUp(cols,
                   std::max<int64_t>(16, kStepBytes / bytesOf(problem.dtype)));
  return axis == Axis::HeadDimV ? roundUp(cols, 16 * parts) : cols;
}

int64_t attn::paddedColumns(const Node &node, int64_t cols,
                            const Problem &problem) {
  if (int64_t groups = columnGroupsOf(node))
    return roundUp(cols, groups * kPanelColumns);
  return padded(tensorOf(node), cols, problem);
}
