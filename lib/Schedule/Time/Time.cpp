//===- Time.cpp - How long, and what binds --------------------------------===//

#include "attn/Schedule/Time.h"
#include "Time/GradientTime.h"
#include "Time/GroupTime.h"
#include "Time/HeldTime.h"
#include "Time/PipelineTime.h"
#include "Time/ProductTime.h"
#include <algorithm>
#include <cmath>

using namespace attn;

/// Rows of a warp's fragment.
static constexpr int64_t kFragmentRows = 16;

namespace {

/// Work of one launch for the units of a multiprocessor, in their own currency.
struct UnitWork {
  double flops = 0, exps = 0, slots = 0, smemBytes = 0;
  double products = 0; ///< executions of a product, each behind a barrier
  /// Of warps on the same rows on a maximum, each behind a barrier of theirs.
  double agreements = 0;
  /// Tiles of scores of gradients, and bytes that leave for other launches.
  double scoreTiles = 0, spilledBytes = 0;
};

/// Clocks that each unit of one multiprocessor is busy with an average block.
struct UnitClocks {
  double tensor = 0, exp = 0, issue = 0, smem = 0;
  double barriers = 0;

  double busiest() const { return std::max({tensor, exp, issue, smem}); }
  /// What a warp does one after the other, beside the busiest unit's work.
  double rest(const Calibration &c) const {
    double products =
        std::max(tensor, smem) + c.fragmentShare * std::min(tensor, smem);
    return products + exp + issue + barriers - busiest();
  }
};

} // namespace

/// FLOPs of one issued instruction of a warp.
static double flopsPerInstruction(TensorCoreFamily family,
                                  const Problem &problem,
                                  const Calibration &calibration) {
  switch (family) {
  case TensorCoreFamily::none:
    return calibration.flopsPerFma;
  case TensorCoreFamily::mmaSync:
    if (problem.dtype == DataType::f32)
      return productsPerProduct(problem) > 1 ? calibration.flopsPerSplitMma
                                             : calibration.flopsPerMma / 2;
    return calibration.flopsPerMma;
  case TensorCoreFamily::wgmma:
  case TensorCoreFamily::tcgen05:
    return HUGE_VAL; // one instruction is a whole tile
  }
  return 1;
}

/// Slots of 32 elements that become factors of tf32.
static double roundSlots(const Problem &problem, TensorCoreFamily family,
                         const Calibration &c) {
  if (problem.dtype != DataType::f32 || family != TensorCoreFamily::mmaSync)
    return 0;
  return productsPerProduct(problem) > 1 ? c.splitSlots : c.roundSlots;
}

/// Slots of a product's operands in shared memory, so many bytes.
static double loadSlots(const Use &use, double bytes, const Problem &problem,
                        TensorCoreFamily family, const Calibration &c) {
  constexpr double lanes = 32, elementBytes = 4;
  if (problem.dtype != DataType::f32 || family != TensorCoreFamily::mmaSync)
    return bytes / c.bytesPerWarpInstruction;
  // No instruction transposes 32-bit elements: where rows are contracted, each
  // is a load of its own.
  const Node &node = *use.node;
  bool isAlongRows = shapeOf(node.b).cols == shapeOf(node.tensor).cols;
  double bytesOfLoad =
      isAlongRows ? lanes * elementBytes : c.bytesPerWarpInstruction;
  return bytes / bytesOfLoad +
         bytes / (lanes * elementBytes) * roundSlots(problem, family, c);
}

/// Slots of scores that a mask may hide: of blocks that its edge cuts.  The
/// other edge of a window, which the first rows do not meet, is left out.
static double hideSlots(const Use &use, const GridCensus &grid, double area,
                        const Problem &problem, const Calibration &c) {
  if (problem.mask.isOpen())
    return 0;
  double cut = double(grid.blocks) * cutScores(use.tile.rows, use.tile.cols);
  return std::min(area, cut) / 32 * c.hideSlots;
}

