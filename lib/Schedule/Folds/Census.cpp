//===- Census.cpp - How often, and over how much --------------------------===//

#include "attn/Schedule/Census.h"
#include "Folds/WarpRows.h"
#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/SharedTiles.h"
#include <algorithm>
#include <bitset>
#include <cassert>
#include <utility>

using namespace attn;

static constexpr Axis axes[] = {Axis::Query, Axis::Key, Axis::HeadDim,
                                Axis::HeadDimV};

/// Rows of a warp's fragment.
static constexpr int64_t kFragmentRows = 16;
static size_t index(Axis axis) { return size_t(axis); }
using AxisSet = std::bitset<4>; // by index

namespace {

/// The loops around a verb.  Of the two row axes, the one entered first is
/// outer; a second loop over the inner one cuts its tiles.
struct Surroundings {
  size_t grid = 0;
  Crew crew; ///< of the grid
  /// Innermost step per axis; 0 where no loop cuts the axis.
  int64_t step[4] = {0, 0, 0, 0};
  bool entered[4] = {false, false, false, false};
  Axis outer = Axis::Query;
  int64_t outerStep = 0, innerStep = 0, innerCut = 0;
  bool hasOuter = false, hasInner = false;
  Visits visits;
  /// In a loop that gathers listed tiles: their rows and visits; 0: in none.
  int64_t gathers = 0;
  Visits gatheredTiles;
  /// Of a pipeline: the visits of its warpgroups.
  Visits groupVisits;
  /// In a loop whose tiles may be halves: the visits of halves; 0: in none.
  int64_t half = 0;
  Visits halfVisits;
};

/// The visits of one head, as those of so many: `heads` with outer tiles of
/// their own, and `lists` with pairs of their own.
Visits ofHeads(Visits one, int64_t heads, int64_t lists) {
  for (int64_t Visits::*tiles :
       {&Visits::outerTiles, &Visits::visitedTiles, &Visits::visitedRows})
    one.*tiles *= heads;
  for (int64_t Visits::*pairs :
       {&Visits::wholePairs, &Visits::raggedPairs, &Visits::wholePairRows,
        &Visits::raggedPairRows})
    one.*pairs *= lists;
  return one;
}

class Counter {
public:
  Counter(const Problem &problem, const Rounds &rounds,
          const VisitCounter &visits)
      : problem(problem), rounds(rounds), visits(visits) {}

  Census result;

  void launch(const Schedule::Launch &launch, size_t number) {
    bool isInRounds = rounds && number >= rounds.first;
    for (const Grid &one : launch.before)
      grid(one, isInRounds).isBefore = true;
    grid(launch.main, isInRounds);
    for (const Grid &one : launch.beside)
      grid(one, isInRounds).isBeside = true;
  }

private:
  GridCensus &grid(const Grid &node, bool isInRounds) {
    Surroundings around;
    around.grid = result.grids.size();
    around.crew = node;
    result.grids.push_back({});
    result.grids.back().warps = node.workers.warps;
    smem.clear();
    kept.clear();
    own = &node;
    enter(around, {node.axis, node.step});
    GridCensus &grid = result.grids.back();
    grid.headsOfSum = headsOfSum(problem, node.axis);
    int64_t tiles =
        ceilDiv(extent(problem, node.axis), tileOf(around, node.axis));
    grid.blocks = ceilDiv(tiles, node.sharing.cluster) * grid.headsOfSum;
    grid.rows = node.axis;
    grid.together = node.sharing.blocks();
    grid.firstStores = node.order.firstStores;
    bool isOverKeys = node.axis == Axis::Key;
    grid.heads = problem.batch *
                 (isOverKeys ? problem.kvHeads : problem.heads) /
                 grid.headsOfSum;
    if (isInRounds)
      cutIntoRounds(node);
    parts = node.sharing.keyParts > 1 ? node.sharing.keyParts : 0;
    body(node.body, around);
    result.grids.back().parts = std::max<int64_t>(1, parts);
    result.grids.back().blocks *= result.grids.back().parts;
    return result.grids.back();
  }

  const Problem &problem;
  const Rounds rounds;
  const VisitCounter &visits;
  /// Blocks of a tile of this grid, by parallel loops or parts of the keys.
  int64_t parts = 0;
  const Grid *own = nullptr; ///< that is counted
  /// Tensors that this grid has put into shared memory so far, and those of
  /// them that are left factors in registers.
  std::vector<Tensor> smem, kept;

