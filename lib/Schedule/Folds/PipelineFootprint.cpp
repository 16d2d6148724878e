//===- PipelineFootprint.cpp - What a pipeline occupies -------------------===//
//
// The order is the kernel's: buffers as they are filled, the staging buffer,
// then full and empty barriers of every ring, then the queue.  With one ring
// for all streams it comes behind the buffers; behind the barriers of the rings
// a group has two more for every warpgroup: its share is written, and those of
// the others are ready.
//
// Statistics come with the tile that is streamed before them.  Sums that leave
// for slow memory go through the staging buffer, in which every warpgroup has a
// part and, behind those of the rings, a pair of barriers of its own.  So it
// has where results leave from the places of own rows.
//
// Where a block has several pairs of warpgroups every array has a part for each
// of them, one behind the other.
//
// A pipeline of products has its one ring first, of pairs of factors, and a
// staging buffer as wide or of less (Staging.h), with a part for every
// warpgroup and a pair of barriers for each of its slots, unless everything
// leaves from registers.  Of factors in parts a pair is one part of each.
//
//===----------------------------------------------------------------------===//

#include "Folds/PipelineFootprint.h"
#include "attn/Schedule/Calibration.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Staging.h"
#include <algorithm>

using namespace attn;

/// What the copy engine's swizzle repeats after.
static constexpr int64_t kSwizzleBytes = 1024;
static constexpr int64_t kBarrierBytes = 8, kBarrierAlignment = 16;
/// Registers that the bounds of a window need beside weights in parts: d = 128
/// with 64 keys spills 90 words.
static constexpr int64_t kWindowRegisters = 16;
/// The queue that tells the consumers of the next tile.
static constexpr int64_t kMessageBytes = 32;
static constexpr int64_t kQueueBytes = 2 * kMessageBytes;
/// What it takes beside that to say where the rows of a sequence lie.
static constexpr int64_t kQueueBytesOfSequences = 2 * 16;

/// Of a sequence in a table of ranks.
static constexpr int64_t kRankBytes = 8;
/// Of a block that has a ring of factors and a staging buffer, for barriers.
static constexpr int64_t kRoomForBarriers = 1024;

/// A slice of both factors of a tile of so many columns.
static int64_t pairBytes(int64_t width) {
  return (kProductRows + width) * kPanelBytes;
}

Staging attn::stagingOf(int64_t stages, int64_t width, int64_t smemBytes) {
  constexpr int64_t slots = 2, bytes = 2; // of an element
  int64_t left = smemBytes - kRoomForBarriers - stages * pairBytes(width);
  bool isWhole = kProductRows * width * bytes <= left;
  if (isWhole || width % (slots * kPanelColumns) != 0)
    return {1, width};
  return {slots, kPanelColumns};
}

/// Of a count or a flag.
static constexpr int64_t kWordBytes = 4;

int64_t attn::countBytes(const Grid &grid, const Problem &problem) {
  int64_t rows = extent(problem, grid.axis);
  for (const Node &node : grid.body)
    if (int64_t whole = scratchOf(node).wholeRows)
      rows = roundUp(rows, whole);
  return ceilDiv(rows, grid.step) * kWordBytes;
}

int64_t attn::flagBytes(const Schedule::Launch &launch,
                        const Problem &problem) {
  constexpr int64_t stripRows = 64, stripBytes = 2 * kWordBytes;
  return launch.isMerged() && problem.direction == Direction::backward
             ? ceilDiv(problem.queries, stripRows) * stripBytes
             : 0;
}

Landing attn::landingOf(const Problem &problem, int64_t keys) {
  constexpr int64_t stages = 4, mostBytes = 8192, mostRows = 64, leastRows = 8;
  int64_t columns = std::max(padded(Tensor::K, problem.headDim, problem),
                             padded(Tensor::V, problem.headDimV, problem));
  int64_t rowBytes = roundUp(columns * bytesOf(problem.dtype), kPanelBytes);
  // Both halves of a panel of bf16.
  if (rowBytes > kPanelBytes)
    rowBytes = roundUp(rowBytes, 2 * kPanelBytes);
  columns = std::max(columns, rowBytes / bytesOf(problem.dtype));
  int64_t rows = mostRows;
  while (rows > leastRows && (rows * rowBytes > mostBytes || keys % rows != 0))
    rows /= 2;
  return {stages, rows, columns};
}

