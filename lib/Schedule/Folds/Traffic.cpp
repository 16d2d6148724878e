//===- Traffic.cpp - Bytes per memory level, exact ------------------------===//

#include "attn/Schedule/Traffic.h"
#include "CaptureTraffic.h"
#include "attn/Schedule/Footprint.h"
#include <algorithm>
#include <cmath>

using namespace attn;

Bytes &Bytes::operator+=(const Bytes &other) {
  hbm += other.hbm;
  l2 += other.l2;
  smem += other.smem;
  return *this;
}

/// Whether the verb moves its tensor between slow and fast memory.
static bool moves(const Node &node) { return moveOf(node) != Move::none; }

/// Whether a grid has no tiles of a sequence.
static bool hasNoTiles(const Grid &grid, const Problem &sequence) {
  return (grid.axis == Axis::Key ? sequence.keys : sequence.queries) == 0;
}
static bool lacksRows(const Problem &sequence) {
  return sequence.keys == 0 || sequence.queries == 0;
}

/// A problem with keys that moves what one without keys does, or with queries
/// what one without those does where there are tiles of keys.  Where blocks
/// walk at least one step it is one of a key, less the bytes of that; else one
/// whose queries see nothing.
static Problem withoutKeys(Problem problem, bool hasStep) {
  problem.keys = std::max<int64_t>(problem.keys, 1);
  problem.queries = std::max<int64_t>(problem.queries, 1);
  problem.mask = {};
  problem.bands = {};
  if (!hasStep)
    problem.pattern = Pattern({64, 64}, /*density=*/0);
  return problem;
}

/// Of a dense problem, or of a sequence that may lack rows.
static int64_t wordsAlone(const Schedule &schedule, const Problem &problem,
                          bool isSequence) {
  Problem counts = problem;
  if (isSequence && lacksRows(problem))
    counts = withoutKeys(problem, /*hasStep=*/false);
  int64_t words = 0;
  std::vector<const Grid *> grids = schedule.grids();
  Census counted = census(schedule, counts);
  for (const Use &use : counted.uses)
    if (moves(*use.node) &&
        !(isSequence && hasNoTiles(*grids[use.grid], problem)))
      words += use.elements * wordsPerElement(tensorOf(*use.node), problem) *
               counted.grids[use.grid].heads;
  return words;
}

int64_t attn::trafficWords(const Schedule &schedule, const Problem &problem) {
  int64_t words = 0;
  if (problem.ragged) {
    for (const Sequences &each : sequencesOf(problem))
      words += each.count * wordsAlone(schedule, denseOf(problem, each.lengths),
                                       /*isSequence=*/true);
    return words + offsetsOf(problem);
  }
  return wordsAlone(schedule, problem, /*isSequence=*/false);
}

int64_t attn::slowBytes(const Use &use, const Problem &problem) {
  if (!moves(*use.node))
    return 0;
  return use.moved * bytesMoved(*use.node, problem);
}

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

namespace {
/// How the blocks that run at once share L2.
struct CacheShare {
  double wavesPerHead; ///< rounds in which the blocks of a head come
  double headsAtOnce;
};
} // namespace

static CacheShare cacheShare(const GridCensus &grid, int64_t residentBlocks) {
  double resident = std::max<int64_t>(residentBlocks / grid.together, 1);
  double blocks = double(grid.blocksOfHead());
  double waves = std::max(1.0, std::ceil(blocks / resident));
  double heads = std::ceil(resident / blocks);
  return {waves, std::min<double>(heads, double(grid.allHeads()))};
}

/// The share of what lies in scratch that must last until a grid takes it: all
/// from launch to launch, beside others that of the heads they have at once.
static double shareAlive(const Census &census, size_t number,
                         int64_t residentBlocks) {
  if (!census.grids[number].isBeside)
    return 1;
  const GridCensus &others = census.grids[number - 1];
  return cacheShare(others, residentBlocks).headsAtOnce /
         double(others.allHeads());
}

