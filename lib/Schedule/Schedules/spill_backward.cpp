//===- spill_backward.cpp - Gradients as matrix products, P and dS spilled ===//
//
// For M < d², where neither rows of dK and dV nor those of dQ fit: each of the
// five products keeps a tile of its *output*, rows by columns, and streams both
// factors, as a matrix product does.  The price is P and dS, which are written
// once and read again by every tile that they are a factor of.
//
// Scores and dP are the exception: one block makes both of the same pairs, so
// that P stays in registers until dS is made of it.  Where they are launches of
// their own, P is read once more.  Words, with tiles of `query` x `key_block`
// of scores, `key` and `query` x `column` of gradients and W keys of a strip:
//
//   2N²d (1/query + 1/key_block)      S and dP
//     + 2N²                           P and dS leave
//     + 2N² (d/column) + 2N²d/key     dV and dK
//     + N² (d/column) + N²d/query     dQ
//     + 2 (N/W − 1) Nd                sums of dQ between strips
//     + 5Nd + 3N + 2N²/key_block      O and dO for D, results; LSE and D
//
// With b x b tiles and one strip: 10N²d/b + 2N² + 5Nd + 5N.
//
// P and dS would be N² words.  They are spilled for `strip` keys and `heads`
// key heads at a time: the launches that make and read them take turns in
// rounds, so that memory grows as the rows of operands do.  dQ is a sum over
// strips, in order, and waits between them as f32.  All sums are one block's
// and have one order: the result is the same in every run.
//
// *Merged*, the launches of a round are one: a block takes tiles of each,
// scores of some heads first and then in turns scores of others and sums, so
// that P and dS are read while L2 has them, and nobody waits for the last ones
// alone.  D is made there too, of rows of O and dO that stream through the same
// ring, so that they come beside products of others; nothing but LSE is left
// for the launch before.
//
// Where weights were *kept* (Problem.h), P is read instead of multiplied, with
// the maxima of its blocks: N²d (1/query + 1/key_block) words of Q and K less,
// N² + N²/key_block more.
//
// Scratch arrays are whole tiles, hidden pairs as zeros.  Blocks of scores that
// nothing sees are neither written nor read.
//
// Like warps do the same without a copy engine: all of them copy slices of both
// factors, and results leave from registers.  That takes f32 too, on every part
// with mma.sync, and rows at any address.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"
#include <algorithm>

using namespace attn;

/// Of what is contracted, rows of a slot of a pipeline's ring.
static constexpr int64_t kDepth = 64;

/// Whether there is a copy engine.
static bool isPipeline(const Tiles &t) { return !t.has("warps"); }
static int64_t depthOf(const Tiles &t) { return t.get("slice", kDepth); }

/// Whether the sums are in the launch of scores.
static bool isMerged(const Tiles &t) { return t.get("merged", 0) != 0; }

static Crew crewOf(const Tiles &t, int64_t width) {
  Crew crew;
  crew.workers.warpgroups = t.get("query") / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.sharing.isInStep = true;
  crew.workers.isOfProducts = true;
  crew.sharing.width = width;
  return crew;
}

/// A product of a tile, of which both factors come by slices.
static Node product(Axis axis, const Tiles &t, Node left, Node right,
                    Node multiply) {
  return loop(axis, depthOf(t), t.get("stages", 1),
              {std::move(left), std::move(right), std::move(multiply)});
}

static verb::Stream smem(Tensor tensor) { return stream(tensor, Level::Smem); }
static verb::Store result(const Tiles &t, Tensor tensor) {
  return isPipeline(t) ? store(tensor) : storeDirectly(tensor);
}

/// Tiles of so many rows, of products with so many columns; or by so many
/// warps.
static Grid tilesOf(Axis axis, int64_t rows, const Tiles &t, int64_t width,
                    int64_t warps, Body body) {
  if (isPipeline(t))
    return grid(axis, rows, crewOf(t, width), std::move(body));
  return ofProducts(grid(axis, rows, warps, std::move(body)));
}

/// What scores need of the rows of queries, but D.
static Grid shiftGrid(const Tiles &t) {
  constexpr int64_t rows = kWarpgroupRows, warps = 4;
  return grid(Axis::Query, rows, warps,
              {always(load(Tensor::Lse, Level::Registers)),
               always(inTilesOf(t.get("query_block"), spill(Tensor::Lse)))});
}