  void cutIntoRounds(const Grid &node) {
    GridCensus &grid = result.grids.back();
    int64_t keyHeads = problem.batch * problem.kvHeads;
    bool isOverKeys = node.axis == Axis::Key;
    int64_t rows = extent(problem, rounds.axis);
    int64_t ofStrip = std::min(rows, rounds.strip);
    grid.strips = ceilDiv(rows, rounds.strip);
    grid.stripAxis = rounds.axis;
    bool isOfKeys = rounds.axis == Axis::Key;
    grid.stripKeys = isOfKeys ? ofStrip : problem.keys;
    grid.stripQueries = isOfKeys ? problem.queries : ofStrip;
    grid.headsAtOnce =
        double(std::min(rounds.heads, keyHeads) *
               (isOverKeys ? 1 : problem.heads / problem.kvHeads)) /
        double(grid.headsOfSum);
    if (node.axis == rounds.axis)
      grid.blocks = ceilDiv(ofStrip, node.step) * grid.headsOfSum;
  }

  int64_t tileOf(const Surroundings &around, Axis axis) const {
    int64_t whole = extent(problem, axis), step = around.step[index(axis)];
    return step ? std::min(step, whole) : whole;
  }

  struct Entry {
    Axis axis;
    int64_t step;
    bool isShare = false, seeks = false, isHalved = false;
    int64_t gathers = 0;
  };

  void enter(Surroundings &around, const Entry &node) {
    bool wasEntered = around.entered[index(node.axis)];
    bool isRow = node.axis == Axis::Query || node.axis == Axis::Key;
    int64_t step = node.step;
    if (node.isShare && step == 0)
      step = equalPart(problem, node.axis, around.crew.sharing.group);
    around.step[index(node.axis)] = step;
    around.entered[index(node.axis)] = true;
    // A share of a row axis is one block's, not one of each of a group.
    if (node.isShare && isRow)
      for (Axis axis : {Axis::HeadDim, Axis::HeadDimV})
        around.entered[index(axis)] = false;
    if (!isRow)
      return;
    if (!around.hasOuter) {
      around.hasOuter = true;
      around.outer = node.axis;
      around.outerStep = node.step * around.crew.sharing.cluster;
    } else if (!around.hasInner && node.axis != around.outer) {
      around.hasInner = true;
      around.innerStep = node.step;
    } else {
      assert(wasEntered && node.axis != around.outer &&
             "only the inner of the two row axes can be cut again");
      if (!node.seeks) {
        around.innerCut = node.step;
        return;
      }
      around.innerStep = node.step;
      around.innerCut = 0;
    }
    around.visits = dealtOut(visits(around.outer, around.outerStep,
                                    around.hasInner ? around.innerStep : 0),
                             problem, *own);
    if (node.gathers > 0 && problem.pattern)
      gather(around, node.gathers);
    if (node.isHalved) {
      around.half = node.step / 2;
      around.halfVisits = visits(around.outer, around.outerStep, around.half);
    }
    if (around.crew.isPipeline() && !around.crew.workers.isOfProducts)
      visitByGroup(around);
    else if (around.crew.isPipeline() && around.hasInner && !isInStep(around))
      around.groupVisits =
          visits(Axis::Query, kWarpgroupRows, around.innerStep);
    GridCensus &grid = result.grids.back();
    grid.span = ceilDiv(around.outer == Axis::Key ? around.visits.visitedRows
                                                  : around.visits.innerSpan,
                        headsOfSum(problem, Axis::Key));
    int64_t pairs = around.visits.wholePairs + around.visits.raggedPairs;
    if (around.hasInner && pairs > 0)
      grid.longest = double(around.visits.mostPairs) *
                     double(around.visits.outerTiles) / double(pairs);
    if (around.hasInner && (!node.seeks || around.crew.workers.isOfProducts)) {
      int64_t often = repeats(around);
      grid.steps =
          often * (around.visits.wholePairs + around.visits.raggedPairs);
      grid.mostSteps = often * around.visits.mostPairs;
      // A walk over keys ends with the strip.
      if (grid.strips > 0 && around.outer == Axis::Query)
        grid.mostSteps =
            std::min(grid.mostSteps, ceilDiv(grid.stripKeys, node.step));
      grid.groupSteps =
          around.groupVisits.wholePairs + around.groupVisits.raggedPairs;
    }
  }