/// Places that resident blocks keep for what they pass on.
static double placeBytes(const Use &use, const Problem &problem,
                         int64_t residentBlocks) {
  const Node &node = *use.node;
  bool isPlace = node.is<verb::Spill>() || node.is<verb::Reduce>();
  if (!isPlace || scratchOf(node).slots == 0 || use.count == 0)
    return 0;
  double tiles = scratchOf(node).slots;
  if (shapeOf(tensorOf(node)).cols == Axis::HeadDimV) // a place for all columns
    tiles *= ceilDiv(problem.headDimV, use.tile.cols);
  return double(slowBytes(use, problem)) / use.count * tiles * residentBlocks;
}

/// Bytes of a row of an input.
static int64_t rowBytes(const Node &node, const Problem &problem) {
  int64_t columns = extent(problem, *shapeOf(tensorOf(node)).cols);
  return columnsMoved(node, columns) *
         (scratchOf(node).partColumns
              ? bytesMoved(node, problem)
              : bytesPerElement(tensorOf(node), problem));
}

/// Distinct bytes of an input that the grid touches, or of what lies in scratch
/// in whole tiles, all heads.
static int64_t distinctBytes(const Node &node, const GridCensus &grid,
                             const Problem &problem) {
  Tensor tensor = tensorOf(node);
  Shape shape = shapeOf(tensor);
  if (scratchOf(node).wholeRows > 0)
    return roundUp(problem.queries, scratchOf(node).wholeRows) *
           (shape.cols
                ? paddedColumns(node, extent(problem, *shape.cols), problem)
                : 1) *
           bytesMoved(node, problem) * problem.batch * problem.heads;
  bool isKey = shape.rows == Axis::Key;
  int64_t rows = isKey ? std::min(grid.span, problem.keys) : problem.queries;
  return rows * rowBytes(node, problem) * problem.batch *
         (isKey ? problem.kvHeads : problem.heads);
}

//===----------------------------------------------------------------------===//
// Device memory, in rounds
//===----------------------------------------------------------------------===//

/// Distinct bytes of an input that all rounds touch, each for itself, of tiles
/// of queries and strips that see something.
static double distinctOfRounds(const Node &node, const Visits &seen,
                               const Problem &problem) {
  bool isKey = shapeOf(tensorOf(node)).rows == Axis::Key;
  double rows = isKey ? double(seen.innerSpan)
                      : double(seen.wholePairRows + seen.raggedPairRows);
  rows /= double(headsOfSum(problem, isKey ? Axis::Key : Axis::Query));
  return rows * double(rowBytes(node, problem)) * problem.batch *
         (isKey ? problem.kvHeads : problem.heads);
}

/// Bytes that launches in rounds spill of a tensor.
static double spilledBytes(const Census &census, Tensor tensor,
                           const Problem &problem) {
  double bytes = 0;
  for (const Use &use : census.uses) {
    const GridCensus &grid = census.grids[use.grid];
    if (grid.strips > 0 && use.node->is<verb::Spill>() &&
        tensorOf(*use.node) == tensor)
      bytes += double(slowBytes(use, problem)) * double(grid.heads);
  }
  return bytes;
}

static bool makesScoresOfParts(const Census &census, size_t number) {
  return std::any_of(
      census.uses.begin(), census.uses.end(), [&](const Use &use) {
        return use.grid == number && use.node->is<verb::Spill>() &&
               tensorOf(*use.node) == Tensor::P &&
               scratchOf(*use.node).partColumns > 0;
      });
}