/// D of the rows that see something, in the first round in which they do.
static Grid deltaGrid(const Tiles &t) {
  Node rows = product(Axis::HeadDimV, t, smem(Tensor::GradO), smem(Tensor::O),
                      multiply(Tensor::Delta, Tensor::GradO, Tensor::O));
  return grid(Axis::Query, t.get("query"), crewOf(t, kProductRows),
              {hold(Tensor::Delta), std::move(rows),
               load(Tensor::GradLse, Level::Registers),
               inTilesOf(t.get("query_block"), spill(Tensor::Delta))});
}

/// P and dS of a strip.  A block of scores is a tile of its own: the tiles of
/// all multiprocessors then are some rows by some columns, and what they read
/// stays in L2.
static Grid scoresGrid(const Tiles &t) {
  int64_t query = t.get("query");
  auto leave = [&](Tensor tensor) {
    return inTilesOf(query,
                     isPipeline(t) ? spillStaged(tensor) : spill(tensor));
  };
  Body weights = {hold(Tensor::S),
                  product(Axis::HeadDim, t, smem(Tensor::Q), smem(Tensor::K),
                          multiply(Tensor::S, Tensor::Q, Tensor::K)),
                  weigh(Tensor::S), leave(Tensor::P)};
  Body gradient = {hold(Tensor::GradP),
                   product(Axis::HeadDimV, t, smem(Tensor::GradO),
                           smem(Tensor::V),
                           multiply(Tensor::GradP, Tensor::GradO, Tensor::V))};
  Body kept = {attn::kept(absorb(Tensor::TileMax)), attn::kept(smem(Tensor::P)),
               rescaleStaged(Tensor::P), leave(Tensor::P)};
  Body made = t.has("kept") ? sequence({gradient, kept})
                            : sequence({weights, gradient});
  Body block = sequence({{load(Tensor::Stats, Level::Registers)},
                         made,
                         {differentiate(Tensor::GradP), leave(Tensor::GradS)}});
  verb::Loop blocks = seek(Axis::Key, t.get("key_block"), 1, block);
  blocks.isParallel = true;
  return tilesOf(Axis::Query, query, t, t.get("key_block"), kScoreWarps,
                 {loop(Axis::Key, t.get("strip"), 1, {std::move(blocks)})});
}

/// dV and dK of the keys of a strip: of those heads' queries, all of them.
static Grid keysGrid(const Tiles &t) {
  auto gradient = [&](Axis columns, Tensor sums, Tensor left, Tensor right) {
    Node sum = product(Axis::Query, t, inTilesOf(kDepth, smem(left)),
                       smem(right), multiply(sums, left, right));
    return parallel(columns, t.get("column"),
                    {hold(sums), std::move(sum), result(t, sums)});
  };
  return tilesOf(
      Axis::Key, t.get("key"), t, t.get("column"), t.get("warps"),
      {gradient(Axis::HeadDimV, Tensor::GradV, Tensor::P, Tensor::GradO),
       gradient(Axis::HeadDim, Tensor::GradK, Tensor::GradS, Tensor::Q)});
}

/// dQ of the queries that a strip of keys is seen by.
static Grid queriesGrid(const Tiles &t) {
  int64_t stages = t.get("stages", 1);
  // Warpgroups pass over rows of which there are none.
  int64_t rows = isPipeline(t) ? kWarpgroupRows : t.get("query");
  auto sums = [&](auto node) {
    return between(inTilesOf(rows, std::move(node)));
  };
  Node product =
      seek(Axis::Key, depthOf(t), stages,
           {inTilesOf(t.get("query"), smem(Tensor::GradS)), smem(Tensor::K),
            multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)});
  Node strips = loop(Axis::Key, t.get("strip"), stages,
                     {sums(absorb(Tensor::GradQ)), std::move(product),
                      sums(spill(Tensor::GradQ))});
  return tilesOf(Axis::Query, t.get("query"), t, t.get("column"),
                 t.get("warps"),
                 {parallel(Axis::HeadDim, t.get("column"),
                           {hold(Tensor::GradQ), std::move(strips),
                            result(t, Tensor::GradQ)})});
}

