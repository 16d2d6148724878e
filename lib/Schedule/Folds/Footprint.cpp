//===- Footprint.cpp - What a schedule occupies ---------------------------===//

#include "attn/Schedule/Footprint.h"
#include "Folds/PartsFootprint.h"
#include "Folds/PipelineFootprint.h"
#include "Folds/Steps.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Launches.h"
#include <algorithm>

using namespace attn;

//===----------------------------------------------------------------------===//
// Shared memory and registers of one launch
//===----------------------------------------------------------------------===//

namespace {

class Space {
public:
  Space(const Problem &problem, const Grid &grid)
      : problem(problem), owned(grid.axis), across(grid.workers.across),
        warps(grid.workers.warps / across),
        isOfProducts(grid.workers.isOfProducts) {}

  /// Returns the registers that live in the body at once.
  int64_t body(const Body &nodes, Steps steps, int64_t stages) {
    int64_t held = 0, inner = 0;
    for (const Node &node : nodes)
      node.match(
          [&](const verb::Loop &loop) {
            inner = std::max(inner,
                             body(loop.body, steps.inside(loop), loop.stages));
          },
          [&](const verb::Share &share) {
            inner = std::max(inner,
                             body(share.body, steps.inside(share, problem), 1));
          },
          [&](const verb::Hold &hold) {
            if (hold.level == Level::Registers)
              held += heldRegisters(hold.tensor, steps);
            else
              buffer(hold.tensor, steps, 1);
          },
          [&](const verb::Load &load) {
            if (load.level == Level::Registers)
              held += heldRegisters(load.tensor, steps);
            else
              place(load.tensor, steps);
          },
          [&](const verb::Stream &stream) {
            if (stream.level == Level::Registers)
              held += heldRegisters(stream.tensor, steps);
            else
              buffer(stream.tensor, steps, stages);
          },
          [&](const verb::Store &store) { stage(store, steps); },
          [&](const verb::Multiply &product) { operands(product, steps); },
          [&](const verb::Softmax &softmax) {
            // P, in 16 bits, comes to be beside the scores it is made of; what
            // goes elsewhere leaves piece by piece.
            if (!leaves(nodes, Tensor::P))
              held += weightRegisters(softmax.tensor, steps);
            if (across > 1)
              exchange(steps);
          },
          [&](const verb::Weigh &weigh) {
            if (!isOfProducts)
              held += weightRegisters(weigh.tensor, steps);
          },
          [&](const verb::Differentiate &gradient) {
            if (!isOfProducts)
              held += weightRegisters(gradient.tensor, steps);
          },
          [&](const verb::Absorb &absorb) {
            // Of products, to where the sum is held.  Else in 16 bits, and the
            // next one on its way; a sum is all there at once.
            if (!isOfProducts &&
                (absorb.tensor == Tensor::P || absorb.scratch.wholeRows > 0))
              held += registers(absorb.tensor, steps);
            held += registers(absorb.tensor, steps) *
                    std::min(absorb.scratch.keyParts, kPartsInFlight);
          },
          [&](const verb::Spill &spill) {
            if (spill.scratch.partColumns == 0)
              return;
            SplittingSpace space = splittingSpace(node, problem);
            buffers.push_back(space.smemBytes);
            operandRegisters = std::max(operandRegisters, space.registers);
          },
          // The first three are verbs of pipelines only.
          [](verb::OneOf<verb::Transpose, verb::Widen, verb::Split,
                         verb::Rescale, verb::Reduce>) {});
    return held + inner;
  }

  int64_t smemBytes() const {
    int64_t total = roundUp(std::max(resident, staging), 128);
    for (int64_t bytes : buffers)
      total = roundUp(total, 128) + bytes;
    return total;
  }
  int64_t operandRegisters = 0;
  bool multiplies = false;

private:
  const Problem &problem;
  Axis owned; ///< rows of the grid's tiles, which are dealt out to warps
  int64_t across;
  int64_t warps; ///< that have rows of their own
  bool isOfProducts;
  /// A result is staged where an input of its shape was; else the first
  /// resident input and the staged result share a place.
  int64_t resident = 0, staging = 0;
  std::vector<Tensor> loaded;
  std::vector<int64_t> buffers;

  /// Of a tile as it lies in a multiprocessor.
  int64_t tileOf(Axis axis, const Steps &steps) const {
    int64_t step = steps.step[static_cast<size_t>(axis)];
    return isOfProducts && step > 0 ? step : steps.tile(axis, problem, false);
  }