/// Rounds find in L2 what one launch spilled for the next, if all scores of a
/// round fit beside the inputs; else those go both ways.  Tiles that have rows
/// in common run at the same time; what they walk along is the same for all
/// waves of tiles of a head, and is read once if L2 keeps it.  Strips of
/// queries walk along the same keys, one after the other.
static double hbmOfRounds(const Census &census, size_t number,
                          const Problem &problem, double usableL2,
                          const CacheShare &share) {
  const GridCensus &grid = census.grids[number];
  double rounds = double(grid.strips) *
                  std::ceil(double(grid.heads) / double(grid.headsAtOnce));
  bool cutsQueries = grid.stripAxis == Axis::Query;
  Visits seen = visits(problem, Axis::Query, kProductRows, grid.stripKeys);
  auto isWalkedAlong = [&](const Node &node) {
    return shapeOf(tensorOf(node)).rows != grid.rows;
  };
  double workingSet = 0, walkedAlong = 0;
  double again = cutsQueries ? double(grid.strips) : 1;
  for (Tensor tensor : {Tensor::P, Tensor::GradS})
    workingSet += spilledBytes(census, tensor, problem) / rounds;
  for (const Use &use : census.uses)
    if (use.grid == number && moves(*use.node) &&
        isInput(tensorOf(*use.node), problem)) {
      double bytes = distinctOfRounds(*use.node, seen, problem);
      if (isWalkedAlong(*use.node)) {
        bytes *= again;
        walkedAlong += bytes / double(grid.strips) / double(grid.allHeads());
      }
      workingSet += bytes / rounds;
    }
  bool fits = workingSet <= usableL2;
  double waves = walkedAlong <= usableL2 ? 1 : share.wavesPerHead;
  if (makesScoresOfParts(census, number))
    waves = std::min(waves, std::ceil(double(grid.stripQueries) /
                                      double(kBandTiles * kProductRows)));
  waves *= fits ? 1 : again;

  double hbm = 0;
  for (const Use &use : census.uses) {
    const Node &node = *use.node;
    if (use.grid != number || !moves(node))
      continue;
    double moved = double(slowBytes(use, problem)) * double(grid.heads);
    std::optional<Axis> cols = shapeOf(tensorOf(node)).cols;
    bool isOfBlocks = cutsQueries && tensorOf(node) == Tensor::Stats;
    // What is kept goes out for good; forward it is read back at once.
    bool isLasting =
        scratchOf(node).isKept &&
        (node.is<verb::Spill>() || problem.direction == Direction::backward);
    if (node.is<verb::Store>() || isLasting || (!cols && !isOfBlocks))
      hbm += moved;
    else if (isInput(tensorOf(node), problem))
      hbm += std::min(moved, distinctOfRounds(node, seen, problem) *
                                 (isWalkedAlong(node) ? waves : 1));
    else if (!fits)
      hbm += std::min(moved, spilledBytes(census, tensorOf(node), problem));
  }
  return hbm;
}

/// Of blocks that run at the same time.
static double bytesOfPlaces(const Census &census, size_t number,
                            const Problem &problem, int64_t residentBlocks) {
  double bytes = 0;
  for (const Use &use : census.uses)
    if (use.grid == number)
      bytes += placeBytes(use, problem, residentBlocks);
  return bytes;
}

/// The share of so many bytes of places for which L2 has no room.
static double shareLost(double places, const GridCensus &grid,
                        const Machine &machine, const Calibration &c) {
  double share = places / double(machine.l2Bytes);
  // What a group passes on is taken up at once.
  if (grid.together > 1)
    return share > c.l2UsableShare ? 1 : 0;
  double lost =
      (share - c.placesHeldShare) / (c.placesLostShare - c.placesHeldShare);
  return std::clamp(lost, 0.0, 1.0);
}

/// Whether own rows stream anew for every step over the others.
static bool comesAgain(const Use &use, const GridCensus &grid) {
  return use.node->is<verb::Stream>() && use.isPanelled && grid.together == 1 &&
         grid.strips == 0 && shapeOf(tensorOf(*use.node)).rows == grid.rows;
}

/// Of keys and values that tiles of a head read, the share that is no longer in
/// L2 when a second one does.  Under a mask tiles differ in length: those of
/// one length of all heads in a section run at once (TileOrder.h), and of those
/// that run together the shorter ones are ahead, so keys are wanted again when
/// those of the whole section have passed.  With queries that stay a tile has
/// done with its keys sooner.
static double shareDrifted(const Census &census, size_t number,
                           const Problem &problem, int64_t residentBlocks,
                           double keptL2) {
  if (problem.isOpen())
    return 0;
  const GridCensus &grid = census.grids[number];
  double bytes = 0;
  bool comeAgain = false;
  for (const Use &use : census.uses) {
    if (use.grid != number || !use.node->is<verb::Stream>())
      continue;
    comeAgain |= comesAgain(use, grid);
    if (shapeOf(tensorOf(*use.node)).rows == Axis::Key)
      bytes += double(distinctBytes(*use.node, grid, problem));
  }
  if (!comeAgain)
    return 0;
  double heads = double(grid.allHeads());
  double least =
      std::ceil(double(residentBlocks) / double(grid.blocksOfHead()));
  double sections = std::max(1.0, std::floor(heads / least));
  return std::max(0.0, 1 - keptL2 / (bytes / sections));
}