static Rounds roundsOf(const Tiles &t) {
  Rounds rounds;
  rounds.heads = t.get("heads", 1);
  rounds.strip = t.get("strip");
  rounds.queryTile = t.get("query");
  rounds.keyBlock = t.get("key_block");
  return rounds;
}

/// Statistics, and then scores for gradients of both sides, or all in one.
static Launches launches(const Tiles &t) {
  Launches launches;
  launches.rounds = roundsOf(t);
  launches.stripsOfBlock = t.get("query_block") / kStripRows;
  GridForm form =
      t.get("persistent") != 0 ? GridForm::persistent : GridForm::tiles;
  LaunchShape prepare = {"_prepare", GridForm::tiles, false, kStripRows};
  prepare.unit = launches.stripsOfBlock;
  LaunchShape scores = {"_scores", form, false, t.get("query")};
  LaunchShape ofKeys = {"_dk_dv", form, true, t.get("key")};
  LaunchShape ofQueries = {"_dq", form, false, t.get("query")};
  scores.keyBlocks = t.get("strip") / t.get("key_block");
  ofKeys.columns = ofQueries.columns = t.get("column");
  for (LaunchShape *shape : {&scores, &ofKeys, &ofQueries})
    shape->isInRounds = true;
  if (!isMerged(t)) {
    launches.shapes = {prepare, scores, ofKeys, ofQueries};
    return launches;
  }
  scores.suffix = "";
  scores.keyRows = t.get("key"), scores.columns = t.get("column");
  launches.shapes = {prepare, scores};
  return launches;
}

static Schedule build(const Tiles &t) {
  Grid scores = scoresGrid(t), ofKeys = keysGrid(t), ofQueries = queriesGrid(t);
  if (isMerged(t))
    return {"spill_backward",
            {shiftGrid(t),
             Schedule::Launch({deltaGrid(t)}, scores, {ofKeys, ofQueries})},
            roundsOf(t)};
  return {"spill_backward",
          {statisticsGrid(t.get("query_block")), scores, ofKeys, ofQueries},
          roundsOf(t)};
}

static std::string number(int64_t value) { return std::to_string(value); }

/// What the launches of both forms have in common.
static std::optional<std::string> checkTiles(const Tiles &t) {
  for (const char *rows : {"query", "key"})
    if (t.get(rows) != kProductRows)
      return std::string("expects ") + rows + " to be " + number(kProductRows) +
             ", but got " + number(t.get(rows));
  if (t.get("query_block") != kDepth)
    return "expects query_block to be " + number(kDepth) + ", but got " +
           number(t.get("query_block"));
  if (t.get("strip") % t.get("key_block") != 0)
    return "expects strips of whole blocks of keys, but got strip = " +
           number(t.get("strip")) +
           " and key_block = " + number(t.get("key_block"));
  return std::nullopt;
}

static std::optional<std::string> checkPipelines(const Tiles &t,
                                                 const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  if (t.get("key_block") != 128 && t.get("key_block") != 256)
    return "expects blocks of 128 or 256 keys, but got " +
           number(t.get("key_block"));
  if (auto sentence = checkTiles(t))
    return sentence;
  if (auto sentence = checkWgmmaColumns(t.get("column")))
    return sentence;
  if (t.get("stages") < 2 || t.get("stages") > 6)
    return "expects two to six stages, but got " + number(t.get("stages"));
  if (t.get("persistent") != 1)
    return "expects persistent = 1, but got persistent = 0";
  if (isMerged(t) && t.get("column") > t.get("key_block"))
    return "expects tiles of gradients, in one launch with scores, to have at "
           "most their columns, " +
           number(t.get("key_block")) +
           ", but got column = " + number(t.get("column"));
  return std::nullopt;
}

/// The blocks are those of the arrays.
static std::optional<std::string> checkKept(const Tiles &t,
                                            const Problem &problem) {
  if (auto sentence = checkKeptBlocks(t))
    return sentence;
  return checkPipelines(t, problem);
}

