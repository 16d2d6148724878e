//===- Pseudocode.cpp - A schedule as a person would write it -------------===//

#include "attn/Schedule/Pseudocode.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/SharedTiles.h"
#include <algorithm>

using namespace attn;

/// `1 block`, `2 blocks`.
static std::string counted(int64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// `, 2 on the same rows`.
static std::string across(const Grid &node, const char *what) {
  if (node.workers.across == 1)
    return "";
  return ", " + counted(node.workers.across, what) + " on the same rows";
}

/// What is worked out beside what.
static const char *overlap(const Grid &node) {
  return node.axis == Axis::Key ? ", dV of a step beside its dS"
                                : ", S of a step beside O of the last";
}

std::string attn::crewText(const Grid &node) {
  const Crew &how = node;
  if (!how.isPipeline())
    return counted(node.workers.warps, "warp") + across(node, "warp");
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
         (how.workers.pairs > 1
              ? " for each of " + counted(how.workers.pairs, "tile") +
                    " at once"
              : "") +
         (how.order.takesTurns ? ", ping-pong" : "") +
         (how.order.overlaps ? overlap(node) : "") +
         (how.order.takesShortFirst ? ", the shortest first" : "");
}

/// Whether a product with rows of `a` has the result's columns for rows.
static bool liesAcross(Tensor result, Tensor a) {
  return shapeOf(result).cols == shapeOf(a).rows;
}

/// Whether the left factor enters by its columns: dV += P^T . dO.
static bool contractsRows(const verb::Multiply &node) {
  return shapeOf(node.a).cols == shapeOf(node.tensor).rows;
}

static bool isTransposed(const verb::Multiply &node) {
  return shapeOf(node.b).cols != shapeOf(node.tensor).cols;
}

std::string attn::whatShows(const Problem &problem) {
  if (!problem.bands.isEmpty())
    return "a union of " + str(problem.bands);
  if (!problem.pattern)
    return str(problem.mask);
  std::string list = "a list of blocks";
  return problem.mask.isOpen() ? list : list + " under " + str(problem.mask);
}

std::string attn::formulaOf(const verb::Multiply &product) {
  return std::string(name(product.tensor)) +
         (liesAcross(product.tensor, product.a) ? "^T" : "") +
         " += " + std::string(name(product.a)) +
         (contractsRows(product) ? "^T" : "") + " . " +
         std::string(name(product.b)) + (isTransposed(product) ? "^T" : "");
}

namespace {

class Writer {
public:
  explicit Writer(const Problem &problem) : problem(problem) {}
  std::string text;

  void launch(const Schedule::Launch &launch) {
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
    std::string parts = node.sharing.keyParts > 1
                            ? " and each of " +
                                  counted(node.sharing.keyParts, "part") +
                                  " of its keys"
                            : "";
    begin(node, where + "parallel for every batch, " + headOf(node) + " and " +
                    range(node) + parts + ", " + crewText(node));
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
  int64_t group = 1, keyParts = 1;
  WorkOrder order;          ///< of the grid
  std::vector<Tensor> held; ///< so far, by a block of the grid

  void line(const std::string &sentence) {
    text += std::string(2 * depth, ' ') + sentence + "\n";
  }

  void begin(const Grid &node, const std::string &sentence) {
    step[size_t(node.axis)] = node.step;
    group = node.sharing.group;
    keyParts = node.sharing.keyParts;
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

  /// `, in 3 parts`.
  static std::string parts(const InScratch &scratch) {
    return scratch.partColumns > 0 ? ", in " + counted(kScaledParts, "part")
                                   : "";
  }

  /// `K[64 x 128]`; of some columns only, those.
  std::string tile(Tensor tensor, ColumnRange some) const {
    std::optional<Axis> axis = shapeOf(tensor).cols;
    if (!axis || !some)
      return tile(tensor);
    int64_t last = some.first + some.of(extent(problem, *axis));
    return tile(tensor) + ", columns " + std::to_string(some.first) + " to " +
           std::to_string(last) + ",";
  }

  /// Whether some columns are meant and there are none.
  bool isNothing(const verb::Stream &stream) const {
    std::optional<Axis> axis = shapeOf(stream.tensor).cols;
    return axis && stream.columns.of(extent(problem, *axis)) == 0;
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
      node.match([this](const auto &verb) { statement(verb); });
    --depth;
  }

  /// The body of a loop with such steps.
  void inside(Axis axis, int64_t extent, const Body &nodes) {
    int64_t outer = step[size_t(axis)];
    step[size_t(axis)] = extent;
    body(nodes);
    step[size_t(axis)] = outer;
  }

  bool isMasked(const verb::Loop &loop) const {
    bool isRow = loop.axis == Axis::Query || loop.axis == Axis::Key;
    return isRow && !problem.isOpen() &&
           (step[size_t(loop.axis)] == 0 || loop.seeks);
  }

  //===--------------------------------------------------------------------===//
  // A sentence for each verb
  //===--------------------------------------------------------------------===//

  void statement(const verb::Loop &loop) {
    std::string suffix =
        isMasked(loop) ? " that " + whatShows(problem) + " lets see" : "";
    if (loop.axis == Axis::Key && keyParts > 1)
      suffix += ", dealt out to the parts";
    if (loop.isHalved)
      suffix += ", or the half of it that is seen";
    std::string ring = loop.stages > 1
                           ? ", " + std::to_string(loop.stages) + " in flight"
                           : "";
    line((loop.isParallel ? "at once for every " : "for every ") + range(loop) +
         suffix + ring + ":");
    inside(loop.axis, loop.step, loop.body);
  }

  void statement(const verb::Share &share) {
    int64_t part =
        share.step ? share.step : equalPart(problem, share.axis, group);
    line("each block of the group, for its " + std::string(name(share.axis)) +
         " tile of " + std::to_string(part) + ":");
    inside(share.axis, part, share.body);
  }

  void statement(const verb::Hold &hold) {
    held.push_back(hold.tensor);
    line("keep " + tile(hold.tensor) + " in " + std::string(name(hold.level)) +
         (hold.buffers > 1 ? ", double-buffered" : ""));
  }

  void statement(const verb::Load &load) {
    if (load.tensor == Tensor::GradLse && !problem.dlse)
      return;
    held.push_back(load.tensor);
    line("load " + tile(load.tensor, load.columns) + " to " +
         std::string(name(load.level)) + ", to stay" +
         (load.buffers > 1 ? ", double-buffered" : ""));
  }

  void statement(const verb::Stream &stream) {
    if (!isNothing(stream))
      line("stream " + tile(stream.tensor, stream.columns) + " through " +
           std::string(name(stream.level)) + parts(stream.scratch));
  }

  void statement(const verb::Absorb &absorb) {
    const InScratch &scratch = absorb.scratch;
    if (scratch.isKept) {
      held.push_back(absorb.tensor);
      return line("read " + tile(absorb.tensor) + ", which was kept");
    }
    if (scratch.keyParts > 0)
      return line("read " + tile(absorb.tensor) + " of all " +
                  counted(scratch.keyParts, "part") + " and add it up");
    line("read " + tile(absorb.tensor) +
         (scratch.slots || scratch.wholeRows ? " back" : "") +
         " and fold it in" +
         (absorb.isBetween ? ", except in the first step" : ""));
  }

  void statement(const verb::Transpose &transpose) {
    if (needsTranspose(problem))
      line("transpose " + tile(transpose.tensor) + " in smem");
  }

  void statement(const verb::Widen &widened) {
    if (needsWidening(problem))
      line("rewrite " + tile(widened.tensor) + " in " +
           std::string(name(problem.dtype)) + " in smem");
  }

  void statement(const verb::Split &split) {
    if (needsSplit(problem))
      line("split " + tile(split.tensor) + " in " +
           std::to_string(kSplitParts) + " of bf16 in smem");
  }

  void statement(const verb::Multiply &product) {
    line(formulaOf(product) +
         (shapeOf(product.tensor).cols ? "" : ", the diagonal"));
  }

  void statement(const verb::Softmax &softmax) {
    held.push_back(Tensor::P);
    line("P = exp(" + std::string(name(softmax.tensor)) +
         " - running max), update running max and sum");
  }

  void statement(const verb::Weigh &weigh) {
    held.push_back(Tensor::P);
    line("P = exp(" + std::string(name(weigh.tensor)) + " - LSE)");
  }

  void statement(const verb::Differentiate &gradient) {
    held.push_back(Tensor::GradS);
    line("dS = P * (" + std::string(name(gradient.tensor)) + " - D)");
  }

  void statement(const verb::Rescale &scaled) {
    line("rescale " + std::string(name(scaled.tensor)) +
         (problem.direction == Direction::backward ? " from its max to LSE"
                                                   : " to the new max"));
  }

  void statement(const verb::Spill &spill) {
    const InScratch &scratch = spill.scratch;
    if (scratch.isKept)
      return line("store " + tile(spill.tensor) + ", to be kept");
    // Sums that nothing has been added to.
    if (scratch.wholeRows > 0 &&
        std::find(held.begin(), held.end(), spill.tensor) == held.end())
      return line("spill " + tile(spill.tensor) + " of zeros to scratch");
    line("spill " + tile(spill.tensor) + " to scratch" +
         (scratch.slots ? ", in " + counted(scratch.slots, "slot") + " in turn"
                        : "") +
         (spill.isBetween ? ", except in the last step" : "") + parts(scratch));
  }

  void statement(const verb::Reduce &reduce) {
    line("add " + tile(reduce.tensor) + " to " +
         (reduce.scratch.wholeRows ? "the sums" : "a slot") + " in scratch" +
         (order.isOrdered ? ", after the tile before" : "") +
         (order.firstStores ? ", or store it as the first" : ""));
  }

  void statement(const verb::Store &store) {
    if (store.tensor == Tensor::Lse && !problem.lse)
      return;
    line("store " + tile(store.tensor) +
         (store.atOnce
              ? ", " + std::to_string(store.atOnce) + " columns at a time"
              : ""));
  }
};

} // namespace

std::string attn::pseudocode(const Schedule &schedule, const Problem &asked) {
  const Problem problem = withSharedRows(asked, schedule);
  Writer writer(problem);
  for (size_t i = 0; i < schedule.launches.size(); ++i) {
    if (schedule.rounds && i == schedule.rounds.first)
      writer.rounds(schedule.rounds);
    writer.launch(schedule.launches[i]);
  }
  return writer.text;
}