/// Adds the work of one leaf, all its executions in one head.
static void add(UnitWork &work, const Use &use, const GridCensus &grid,
                const Problem &problem, TensorCoreFamily family,
                const Calibration &c) {
  const Node &node = *use.node;
  double area = double(use.count) * use.tile.rows *
                padded(node.tensor, use.tile.cols, problem, use.columnParts());
  double smem = smemBytes(use, problem);
  work.smemBytes += smem;
  switch (node.verb) {
  case Verb::multiply: {
    double flops = 2 * area * padded(node.a, use.tile.depth, problem);
    work.products += use.count;
    work.flops += flops;
    work.slots += flops / flopsPerInstruction(family, problem, c) +
                  loadSlots(use, smem, problem, family, c);
    return;
  }
  case Verb::softmax:
    work.exps += area;
    work.slots += area / 32 * (c.softmaxSlots + roundSlots(problem, family, c));
    work.slots += hideSlots(use, grid, area, problem, c);
    work.slots += double(use.count) * use.tile.rows / kFragmentRows *
                  use.columnParts() * c.stepSlots;
    if (use.columnParts() > 1)
      work.agreements += use.count;
    return;
  case Verb::weigh:
    work.scoreTiles += use.count;
    work.exps += area;
    work.slots += area / 32 * (c.weighSlots + roundSlots(problem, family, c));
    return;
  case Verb::differentiate:
    work.slots +=
        area / 32 * (c.differentiateSlots + roundSlots(problem, family, c));
    return;
  case Verb::rescale:
    work.slots += area / 32;
    return;
  case Verb::spill:
    work.spilledBytes += double(use.moved) * bytesMoved(node, problem);
    [[fallthrough]];
  case Verb::load:
  case Verb::stream:
  case Verb::absorb:
  case Verb::reduce:
  case Verb::store:
    work.slots += area * bytesMoved(node, problem) / c.bytesPerWarpInstruction *
                  c.copySlots;
    return;
  case Verb::transpose: // of pipelines only
  case Verb::split:
  case Verb::grid:
  case Verb::loop:
  case Verb::share:
  case Verb::hold:
    return;
  }
}

namespace {

/// One launch as the multiprocessors see it.
struct Waves {
  const GridCensus &grid;
  UnitClocks block; ///< an average one
  double blocks;    ///< all heads
  double longest;   ///< block, by an average one
  double sms, mostPerSm;
  double latencyClocks; ///< of a load
  double handovers;     ///< of its ring, in an average block
  const Calibration &c;
  const LikeWarps &how;

  /// Clocks of a round in which `together` blocks share a multiprocessor.  The
  /// other warps of a scheduler fill the gaps of one; those of the same block
  /// are kept in step by its barriers and help less.  With fewer warps than
  /// schedulers, some of the units have nobody to feed them.
  double round(double together) const {
    double warps = together * grid.warps / double(kSchedulersPerSm);
    double ofBlock = std::max(1.0, grid.warps / double(kSchedulersPerSm));
    double independence = grid.isSliced() ? how.independenceWithinUnit
                                          : how.independenceWithinBlock;
    double independent = (1 + (ofBlock - 1) * independence) / ofBlock;
    double helpers =
        std::max(1.0, std::pow(warps * independent, how.fillPower));
    double clocks = together * (block.busiest() + block.rest(c) / helpers) /
                    std::min(1.0, warps);
    return clocks + loadGaps(clocks);
  }

  /// A ring of n buffers asks for data n - 1/2 steps ahead; what is left of the
  /// latency after that shows in every step.
  double loadGaps(double clocks) const {
    double ahead = (grid.stages - 0.5) * clocks / std::max(1.0, handovers);
    return handovers * std::max(0.0, latencyClocks - ahead);
  }

  double perSm() const {
    return std::max(1.0, std::min(mostPerSm, std::ceil(blocks / sms)));
  }
  double count() const { return blocks / (sms * perSm()); }

  /// Clocks if blocks could be cut at will.
  double ideal() const { return count() * round(perSm()); }

  /// The last round is paid in full by equal blocks; unequal ones, longest
  /// first, leave half a block, but never less than the longest alone.
  double total() const {
    // Blocks of an average strip are no whole number, and a part of one has a
    // round to itself; below `kRoundOff` it is an error of arithmetic.
    constexpr double kRoundOff = 1e-6;
    double atOnce = sms * perSm();
    double whole = std::floor((blocks + kRoundOff) / atOnce);
    double left = std::ceil(blocks - whole * atOnce - kRoundOff);
    double equal =
        whole * round(perSm()) + (left > 0 ? round(std::ceil(left / sms)) : 0);
    if (longest < 1.05)
      return equal;
    return std::max(std::min(equal, ideal() + 0.5 * round(perSm())),
                    longest * round(1));
  }

  /// The first loads of every round, which only the other blocks hide.
  double prologue() const {
    return latencyClocks * (1 + (std::ceil(count()) - 1) / perSm());
  }
};

} // namespace

namespace {

/// The blocks of a launch, in rounds those of all launches.
struct Blocks {
  double ofHead;  ///< launched
  double working; ///< of those; of scores in rounds, what something sees
  double atOnce;  ///< working ones of one launch
  double rounds = 1;
  double longest; ///< of them, by an average one
};

} // namespace