int64_t Landing::bytes() const {
  constexpr int64_t bytesOfF32 = 4;
  return stages * rows * roundUp(columns * bytesOfF32, kPanelBytes);
}

namespace {

class PipelineSpace {
public:
  PipelineSpace(const Grid &grid, const Problem &problem,
                int64_t smemBytesPerBlock)
      : registers(grid.axis == Axis::Key ? kBaseRegistersOfGradients
                                         : kBaseRegistersOfConsumer),
        owned(grid.axis), rows(grid.step), across(grid.workers.across),
        how(grid), problem(problem), isSplit(splitsFactors(grid, problem)) {
    Steps steps;
    (owned == Axis::Key ? steps.key : steps.query) = grid.step;
    registers += body(grid.body, steps, 1);
    if (how.sharing.units > 0) {
      buffers += how.sharing.units * kUnitBytes;
      rings.push_back(how.sharing.units);
    }
    if (how.workers.isOfProducts) {
      panels(pairs * pairBytes(how.sharing.width));
      rings.push_back(pairs);
      if (leavesStaged(grid.body)) {
        Staging own = stagingOf(pairs, how.sharing.width, smemBytesPerBlock);
        rings.push_back(how.workers.warpgroups * own.slots);
        staging = kProductRows * own.slots * own.columns * factorBytes();
      }
    }
    if (how.sharing.group > 1 || how.sharing.reusesPlaces)
      rings.push_back(how.workers.warpgroups);
    if (isSplit && problem.mask.hidesBefore())
      registers += kWindowRegisters;
    if (problem.direction == Direction::forward)
      registers +=
          problem.clauses.seesCost.held + problem.clauses.scoreCost.held;
    if (isSplit) {
      Landing landing = landingOf(problem, keys);
      panels(landing.bytes());
      rings.push_back(landing.stages);
    }
  }

  /// Registers of a thread: a fragment of 64 rows is spread over 128 threads.
  int64_t registers;

  int64_t smemBytes() const {
    int64_t tiles = how.workers.pairs;
    int64_t total = tiles * (roundUp(buffers, kSwizzleBytes) + staging);
    if (problem.ragged && ranksSequences())
      total += kRankedSequences * kRankBytes;
    for (int64_t stages : rings)
      for (int side = 0; side < 2; ++side)
        total =
            roundUp(total, kBarrierAlignment) + tiles * stages * kBarrierBytes;
    if (told > 0)
      total = roundUp(total, kBarrierAlignment) + told * kBarrierBytes;
    total = roundUp(total, kBarrierAlignment) + tiles * kQueueBytes;
    if (problem.ragged)
      total += tiles * kQueueBytesOfSequences;
    // Who multiplies plain products walks along lists by himself.
    bool hasSteps = problem.isListed() && !how.workers.isOfProducts &&
                    problem.direction == Direction::backward;
    return hasSteps ? total + kStepMessages * kMessageBytes : total;
  }

private:
  /// Whether blocks draw tiles of queries, those of the longest first.
  bool ranksSequences() const {
    return owned == Axis::Query && how.order.isPersistent &&
           problem.direction == Direction::forward;
  }
  /// Of the loops around; 0 where none cuts the axis.
  struct Steps {
    int64_t query = 0, key = 0, headDim = 0, headDimV = 0;

    void set(Axis axis, int64_t step) {
      (axis == Axis::Query     ? query
       : axis == Axis::Key     ? key
       : axis == Axis::HeadDim ? headDim
                               : headDimV) = step;
    }
  };