  int64_t tileBytes(Tensor tensor, const Steps &steps) const {
    Shape shape = shapeOf(tensor);
    int64_t rows = tileOf(shape.rows, steps);
    int64_t size = bytesPerElement(tensor, problem);
    if (!shape.cols) { // a statistic is a row of them, or a row of each word
      int64_t words = wordsPerElement(tensor, problem);
      return words * smemPitch(rows, size / words);
    }
    int64_t cols = padded(tensor, tileOf(*shape.cols, steps), problem, across);
    bool isStaggered = isOfHead(tensor) && staggersRows(problem);
    return rows * smemPitch(cols, size, isStaggered);
  }

  /// Whether it is no buffer of its own: of products two factors have one, and
  /// all others go where they went.
  bool isReused() const {
    constexpr size_t factors = 2;
    return isOfProducts && buffers.size() == factors;
  }

  void buffer(Tensor tensor, const Steps &steps, int64_t count) {
    if (!isReused())
      buffers.push_back(count * tileBytes(tensor, steps));
  }

  void place(Tensor tensor, const Steps &steps) {
    if (isReused())
      return;
    loaded.push_back(tensor);
    if (resident == 0)
      resident = tileBytes(tensor, steps);
    else
      buffers.push_back(tileBytes(tensor, steps));
  }

  /// A statistic of all rows from each of the warps that have the same ones.
  void exchange(const Steps &steps) {
    constexpr int64_t valueBytes = 4;
    int64_t rows = steps.tile(Axis::Query, problem, false);
    buffers.push_back(across * smemPitch(rows, valueBytes));
  }

  void stage(const verb::Store &node, Steps steps) {
    Shape shape = shapeOf(node.tensor);
    std::optional<Axis> axis = shape.cols;
    if (!axis || node.isDirect)
      return;
    for (Tensor input : loaded)
      if (shapeOf(input).rows == shape.rows && shapeOf(input).cols == axis)
        return;
    if (node.atOnce)
      steps.step[static_cast<size_t>(*axis)] = node.atOnce;
    staging = std::max(staging, tileBytes(node.tensor, steps));
  }

  static bool leaves(const Body &nodes, Tensor tensor) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node &node) {
      auto *hold = node.as<verb::Hold>();
      bool isHeld = hold && hold->level == Level::Smem;
      return (node.is<verb::Spill>() || isHeld) && tensorOf(node) == tensor;
    });
  }

  /// Of P beside the scores.  In tf32 it takes their place, and if it is split,
  /// as much again.
  int64_t weightRegisters(Tensor scores, const Steps &steps) const {
    int64_t held = registers(scores, steps);
    if (problem.dtype != DataType::f32)
      return held / 2;
    return productsPerProduct(problem) > 1 ? held : 0;
  }

  int64_t warpRows(const Steps &steps) const {
    return ceilDiv(steps.tile(owned, problem, false), warps);
  }

  /// The columns of a fragment, whose rows are the warp's.
  Axis columnsOf(Tensor tensor) const {
    Shape shape = shapeOf(tensor);
    return shape.rows == owned ? *shape.cols : shape.rows;
  }

  /// A fragment is spread over 32 threads; a statistic over the 8 rows that a
  /// thread has part of, of every 16.
  int64_t registers(Tensor tensor, const Steps &steps) const {
    Shape shape = shapeOf(tensor);
    int64_t rows = warpRows(steps);
    if (!shape.cols)
      return ceilDiv(rows * wordsPerElement(tensor, problem), 8);
    int64_t cols =
        padded(tensor, tileOf(columnsOf(tensor), steps), problem, across);
    return ceilDiv(rows * roundUp(ceilDiv(cols, across), 8), 32);
  }

  /// Where dP comes when S is P, S takes what P does while it waits.
  int64_t heldRegisters(Tensor tensor, const Steps &steps) const {
    int64_t held = registers(tensor, steps);
    return isOfProducts && tensor == Tensor::S
               ? held * bytesOf(problem.dtype) / kRegisterBytes
               : held;
  }
  static constexpr int64_t kRegisterBytes = 4;

  /// Beside an accumulator of split products two of its sums.  Scores have one
  /// of them where the low part of P will be, an output both for 32 columns at
  /// a time.
  int64_t sumRegisters(Tensor tensor, const Steps &steps) const {
    int64_t held = registers(tensor, steps);
    return tensor == Tensor::S && !isOfProducts
               ? held
               : std::min(2 * held, 2 * warpRows(steps) * kPartColumns / 32);
  }
  static constexpr int64_t kPartColumns = 32;

  /// What a product of a step contracts.
  int64_t depthOf(const verb::Multiply &product, const Steps &steps) const {
    Shape a = shapeOf(product.a);
    bool ownsRows = hasAxis(product.tensor, a.rows);
    return tileOf(ownsRows ? *a.cols : a.rows, steps);
  }

  /// A step of 16 along the depth: the rows of a, and of b what is in flight.
  void operands(const verb::Multiply &node, const Steps &steps) {
    multiplies = true;
    int64_t cols = tileOf(columnsOf(node.tensor), steps);
    bool isSplit = productsPerProduct(problem) > 1;
    bool isInParts = node.tensor == Tensor::O || isOfProducts;
    int64_t inFlight = isSplit && isInParts ? kPartColumns : kColumnsInFlight;
    int64_t words = std::min(ceilDiv(cols, across), inFlight) / 4;
    // P and dS are in registers already, unless several have their rows.
    bool isHeld = node.a == Tensor::P || node.a == Tensor::GradS;
    if (!isHeld || across > 1 || isOfProducts)
      words += ceilDiv(warpRows(steps), 4);
    // All parts of an output take the same split rows of a.
    if (isSplit && isOfProducts)
      words += 2 * warpRows(steps) * depthOf(node, steps) / 32;
    if (isSplit)
      words += sumRegisters(node.tensor, steps) + kSplitRegisters;
    operandRegisters = std::max(operandRegisters, words);
  }
};

} // namespace