/// Each round is a launch of its own, with blocks for all that one can have.
/// Of scores those work that something sees, all alike.
static Blocks blocksOf(const GridCensus &grid, const UnitWork &work) {
  double heads = double(grid.heads), blocks = double(grid.blocks);
  if (grid.strips == 0)
    return {blocks, blocks, blocks * heads, 1, grid.longest};
  double strips = double(grid.strips), atOnce = double(grid.headsAtOnce);
  double all = blocks * strips, rounds = strips * std::ceil(heads / atOnce);
  if (work.scoreTiles == 0)
    return {all, all, blocks * atOnce, rounds, grid.longest};
  return {all, work.scoreTiles, work.scoreTiles / strips * atOnce, rounds, 1};
}

/// Whether blocks have places in slow memory, and so take tile after tile.
static bool hasPlaces(const Census &census, size_t number) {
  return std::any_of(census.uses.begin(), census.uses.end(),
                     [&](const Use &use) {
                       return use.grid == number && use.node->slots > 0;
                     });
}

/// Whether blocks take sums up again from places in slow memory.
static bool returnsToSums(const Census &census, size_t number) {
  return std::any_of(
      census.uses.begin(), census.uses.end(), [&](const Use &use) {
        return use.grid == number && use.node->verb == Verb::absorb &&
               use.node->tensor == Tensor::O && use.node->slots > 0;
      });
}

/// Clocks in which an average block waits, whatever units do.
static double barrierClocks(const Census &census, size_t number,
                            const UnitWork &work, const Blocks &blocks,
                            const Machine &machine, const Calibration &c,
                            const LikeWarps &how) {
  const GridCensus &grid = census.grids[number];
  // A single buffer is handed over before every product; a ring hands over all
  // that a step streams at once.
  double handovers = grid.stages > 1 ? double(grid.handovers) : work.products;
  // The next unit's copy is no further ahead than the ring is deep.
  double late = grid.isSliced() ? how.lateUnitClocks / (grid.stages - 1.0) : 0;
  double barrier =
      how.barrierClocks *
      std::pow(grid.warps / double(kSchedulersPerSm), how.barrierPower);
  double clocks = (handovers + work.agreements) * barrier + handovers * late;
  // What a block leaves for the next launch has nothing beside it.
  if (grid.strips > 0)
    clocks += work.spilledBytes * clockOf(machine) * machine.sms /
                  hbmRateOf(machine, c) +
              (blocks.ofHead - blocks.working) * c.productHiddenClocks;
  return clocks / blocks.working + how.startClocks +
         (hasPlaces(census, number) ? how.placesStartClocks : 0);
}

/// By how much clocks rise where tensor cores are busy for that share of the
/// time.
static double gainOfClock(const Machine &machine, double used,
                          const LikeWarps &how) {
  if (machine.measuredClockHz <= 0)
    return 1;
  return 1 + how.spareClock * std::max(0.0, 1 - used);
}

/// How many times as long copies take as their bytes alone.  Rows shorter than
/// a line were not measured.
static double sectorFactor(const Problem &problem, const LikeWarps &how) {
  int64_t size = bytesOf(problem.dtype);
  int64_t row = problem.headDim * size, rowV = problem.headDimV * size;
  if (staggersRows(problem))
    return how.staggeredSectors;
  bool isWhole = row % kSectorBytes == 0 && rowV % kSectorBytes == 0;
  if (problem.dtype == DataType::f32 || !isWhole)
    return how.cutSectors;
  return std::min(row, rowV) < kLineBytes ? 1 : how.wholeSectors;
}

/// Bytes whose time rows of slices take beside that of their own, which are
/// less than a line.  Those of f32 were not measured.
static double bytesOfNarrowRows(const Census &census, size_t number,
                                const Problem &problem, const LikeWarps &how) {
  if (problem.dtype == DataType::f32)
    return 0;
  double bytes = 0; // of lines, beside their own
  for (const Use &use : census.uses) {
    const Node &node = *use.node;
    if (use.grid != number || node.verb != Verb::stream ||
        !isOfHead(node.tensor))
      continue;
    int64_t row = use.tile.cols * bytesPerElement(node.tensor, problem);
    if (row < kLineBytes)
      bytes +=
          double(use.moved) / double(use.tile.cols) * double(kLineBytes - row);
  }
  return bytes * double(census.grids[number].heads) * how.narrowShare;
}