double attn::shareOfPlacesLost(const Census &census, size_t number,
                               const Problem &problem, const Machine &machine,
                               int64_t residentBlocks, const Calibration &c) {
  return shareLost(bytesOfPlaces(census, number, problem, residentBlocks),
                   census.grids[number], machine, c);
}

Bytes attn::gridTraffic(const Census &census, size_t number,
                        const Problem &problem, const Machine &machine,
                        int64_t residentBlocks,
                        const Calibration &calibration) {
  const GridCensus &grid = census.grids[number];
  int64_t heads = grid.heads;
  double usableL2 = calibration.l2UsableShare * machine.l2Bytes;
  CacheShare share = cacheShare(grid, residentBlocks);

  // What must stay in L2 for a re-read to hit: the inputs that are read again,
  // of all heads in flight; query heads of one group share their keys.
  auto isReread = [&](const Use &use) {
    const Node &node = *use.node;
    return (isInput(tensorOf(node), problem) ||
            scratchOf(node).wholeRows > 0) &&
           use.grid == number && moves(node) &&
           slowBytes(use, problem) * heads > distinctBytes(node, grid, problem);
  };
  double headsInGroup =
      double(grid.allHeads()) / (double(problem.batch) * problem.kvHeads);
  double groups = std::ceil(share.headsAtOnce / headsInGroup);
  double places = bytesOfPlaces(census, number, problem, residentBlocks);
  double workingSet = places;
  for (const Use &use : census.uses)
    if (isReread(use))
      workingSet += groups * distinctBytes(*use.node, grid, problem) /
                    (double(problem.batch) * problem.kvHeads);
  bool fits = workingSet <= usableL2;
  double reads = fits ? 1 : share.wavesPerHead * headsInGroup;
  double drifted =
      shareDrifted(census, number, problem, residentBlocks,
                   calibration.keptL2Share * double(machine.l2Bytes));
  double alive = shareAlive(census, number, residentBlocks);
  double placesLost = shareLost(places, grid, machine, calibration);

  Bytes bytes;
  bytes.l2 = captureBytes(census, number, problem);
  double hbm = grid.strips > 0
                   ? hbmOfRounds(census, number, problem, usableL2, share)
                   : 0;
  for (const Use &use : census.uses) {
    if (use.grid != number)
      continue;
    double moved = double(slowBytes(use, problem)) * heads;
    bytes.l2 += slowBytes(use, problem) * heads;
    bytes.smem += smemBytes(use, problem) * heads;
    if (grid.strips > 0)
      continue;
    if (use.node->is<verb::Store>() || !moves(*use.node)) {
      hbm += moved;
      continue;
    }
    if (scratchOf(*use.node).wholeRows > 0) {
      // What is added up goes both ways, but what it begins with.
      double distinct = distinctBytes(*use.node, grid, problem);
      bool isReduced = use.node->is<verb::Reduce>();
      double begun = isReduced && grid.firstStores ? distinct : 0;
      if (distinct * alive > usableL2)
        hbm += (isReduced ? 2 : 1) * std::min(moved, distinct * reads) -
               std::min(moved, begun);
      continue;
    }
    if (!isInput(tensorOf(*use.node), problem)) {
      // Scratch of all heads lives from one launch to the next; places are
      // written again and again.
      bool isLost = moved * alive > usableL2;
      hbm += moved * (scratchOf(*use.node).slots > 0 ? placesLost
                      : isLost                       ? 1.0
                                                     : 0.0);
      continue;
    }
    // Between keys and their values a block loads no more than its shared
    // memory holds, so that L2 still has them.
    if (problem.valuesOfKeys && tensorOf(*use.node) == Tensor::V)
      continue;
    double distinct = distinctBytes(*use.node, grid, problem);
    double read = distinct * reads;
    if (comesAgain(use, grid))
      read = distinct + calibration.queriesAgainShare * (moved - distinct);
    else if (drifted > 0)
      read = std::max(read,
                      distinct + drifted * (moved / headsInGroup - distinct));
    hbm += std::min(moved, read);
  }
  bytes.hbm = static_cast<int64_t>(hbm);
  return bytes;
}

