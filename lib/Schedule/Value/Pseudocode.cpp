//===- Pseudocode.cpp - A schedule as a person would write it -------------===//

#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Census.h"
#include <algorithm>

using namespace attn;

namespace {

class Writer {
public:
  explicit Writer(const Problem &problem) : problem(problem) {}
  std::string text;

  void launch(const Launch &launch) {
    std::vector<const Grid *> grids = launch.grids();
    size_t main = launch.before.size();
    for (size_t i = 0; i < grids.size(); ++i)
      if (i < main)
        gridBefore(*grids[i], *grids[i + 1]);
      else if (i > main)
        besideGrid(*grids[i], *grids[i - 1]);
      else
        grid(*grids[i]);
  }

  /// What the grids behind take turns for.
  void rounds(const Rounds &rounds) {
    int64_t heads = problem.batch * problem.kvHeads;
    int64_t rows = extent(problem, rounds.axis);
    line("for every " + counted(rounds.heads, "key head") + " (" +
         std::to_string(ceilDiv(heads, rounds.heads)) +
         " times) and then every strip of " + std::to_string(rounds.strip) +
         (rounds.axis == Axis::Key ? " keys (" : " queries (") +
         std::to_string(ceilDiv(rows, rounds.strip)) +
         " of them), one launch after the other:");
    ++depth;
  }

private:
  void grid(const Grid &node, const std::string &where = "") {
    begin(node, where + "parallel for every batch, " + headOf(node) + " and " +
                    range(node) + ", " + crew(node));
  }

  /// By blocks of the grid before it.
  void besideGrid(const Grid &node, const Grid &before) {
    if (node.workers.isOfProducts) // tiles of one queue
      return grid(node, "in the same launch, after what it reads, ");
    begin(node, "beside it, once all " + std::string(name(before.axis)) +
                    " tiles of a " + headOf(before) + " are done, for every " +
                    range(node) + " of its heads, by spare warps");
  }

  void gridBefore(const Grid &node, const Grid &behind) {
    if (node.workers.isOfProducts) // tiles of one queue
      return grid(node, "in the next launch, before what needs it, ");
    begin(node, "in the next launch, before the " +
                    std::string(name(behind.axis)) + " tiles of a " +
                    headOf(behind) + ", for every " + range(node) +
                    " of its heads, by spare warps");
  }

  const Problem &problem;
  int64_t step[4] = {0, 0, 0, 0};
  int depth = 0;
  int64_t group = 1;
  WorkOrder order;          ///< of the grid
  std::vector<Tensor> held; ///< so far, by a block of the grid

  void line(const std::string &sentence) {
    text += std::string(2 * depth, ' ') + sentence + "\n";
  }

  void begin(const Grid &node, const std::string &sentence) {
    step[size_t(node.axis)] = node.step;
    group = node.sharing.group;
    order = node.order;
    held.clear();
    line(sentence + ":");
    body(node.body);
    step[size_t(node.axis)] = 0;
  }

  static std::string headOf(const Grid &node) {
    return node.axis == Axis::Key ? "key head" : "head";
  }

  /// `query tile of 128 (32 of them)`; a second loop cuts the tile of the
  /// first.
  template <typename Walk> std::string range(const Walk &node) const {
    int64_t cut = step[size_t(node.axis)];
    int64_t whole = cut > 0 ? cut : extent(problem, node.axis);
    int64_t tile = node.step ? node.step : whole;
    return std::string(name(node.axis)) + " tile of " + std::to_string(tile) +
           " (" + std::to_string(ceilDiv(whole, tile)) + " of them)";
  }

  /// `4 warps`; of a pipeline also how it works.
  static std::string crew(const Grid &node) {
    const Crew &how = node;
    if (!how.isPipeline())
      return std::to_string(node.workers.warps) + " warps" +
             across(node, "warp");
    return counted(how.workers.warpgroups, "warpgroup") + " and a producer" +
           (how.sharing.group > 1
                ? ", in groups of " + counted(how.sharing.group, "block")
                : "") +
           (how.sharing.cluster > 1
                ? ", in clusters of " + counted(how.sharing.cluster, "block") +
                      " that multicast " +
                      (how.workers.isOfProducts ? "right factors"
                                                : "keys and values")
                : "") +
           (how.sharing.units > 0
                ? ", through a ring of " + counted(how.sharing.units, "unit")
                : "") +
           (how.workers.isOfProducts
                ? ", factors of " + std::to_string(kProductRows) + " and " +
                      std::to_string(how.sharing.width) + " in one ring"
                : "") +
           across(node, "warpgroup") +
           (how.order.isPersistent ? ", persistent" : "") +
           (how.order.takesTurns ? ", ping-pong" : "") +
           (how.order.overlaps ? overlap(node) : "") +
           (how.order.takesShortFirst ? ", the shortest first" : "");
  }