  /// Steps are those of a list, and what they read that of its tiles.
  void gather(Surroundings &around, int64_t rows) const {
    around.gathers = rows;
    around.gatheredTiles = visits(around.outer, around.outerStep, rows);
    around.visits = gatheredVisits(problem, around.outer, around.outerStep,
                                   rows, around.innerStep / rows);
  }

  /// Visits as if every query saw every key.
  Visits everything(const Surroundings &around) const {
    Problem open = problem;
    open.mask = {}, open.bands = {};
    open.pattern.reset();
    Visits one =
        attn::visits(open, around.outer, around.outerStep, around.innerStep);
    return ofHeads(one, headsOfSum(problem, around.outer), listsOfSum(problem));
  }

  /// How often a block goes through its loop over the inner axis: for every
  /// query head that shares its key head, but once for those that visits add
  /// up.
  int64_t repeats(const Surroundings &around) const {
    bool isOverKeys = around.hasInner && around.outer == Axis::Key;
    return isOverKeys ? problem.heads / problem.kvHeads *
                            headsOfSum(problem, Axis::Key) / listsOfSum(problem)
                      : 1;
  }

  /// Rows of the outer axis, of all heads that are summed up.
  int64_t outerRows(const Surroundings &around) const {
    return extent(problem, around.outer) * headsOfSum(problem, around.outer) *
           around.crew.sharing.keyParts;
  }

  void visitByGroup(Surroundings &around) const {
    int64_t tiles = around.visits.outerTiles;
    // Of lists, and runs backward, there may be no step; but a group has one.
    bool isForward =
        problem.direction == Direction::forward && !problem.pattern;
    bool isMet =
        !problem.isListed() || isForward || around.crew.sharing.group > 1;
    auto visited = [&](Visits v, int64_t outerTiles) {
      return isMet ? atLeastOne(v, outerTiles, outerRows(around)) : v;
    };
    if (!around.crew.order.firstStores)
      around.visits = visited(around.visits, tiles);
    if (around.half > 0)
      around.halfVisits = visited(around.halfVisits, tiles);
    if (around.hasInner && !isInStep(around))
      around.groupVisits = visited(
          visits(Axis::Query, kWarpgroupRows, around.innerStep),
          tiles * around.crew.workers.warpgroups / around.crew.workers.across);
  }

  /// Whether warpgroups, of several blocks or over keys, make all their steps
  /// together; along runs of bands they pass over none.
  bool isInStep(const Surroundings &around) const {
    bool isAlong = around.outer == Axis::Key || !problem.bands.isEmpty();
    return around.crew.sharing.blocks() > 1 || around.crew.sharing.isInStep ||
           (around.crew.isPipeline() && isAlong);
  }

  static bool isByGroup(const Node &node, const Surroundings &around) {
    bool isWalked = around.hasInner || isOfRows(node);
    return around.crew.isPipeline() && isWalked && isGroupWork(node);
  }

  /// Whether the product of rows with the same rows is taken, for its diagonal.
  static bool isOfRows(const Node &node) {
    return node.is<verb::Multiply>() && !shapeOf(tensorOf(node)).cols;
  }

  /// Σ over the executions of a verb of the extents along the given axes.
  int64_t sum(const Surroundings &around, const Visits &visits, AxisSet over,
              bool isResult) const {
    auto has = [&](Axis axis) { return over[index(axis)]; };
    int64_t total = repeats(around) * rowSum(around, visits, has, isResult);
    for (Axis axis : {Axis::HeadDim, Axis::HeadDimV}) {
      int64_t whole = extent(problem, axis);
      if (has(axis))
        total *= whole;
      else if (around.entered[index(axis)])
        total *= ceilDiv(whole, tileOf(around, axis));
    }
    return total;
  }