/// Whether a block passes something on to itself through scratch memory.
static bool hasPlaces(const Body &body) {
  return std::any_of(body.begin(), body.end(), [](const Node &node) {
    return (node.is<verb::Absorb>() && scratchOf(node).slots > 0) ||
           hasPlaces(bodyOf(node));
  });
}

/// Registers that a window's bounds need beside products of split factors, if
/// none are left: with 244 before these (d = 128, 64 keys) ptxas 13.0 spills
/// 640 bytes, with 236 (d = 112) 16, with 216 (48 keys) 8.  Not in a grid of
/// products, whose scores spill 32 bytes with a window and without (d = 256,
/// 512); where slices are ragged up to 132 with one, up to 120 without.
static constexpr int64_t kSplitWindowRegisters = 12;
static int64_t placesOf(const Body &body, const Problem &problem, Steps steps);

Footprint attn::launchFootprint(const Schedule::Launch &launch,
                                const Problem &problem,
                                const Machine &machine) {
  if (launch.main.isPipeline())
    return pipelineFootprint(launch.main, budgetOf(launch, problem), problem,
                             machine);
  return gridFootprint(launch.main, problem, machine);
}

int64_t attn::warpsPerSm(int64_t registersPerThread, const Machine &machine) {
  int64_t ofScheduler = machine.registersPerSm / kSchedulersPerSm;
  return kSchedulersPerSm *
         (ofScheduler / roundUp(registersPerThread * 32, 256));
}

Footprint attn::gridFootprint(const Grid &grid, const Problem &problem,
                              const Machine &machine) {
  if (grid.isPipeline())
    return pipelineFootprint(grid, budgetOf(grid, problem), problem, machine);
  Space space(problem, grid);
  Footprint result;
  int64_t held = space.body(grid.body, Steps::of(grid), 1);
  result.smemBytes = space.smemBytes();
  result.threads = grid.workers.warps * 32;
  result.registersPerThread = kBaseRegisters + held + space.operandRegisters +
                              problem.clauses.seesCost.held +
                              problem.clauses.scoreCost.held;
  if (hasPlaces(grid.body))
    result.registersPerThread += kPlaceRegisters + kPlaceRegistersPerRow *
                                                       grid.step /
                                                       grid.workers.warps;
  bool hasSplitFactors = productsPerProduct(problem) > 1 && space.multiplies;
  if (problem.mask.hidesBefore() && hasSplitFactors &&
      !grid.workers.isOfProducts &&
      result.registersPerThread >
          kMaxRegistersPerThread - kSplitWindowRegisters)
    result.registersPerThread += kSplitWindowRegisters;

  if (result.smemBytes > machine.smemBytesPerBlock ||
      result.registersPerThread > kMaxRegistersPerThread ||
      result.threads > kMostThreads)
    return result;
  int64_t smem = result.smemBytes + machine.smemBytesReservedPerBlock();
  result.blocksPerSm = std::min(
      {warpsPerSm(result.registersPerThread, machine) / grid.workers.warps,
       machine.maxThreadsPerSm / result.threads, machine.maxBlocksPerSm});
  if (smem > 0)
    result.blocksPerSm =
        std::min(result.blocksPerSm, machine.smemBytesPerSm / smem);
  // No more than have places in all scratch that a plan may have.
  int64_t places = machine.sms * placesOf(grid.body, problem, Steps::of(grid));
  if (places > 0 && places <= kMostScratchBytes)
    result.blocksPerSm =
        std::min(result.blocksPerSm, kMostScratchBytes / places);
  return result;
}

