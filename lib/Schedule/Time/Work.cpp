//===- Work.cpp - What a grid has multiprocessors do ----------------------===//

#include "Time/Work.h"
#include "Folds/PipelineFootprint.h"
#include "attn/Schedule/Calibration.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace attn;

/// Instructions of compiled kernels, by how products are issued: of 32 scores
/// of a softmax, of a step for every 16 rows, of 32 scores that a mask may
/// hide.
namespace {
struct Slots {
  double softmax, step, hide;
};
} // namespace
static constexpr Slots kLikeWarps = {4.6, 45, 3}, kWarpgroups = {5.3, 99, 12};
/// Of 32 weights from a known LSE, of dS from dP, of scores that gradients and
/// blocks of products look at for being hidden.
static constexpr double kWeighSlots = 2.5, kDifferentiateSlots = 2.5,
                        kHideSlots = 3;
/// Bytes that an instruction of a warp moves, and instructions of a copy.
static constexpr double kBytesPerInstruction = 512, kCopySlots = 3;
/// Bytes of L1 that a lane's read of a number takes.
static constexpr double kReadBytes = 8;
/// FLOPs of an instruction: m16n8k16; a product in tf32x3 with its sums; FMA.
static constexpr double kFlopsPerMma = 4096, kFlopsPerSplitMma = 435,
                        kFlopsPerFma = 64;
/// Of 32 factors that are split, or rounded.
static constexpr double kSplitSlots = 3, kRoundSlots = 4;
/// Of 32 outputs: scaled, converted and staged by a warpgroup.
static constexpr double kEpilogueSlots = 2.7, kStripClocks = 116;
/// Clocks of a warp that transposes 32 x 16 bytes, splits 8 x 64 of f32 or
/// widens 16 x 64 bytes, and in which it waits for barriers, per step or tile.
static constexpr double kTransposeClocks = 24, kTransposeWait = 200,
                        kSplitUnitClocks = 240, kSplitWait = 250,
                        kWidenUnitClocks = 150, kWidenWait = 283;