  /// The part of `sum` that the row axes, and so the mask, decide.
  template <typename Has>
  int64_t rowSum(const Surroundings &around, const Visits &v, Has has,
                 bool isResult) const {
    int64_t queries = extent(problem, Axis::Query);
    int64_t keys = extent(problem, Axis::Key);
    if (!around.hasOuter)
      return (has(Axis::Query) ? queries : 1) * (has(Axis::Key) ? keys : 1);

    Axis inner = around.outer == Axis::Query ? Axis::Key : Axis::Query;
    int64_t innerRows = extent(problem, inner);
    if (!around.hasInner) {
      int64_t outer = has(around.outer)
                          ? (isResult ? outerRows(around) : v.visitedRows)
                          : (isResult ? v.outerTiles : v.visitedTiles);
      return outer * (has(inner) ? innerRows : 1);
    }
    bool byRow = has(around.outer);
    if (around.gathers > 0 && has(inner)) {
      const Visits &tiles = around.gatheredTiles;
      return (byRow ? tiles.wholePairRows : tiles.wholePairs) *
                 std::min(around.gathers, innerRows) +
             (byRow ? tiles.raggedPairRows : tiles.raggedPairs) *
                 (innerRows % around.gathers);
    }
    int64_t step =
        around.innerStep ? std::min(around.innerStep, innerRows) : innerRows;
    int64_t ragged = innerRows % step;
    int64_t cut = around.innerCut ? around.innerCut : step;
    int64_t perWhole = has(inner) ? step : ceilDiv(step, cut);
    int64_t perRagged = has(inner) ? ragged : ceilDiv(ragged, cut);
    if (around.innerCut && isInStep(around) && !has(inner))
      perWhole = perRagged = ceilDiv(around.innerStep, cut);
    return (byRow ? v.wholePairRows : v.wholePairs) * perWhole +
           (byRow ? v.raggedPairRows : v.raggedPairs) * perRagged;
  }

  /// Of what runs for every tile of the inner axis, how often for a half: what
  /// the mask shows of a tile are one half or two.
  static int64_t halvesOf(const Surroundings &around, int64_t count) {
    auto pairs = [](const Visits &v) { return v.wholePairs + v.raggedPairs; };
    int64_t tiles = pairs(around.visits);
    return tiles ? count / tiles * (2 * tiles - pairs(around.halfVisits)) : 0;
  }

  /// Whether a verb leaves out the half of a tile that is not seen.
  static bool isOfHalves(const Node &node, const Surroundings &around) {
    Axis inner = around.outer == Axis::Query ? Axis::Key : Axis::Query;
    bool streams = node.is<verb::Stream>() && hasAxis(tensorOf(node), inner);
    return around.half > 0 && (streams || node.is<verb::Multiply>());
  }

  static AxisSet axesOf(const Node &node) {
    auto *product = node.as<verb::Multiply>();
    AxisSet result;
    for (Axis axis : axes)
      result[index(axis)] =
          product ? hasAxis(product->a, axis) || hasAxis(product->b, axis)
                  : hasAxis(tensorOf(node), axis);
    return result;
  }

  /// What a tile occupies inside a multiprocessor: its rows do not shrink.
  int64_t wholeTileOf(const Surroundings &around, Axis axis) const {
    int64_t step = around.step[index(axis)];
    bool isRow = axis == Axis::Query || axis == Axis::Key;
    bool isWhole = isRow || around.crew.workers.isOfProducts;
    return isWhole && step ? step : tileOf(around, axis);
  }

  TileExtent tile(const Node &node, const Surroundings &around) const {
    Shape shape = shapeOf(tensorOf(node));
    TileExtent extent;
    extent.rows = wholeTileOf(around, shape.rows);
    extent.cols =
        shape.cols ? columnsOf(node).of(wholeTileOf(around, *shape.cols)) : 1;
    if (auto *product = node.as<verb::Multiply>())
      for (Axis axis : axes)
        if (hasAxis(product->a, axis) && hasAxis(product->b, axis))
          extent.depth = wholeTileOf(around, axis);
    // Of what lies the other way round, the transpose.
    if (around.hasOuter && shape.rows != around.outer &&
        shape.cols == around.outer)
      std::swap(extent.rows, extent.cols);
    // Units of a common ring are multiplied whole.
    if (around.crew.sharing.units > 0)
      extent.depth = roundUp(extent.depth, kPanelColumns);
    return extent;
  }

  static bool isIn(const std::vector<Tensor> &some, Tensor tensor) {
    return std::find(some.begin(), some.end(), tensor) != some.end();
  }
  bool isInSmem(Tensor tensor) const {
    // Values that are columns of keys need not come by themselves.
    bool isOfKeys = tensor == Tensor::V && problem.valuesOfKeys;
    return isIn(smem, tensor) || (isOfKeys && isIn(smem, Tensor::K));
  }