//===----------------------------------------------------------------------===//
// All launches
//===----------------------------------------------------------------------===//

namespace {
/// Bytes of scratch of one head; of those, `ofRows` are of tensors with as many
/// values for a row however many rows there are.
struct Scratch {
  int64_t all = 0, ofRows = 0;
  int64_t ofStrip = 0; ///< of all heads of a round, P and dS
  int64_t ofParts = 0; ///< of all heads, inputs in parts
};
} // namespace

/// Whether what is spilled is there for a round: scores and, of a strip of
/// queries, what belongs to them.
static bool isOfRound(const Node &node, const Rounds &rounds) {
  return shapeOf(tensorOf(node)).cols == Axis::Key ||
         (rounds.axis == Axis::Query && !shapeOf(tensorOf(node)).cols);
}

/// Scratch is laid out whole, as if nothing were masked: one place per query
/// and key, or per query and key step.
static void addScratch(Scratch &scratch, const Body &body,
                       const Problem &problem, const Rounds &rounds,
                       Steps steps) {
  for (const Node &node : body) {
    addScratch(scratch, bodyOf(node), problem, rounds,
               steps.inside(node, problem));
    auto *spill = node.as<verb::Spill>();
    if (!spill || spill->scratch.slots > 0 || spill->scratch.isKept)
      continue;
    Shape shape = shapeOf(tensorOf(node));
    if (isInput(tensorOf(node), problem)) {
      scratch.ofParts += partsBytes(node, problem);
      continue;
    }
    int64_t rows = spill->scratch.wholeRows
                       ? roundUp(problem.queries, spill->scratch.wholeRows)
                       : problem.queries;
    if (rounds && isOfRound(node, rounds)) {
      Launches launches;
      launches.rounds = rounds;
      LaunchSizes<Integers> sizes = sizesOf(launches, problem);
      RoundArrays<int64_t> arrays = sizes.roundArrays();
      // Without columns a number of a row for every block.
      scratch.ofStrip += sizes.roundHeads() *
                         (problem.heads / problem.kvHeads) * arrays.blocks *
                         arrays.rows * (shape.cols ? arrays.columns : 1) *
                         bytesMoved(node, problem);
      continue;
    }
    if (spill->isBetween) { // strips, if there are several: places of whole
                            // tiles
      rows = roundUp(problem.queries, kProductRows);
      int64_t step = steps.step[static_cast<size_t>(*shape.cols)];
      int64_t columns = roundUp(extent(problem, *shape.cols), step);
      int64_t bytes = rows * columns * bytesMoved(node, problem);
      scratch.all += problem.keys > rounds.strip ? bytes : 0;
      scratch.ofRows += problem.keys > rounds.strip ? bytes : 0;
      continue;
    }
    if (int64_t parts = spill->scratch.keyParts) {
      int64_t columns =
          shape.cols ? pitchOfParts(extent(problem, *shape.cols)) : 1;
      int64_t bytes = parts * rows * columns * bytesMoved(node, problem);
      scratch.all += bytes, scratch.ofRows += bytes;
      continue;
    }
    int64_t columns = 1;
    if (shape.cols)
      columns = paddedColumns(node, extent(problem, *shape.cols), problem);
    else // of every step of keys, if there are several
      columns = ceilDiv(problem.keys, steps.tile(Axis::Key, problem, true));
    int64_t bytes = rows * columns * bytesMoved(node, problem);
    scratch.all += bytes;
    bool grows =
        shape.cols == Axis::Key || steps.step[static_cast<size_t>(Axis::Key)];
    scratch.ofRows += grows ? 0 : bytes;
  }
}