  Axis owned;           ///< rows of the grid's tiles
  int64_t rows, across; ///< of a tile
  const Crew &how;
  const Problem &problem;
  bool isSplit; ///< factors are parts
  int64_t keys = 0;
  static constexpr int64_t kRowsOfThread = 2;
  int64_t buffers = 0, staging = 0;
  std::vector<Tensor> loaded;
  int64_t firstPlace = 0; ///< bytes of what is loaded first
  std::vector<int64_t> rings;
  int64_t told = 0;  ///< barriers by which warpgroups tell each other
  int64_t pairs = 1; ///< of factors, in a ring of them

  /// Numbers of a row in registers.  Tiles of scores take D when they are done
  /// with the low word of LSE, where it has one.
  int64_t wordsAtOnce(Tensor tensor) const {
    int64_t words = wordsPerElement(tensor, problem);
    bool isOfProducts = how.workers.isOfProducts;
    return isOfProducts && problem.lseLow ? words - 1 : words;
  }

  int64_t columns(Tensor tensor, Steps steps) const {
    Axis axis = *shapeOf(tensor).cols;
    if (how.sharing.group > 1 && axis == Axis::HeadDimV)
      return equalPart(problem, axis, how.sharing.group);
    if (axis == Axis::Key)
      return steps.key;
    int64_t step = axis == Axis::HeadDim ? steps.headDim : steps.headDimV;
    if (how.workers.isOfProducts && step > 0)
      return step;
    int64_t whole = padded(tensor, extent(problem, axis), problem);
    return step > 0 ? std::min(step, whole) : whole;
  }

  int64_t panelBytes(Tensor tensor, int64_t rows, int64_t cols) const {
    if (isSplit)
      return kSplitParts * panelBytes(kPartBytes, rows, cols);
    return panelBytes(bytesPerElement(tensor, problem), rows, cols);
  }
  static int64_t panelBytes(int64_t elementBytes, int64_t rows, int64_t cols) {
    int64_t panels = ceilDiv(cols * elementBytes, kPanelBytes);
    return roundUp(panels * rows * kPanelBytes, kSwizzleBytes);
  }

  void panels(int64_t bytes) {
    buffers = roundUp(buffers, kSwizzleBytes) + bytes;
  }

  /// Bytes of an element of factors of plain products.
  int64_t factorBytes() const {
    return needsSplit(problem) ? kPartBytes : bytesOf(problem.dtype);
  }