  /// Tiles of 64 rows that the warpgroups of a pipeline have in a step.
  int64_t groupTiles(const Node &node, const Surroundings &around,
                     int64_t rows) const {
    auto *product = node.as<verb::Multiply>();
    bool isDealt = product && product->columnGroups > 0;
    return isDealt
               ? ceilDiv(rows, kWarpgroupRows) * product->columnGroups
               : around.crew.workers.warpgroups / around.crew.workers.across;
  }

  /// What a grid of products passes on in whole tiles.  Of the last tiles
  /// of rows, sums are those of the strips of `wholeRows` that there are.
  int64_t wholeElements(const Use &use, const Surroundings &around) const {
    const Node &node = *use.node;
    Shape shape = shapeOf(tensorOf(node));
    int64_t cols = use.tile.cols;
    if (shape.cols == Axis::Key)
      return use.count * use.tile.rows * cols;
    int64_t width = shape.cols ? extent(problem, *shape.cols) : 1;
    int64_t rows = use.elements / width * ceilDiv(width, cols);
    int64_t step = use.tile.rows, all = use.count;
    int64_t last = extent(problem, shape.rows) % step;
    int64_t lasts = last ? (all * step - rows) / (step - last) : 0;
    return ((all - lasts) * step +
            lasts * roundUp(last, scratchOf(node).wholeRows)) *
           cols;
  }

  /// What lies in scratch in whole tiles: that of a step, or all of it.
  int64_t wholeElements(const Node &node, const Surroundings &around,
                        int64_t count) const {
    Shape shape = shapeOf(tensorOf(node));
    int64_t heads = result.grids.back().headsOfSum;
    int64_t whole = extent(problem, shape.rows);
    bool isOfVisited =
        around.hasInner || (node.is<verb::Absorb>() && !isAlways(node));
    int64_t rows = isOfVisited
                       ? count * around.step[index(shape.rows)]
                       : heads * roundUp(whole, scratchOf(node).wholeRows);
    return shape.cols ? rows * paddedColumns(node, extent(problem, *shape.cols),
                                             problem)
                      : rows;
  }

