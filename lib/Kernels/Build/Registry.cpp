//===- Registry.cpp - Kernel builders by name -----------------------------===//

#include "attn/Kernels/Kernels.h"
#include "attn/Schedule/Schedule.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

namespace attn {
#define ATTN_KERNEL(name)                                                      \
  tile::KernelOp name(OpBuilder &, Location, const KernelRequest &);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
} // namespace attn

KernelBuilder attn::findKernelBuilder(StringRef name) {
  llvm::StringSwitch<KernelBuilder> found(name);
#define ATTN_KERNEL(kernel) found.Case(#kernel, &kernel);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
  return found.Default(nullptr);
}

std::string attn::offsetRole(StringRef operand) {
  return (operand + "_offset").str();
}

std::string attn::strideRole(StringRef operand, StringRef axis) {
  return (operand + "_stride_" + axis).str();
}

std::string attn::mapRole(StringRef operand) {
  return (operand + "_map").str();
}

bool attn::isScratchRole(StringRef role) {
  return role == kScratchRole || role.starts_with((kScratchRole + "_").str());
}

int64_t attn::blocksOfTeam(const Tiles &tiles) {
  return tiles.get("group", 1) * tiles.get("cluster", 1);
}

int64_t attn::launchOf(tile::KernelOp kernel) {
  auto launch = kernel->getAttrOfType<IntegerAttr>(kLaunchAttr);
  return launch ? launch.getInt() : 0;
}

int64_t attn::stripsOfBlock(const Tiles &tiles) {
  return tiles.get("query_block", kStripRows) / kStripRows;
}

/// The grid of a schedule's only launch, or of its main one.
static GridForm formOf(const Tiles &tiles) {
  bool isOfClusters = tiles.get("cluster", 1) > 1 && tiles.get("persistent");
  if (tiles.has("group") || isOfClusters)
    return GridForm::teams;
  if (tiles.has("part"))
    return GridForm::persistent;
  // Without rounds, each block has places of its own.
  if ((tiles.has("strip") && !tiles.has("heads")) || tiles.has("reduce"))
    return GridForm::resident;
  return tiles.get("persistent") != 0 ? GridForm::persistent : GridForm::tiles;
}

bool attn::hasStripsOfQueries(const Tiles &tiles) {
  return tiles.has("strip") && tiles.has("heads") && !tiles.has("query_block");
}

/// P waits for the output.
static SmallVector<LaunchShape, 3> launchesOfOutput(const Tiles &tiles) {
  GridForm form = formOf(tiles);
  LaunchShape scores = {"_scores", form, false, tiles.get("query")};
  LaunchShape outputs = {"_outputs", form, false, tiles.get("query")};
  scores.keyBlock = tiles.get("key_block");
  outputs.columns = tiles.get("column");
  scores.isInRounds = outputs.isInRounds = true;
  SmallVector<LaunchShape, 3> launches;
  if (tiles.has("parts")) {
    launches = {{"_split_queries", GridForm::tiles, false, kScaledRows},
                {"_split_keys", GridForm::tiles, true, kScaledRows}};
  }
  if (tiles.get("merged", 0) == 0) {
    launches.append({scores, outputs});
    return launches;
  }
  LaunchShape both = scores;
  both.suffix = tiles.has("parts") ? llvm::StringLiteral("_attend") : "";
  both.columns = outputs.columns;
  launches.push_back(both);
  return launches;
}

/// Scores wait for gradients of both sides.
static SmallVector<LaunchShape, 3> launchesInRounds(const Tiles &tiles) {
  int64_t queries = tiles.get("query"), keys = tiles.get("key");
  GridForm form = formOf(tiles);
  LaunchShape scores = {"_scores", form, false, queries};
  LaunchShape ofKeys = {"_dk_dv", form, true, keys};
  LaunchShape ofQueries = {"_dq", form, false, queries};
  scores.keyBlocks = tiles.get("strip") / tiles.get("key_block");
  ofKeys.columns = ofQueries.columns = tiles.get("column");
  for (LaunchShape *shape : {&scores, &ofKeys, &ofQueries})
    shape->isInRounds = true;
  LaunchShape prepare = {"_prepare", GridForm::tiles, false, kStripRows,
                         stripsOfBlock(tiles)};
  if (tiles.get("merged", 0) == 0)
    return {prepare, scores, ofKeys, ofQueries};
  scores.suffix = "";
  scores.keyRows = keys, scores.columns = tiles.get("column");
  return {prepare, scores};
}

int64_t LaunchShape::tilesOfRows(const Problem &problem) const {
  return columns == 0 || keyRows > 0 ? keyBlocks
                                     : tilesOfColumns(problem, ownsKeys);
}

int64_t LaunchShape::tilesOfKeys(const Problem &problem) const {
  return tilesOfColumns(problem, /*areOfKeys=*/true);
}

int64_t LaunchShape::tilesOfColumns(const Problem &problem,
                                    bool areOfKeys) const {
  int64_t ofHeadDim = llvm::divideCeil(problem.headDim, columns);
  int64_t ofHeadDimV = llvm::divideCeil(problem.headDimV, columns);
  if (problem.direction == Direction::forward)
    return ofHeadDimV;
  return areOfKeys ? ofHeadDim + ofHeadDimV : ofHeadDim;
}