static Time gridTime(const Census &census, size_t number,
                     const Footprint &space, const Problem &problem,
                     const Machine &machine, TensorCoreFamily family,
                     const Calibration &c) {
  const GridCensus &grid = census.grids[number];
  const LikeWarps &how = problem.direction == Direction::backward
                             ? c.gradientWarps
                             : c.forwardWarps;
  double sms = machine.sms, clock = clockOf(machine);
  UnitWork work;
  for (const Use &use : census.uses)
    if (use.grid == number)
      add(work, use, grid, problem, family, c);

  Blocks blocks = blocksOf(grid, work);
  double count = blocks.working;
  UnitClocks block;
  block.tensor = work.flops / productRate(machine, problem, family) / count;
  block.exp = work.exps / machine.expPerClockPerSm / count;
  block.issue = work.slots / double(kSchedulersPerSm) / count;
  block.smem = work.smemBytes / machine.smemBytesPerClockPerSm / count;
  if (problem.direction == Direction::backward)
    block.smem *= c.gradientOperandShare;
  block.barriers = barrierClocks(census, number, work, blocks, machine, c, how);

  Waves waves{grid,
              block,
              blocks.atOnce,
              blocks.longest,
              sms,
              double(std::max<int64_t>(1, space.blocksPerSm)),
              c.loadLatencySeconds * clock,
              double(grid.handovers) / count,
              c,
              how};
  Time t;
  double perSm = count * double(grid.heads) / sms / clock;
  double whole = blocks.rounds * waves.total() / clock,
         ideal = blocks.rounds * waves.ideal() / clock;
  double faster = gainOfClock(machine, block.tensor * perSm / ideal, how);
  perSm /= faster, whole /= faster, ideal /= faster;
  t.tensor = block.tensor * perSm;
  t.exp = block.exp * perSm;
  t.issue = block.issue * perSm;
  t.smem = block.smem * perSm;
  t.exposed = ideal - block.busiest() * perSm;
  t.tail = whole - ideal;
  t.overhead = blocks.rounds * (c.launchSeconds + waves.prologue() / clock);

  int64_t perSmAtOnce = std::max<int64_t>(1, space.blocksPerSm);
  int64_t resident = machine.sms * perSmAtOnce;
  Bytes bytes = gridTraffic(census, number, problem, machine, resident, c);
  t.l2 = (double(bytes.l2) + bytesOfNarrowRows(census, number, problem, how)) /
         l2RateOf(machine) * sectorFactor(problem, how);
  t.hbm = bytes.hbm / hbmRateOf(machine, c);
  // For sums that L2 does not hold a block waits, and only others multiply.
  if (returnsToSums(census, number)) {
    double waits =
        t.hbm / double(perSmAtOnce) *
        shareOfPlacesLost(census, number, problem, machine, resident, c);
    t.exposed += waits;
    whole += waits;
  }
  addContention(t, whole, how.l2Power, c);
  return t;
}

std::vector<Time>
attn::launchTimes(const Census &counted, const Schedule &schedule,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family, const Calibration &calibration) {
  std::vector<Time> launches;
  auto ofProducts = [&](size_t i) {
    return productTime(counted, schedule.grids, i, problem, machine, family,
                       calibration);
  };
  for (size_t i = 0; i < schedule.grids.size(); ++i) {
    const Pipeline &how = schedule.grids[i].pipeline;
    const Node &grid = schedule.grids[i];
    if (schedule.isBefore(i)) // in the time of the launch that does it
      continue;
    if (schedule.isBeside(i)) { // likewise
      if (how.width > 0)
        launches.back() = inOrder({launches.back(), ofProducts(i)});
      continue;
    }
    Footprint space = gridFootprint(grid, problem, machine);
    bool isGradient = problem.direction == Direction::backward;
    launches.push_back(
        how.group > 1
            ? groupTime(counted, i, grid, problem, machine, family, calibration)
        : how.width > 0 ? ofProducts(i)
        : how.units > 0
            ? heldTime(counted, i, grid, problem, machine, family, calibration)
        : how && isGradient ? gradientTime(counted, i, grid, problem, machine,
                                           family, calibration)
        : how ? pipelineTime(counted, i, grid, problem, machine, family,
                             calibration)
              : gridTime(counted, i, space, problem, machine, family,
                         calibration));
  }
  return launches;
}

Time attn::inOrder(const std::vector<Time> &launches) {
  Time total;
  for (const Time &one : launches) {
    total.hbm += one.hbm;
    total.l2 += one.l2;
    total.smem += one.smem;
    total.tensor += one.tensor;
    total.exp += one.exp;
    total.issue += one.issue;
    total.exposed += one.exposed;
    total.tail += one.tail;
    total.contention += one.contention;
    total.overhead += one.overhead;
    total.seconds += one.seconds;
  }
  return total;
}

Time attn::time(const Schedule &schedule, const Problem &problem,
                const Machine &machine, TensorCoreFamily family,
                const Calibration &calibration) {
  return inOrder(launchTimes(census(schedule, problem), schedule, problem,
                             machine, family, calibration));
}