/// Sums of one head in whole tiles, which no grid before spills.
static int64_t sumBytes(const Body &body, const Problem &problem) {
  int64_t bytes = 0;
  for (const Node &node : body)
    bytes += node.is<verb::Reduce>()
                 ? roundUp(problem.queries, scratchOf(node).wholeRows) *
                       paddedColumns(node, problem.headDim, problem) *
                       bytesMoved(node, problem)
                 : sumBytes(bodyOf(node), problem);
  return bytes;
}

/// Places that a block uses in turn, which do not grow with the problem.
static int64_t placesOf(const Body &body, const Problem &problem, Steps steps) {
  int64_t bytes = 0;
  for (const Node &node : body) {
    bytes += placesOf(bodyOf(node), problem, steps.inside(node, problem));
    bool isPlace = node.is<verb::Spill>() || node.is<verb::Reduce>();
    int64_t keys = steps.step[static_cast<size_t>(Axis::Key)];
    if (!isPlace || (isBetween(node) && problem.keys <= keys)) // of one step
      continue;
    Shape shape = shapeOf(tensorOf(node));
    int64_t cols = kThreadsPerRow;
    if (shape.cols == Axis::HeadDimV) { // a place for all columns
      int64_t tile = steps.tile(Axis::HeadDimV, problem, false);
      cols = ceilDiv(problem.headDimV, tile) *
             padded(tensorOf(node), tile, problem);
    } else if (shape.cols) {
      cols = steps.tile(*shape.cols, problem, false);
    }
    bytes += scratchOf(node).slots * steps.tile(shape.rows, problem, false) *
             cols * bytesMoved(node, problem);
  }
  return bytes;
}

/// Blocks that run at once: whole sets of those that work together.
static int64_t blocksAtOnce(const Grid &grid, const Footprint &space,
                            const Machine &machine) {
  int64_t together = grid.sharing.blocks();
  return machine.sms * space.blocksPerSm / together * together;
}

/// The grid behind the main one of a launch, in the same one or in the next.
static const Grid &gridBehind(const Schedule &schedule, size_t launch) {
  if (!schedule.launches[launch].beside.empty())
    return schedule.launches[launch].beside.front();
  const Schedule::Launch &next = schedule.launches[launch + 1];
  return next.before.empty() ? next.main : next.before.front();
}

Footprint attn::footprint(const Schedule &schedule, const Problem &problem,
                          const Machine &machine) {
  Footprint most;
  most.blocksPerSm = machine.maxBlocksPerSm;
  int64_t places = 0;
  Scratch ofHead;
  auto addRows = [&](int64_t bytes) {
    ofHead.all += bytes, ofHead.ofRows += bytes;
  };
  for (const Grid *grid : schedule.grids())
    addScratch(ofHead, grid->body, problem, schedule.rounds, Steps::of(*grid));
  for (size_t i = 0; i < schedule.launches.size(); ++i) {
    const Schedule::Launch &launch = schedule.launches[i];
    const Grid &grid = launch.main;
    addRows(flagBytes(launch, problem));
    if (grid.order.isOrdered || grid.order.firstStores) // strips behind
      addRows(countBytes(gridBehind(schedule, i), problem));
    if (grid.order.firstStores)
      addRows(sumBytes(grid.body, problem));
    Footprint one = launchFootprint(launch, problem, machine);
    most.smemBytes = std::max(most.smemBytes, one.smemBytes);
    most.registersPerThread =
        std::max(most.registersPerThread, one.registersPerThread);
    most.threads = std::max(most.threads, one.threads);
    most.blocksPerSm = std::min(most.blocksPerSm, one.blocksPerSm);
    places += placesOf(grid.body, problem, Steps::of(grid)) *
              blocksAtOnce(grid, one, machine);
  }
  int64_t heads = problem.batch * problem.heads;
  most.stripScratchBytes = ofHead.ofStrip;
  int64_t ofParts = problem.batch * ofHead.ofParts;
  most.rowScratchBytes = heads * ofHead.ofRows + ofHead.ofStrip + ofParts;
  most.scratchBytes = heads * ofHead.all + places + ofHead.ofStrip + ofParts;
  return most;
}