/// Of all warps that widen, the clocks of a unit: 86 instructions, of which 64
/// convert at half the rate, take 38 of the schedulers, which a softmax and
/// shared memory hold up.  Blocks of 64 and of 96 keys (437 and 380 us of 64
/// caches of 8192 keys on an H200) give this and the wait.
static constexpr double kWidenSharedClocks = 60;
/// Of 32 weights that are split, and of 32 outputs that a sum is added to.
static constexpr double kSplitWeightSlots = 12, kAddSlots = 1.5;
/// Shares of the rate that products of parts reach, as sums leave the tensor
/// cores 64 columns at a time; of parts that a launch before has made.
static constexpr double kPartsShare = 0.68, kScaledPartsShare = 0.88;
/// Rows of a warp's fragment.
static constexpr int64_t kFragmentRows = 16;
/// FLOPs per clock and multiprocessor.
static double productRate(const Machine &machine, const Problem &problem,
                          TensorCoreFamily family, bool is8Bit) {
  switch (family) {
  case TensorCoreFamily::none:
    return machine.fp32FlopsPerClockPerSm;
  case TensorCoreFamily::mmaSync:
    // On every part that has tf32 it runs at half the rate of 16 bits.
    if (problem.dtype == DataType::f32)
      return machine.mmaSyncFlopsPerClockPerSm / 2 /
             double(productsPerProduct(problem));
    return machine.mmaSyncFlopsPerClockPerSm * (is8Bit ? 2 : 1);
  case TensorCoreFamily::wgmma:
  case TensorCoreFamily::tcgen05:
    if (needsSplit(problem))
      return machine.tensor16FlopsPerClockPerSm / double(kPartProducts) *
             kPartsShare;
    return is8Bit ? machine.tensor8FlopsPerClockPerSm
                  : machine.tensor16FlopsPerClockPerSm;
  }
  return 0;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void Copies::add(const Use &use, const Problem &problem) {
  const Node &node = *use.node;
  double moved = double(use.moved) * bytesMoved(node, problem);
  bytes += moved;
  // What a launch has left is whole lines.
  Tensor tensor = tensorOf(node);
  bool isRead = node.is<verb::Load>() || node.is<verb::Stream>();
  if (!isRead || !isInput(tensor, problem) || scratchOf(node).partColumns > 0) {
    rows += moved / double(kLineBytes);
    return;
  }
  int64_t columns = extent(problem, *shapeOf(tensor).cols);
  int64_t row = columns * bytesPerElement(tensor, problem);
  double boxes =
      double(use.elements) / double(columns) * double(ceilDiv(row, kLineBytes));
  if (!use.isPanelled) // slices of a row
    boxes = std::max(boxes, double(use.elements) /
                                std::min<double>(use.tile.cols, columns));
  rows += boxes;
  reaching += boxes * (1 - double(std::gcd(row, kLineBytes)) / kLineBytes);
  if (row % kSectorBytes != 0)
    cut += boxes;
}

//===----------------------------------------------------------------------===//
// One leaf after the other
//===----------------------------------------------------------------------===//

/// FLOPs of one issued instruction of a warp.
static double flopsPerInstruction(TensorCoreFamily family,
                                  const Problem &problem) {
  if (family == TensorCoreFamily::none)
    return kFlopsPerFma;
  if (family != TensorCoreFamily::mmaSync)
    return HUGE_VAL; // one instruction is a whole tile
  if (problem.dtype != DataType::f32)
    return kFlopsPerMma;
  return productsPerProduct(problem) > 1 ? kFlopsPerSplitMma : kFlopsPerMma / 2;
}

static double paddedArea(const Use &use, const Problem &problem) {
  return double(use.count) * use.tile.rows *
         padded(tensorOf(*use.node), use.tile.cols, problem, use.columnParts());
}

/// Scores of a tile that an edge of a mask cuts: blocks of so many keys that a
/// band as wide as the tile has rows meets, on average.
static double cutScores(int64_t rows, int64_t keys) {
  return double(keys + rows - std::gcd(keys, rows)) * double(rows);
}

static LeafClocks operator-(const LeafClocks &a, const LeafClocks &b) {
  LeafClocks less = a;
  for (double LeafClocks::*clocks :
       {&LeafClocks::tensor, &LeafClocks::smem, &LeafClocks::exp,
        &LeafClocks::issue, &LeafClocks::helpers, &LeafClocks::epilogue})
    less.*clocks -= b.*clocks;
  return less;
}

namespace {

class Worker {
public:
  Worker(const Census &census, const Grid &node, size_t number,
         const Problem &problem, const Machine &machine,
         TensorCoreFamily family)
      : census(census), number(number), problem(problem), machine(machine),
        family(family), grid(census.grids[number]), node(node),
        isPipeline(node.isPipeline()), order(node.order), sharing(node.sharing),
        rate(productRate(machine, problem, family,
                         problem.dtype == DataType::f8e4m3)),
        slots(isPipeline ? kWarpgroups : kLikeWarps) {}

  Work work() {
    describe();
    for (const Use &use : census.uses)
      if (use.grid == number)
        add(use);
    finish();
    return std::move(w);
  }

  std::vector<LeafClocks> leaves() {
    std::vector<LeafClocks> all;
    describe();
    for (const Use &use : census.uses)
      if (use.grid == number) {
        LeafClocks before = clocks(use);
        add(use);
        all.push_back(clocks(use) - before);
      }
    return all;
  }

private:
  const Census &census;
  size_t number;
  const Problem &problem;
  const Machine &machine;
  TensorCoreFamily family;
  const GridCensus &grid;
  const Grid &node;
  bool isPipeline;
  const WorkOrder &order;
  const Sharing &sharing;
  double rate;
  Slots slots;
  Work w;
  double helperWarps = 1;
  double shareOfScores = 1; ///< of halved blocks, what is multiplied
  double keys = 1;          ///< of a block of scores
  double agreements = 0, products = 0;
  double unitFills = 0;  ///< of a common ring
  double leaving = 0;    ///< tiles of columns that are stored or spilled
  int64_t stepRows = 1;  ///< of the axis that a tile of sums walks along
  bool isOfRows = false; ///< what is made is a number for each row
  bool isMasked() const { return !problem.mask.isOpen(); }
  bool isBackward() const { return problem.direction == Direction::backward; }
  bool isProducts() const { return node.workers.isOfProducts; }

  void describe() {
    w.heads = double(grid.heads);
    w.together = double(grid.together);
    w.tiles = double(grid.blocks);
    w.isWgmma = isPipeline;
    w.isOfProducts = isProducts();
    w.isListed = problem.isListed();
    w.isPersistent = order.isPersistent;
    w.isSplit = w.isWgmma && needsSplit(problem);
    if (w.isOfProducts && w.isSplit)
      rate = machine.tensor16FlopsPerClockPerSm / double(kScaledProducts) *
             kScaledPartsShare;
    if (isPipeline) {
      w.workers = double(node.workers.warpgroups) /
                  double(node.workers.handsOver ? 1 : node.workers.across);
      w.blocksPerSm = double(node.workers.pairs);
      helperWarps = double(budgetOf(node, problem).helperWarps());
      w.overlaps = order.overlaps;
      w.isInHalves = order.isInHalves;
      w.order = order.takesTurns ? Order::Turns
                : node.workers.isOfProducts || sharing.blocks() > 1
                    ? Order::Together
                : order.overlaps || sharing.isInStep || isBackward()
                    ? Order::Overlapped
                    : Order::Free;
    } else {
      Footprint space = gridFootprint(node, problem, machine);
      w.workers = double(grid.warps) / double(kSchedulersPerSm);
      w.blocksPerSm = double(std::max<int64_t>(1, space.blocksPerSm));
      w.order = Order::Alike;
    }
    w.slots = double(sharing.units > 0 ? sharing.units : grid.stages);
    w.slotsRead = sharing.units > 0 ? 2 : isProducts() ? 1 : 0;
    w.sharesTiles = sharing.group > 1;
    int64_t resident = machine.sms * int64_t(w.blocksPerSm);
    if (isPipeline)
      resident = resident / grid.together * grid.together;
    resident = std::max<int64_t>(1, resident);
    w.bytes = gridTraffic(census, number, problem, machine, resident);
    for (const Use &use : census.uses)
      if (!isPipeline && use.grid == number && isSumBack(*use.node))
        w.lost =
            shareOfPlacesLost(census, number, problem, machine, resident, {});
  }

  /// So far.
  LeafClocks clocks(const Use &use) const {
    return {&use,      w.tensor, w.smem, w.exp, w.issue, w.helpers + w.helped,
            w.epilogue};
  }

  void add(const Use &use) {
    const Node &node = *use.node;
    double area = paddedArea(use, problem);
    double smem = attn::smemBytes(use, problem);
    w.smem += smem / machine.smemBytesPerClockPerSm;
    if (movesRows(node))
      w.copies.add(use, problem);
    node.match(
        [&](const verb::Multiply &product) {
          multiply(product, use, area, smem);
        },
        [&](const verb::Softmax &) { softmax(use, area); },
        [&](const verb::Weigh &) { weigh(use, area); },
        [&](const verb::Differentiate &) {
          stepRows = use.tile.cols;
          w.isMadeOfScores |= isProducts();
          issue(area / 32 * (kDifferentiateSlots + rounding()));
        },
        [&](const verb::Rescale &scaled) {
          // Of wgmma hardly ever: when a maximum grows by 2^8.
          if (!isPipeline)
            issue(area / 32);
          else if (scaled.tensor == Tensor::P) // in pairs
            issue(area / 64);
        },
        [&](const verb::Stream &) { stream(use, area, smem); },
        [&](const verb::Load &load) {
          w.residentBytes += double(use.moved) * bytesMoved(node, problem);
          w.takesNext |= order.isPersistent && load.buffers > 1;
          copy(use, area);
        },
        [&](const verb::Absorb &) { absorb(use, area); },
        [&](const verb::Spill &spilled) { spill(spilled, use, area); },
        [&](const verb::Reduce &) {
          if (isPipeline) // from registers to shared memory
            issue(double(use.moved) * bytesMoved(node, problem) /
                  kBytesPerInstruction * kCopySlots);
          copy(use, area);
        },
        [&](const verb::Store &stored) { store(stored, use, area); },
        [&](const verb::Transpose &) {
          // Warps take 32 rows each in turn.
          double chunks = std::ceil(use.tile.rows / 32.0 / helperWarps);
          w.helpers += chunks * padded(tensorOf(node), use.tile.cols, problem) /
                           16 * kTransposeClocks +
                       kTransposeWait;
        },
        [&](const verb::Widen &) {
          // Warps take turns at units of 16 rows and a panel.
          int64_t units =
              use.tile.rows / 16 * ceilDiv(use.tile.cols, kPanelColumns);
          w.helpers +=
              double(units) *
                  std::max(kWidenSharedClocks, kWidenUnitClocks / helperWarps) +
              kWidenWait;
        },
        [&](const verb::Split &split) {
          // Warps take turns at units of 8 rows and a panel.
          int64_t units =
              use.tile.rows / 8 * ceilDiv(use.tile.cols, kPanelColumns);
          double clocks =
              std::ceil(double(units) / helperWarps) * kSplitUnitClocks +
              kSplitWait;
          (split.tensor == Tensor::Q ? w.helped : w.helpers) += clocks;
        },
        [&](const verb::Hold &hold) {
          // Warps share what they put there, behind a barrier.
          if (isPipeline && hold.level == Level::Smem)
            agreements += double(use.count) / std::max(1.0, w.workers);
        },
        [](verb::OneOf<verb::Loop, verb::Share>) {});
  }

  /// Whether it brings rows of a head or of scores, or takes them away.
  static bool movesRows(const Node &node) {
    using namespace verb;
    return node.match(
        [&](OneOf<Load, Stream, Absorb, Spill, Reduce, Store>) {
          return shapeOf(tensorOf(node)).cols.has_value();
        },
        [](OneOf<Loop, Share, Hold, Transpose, Widen, Split, Multiply, Softmax,
                 Weigh, Differentiate, Rescale>) { return false; });
  }

  /// Whether sums of O come back from places of the block.
  static bool isSumBack(const Node &node) {
    return node.is<verb::Absorb>() && tensorOf(node) == Tensor::O &&
           scratchOf(node).slots > 0;
  }

  void issue(double slots) { w.issue += slots / kSchedulersPerSm; }

  /// Of a score, on average: full blocks of lists ask no region of `sees`, and
  /// neither do open ones of runs.
  RegionCost regionCost(const Use &use) const {
    const ScoreClauses &clauses = problem.clauses;
    if (problem.pattern)
      return clauses.scoreCost;
    if (problem.bands.isEmpty())
      return clauses.scoreCost + clauses.seesCost;
    bool ownsKeys = node.axis == Axis::Key;
    double share =
        cutShareOfBands(problem, ownsKeys ? use.tile.rows : node.step,
                        ownsKeys ? node.step : use.tile.cols);
    return clauses.scoreCost + clauses.seesCost * share;
  }

  /// What regions make of so many scores: every read of a warp takes as long as
  /// what it brings for each lane.
  void addRegions(double area, const Use &use) {
    const ScoreClauses &clauses = problem.clauses;
    if (!clauses.sees && !clauses.score)
      return;
    RegionCost cost = regionCost(use);
    w.exp += area * cost.functions / machine.expPerClockPerSm;
    w.smem += area * cost.reads * kReadBytes / machine.smemBytesPerClockPerSm;
    issue(area / 32 * (cost.issue + (isBackward() ? cost.slopes : 0)));
  }

  /// Slots of 32 elements that become factors of tf32.
  double rounding() const {
    if (problem.dtype != DataType::f32 || family != TensorCoreFamily::mmaSync)
      return 0;
    return productsPerProduct(problem) > 1 ? kSplitSlots : kRoundSlots;
  }

  void multiply(const verb::Multiply &node, const Use &use, double area,
                double smem) {
    double flops =
        2 * area * use.shareOfKeys() * padded(node.a, use.tile.depth, problem);
    bool isOfBytes =
        node.tensor == Tensor::S && problem.precision == Precision::f8_qk;
    double clocks = flops / (isOfBytes ? productRate(machine, problem, family,
                                                     /*is8Bit=*/true)
                                       : rate);
    if (w.isWgmma) // a product reads shared memory itself
      clocks = std::max(clocks, smem / machine.smemBytesPerClockPerSm);
    w.tensor += clocks;
    if (node.tensor == Tensor::O)
      w.output += clocks;
    if (node.tensor == Tensor::S)
      shareOfScores = use.shareOfKeys();
    products += double(use.count);
    isOfRows |= !shapeOf(node.tensor).cols;
    if (isProducts() && !w.isMadeOfScores) // of parts, blocks of two slices
      stepRows = w.isSplit ? 2 * use.tile.depth : use.tile.depth;
    if (w.isSplit && (node.tensor == Tensor::O || isProducts()))
      issue(area / 32 * kAddSlots);
    if (!w.isWgmma)
      issue(flops / flopsPerInstruction(family, problem) +
            loads(node, use, smem));
  }

  /// Instructions that load factors out of shared memory, so many bytes.
  double loads(const verb::Multiply &node, const Use &use, double bytes) const {
    constexpr double lanes = 32, elementBytes = 4;
    if (problem.dtype != DataType::f32 || family != TensorCoreFamily::mmaSync)
      return bytes / kBytesPerInstruction;
    // No instruction transposes 32-bit elements: where rows are contracted,
    // each is a load of its own.
    bool isAlongRows = shapeOf(node.b).cols == shapeOf(node.tensor).cols;
    return bytes / (isAlongRows ? lanes * elementBytes : kBytesPerInstruction) +
           bytes / (lanes * elementBytes) * rounding();
  }

  void softmax(const Use &use, double area) {
    keys = double(use.tile.cols);
    stepRows = use.tile.cols;
    w.isMadeOfScores |= isProducts();
    area *= shareOfScores;
    w.exp += area / machine.expPerClockPerSm;
    issue(area / 32 *
          (slots.softmax + rounding() + (w.isSplit ? kSplitWeightSlots : 0)));
    addRegions(area, use);
    if (use.columnParts() > 1)
      agreements += double(use.count);
    if (isProducts()) {
      if (isMasked())
        issue(area / 32 * kHideSlots);
      return;
    }
    issue(double(use.count) * use.tile.rows / kFragmentRows *
          use.columnParts() * slots.step);
    if (!isMasked())
      return;
    double edges = isPipeline && problem.mask.hidesBefore() ? 2 : 1;
    double rows = double(use.tile.rows);
    double strips = double(grid.blocks * grid.together) *
                    (isPipeline ? std::max(1.0, w.workers) : 1.0);
    double cut = edges * strips * cutScores(int64_t(rows), use.tile.cols);
    issue(std::min(area, cut) / 32 * slots.hide);
  }

  void weigh(const Use &use, double area) {
    stepRows = use.tile.cols;
    keys = double(use.tile.cols);
    w.isMadeOfScores |= isProducts();
    w.exp += area / machine.expPerClockPerSm;
    issue(area / 32 * (kWeighSlots + rounding()));
    addRegions(area, use);
    if (isMasked() && isPipeline)
      issue(area / 32 * kHideSlots);
  }

  /// Like warps copy by themselves.
  void copy(const Use &use, double area) {
    if (!isPipeline)
      issue(area * bytesMoved(*use.node, problem) / kBytesPerInstruction *
            kCopySlots);
  }

  void stream(const Use &use, double area, double smem) {
    w.streamedBytes += double(use.moved) * bytesMoved(*use.node, problem);
    if (sharing.units > 0)
      unitFills += tensorOf(*use.node) == Tensor::V && sharing.group > 1
                       ? double(use.tile.rows) * double(use.count) / 32
                       : smem / double(kUnitBytes);
    copy(use, area);
  }

  void absorb(const Use &use, double area) {
    const Node &node = *use.node;
    double bytes = double(use.moved) * bytesMoved(node, problem);
    if (sharing.group > 1 || !isPipeline)
      issue((isPipeline ? bytes : area * bytesMoved(node, problem)) /
            kBytesPerInstruction * kCopySlots);
    if (isBetween(node) && isProducts())
      w.waitingBytes += bytes;
    if (isPipeline && isSumBack(node)) {
      w.returns += double(use.count);
      w.returnBytes += bytes;
    }
  }

  void spill(const verb::Spill &node, const Use &use, double area) {
    double bytes = double(use.moved) * bytesMoved(*use.node, problem);
    leaving += shapeOf(node.tensor).cols ? double(use.count) : 0;
    if (node.isBetween && isProducts())
      w.waitingBytes += bytes;
    else if (!isPipeline)
      copy(use, area);
    else if (node.isStaged || sharing.group > 1)
      issue(bytes / kBytesPerInstruction * kCopySlots);
    if (node.scratch.partColumns > 0)
      issue(area / 32 * kSplitWeightSlots);
  }

  void store(const verb::Store &node, const Use &use, double area) {
    if (!shapeOf(node.tensor).cols)
      return;
    leaving += double(use.count);
    if (!isPipeline)
      return copy(use, area);
    w.epilogue += area / 32 / kSchedulersPerSm * kEpilogueSlots;
    if (node.atOnce > 0) // each strip of the staging buffer waits for the last
      w.epilogue += double(use.count) * w.workers *
                    double(ceilDiv(use.tile.cols, node.atOnce) - 1) *
                    kStripClocks;
    if (sharing.reusesPlaces)
      w.returnBytes += double(use.moved) * bytesMoved(*use.node, problem);
  }

  void finish() {
    double blocks = w.tiles * w.together;
    w.steps = std::max(1.0, double(grid.steps) * w.together);
    if (isProducts())
      w.steps = w.isMadeOfScores
                    ? std::max(1.0, double(grid.steps))
                    : std::max(1.0, double(grid.steps) * double(grid.parts));
    w.epilogue /= blocks, w.residentBytes /= blocks;
    w.returns /= blocks, w.returnBytes /= blocks;
    w.waitingBytes /= blocks * std::max<double>(1, double(grid.strips));
    // A single buffer is handed over before every product; a ring hands over
    // all that a step streams at once.
    double handed =
        isPipeline || grid.stages > 1 ? double(grid.handovers) : products;
    w.handovers =
        isProducts() && isPipeline ? 1 : (handed + agreements) / w.steps;
    if (sharing.group > 1)
      w.exchanges = double(sharing.group) * (sharing.cluster > 1 ? 1 : 0.6);
    else if (isProducts() && w.isMadeOfScores)
      w.exchanges = 2; // the last product of all, and P leaves
    w.units = sharing.units > 0 ? unitFills / w.steps
              : isProducts() || grid.isSliced()
                  ? std::max(1.0, double(grid.handovers) * w.together / w.steps)
                  : 1;
    if (sharing.units > 0 &&
        sharing.group == 1) // tiles of columns leave by themselves
      w.leaves = leaving / blocks;
    if (grid.groupSteps > 0 && w.workers > 1) {
      double all = w.workers * double(grid.steps);
      w.lonely = (all - double(grid.groupSteps)) / (all - double(grid.steps));
    }
    if (isProducts())
      w.rounds = roundsOfProducts(w, grid, node, problem, stepRows, isOfRows);
    else
      w.rounds = {allTiles(grid, node)};
    if (isPipeline && !isBackward() && !isProducts() && w.slotsRead == 0)
      followTiles(w, node, problem, machine, int64_t(keys));
    if (isPipeline && isBackward() && !isProducts())
      w.sums = sumsOf(census, number, node, problem, machine);
  }
};

} // namespace

Work attn::workOf(const Census &census, const Grid &node, size_t number,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family) {
  return Worker(census, node, number, problem, machine, family).work();
}

std::vector<LeafClocks> attn::leafClocks(const Census &census, const Grid &node,
                                         size_t number, const Problem &problem,
                                         const Machine &machine,
                                         TensorCoreFamily family) {
  return Worker(census, node, number, problem, machine, family).leaves();
}