  /// What is worked out beside what.
  static const char *overlap(const Grid &node) {
    return node.axis == Axis::Key ? ", dV of a step beside its dS"
                                  : ", S of a step beside O of the last";
  }

  /// `, 2 on the same rows`.
  static std::string across(const Grid &node, const char *what) {
    if (node.workers.across == 1)
      return "";
    return ", " + counted(node.workers.across, what) + " on the same rows";
  }

  /// `1 block`, `2 blocks`.
  static std::string counted(int64_t count, const char *what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  }

  /// `, in 3 parts`.
  static std::string parts(const Node &node) {
    return node.partColumns > 0 ? ", in " + counted(kScaledParts, "part") : "";
  }

  /// `K[64 x 128]`; of some columns only, those.
  std::string tile(const Node &node) const {
    std::optional<Axis> axis = shapeOf(node.tensor).cols;
    if (!axis || (node.first == 0 && node.columns == 0))
      return tile(node.tensor);
    int64_t whole = extent(problem, *axis);
    return tile(node.tensor) + ", columns " + std::to_string(node.first) +
           " to " + std::to_string(node.first + columnsOf(node, whole)) + ",";
  }

  /// Whether some columns are meant and there are none.
  bool isNothing(const Node &node) const {
    std::optional<Axis> axis = shapeOf(node.tensor).cols;
    return axis && columnsOf(node, extent(problem, *axis)) == 0;
  }

  /// `K[64 x 128]`.
  std::string tile(Tensor tensor) const {
    Shape shape = shapeOf(tensor);
    auto size = [&](Axis axis) {
      int64_t cut = step[size_t(axis)];
      return std::to_string(cut ? cut : extent(problem, axis));
    };
    bool isInTwo = tensor == Tensor::Lse && problem.lseLow;
    return std::string(name(tensor)) + "[" + size(shape.rows) +
           (shape.cols ? " x " + size(*shape.cols) : "") + "]" +
           (isInTwo ? " in two words" : "");
  }

  void body(const Body &nodes) {
    ++depth;
    for (const Node &node : nodes)
      statement(node);
    --depth;
  }

  bool isMaskedLoop(const Node &node) const {
    bool isRow = node.axis == Axis::Query || node.axis == Axis::Key;
    return isRow && !problem.mask.isOpen() &&
           (step[size_t(node.axis)] == 0 || node.seeks);
  }

