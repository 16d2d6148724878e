//===- Pseudocode.cpp - A schedule as a person would write it -------------===//

#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Census.h"

using namespace attn;

namespace {

class Writer {
public:
  explicit Writer(const Problem &problem) : problem(problem) {}
  std::string text;

  void grid(const Node &node) {
    step[size_t(node.axis)] = node.step;
    line("parallel for every batch, head and " + range(node) + ", " +
         crew(node) + ":");
    body(node.body);
    step[size_t(node.axis)] = 0;
  }

private:
  const Problem &problem;
  int64_t step[4] = {0, 0, 0, 0};
  int depth = 0;

  void line(const std::string &sentence) {
    text += std::string(2 * depth, ' ') + sentence + "\n";
  }

  /// `query tile of 128 (32 of them)`.
  std::string range(const Node &node) const {
    int64_t whole = extent(problem, node.axis);
    int64_t tile = node.step ? node.step : whole;
    return std::string(name(node.axis)) + " tile of " + std::to_string(tile) +
           " (" + std::to_string(ceilDiv(whole, tile)) + " of them)";
  }

  /// `4 warps`; of a pipeline also how it works.
  static std::string crew(const Node &node) {
    const Pipeline &how = node.pipeline;
    if (!how)
      return std::to_string(node.warps) + " warps";
    return std::to_string(how.warpgroups) +
           (how.warpgroups == 1 ? " warpgroup" : " warpgroups") +
           " behind one that loads" +
           (how.isPersistent ? ", tile after tile" : "") +
           (how.takesTurns ? ", taking turns" : "") +
           (how.overlaps ? ", S of a step beside O of the last" : "");
  }

  /// `K[64 x 128]`.
  std::string tile(Tensor tensor) const {
    Shape shape = shapeOf(tensor);
    auto size = [&](Axis axis) {
      int64_t cut = step[size_t(axis)];
      return std::to_string(cut ? cut : extent(problem, axis));
    };
    return std::string(name(tensor)) + "[" + size(shape.rows) +
           (shape.cols ? " x " + size(*shape.cols) : "") + "]";
  }

  void body(const Body &nodes) {
    ++depth;
    for (const Node &node : nodes)
      statement(node);
    --depth;
  }

  bool isMaskedLoop(const Node &node) const {
    bool isRow = node.axis == Axis::Query || node.axis == Axis::Key;
    return isRow && problem.mask.kind != MaskKind::none &&
           step[size_t(node.axis)] == 0;
  }

  void statement(const Node &node) {
    switch (node.verb) {
    case Verb::grid:
      return;
    case Verb::loop: {
      std::string suffix =
          isMaskedLoop(node) ? " that " + str(problem.mask) + " lets see" : "";
      std::string ring = node.stages > 1
                             ? ", " + std::to_string(node.stages) + " in flight"
                             : "";
      line("for every " + range(node) + suffix + ring + ":");
      int64_t outer = step[size_t(node.axis)];
      step[size_t(node.axis)] = node.step;
      body(node.body);
      step[size_t(node.axis)] = outer;
      return;
    }
    case Verb::hold:
      return line("keep " + tile(node.tensor) + " in " +
                  std::string(name(node.level)));
    case Verb::load:
      return line("load " + tile(node.tensor) + " to " +
                  std::string(name(node.level)) + ", to stay" +
                  (node.stages > 1 ? ", the next one beside it" : ""));
    case Verb::stream:
      return line("stream " + tile(node.tensor) + " through " +
                  std::string(name(node.level)));
    case Verb::absorb:
      return line("read " + tile(node.tensor) + " and fold it in");
    case Verb::transpose:
      if (!needsTranspose(problem))
        return;
      return line("rewrite " + tile(node.tensor) + " by columns in " +
                  std::string(name(node.level)));
    case Verb::multiply:
      return line(std::string(name(node.tensor)) +
                  " += " + std::string(name(node.a)) + " . " +
                  std::string(name(node.b)) + (isTransposed(node) ? "^T" : ""));
    case Verb::softmax:
      return line("P = exp(" + std::string(name(node.tensor)) +
                  " - running max), update running max and sum");
    case Verb::rescale:
      return line("rescale " + std::string(name(node.tensor)) +
                  " to the new max");
    case Verb::spill:
      return line("spill " + tile(node.tensor) + " to scratch");
    case Verb::store:
      if (node.tensor == Tensor::Lse && !problem.lse)
        return;
      return line("store " + tile(node.tensor) +
                  (node.step
                       ? ", " + std::to_string(node.step) + " columns at a time"
                       : ""));
    }
  }

  static bool isTransposed(const Node &node) {
    return shapeOf(node.b).cols != shapeOf(node.tensor).cols;
  }
};

} // namespace

std::string attn::pseudocode(const Schedule &schedule, const Problem &problem) {
  Writer writer(problem);
  for (const Node &grid : schedule.grids)
    writer.grid(grid);
  return writer.text;
}