SmallVector<LaunchShape, 3> attn::launchesOf(const Tiles &tiles) {
  GridForm form = formOf(tiles);
  int64_t queries = tiles.get("query", 1) * tiles.get("cluster", 1);
  int64_t keys = tiles.get("key");
  if (hasStripsOfQueries(tiles))
    return launchesOfOutput(tiles);
  if (!tiles.has("query_block"))
    return {{"", form, false, queries}};
  if (tiles.has("strip"))
    return launchesInRounds(tiles);
  SmallVector<LaunchShape, 3> shapes;
  // Without strips of its own to take dQ from, one that adds it up in slow
  // memory.
  if (!tiles.has("query")) {
    int64_t strips = stripsOfBlock(tiles), beside = tiles.get("beside");
    GridForm around = GridForm::tiles;
    LaunchShape prepare = {"_prepare", around, false, kStripRows, strips};
    LaunchShape main = {"", form, true, keys};
    LaunchShape finish = {"_finish", around, false, kStripRows, strips};
    main.isNeverEmpty = beside > 0;
    if (beside == 0)
      return {prepare, main, finish};
    if (beside == 1)
      return {prepare, main};
    return {main};
  }
  // Blocks that take tile after tile have no time for statistics.
  if (tiles.has("persistent"))
    shapes.push_back(
        {"_prepare", GridForm::tiles, false, kStripRows, stripsOfBlock(tiles)});
  shapes.push_back({"_dq", form, false, queries});
  if (tiles.get("separate") == 0) {
    shapes.push_back({"_dk_dv", form, true, keys});
  } else {
    shapes.push_back({"_dk", form, true, keys});
    shapes.push_back({"_dv", form, true, keys});
  }
  return shapes;
}

RoundOrder::RoundOrder(const Tiles &tiles, const Problem &problem)
    : blocks(1), rows(0), columns(0), cutsQueries(hasStripsOfQueries(tiles)),
      allHeads(problem.batch * problem.kvHeads) {
  heads = allHeads, strip = problem.keys;
  groups = strips = 1;
  if (!launchesOf(tiles).back().isInRounds)
    return;
  heads = std::min(tiles.get("heads"), allHeads);
  strip = tiles.get("strip");
  int64_t keyBlock = tiles.get("key_block");
  rows = llvm::alignTo(problem.queries, tiles.get("query"));
  columns = std::min<int64_t>(strip, llvm::alignTo(problem.keys, keyBlock));
  if (cutsQueries) {
    rows = std::min(rows, strip);
    columns = keyBlock;
    blocks = llvm::divideCeil(std::max<int64_t>(problem.keys, 1), keyBlock);
  }
  groups = heads == 0 ? 0 : llvm::divideCeil(allHeads, heads);
  int64_t all = cutsQueries ? problem.queries : problem.keys;
  strips = llvm::divideCeil(std::max<int64_t>(all, 1), strip);
}

Round RoundOrder::at(int64_t number) const {
  int64_t first = number / strips * heads, begin = number % strips * strip;
  return {first, std::min(heads, allHeads - first), cutsQueries ? 0 : begin,
          cutsQueries ? begin : 0, rows};
}

std::array<int64_t, 3> attn::gridOf(const Tiles &tiles, const Problem &problem,
                                    int64_t multiprocessors,
                                    int64_t blocksPerSm, int64_t launch) {
  LaunchShape shape = launchesOf(tiles)[launch];
  int64_t extent = shape.ownsKeys ? problem.keys : problem.queries;
  int64_t heads = shape.ownsKeys ? problem.kvHeads : problem.heads;
  int64_t allHeads = heads * problem.batch;
  if (shape.isInRounds) {
    RoundOrder rounds(tiles, problem);
    int64_t group = problem.heads / problem.kvHeads;
    allHeads = shape.ownsKeys ? rounds.heads : rounds.heads * group;
    if (shape.ownsKeys || hasStripsOfQueries(tiles))
      extent = std::min(extent, rounds.strip);
  }
  int64_t rows = llvm::divideCeil(extent, shape.rows * shape.unit) * shape.unit;
  int64_t all = rows * allHeads * shape.tilesOfRows(problem);
  if (shape.keyBlock > 0)
    all *= llvm::divideCeil(std::max<int64_t>(problem.keys, 1), shape.keyBlock);
  if (shape.keyRows > 0) {
    RoundOrder rounds(tiles, problem);
    all +=
        llvm::divideCeil(std::min(problem.keys, rounds.strip), shape.keyRows) *
        rounds.heads * shape.tilesOfKeys(problem);
  }
  if (shape.isNeverEmpty)
    all = std::max(all, std::min<int64_t>(problem.queries * problem.batch, 1));
  switch (shape.form) {
  case GridForm::tiles:
    return {all * blocksOfTeam(tiles), 1, 1};
  case GridForm::persistent:
    return {std::min(all, multiprocessors), 1, 1};
  case GridForm::resident:
    return {std::min(all, multiprocessors * blocksPerSm), 1, 1};
  case GridForm::teams: {
    int64_t team = blocksOfTeam(tiles);
    return {std::min(all, multiprocessors / team) * team, 1, 1};
  }
  }
  llvm_unreachable("closed enum");
}