  static bool leavesStaged(const Body &nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const Node &node) {
      auto *store = node.as<verb::Store>();
      auto *spill = node.as<verb::Spill>();
      bool isStore = store && !store->isDirect && shapeOf(store->tensor).cols;
      return isStore || (spill && spill->isStaged) ||
             leavesStaged(bodyOf(node));
    });
  }

  static int64_t rowsOf(Tensor tensor, Steps steps) {
    return shapeOf(tensor).rows == Axis::Query ? steps.query : steps.key;
  }

  /// Whether rows of the result are those of what a block streams.
  bool isStreamed(Tensor result) const {
    Shape shape = shapeOf(result);
    bool isRow = shape.rows == Axis::Query || shape.rows == Axis::Key;
    return isRow && shape.rows != owned && shape.cols != owned;
  }

  /// Columns of a fragment of a warpgroup's own rows.
  int64_t fragmentColumns(Tensor tensor, Steps steps) const {
    if (shapeOf(tensor).cols == owned) // it lies the other way round
      return rowsOf(tensor, steps);
    return ceilDiv(columns(tensor, steps), across);
  }

  /// Registers of an accumulator: 64 rows, or what a warpgroup has of all.
  int64_t accumulator(const Node &node, Steps steps) const {
    Tensor tensor = tensorOf(node);
    if (!isStreamed(tensor))
      return roundUp(fragmentColumns(tensor, steps), 8) / 2;
    int64_t elements = rowsOf(tensor, steps) *
                       paddedColumns(node, columns(tensor, steps), problem);
    return elements / how.workers.warpgroups / (2 * kWarpgroupRows);
  }

  /// Registers of a left factor, two elements in one.
  int64_t halves(Tensor tensor, Steps steps) const {
    return fragmentColumns(tensor, steps) * bytesPerElement(tensor, problem) /
           8;
  }

  /// Registers of P, in the type of V or in parts.
  int64_t weights(int64_t columns) const {
    return columns *
           (isSplit ? kSplitParts * kPartBytes
                    : bytesPerElement(Tensor::P, problem)) /
           8;
  }

  void ring(Tensor tensor, ColumnRange some, int64_t stages, Steps steps) {
    int64_t rows = rowsOf(tensor, steps);
    if (!shapeOf(tensor).cols) {
      buffers += stages * smemPitch(rows, bytesPerElement(tensor, problem));
      return;
    }
    int64_t cols = some.of(columns(tensor, steps));
    panels(stages * panelBytes(tensor, rows, cols));
    if (how.workers.handsOver && tensor == Tensor::K)
      ringsOfPieces(stages);
    else
      rings.push_back(stages);
  }

  /// A ring for the columns of V of each of the warpgroups with the same rows,
  /// in halves of whole panels if they have such, and one for those behind;
  /// each with slots for each part of the keys.
  void ringsOfPieces(int64_t stages) {
    int64_t own = problem.headDimV / across;
    int64_t halves = own % (2 * kPanelColumns) == 0 ? 2 : 1;
    for (int64_t each = 0; each < across; ++each)
      rings.push_back(stages * across * halves);
    if (problem.headDim > problem.headDimV)
      rings.push_back(stages * across);
  }

  /// What is handed over of a part of the keys: weights, and maxima and sums as
  /// lanes have them.  The own weights and those of another are in registers.
  int64_t image(Tensor tensor, Steps steps) {
    constexpr int64_t statistics = 2, valueBytes = 4;
    int64_t own = columns(tensor, steps) / across;
    panels(rows * (own * bytesPerElement(tensor, problem) +
                   kThreadsPerRow * statistics * valueBytes));
    told = across;
    return 2 * weights(own);
  }

  /// A ring of tiles whose rows are the tensor's columns.
  void transposedRing(Tensor tensor, int64_t stages, Steps steps) {
    panels(stages * panelBytes(tensor, columns(tensor, steps), steps.key));
    rings.push_back(stages);
  }

  /// A ring of the same tiles as products take them.
  void widenedRing(Tensor tensor, Steps steps) {
    panels(kWidenedStages * panelBytes(bytesAsFactor(tensor, problem),
                                       rowsOf(tensor, steps),
                                       columns(tensor, steps)));
    rings.push_back(kWidenedStages);
  }

  int64_t tileBytes(Tensor tensor, Steps steps) const {
    return panelBytes(tensor, rowsOf(tensor, steps), columns(tensor, steps));
  }

  void place(Tensor tensor, Steps steps) {
    if (loaded.empty())
      firstPlace = tileBytes(tensor, steps);
    loaded.push_back(tensor);
  }

  /// The first place grows to hold what is stored, if there is no better one.
  void reuse(Tensor tensor, Steps steps) {
    Shape shape = shapeOf(tensor);
    for (Tensor input : loaded)
      if (shapeOf(input).rows == shape.rows &&
          shapeOf(input).cols == shape.cols)
        return;
    int64_t more = tileBytes(tensor, steps) - firstPlace;
    buffers += std::max<int64_t>(0, more);
  }

  static bool leaves(const Body &nodes, Tensor tensor) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node &node) {
      auto *hold = node.as<verb::Hold>();
      bool isHeld = hold && hold->level == Level::Smem;
      return (node.is<verb::Spill>() || isHeld) && tensorOf(node) == tensor;
    });
  }

  static bool holds(const Body &nodes, Tensor tensor) {
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node &node) {
      return node.is<verb::Hold>() && tensorOf(node) == tensor;
    });
  }

  /// Sums of a warpgroup, that the copy engine adds to those in slow memory.
  void added(const Node &node, Steps steps) {
    int64_t columns =
        paddedColumns(node, this->columns(tensorOf(node), steps), problem) /
        std::max<int64_t>(1, columnGroupsOf(node));
    int64_t panels = ceilDiv(columns * bytesMoved(node, problem), kPanelBytes);
    staging = std::max(staging, panels * rows * kPanelBytes);
    rings.push_back(how.workers.warpgroups);
  }

  /// Of an accumulator or weights; what is held in shared memory has a buffer.
  int64_t heldRegisters(const verb::Hold &hold, const Body &nodes,
                        Steps steps) {
    Tensor tensor = hold.tensor;
    if (how.workers.handsOver && hold.level == Level::Smem)
      return image(tensor, steps);
    if (hold.level == Level::Smem) {
      panels(hold.buffers *
             panelBytes(tensor, rowsOf(tensor, steps), columns(tensor, steps)));
      return 0;
    }
    // dP is where S was, if there was one.
    if (how.workers.isOfProducts && tensor == Tensor::GradP &&
        holds(nodes, Tensor::S))
      return 0;
    if (tensor == Tensor::P)
      return weights(hold.columns.count);
    if (isInput(tensor, problem)) // a left factor
      return weights(columns(tensor, steps));
    return shapeOf(tensor).cols ? hold.buffers * accumulator(hold, steps) : 0;
  }

  void stored(const verb::Store &store, Steps steps) {
    if (how.workers.isOfProducts)
      return;
    if (how.sharing.reusesPlaces)
      reuse(store.tensor, steps);
    else if (shapeOf(store.tensor).cols && !store.isDirect)
      staging = std::max(
          staging, panelBytes(store.tensor, rows,
                              store.atOnce ? store.atOnce
                                           : columns(store.tensor, steps)));
  }

  /// A sum beside what it is added to, and that of rows with the same rows.
  int64_t productRegisters(const verb::Multiply &product, const Node &node,
                           Steps steps) const {
    int64_t held = 0;
    if (isSplit && product.tensor == Tensor::O)
      held += std::min(kSumColumns, columns(product.tensor, steps)) / 2;
    if (how.workers.isOfProducts && needsSplit(problem))
      held += accumulator(node, steps);
    if (!shapeOf(product.tensor).cols)
      held += kWarpgroupRows / 2;
    return held;
  }

  /// Returns the registers that live in the body at once.
  int64_t body(const Body &nodes, Steps steps, int64_t stages) {
    int64_t held = 0, inner = 0, behind = 0;
    auto enter = [&](Axis axis, int64_t step, int64_t depth, const Body &body) {
      Steps inside = steps;
      inside.set(axis, step);
      pairs = std::max(pairs, depth);
      keys = inside.key;
      inner = std::max(inner, this->body(body, inside, depth));
    };
    for (const Node &node : nodes)
      node.match(
          [&](const verb::Loop &loop) {
            enter(loop.axis, loop.step, loop.stages, loop.body);
          },
          [&](const verb::Share &share) {
            enter(share.axis, share.step, 1, share.body);
          },
          [&](const verb::Load &load) {
            if (load.level == Level::Registers) { // of rows, 16 a warp
              held += kRowsOfThread * wordsAtOnce(load.tensor);
              return;
            }
            ring(load.tensor, load.columns, load.buffers, steps);
            place(load.tensor, steps);
          },
          [&](const verb::Stream &stream) {
            if (how.sharing.units == 0 && !how.workers.isOfProducts)
              ring(stream.tensor, stream.columns,
                   stream.buffers ? stream.buffers : stages, steps);
          },
          [&](const verb::Transpose &transpose) {
            if (needsTranspose(problem))
              transposedRing(transpose.tensor, stages, steps);
          },
          [&](const verb::Widen &widened) {
            if (needsWidening(problem))
              widenedRing(widened.tensor, steps);
          },
          [&](const verb::Hold &hold) {
            if (isStreamed(hold.tensor) && hold.level == Level::Registers)
              // When scores are no longer needed.
              behind = accumulator(node, steps) + halves(Tensor::GradS, steps);
            else
              held += heldRegisters(hold, nodes, steps);
          },
          [&](const verb::Weigh &) {
            // P in 16 bits, while dP comes to be, or beside what slopes make of
            // it.
            bool isBeside = how.order.overlaps || how.workers.isOfProducts ||
                            problem.clauses.scoreCost.slopes > 0;
            if (isBeside)
              held += halves(Tensor::P, steps);
          },
          [&](const verb::Differentiate &) {
            // dS takes the place of dP.  D of the queries: two of eight
            // columns.
            if (owned == Axis::Key)
              held += halves(Tensor::P, steps);
          },
          [&](const verb::Softmax &softmax) {
            // P, in the type of V, while the next scores come to be; what is
            // spilled leaves piece by piece, and what is held takes the place
            // of S.
            bool isBeside = how.order.overlaps || how.workers.pairs == 1;
            if (isBeside && !leaves(nodes, Tensor::P) &&
                !holds(nodes, Tensor::P))
              held += weights(columns(softmax.tensor, steps));
          },
          [&](const verb::Absorb &absorb) {
            // One beside the next; sums go on as accumulators.
            if (shapeOf(absorb.tensor).cols && !absorb.isBetween)
              held += 2 * columns(absorb.tensor, steps) / 4;
          },
          [&](const verb::Store &store) { stored(store, steps); },
          [&](const verb::Reduce &) { added(node, steps); },
          [&](const verb::Multiply &product) {
            held += productRegisters(product, node, steps);
          },
          [&](const verb::Rescale &scaled) {
            // As it came, and as it is multiplied or, by pieces, leaves.
            if (how.workers.isOfProducts && scaled.tensor == Tensor::P)
              held += (scaled.isStaged ? 1 : 2) * halves(scaled.tensor, steps);
          },
          // A split takes the place of what is counted already.
          [](verb::OneOf<verb::Split, verb::Spill>) {});
    return std::max(held + inner, behind);
  }
};