  void statement(const Node &node) {
    switch (node.verb) {
    case Verb::loop: {
      std::string suffix =
          isMaskedLoop(node) ? " that " + str(problem.mask) + " lets see" : "";
      if (node.isHalved)
        suffix += ", or the half of it that is seen";
      std::string ring = node.stages > 1
                             ? ", " + std::to_string(node.stages) + " in flight"
                             : "";
      line((node.isParallel ? "at once for every " : "for every ") +
           range(node) + suffix + ring + ":");
      int64_t outer = step[size_t(node.axis)];
      step[size_t(node.axis)] = node.step;
      body(node.body);
      step[size_t(node.axis)] = outer;
      return;
    }
    case Verb::share: {
      int64_t outer = step[size_t(node.axis)];
      int64_t part =
          node.step ? node.step : equalPart(problem, node.axis, group);
      line("each block of the group, for its " + std::string(name(node.axis)) +
           " tile of " + std::to_string(part) + ":");
      step[size_t(node.axis)] = part;
      body(node.body);
      step[size_t(node.axis)] = outer;
      return;
    }
    case Verb::hold:
      held.push_back(node.tensor);
      return line("keep " + tile(node.tensor) + " in " +
                  std::string(name(node.level)) +
                  (node.stages > 1 ? ", double-buffered" : ""));
    case Verb::load:
      if (node.tensor == Tensor::GradLse && !problem.dlse)
        return;
      held.push_back(node.tensor);
      return line("load " + tile(node) + " to " +
                  std::string(name(node.level)) + ", to stay" +
                  (node.stages > 1 ? ", double-buffered" : ""));
    case Verb::stream:
      if (isNothing(node))
        return;
      return line("stream " + tile(node) + " through " +
                  std::string(name(node.level)) + parts(node));
    case Verb::absorb:
      if (node.isKept) {
        held.push_back(node.tensor);
        return line("read " + tile(node.tensor) + ", which was kept");
      }
      return line("read " + tile(node.tensor) +
                  (node.slots || node.wholeRows ? " back" : "") +
                  " and fold it in" +
                  (node.isBetween ? ", except in the first step" : ""));
    case Verb::transpose:
      if (!needsTranspose(problem))
        return;
      return line("transpose " + tile(node.tensor) + " in " +
                  std::string(name(node.level)));
    case Verb::split:
      if (!needsSplit(problem))
        return;
      return line("split " + tile(node.tensor) + " in " +
                  std::to_string(kSplitParts) + " of bf16 in " +
                  std::string(name(node.level)));
    case Verb::multiply:
      return line(std::string(name(node.tensor)) +
                  (liesAcross(node.tensor, node.a) ? "^T" : "") +
                  " += " + std::string(name(node.a)) +
                  (contractsRows(node) ? "^T" : "") + " . " +
                  std::string(name(node.b)) + (isTransposed(node) ? "^T" : "") +
                  (shapeOf(node.tensor).cols ? "" : ", the diagonal"));
    case Verb::softmax:
      held.push_back(Tensor::P);
      return line("P = exp(" + std::string(name(node.tensor)) +
                  " - running max), update running max and sum");
    case Verb::weigh:
      held.push_back(Tensor::P);
      return line("P = exp(" + std::string(name(node.tensor)) + " - LSE)");
    case Verb::differentiate:
      held.push_back(Tensor::GradS);
      return line("dS = P * (" + std::string(name(node.tensor)) + " - D)");
    case Verb::rescale:
      return line("rescale " + std::string(name(node.tensor)) +
                  (problem.direction == Direction::backward
                       ? " from its max to LSE"
                       : " to the new max"));
    case Verb::spill:
      if (node.isKept)
        return line("store " + tile(node.tensor) + ", to be kept");
      // Sums that nothing has been added to.
      if (node.wholeRows > 0 &&
          std::find(held.begin(), held.end(), node.tensor) == held.end())
        return line("spill " + tile(node.tensor) + " of zeros to scratch");
      return line(
          "spill " + tile(node.tensor) + " to scratch" +
          (node.slots ? ", in " + counted(node.slots, "slot") + " in turn"
                      : "") +
          (node.isBetween ? ", except in the last step" : "") + parts(node));
    case Verb::reduce:
      return line("add " + tile(node.tensor) + " to " +
                  (node.wholeRows ? "the sums" : "a slot") + " in scratch" +
                  (order.isOrdered ? ", after the tile before" : "") +
                  (order.firstStores ? ", or store it as the first" : ""));
    case Verb::store:
      if (node.tensor == Tensor::Lse && !problem.lse)
        return;
      return line("store " + tile(node.tensor) +
                  (node.step
                       ? ", " + std::to_string(node.step) + " columns at a time"
                       : ""));
    }
  }

  /// Whether a product with rows of `a` has the result's columns for rows.
  static bool liesAcross(Tensor result, Tensor a) {
    return shapeOf(result).cols == shapeOf(a).rows;
  }

  /// Whether the left factor enters by its columns: dV += P^T . dO.
  static bool contractsRows(const Node &node) {
    return shapeOf(node.a).cols == shapeOf(node.tensor).rows;
  }

  static bool isTransposed(const Node &node) {
    return shapeOf(node.b).cols != shapeOf(node.tensor).cols;
  }
};

} // namespace

std::string attn::pseudocode(const Schedule &schedule, const Problem &problem) {
  Writer writer(problem);
  for (size_t i = 0; i < schedule.launches.size(); ++i) {
    if (schedule.rounds && i == schedule.rounds.first)
      writer.rounds(schedule.rounds);
    writer.launch(schedule.launches[i]);
  }
  return writer.text;
}