  void leaf(const Node &node, const Surroundings &around) {
    using namespace verb;
    Tensor tensor = tensorOf(node);
    InScratch scratch = scratchOf(node);
    auto *product = node.as<Multiply>();
    if (node.is<Store>() && tensor == Tensor::Lse && !problem.lse)
      return;
    if (tensor == Tensor::GradLse && !problem.dlse)
      return;
    if (isIdle(node, problem))
      return;
    if (putsInSmem(node))
      smem.push_back(tensor);
    bool isResult = node.is<Store>() || isAlways(node);
    Use use;
    use.node = &node;
    use.grid = around.grid;
    bool byGroup = isByGroup(node, around);
    // In a loop over strips also those that nothing sees.
    const Visits visits = isAlways(node) && around.hasInner ? everything(around)
                          : byGroup && !isInStep(around)    ? around.groupVisits
                                                            : around.visits;
    use.warps =
        byGroup ? 1 : around.crew.workers.warps / around.crew.workers.across;
    use.across = around.crew.workers.across;
    use.handsOver = around.crew.workers.handsOver;
    use.count = sum(around, visits, {}, isResult) * around.crew.sharing.cluster;
    use.elements = sum(around, visits, axesOf(node), isResult);
    if (isOfHalves(node, around)) {
      use.halves = halvesOf(around, use.count);
      Surroundings halved = around;
      halved.innerStep = around.half;
      use.elements = sum(halved, around.halfVisits, axesOf(node), isResult);
    }
    use.tile = tile(node, around);
    if (isBetween(node)) {
      Surroundings once = around;
      once.hasInner = false;
      int64_t shares = around.innerCut && isInStep(around)
                           ? ceilDiv(around.innerStep, around.innerCut)
                           : 1;
      use.count -= shares * sum(once, visits, {}, isResult) *
                   around.crew.sharing.cluster;
      use.elements -= shares * sum(once, visits, axesOf(node), isResult);
    }
    // Of a group, who computed it still has it.
    if (node.is<Absorb>() && around.crew.sharing.group > 1) {
      use.count -= use.count / around.crew.sharing.group;
      use.elements -= use.elements / around.crew.sharing.group;
    }
    if (node.is<Absorb>() && scratch.keyParts > 0) // all of them
      use.count *= scratch.keyParts, use.elements *= scratch.keyParts;
    if (columnsOf(node))
      use.elements =
          use.elements / extent(problem, *shapeOf(tensor).cols) * use.tile.cols;
    if (byGroup && isInStep(around)) {
      int64_t groups = groupTiles(node, around, use.tile.rows);
      use.count *= groups;
      use.count -= stepsOfResting(problem, around.crew.sharing,
                                  around.outerStep, around.innerStep);
      use.halves *= groups;
    }
    if (byGroup)
      use.tile.rows = kWarpgroupRows;
    if (isOfRows(node))
      use.tile.cols = use.tile.rows;
    if (product && product->columnGroups > 0)
      use.tile.cols =
          paddedColumns(node, use.tile.cols, problem) / product->columnGroups;
    use.moved = use.elements;
    if (scratch.partColumns > 0 && isInput(tensor, problem)) {
      int64_t columns = extent(problem, *shapeOf(tensor).cols);
      use.moved = use.elements / columns * columnsMoved(node, columns);
    }
    if (scratch.wholeRows > 0)
      use.moved = around.crew.workers.isOfProducts
                      ? wholeElements(use, around)
                      : wholeElements(node, around, use.count);
    if (scratch.slots > 0)
      use.moved = use.count * use.tile.rows *
                  (shapeOf(tensor).cols ? padded(tensor, use.tile.cols, problem)
                                        : kThreadsPerRow);
    use.isPanelled = around.crew.isPipeline();
    if (use.isPanelled && needsSplit(problem))
      use.partProducts =
          around.crew.workers.isOfProducts ? kScaledProducts : kPartProducts;
    if (node.is<Hold>() && !putsInSmem(node) && isInSmem(tensor)) {
      use.aInSmem = true;
      kept.push_back(tensor);
    }
    if (product) {
      use.aInSmem = isInSmem(product->a) && !isIn(kept, product->a);
      use.bInSmem = isInSmem(product->b);
    }
    if (node.is<Weigh>())
      use.aInSmem = isInSmem(Tensor::Lse) || isInSmem(Tensor::Stats);
    if (node.is<Differentiate>())
      use.aInSmem = isInSmem(Tensor::Delta) || isInSmem(Tensor::Stats);
    if (byGroup && use.aInSmem && !product)
      use.warps = kWarpgroupRows / kFragmentRows;
    result.uses.push_back(use);
  }

  void body(const Body &nodes, const Surroundings &around) {
    auto streams = [](const Node &node) { return node.is<verb::Stream>(); };
    if (std::any_of(nodes.begin(), nodes.end(), streams))
      result.grids.back().handovers += sum(around, around.visits, {}, false);
    for (const Node &node : nodes)
      if (auto *loop = node.as<verb::Loop>())
        walk(*loop, around);
      else if (auto *share = node.as<verb::Share>())
        deal(*share, around);
      else
        leaf(node, around);
  }

  void walk(const verb::Loop &loop, Surroundings around) {
    enter(around, {loop.axis, loop.step, false, loop.seeks, loop.isHalved,
                   loop.gathers});
    GridCensus &grid = result.grids.back();
    if (loop.isParallel) { // in a round
      bool isOfStrip = loop.axis == Axis::Key && grid.stripKeys > 0;
      parts += ceilDiv(isOfStrip ? grid.stripKeys : extent(problem, loop.axis),
                       tileOf(around, loop.axis));
    }
    grid.stages = std::max(grid.stages, loop.stages);
    body(loop.body, around);
  }

  void deal(const verb::Share &share, Surroundings around) {
    enter(around, {share.axis, share.step, /*isShare=*/true});
    body(share.body, around);
  }
};

} // namespace

Census attn::census(const Schedule &schedule, const Problem &problem) {
  return census(schedule, problem,
                [&](Axis outer, int64_t outerStep, int64_t innerStep) {
                  return visits(problem, outer, outerStep, innerStep);
                });
}

Census attn::census(const Schedule &schedule, const Problem &problem,
                    const VisitCounter &visits) {
  Counter counter(problem, schedule.rounds, visits);
  for (size_t i = 0; i < schedule.launches.size(); ++i)
    counter.launch(schedule.launches[i], i);
  return std::move(counter.result);
}