/// Whether Q comes in several pieces.
bool isCut(const Node &node) {
  auto *loop = node.as<verb::Loop>();
  return node.is<verb::Share>() || (loop && loop->axis == Axis::HeadDim) ||
         std::any_of(bodyOf(node).begin(), bodyOf(node).end(), isCut);
}

/// Registers beside the fragments that hold descriptors of Q, one per wgmma
/// along the head dimension, if they are kept.  ptxas 13.0 keeps them in
/// uniform registers, but not all of them where a window makes two copies of
/// the loop (fitted to 370 compiled kernels: those that are then within their
/// budget do not spill).
int64_t heldDescriptors(const Grid &grid, const Problem &problem) {
  int64_t steps = ceilDiv(problem.headDim * bytesOf(problem.dtype), kStepBytes);
  bool isWhole = !grid.workers.isOfProducts && grid.sharing.units == 0 &&
                 !std::any_of(grid.body.begin(), grid.body.end(), isCut);
  if (!isWhole || grid.axis == Axis::Key || steps > kMostKeptDescriptors ||
      !problem.mask.hidesBefore())
    return 0;
  return std::max<int64_t>(4, 3 * steps - 9);
}

} // namespace

int64_t attn::registersOfBlock(const Grid &grid, const RegisterBudget &budget) {
  int64_t consumers = grid.workers.pairs * grid.workers.warpgroups;
  return 128 * (consumers * budget.consumer + budget.others * budget.producer);
}

Footprint attn::pipelineFootprint(const Grid &grid,
                                  const RegisterBudget &budget,
                                  const Problem &problem,
                                  const Machine &machine) {
  PipelineSpace space(grid, problem, machine.smemBytesPerBlock);
  Footprint result;
  result.smemBytes = space.smemBytes();
  result.registersPerThread = space.registers + heldDescriptors(grid, problem);
  int64_t warpgroups = grid.workers.pairs * grid.workers.warpgroups;
  result.threads = 128 * (warpgroups + budget.others);
  // The budget is for a whole multiprocessor.
  bool fits = result.smemBytes <= machine.smemBytesPerBlock &&
              result.registersPerThread <= budget.consumer &&
              result.threads <= machine.maxThreadsPerSm &&
              registersOfBlock(grid, budget) <= machine.registersPerSm;
  result.blocksPerSm = fits ? 1 : 0;
  return result;
}