Bytes attn::traffic(const Schedule &schedule, const Problem &problem,
                    const Machine &machine, const Calibration &calibration) {
  return traffic(census(schedule, problem), schedule, problem, machine,
                 calibration);
}

Bytes attn::traffic(const Census &counted, const Schedule &schedule,
                    const Problem &problem, const Machine &machine,
                    const Calibration &calibration) {
  Bytes total;
  for (const Bytes &launch :
       launchTraffic(counted, schedule, problem, machine, calibration))
    total += launch;
  return total;
}

/// The bytes of one key of K and V, as often as tiles of queries load it, each
/// part of one by itself.
static int64_t bytesOfKey(const Schedule &schedule, const Problem &problem) {
  const Grid &grid = schedule.launches.front().main;
  int64_t tiles = ceilDiv(problem.queries, grid.step) * grid.sharing.keyParts;
  return tiles * problem.heads * bytesOfKey(problem);
}

/// Of a sequence by itself.
static std::vector<Bytes> trafficAlone(const Schedule &schedule,
                                       const Problem &sequence,
                                       const Machine &machine,
                                       const Calibration &calibration) {
  if (!lacksRows(sequence))
    return launchTraffic(census(schedule, sequence), schedule, sequence,
                         machine, calibration);
  bool hasStep = sequence.direction == Direction::forward &&
                 schedule.launches.front().main.isPipeline();
  Problem problem = withoutKeys(sequence, hasStep);
  std::vector<Bytes> alone = launchTraffic(census(schedule, problem), schedule,
                                           problem, machine, calibration);
  for (size_t launch = 0; launch < alone.size(); ++launch)
    if (hasNoTiles(schedule.launches[launch].main, sequence))
      alone[launch] = {};
  if (hasStep)
    alone.front().l2 -= bytesOfKey(schedule, sequence);
  return alone;
}

/// Of each sequence by itself, and the offsets, which are read from device
/// memory once; how often a kernel looks at them there depends on who draws
/// which tile.
static std::vector<Bytes> raggedTraffic(const Schedule &schedule,
                                        const Problem &problem,
                                        const Machine &machine,
                                        const Calibration &calibration) {
  std::vector<Bytes> launches(schedule.launches.size());
  for (const Sequences &each : sequencesOf(problem)) {
    std::vector<Bytes> alone = trafficAlone(
        schedule, denseOf(problem, each.lengths), machine, calibration);
    for (size_t i = 0; i < launches.size(); ++i) {
      launches[i].hbm += each.count * alone[i].hbm;
      launches[i].l2 += each.count * alone[i].l2;
      launches[i].smem += each.count * alone[i].smem;
    }
  }
  launches.front().hbm += bytesOfOffsets(problem);
  return launches;
}

std::vector<Bytes> attn::launchTraffic(const Census &counted,
                                       const Schedule &schedule,
                                       const Problem &problem,
                                       const Machine &machine,
                                       const Calibration &calibration) {
  if (problem.ragged)
    return raggedTraffic(schedule, problem, machine, calibration);
  std::vector<Bytes> launches;
  size_t number = 0;
  for (const Schedule::Launch &launch : schedule.launches) {
    Footprint space = launchFootprint(launch, problem, machine);
    int64_t resident = machine.sms * std::max<int64_t>(1, space.blocksPerSm) *
                       launch.main.workers.pairs;
    Bytes &bytes = launches.emplace_back();
    for (size_t end = number + launch.size(); number < end; ++number)
      bytes +=
          gridTraffic(counted, number, problem, machine, resident, calibration);
  }
  return launches;
}