/// Lists are walked in one launch, an entry at a time; and as they are in any
/// order, a strip has all keys.
static std::optional<std::string> checkLists(const Tiles &t,
                                             const Problem &problem) {
  if (!problem.pattern)
    return std::nullopt;
  if (!isMerged(t))
    return std::string("expects scores and gradients in one launch where "
                       "blocks are listed, but got merged = 0");
  if (t.has("kept"))
    return std::string("expects no weights that were kept where blocks are "
                       "listed");
  const BlockSize size = problem.pattern->size();
  if (size.keys != t.get("key_block") || size.queries % t.get("query") != 0)
    return "expects blocks of a multiple of " + number(t.get("query")) +
           " queries and " + number(t.get("key_block")) +
           " keys, as tiles of scores have, but got " + str(size);
  if (t.get("strip") < problem.keys)
    return "expects one strip of all " + number(problem.keys) +
           " keys where blocks are listed, but got strip = " +
           number(t.get("strip"));
  return std::nullopt;
}

static std::vector<int64_t> keyBlocksToTry(const Problem &problem,
                                           const Machine &, const Tiles &) {
  bool isNarrow = problem.pattern && problem.pattern->size().keys == 128;
  return {isNarrow ? 128 : 256};
}

/// Of lists the one that has all keys.
static std::vector<int64_t> stripsToTry(const Problem &problem, const Machine &,
                                        const Tiles &) {
  if (!problem.pattern)
    return {1024, 2048, 4096, 8192};
  int64_t strip = 1024;
  while (strip < problem.keys)
    strip *= 2;
  return {strip};
}

static std::optional<std::string> checkWarps(const Tiles &t,
                                             const Problem &problem) {
  if (t.get("key_block") != kProductRows)
    return "expects blocks of " + number(kProductRows) + " keys, but got " +
           number(t.get("key_block"));
  if (auto sentence = checkTiles(t))
    return sentence;
  if (t.get("column") > kMostWgmmaColumns)
    return "expects at most " + number(kMostWgmmaColumns) +
           " columns, but got " + number(t.get("column"));
  if (t.get("warps") != 4 && t.get("warps") != 8)
    return "expects four or eight warps, but got " + number(t.get("warps"));
  // Split factors and their sums take what 32 rows of 64 columns leave: ptxas
  // 13.0 spills 44 bytes.
  if (productsPerProduct(problem) > 1 && t.get("warps") != 8)
    return "expects eight warps for products of split factors, but got " +
           number(t.get("warps"));
  int64_t slice = t.get("slice"), bytes = slice * bytesOf(problem.dtype);
  if (bytes != 64 && bytes != 128)
    return "expects slices of 64 or 128 bytes, but got " + number(slice) +
           " elements of " + std::string(name(problem.dtype));
  if (t.get("stages") < 2 || t.get("stages") > 4)
    return "expects two to four stages, but got " + number(t.get("stages"));
  return std::nullopt;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind spill_backward() {
  Parameter heads = countParameter("heads", {1, 2, 4, 8, 16, 32, 64, 128});
  heads.most = 128;
  Parameter strip = extentParameter("strip", {1024, 2048, 4096, 8192});
  strip.derived = stripsToTry;
  Parameter keyBlock = extentParameter("key_block", {256});
  keyBlock.derived = keyBlocksToTry;
  Form likeWarps = {
      {TensorCoreFamily::mmaSync},
      {extentParameter("query", {128}), extentParameter("key_block", {128}),
       extentParameter("key", {128}), extentParameter("column", {128, 64}),
       extentParameter("query_block", {64}), strip, heads,
       extentParameter("slice", {64, 32, 16}), countParameter("warps", {8, 4})},
      {countParameter("stages", {3, 2})},
      {},
      build,
      checkWarps,
      nullptr};
  Form pipelines = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {128}), keyBlock, extentParameter("key", {128}),
       extentParameter("column", {256, 192, 128, 64}),
       extentParameter("query_block", {64}), strip, heads},
      {countParameter("stages", {4, 3, 2})},
      {choiceParameter("merged", {1, 0}), choiceParameter("persistent", {1})},
      build,
      checkPipelines,
      checkLists};
  pipelines.mostHeadDim = kMaxHeadDim;
  likeWarps.launches = pipelines.launches = launches;
  Form keeping = pipelines;
  keeping.sizes.push_back(keptParameter());
  keeping.checkStructure = checkKept;
  keeping.keeps = true;
  return {"spill_backward",
          "five matrix products that keep tiles of their output; P and dS of "
          "a strip of keys are spilled in between",
          {likeWarps, pipelines, keeping},
          Regime::smallCache,
          Direction::backward};
}
} // namespace attn::schedules
