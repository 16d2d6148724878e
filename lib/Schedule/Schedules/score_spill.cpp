//===- score_spill.cpp - Two matrix products, P spilled between -----------===//
//
// For M < d², after Saha and Ye: neither Q nor O fits as a strip, so each of
// the two products keeps a square tile of its *output* and streams slices of
// both operands, as a matrix product does.  The price is the probabilities that
// are written in between.
//
// Theirs spills exp(S), which overflows.  Here a tile of P is computed with the
// running max at that time and spilled together with it, one word per row; when
// it is read back it is rescaled to the max that is known by then.
//
// In *strips* of keys one launch does both: a block computes P of a strip for
// its rows, then the output of the strip, column tile by column tile, from the
// places that it alone uses.  They do not grow with the problem.  Between
// strips the output waits in places of its own.  Words:
//
//   N²d (1/query + 1/key + 1/query + 1/column)
//     + N² + N²/key (1 + d/column) + (2N/strip − 1) Nd + N
//
// Without strips all of P, N², is spilled, by two launches, so that the tiles
// of the products may differ (`out_query`).  Nobody chooses that unasked.
// Words:
//
//   N²d (1/query + 1/key + 1/out_query + 1/column)
//     + N² + N²/key (1 + d/column) + Nd + 4N
//
// With a copy engine and wgmma both products are plain ones, of tiles whose
// factors both stream, and launches of their own that take turns in *rounds*
// (spill_backward.cpp does so for gradients): for some heads and a strip of
// queries, all keys, so that no sum waits in memory.  P of a block has the max
// and the sum of the block's own keys, two words a row; who reads P brings
// blocks to one max by powers of two, which is exact.  What waits grows with
// the keys, not with the square.  Words:
//
//   N²d (1/query + 1/key_block)       S
//     + N² + 2N²/key_block            P and statistics leave
//     + N² (d/column) + N²d/query     O
//     + 2N²/key_block (d/column) + Nd + N
//
// Warpgroups of a tile of O pass over keys that their own rows do not see.
//
// *Merged*, both are one launch: a block takes tiles of either, scores of some
// heads first and then in turns scores of others and outputs, so that P is read
// while L2 has it, and nobody waits for the last scores alone.
//
// Where weights are *kept* (Problem.h), P and its statistics leave for arrays
// of the caller, row by row, and are read from there; the words are the same,
// and nothing is in scratch.
//
// Where blocks are listed, a tile of queries has scores of those alone, and
// what waits of one lies in the place that it has in the list.
//
// So it is for f32, in products of three parts of bf16 each, which launches
// before the rounds make of Q, K and V: there a word above is 6 bytes, and 12Nd
// more are read and 18Nd written.  An accumulator has the sum of a slice,
// beside what that is added to; so P is not rescaled, but what comes of it.
//
//===----------------------------------------------------------------------===//

#include "Folds/WarpRows.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Registry.h"

using namespace attn;

static Body scores(const Tiles &t) {
  return sequence({scoresBySlices(t.get("slice"), t.get("stages", 1)),
                   {softmax(Tensor::S)}});
}

//===----------------------------------------------------------------------===//
// All keys at once
//===----------------------------------------------------------------------===//

/// Scores by tiles of query × key; P and its max leave at once.
static Grid scoreGrid(const Tiles &t) {
  Body keyStep =
      sequence({scores(t), {spill(Tensor::P), spill(Tensor::TileMax)}});
  return grid(Axis::Query, t.get("query"), t.get("warps", 1),
              {hold(Tensor::Stats),
               loop(Axis::Key, t.get("key"), t.get("stages", 1), keyStep),
               spill(Tensor::Stats)});
}

/// Output by tiles of out_query × column; the statistics of a row shrink to its
/// log-sum-exp as they are read.
static Grid outputGrid(const Tiles &t) {
  int64_t stages = t.get("stages", 1);
  Body product =
      slices(Axis::Key, t.get("slice"), stages,
             {stream(Tensor::P, Level::Smem), stream(Tensor::V, Level::Smem),
              rescale(Tensor::P), multiply(Tensor::O, Tensor::P, Tensor::V)});
  Body keyStep = sequence({{load(Tensor::TileMax, Level::Registers)}, product});
  Body column = {hold(Tensor::O),
                 loop(Axis::Key, t.get("key"), stages, keyStep),
                 store(Tensor::O)};
  return grid(Axis::Query, t.get("out_query"), t.get("warps", 1),
              {hold(Tensor::Lse), absorb(Tensor::Stats),
               loop(Axis::HeadDimV, t.get("column"), 1, column),
               store(Tensor::Lse)});
}

//===----------------------------------------------------------------------===//
// Strips
//===----------------------------------------------------------------------===//

static Grid stripGrid(const Tiles &t) {
  int64_t key = t.get("key"), strip = t.get("strip");
  int64_t stages = t.get("stages", 1), places = strip / key;
  Body keyStep = sequence(
      {scores(t), {spill(Tensor::P, places), spill(Tensor::TileMax, places)}});
  // P comes back as it left, by the threads that had it: past shared memory.
  Body product =
      sequence({{absorb(Tensor::TileMax, places)},
                slices(Axis::Key, t.get("slice"), stages,
                       {absorb(Tensor::P, places), rescale(Tensor::P),
                        stream(Tensor::V, Level::Smem),
                        multiply(Tensor::O, Tensor::P, Tensor::V)})});
  Body column = {hold(Tensor::O), between(absorb(Tensor::O, 1)),
                 rescale(Tensor::O), seek(Axis::Key, key, stages, product),
                 between(spill(Tensor::O, 1))};
  Body whole = {seek(Axis::Key, key, stages, keyStep),
                loop(Axis::HeadDimV, t.get("column"), 1, column)};
  return grid(
      Axis::Query, t.get("query"), t.get("warps", 1),
      {hold(Tensor::Stats), loop(Axis::Key, strip, stages, whole),
       loop(Axis::HeadDimV, t.get("column"), 1, {storeDirectly(Tensor::O)}),
       store(Tensor::Lse)});
}

static Schedule build(const Tiles &t) {
  if (t.get("strip") > 0)
    return {"score_spill", {stripGrid(t)}};
  return {"score_spill", {scoreGrid(t), outputGrid(t)}};
}

//===----------------------------------------------------------------------===//
// Pipelines of products, in rounds
//===----------------------------------------------------------------------===//

/// Of what is contracted, rows or columns of a slot of the ring.
static constexpr int64_t kDepth = kPanelColumns;

static Crew crewOf(const Tiles &t, int64_t width) {
  Crew crew;
  crew.workers.warpgroups = t.get("query") / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.sharing.isInStep = true;
  crew.workers.isOfProducts = true;
  crew.sharing.width = width;
  return crew;
}

/// A factor in the parts that a launch before has made of it, if there is one.
template <typename Verb>
static Verb partsOf(const Tiles &t, int64_t columns, Verb node) {
  return t.has("parts") ? inParts(columns, std::move(node)) : node;
}

/// P and its statistics, for whom they are.
template <typename Verb> static Verb forOutputs(const Tiles &t, Verb node) {
  if (t.has("kept"))
    return kept(std::move(node));
  if (shapeOf(node.tensor).cols)
    return inTilesOf(t.get("query"), std::move(node));
  return node;
}

/// Whether outputs are in the launch of scores.
static bool isMerged(const Tiles &t) { return t.get("merged", 0) != 0; }

/// A block of scores is a tile of its own.
static Grid blockGrid(const Tiles &t) {
  int64_t query = t.get("query"), block = t.get("key_block");
  Node product = loop(Axis::HeadDim, kDepth, t.get("stages", 1),
                      {partsOf(t, kDepth, stream(Tensor::Q, Level::Smem)),
                       partsOf(t, kDepth, stream(Tensor::K, Level::Smem)),
                       multiply(Tensor::S, Tensor::Q, Tensor::K)});
  verb::Loop blocks =
      parallel(Axis::Key, block,
               {hold(Tensor::S), std::move(product), softmax(Tensor::S),
                partsOf(t, block, forOutputs(t, spillStaged(Tensor::P))),
                forOutputs(t, spill(Tensor::Stats))});
  Crew crew = crewOf(t, block);
  if (block == kHalvedKeys)
    blocks = halved(std::move(blocks));
  return grid(Axis::Query, query, crew, {std::move(blocks)});
}

/// Columns of the output.
static Grid columnGrid(const Tiles &t) {
  int64_t query = t.get("query"), column = t.get("column");
  Node product = seek(Axis::Key, kDepth, t.get("stages", 1),
                      {forOutputs(t, stream(Tensor::P, Level::Smem)),
                       stream(Tensor::V, Level::Smem), rescale(Tensor::P),
                       multiply(Tensor::O, Tensor::P, Tensor::V)});
  Node blocks =
      loop(Axis::Key, t.get("key_block"), 1,
           {forOutputs(t, absorb(Tensor::Stats)), std::move(product)});
  Crew crew = crewOf(t, column);
  // Warpgroups pass over keys that they do not see.
  crew.sharing.isInStep = false;
  return grid(Axis::Query, query, crew,
              {parallel(Axis::HeadDimV, column,
                        {hold(Tensor::O), std::move(blocks), store(Tensor::O)}),
               store(Tensor::Lse)});
}

/// The same of parts: blocks come whole, and O leaves from registers.
static Grid columnGridOfParts(const Tiles &t) {
  int64_t query = t.get("query"), block = t.get("key_block"),
          column = t.get("column");
  Node product =
      loop(Axis::Key, kDepth, t.get("stages", 1),
           {inParts(block, inTilesOf(query, stream(Tensor::P, Level::Smem))),
            inParts(column, stream(Tensor::V, Level::Smem)),
            multiply(Tensor::O, Tensor::P, Tensor::V)});
  Node blocks =
      loop(Axis::Key, block, 1,
           {absorb(Tensor::Stats), std::move(product), rescale(Tensor::O)});
  return grid(
      Axis::Query, query, crewOf(t, column),
      {parallel(Axis::HeadDimV, column,
                {hold(Tensor::O), std::move(blocks), storeDirectly(Tensor::O)}),
       store(Tensor::Lse)});
}

static Rounds roundsOf(const Tiles &t) {
  Rounds rounds;
  rounds.heads = t.get("heads", 1);
  rounds.strip = t.get("strip");
  rounds.axis = Axis::Query;
  rounds.first = t.has("parts") ? 2 : 0;
  rounds.queryTile = t.get("query");
  rounds.keyBlock = t.get("key_block");
  return rounds;
}

static Schedule buildRounds(const Tiles &t) {
  std::vector<Schedule::Launch> launches;
  if (t.has("parts"))
    launches = {partsGrid(Axis::Query, {{Tensor::Q, kDepth}}),
                partsGrid(Axis::Key,
                          {{Tensor::K, kDepth}, {Tensor::V, t.get("column")}})};
  Grid scores = blockGrid(t);
  Grid outputs = t.has("parts") ? columnGridOfParts(t) : columnGrid(t);
  if (isMerged(t))
    launches.push_back({{}, std::move(scores), {std::move(outputs)}});
  else
    launches.insert(launches.end(), {std::move(scores), std::move(outputs)});
  return {"score_spill", std::move(launches), roundsOf(t)};
}

/// Scores, and then outputs, or both in one.
static Launches launchesInRounds(const Tiles &t) {
  Launches launches;
  launches.rounds = roundsOf(t);
  launches.hasFlags = isMerged(t);
  GridForm form =
      t.get("persistent") != 0 ? GridForm::persistent : GridForm::tiles;
  LaunchShape scores = {"_scores", form, false, t.get("query")};
  LaunchShape outputs = {"_outputs", form, false, t.get("query")};
  scores.keyBlock = t.get("key_block");
  outputs.columns = t.get("column");
  scores.isInRounds = outputs.isInRounds = true;
  if (t.has("parts"))
    launches.shapes = {{"_split_queries", GridForm::tiles, false, kScaledRows},
                       {"_split_keys", GridForm::tiles, true, kScaledRows}};
  if (isMerged(t)) {
    scores.suffix = t.has("parts") ? "_attend" : "";
    scores.columns = outputs.columns;
    launches.shapes.push_back(scores);
  } else {
    launches.shapes.push_back(scores);
    launches.shapes.push_back(outputs);
  }
  return launches;
}

/// Blocks have places of their own for P.
static Launches launchesOfPlaces(const Tiles &t) {
  return oneLaunch(GridForm::resident, t.get("query"));
}

//===----------------------------------------------------------------------===//
// What is possible
//===----------------------------------------------------------------------===//

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkStrips(const Tiles &t,
                                              const Problem &problem) {
  if (auto sentence = checkWarpRows(t.get("query"), t.get("warps")))
    return sentence;
  int64_t strip = t.get("strip"), stages = t.get("stages");
  if (stages < 2 || stages > 3)
    return "expects two or three stages in strips, but got " + number(stages);
  if (strip % t.get("key") != 0 || t.get("key") % t.get("slice") != 0)
    return "expects strips of whole blocks of whole slices of keys, but got "
           "strip = " +
           number(strip) + ", key = " + number(t.get("key")) +
           " and slice = " + number(t.get("slice"));
  return std::nullopt;
}

static std::optional<std::string> checkWhole(const Tiles &t,
                                             const Problem &problem) {
  auto sentence = checkWarpRows(t.get("query"), t.get("warps"));
  return sentence ? sentence
                  : checkWarpRows(t.get("out_query"), t.get("warps"));
}

static std::optional<std::string> checkMask(const Tiles &t,
                                            const Problem &problem) {
  bool isMasked = !problem.isOpen();
  int64_t query = t.get("query"), outQuery = t.get("out_query");
  if (isMasked && query % outQuery != 0)
    return "expects query to be a multiple of out_query under a mask, but "
           "got " +
           number(query) + " and " + number(outQuery) +
           ": a tile of the output would read scores that were never written";
  return std::nullopt;
}

/// What pipelines have in common.
static std::optional<std::string> checkRounds(const Tiles &t,
                                              const Problem &problem) {
  if (t.get("query") != kProductRows)
    return "expects query to be " + number(kProductRows) + ", but got " +
           number(t.get("query"));
  if (t.get("strip") % kProductRows != 0)
    return "expects strips of whole tiles of " + number(kProductRows) +
           " queries, but got strip = " + number(t.get("strip"));
  if (auto sentence = checkWgmmaColumns(t.get("column")))
    return sentence;
  if (t.get("persistent") != 1)
    return "expects persistent = 1, but got persistent = 0";
  if (isMerged(t) && t.get("column") > t.get("key_block"))
    return "expects tiles of outputs, in one launch with scores, to have at "
           "most their columns, " +
           number(t.get("key_block")) +
           ", but got column = " + number(t.get("column"));
  int64_t flags = launchesInRounds(t).flags(problem);
  if (flags > kMostFlags)
    return "expects at most " + number(kMostFlags) +
           " tiles of queries in one launch of scores and outputs, but got " +
           number(flags);
  return std::nullopt;
}

static std::optional<std::string> checkPipelines(const Tiles &t,
                                                 const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  if (t.get("key_block") != 128 && t.get("key_block") != 256)
    return "expects blocks of 128 or 256 keys, but got " +
           number(t.get("key_block"));
  if (t.get("stages") < 2 || t.get("stages") > 6)
    return "expects two to six stages, but got " + number(t.get("stages"));
  return checkRounds(t, problem);
}

/// The blocks are those of the arrays.
static std::optional<std::string> checkKept(const Tiles &t,
                                            const Problem &problem) {
  if (auto sentence = checkKeptBlocks(t))
    return sentence;
  return checkPipelines(t, problem);
}

/// Three slices are in flight, each of two parts, of 16 KiB of every factor;
/// and a sum beside the accumulator leaves room for 128 columns.
static std::optional<std::string> checkParts(const Tiles &t,
                                             const Problem &problem) {
  constexpr int64_t columns = 128, slices = 3;
  if (!needsSplit(problem))
    return "expects f32, but got " + std::string(name(problem.dtype));
  if (t.get("parts") != kScaledParts)
    return "expects " + number(kScaledParts) + " parts, but got " +
           number(t.get("parts"));
  if (t.get("key_block") != columns)
    return "expects blocks of " + number(columns) + " keys, but got " +
           number(t.get("key_block"));
  if (t.get("column") > columns)
    return "expects at most " + number(columns) + " columns, but got " +
           number(t.get("column"));
  if (t.get("stages") != slices * kScaledParts)
    return "expects " + number(slices * kScaledParts) + " stages, but got " +
           number(t.get("stages"));
  return checkRounds(t, problem);
}

/// Lists are walked in parts, both products in one launch, an entry at a time.
static std::optional<std::string> checkListsOfParts(const Tiles &t,
                                                    const Problem &problem) {
  if (problem.pattern && !isMerged(t))
    return std::string("expects scores and outputs in one launch where blocks "
                       "are listed, but got merged = 0");
  if (problem.pattern && problem.pattern->size().keys != t.get("key_block"))
    return "expects blocks of " + number(t.get("key_block")) +
           " keys, as tiles of scores have, but got " +
           str(problem.pattern->size());
  return checkTilesOfBlocks({t.get("query"), t.get("key_block")}, problem);
}

static std::optional<std::string> checkNoLists(const Tiles &,
                                               const Problem &problem) {
  if (!problem.pattern)
    return std::nullopt;
  return "expects what a mask shows in " + std::string(name(problem.dtype)) +
         ", but got blocks that are listed; in f32 they may be";
}

/// The kernel has factors of 16 bits.
static bool isWritten(const Problem &problem, const Tiles &) {
  return bytesOf(problem.dtype) == 2;
}
static bool isNotWritten(const Problem &, const Tiles &) { return false; }
/// A row of all parts is what the copy engine takes at most.
static constexpr int64_t kMostPartColumns =
    kMaxHeadDim / kScaledParts / kProductRows * kProductRows;
static bool isNotSplit(const Problem &problem) { return !needsSplit(problem); }

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind score_spill() {
  std::vector<TensorCoreFamily> families = {TensorCoreFamily::none,
                                            TensorCoreFamily::mmaSync};
  Parameter query = extentParameter("query", {32, 64, 128}),
            key = extentParameter("key", {64, 128, 256}),
            column = extentParameter("column", {64, 128, 256}),
            slice = extentParameter("slice", {16, 32, 64}),
            warps = countParameter("warps", {2, 4, 8}),
            stages = countParameter("stages", {3, 2});
  Form strips = {families,
                 {query, key, column, slice, warps,
                  extentParameter("strip", {256, 512, 2048})},
                 {stages},
                 {},
                 build,
                 checkStrips,
                 nullptr};
  strips.hasKernel = isWritten;
  strips.launches = launchesOfPlaces;
  Form whole = {families,
                {query, key, extentParameter("out_query", {64, 128}), column,
                 slice, warps},
                {stages},
                {},
                build,
                checkWhole,
                checkMask};
  whole.hasKernel = isNotWritten;
  // One launch for all of short rows: 128 heads of 512 causal rows of 512
  // columns took 135 us on an H100, by 64 heads 143 (2026-11-25).
  Parameter heads = countParameter("heads", {1, 2, 4, 8, 16, 32, 64, 128, 256});
  heads.most = 1024;
  Parameter merged = choiceParameter("merged", {1, 0});
  Form pipelines = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {128}), extentParameter("key_block", {256}),
       extentParameter("column", {256, 192, 128, 64}),
       extentParameter("strip", {512, 1024, 2048, 4096, 8192, 16384}), heads},
      {countParameter("stages", {4, 3, 2})},
      {merged, choiceParameter("persistent", {1})},
      buildRounds,
      checkPipelines,
      checkNoLists};
  pipelines.mostHeadDim = kMaxHeadDim;
  pipelines.takes = isNotSplit;
  pipelines.launches = launchesInRounds;
  Form keeping = pipelines;
  keeping.sizes.push_back(keptParameter());
  keeping.checkStructure = checkKept;
  keeping.keeps = true;
  Form ofParts = {{TensorCoreFamily::wgmma},
                  {extentParameter("query", {128}),
                   extentParameter("key_block", {128}),
                   extentParameter("column", {128, 64}),
                   extentParameter("strip", {1024, 2048, 4096, 8192, 16384}),
                   heads, countParameter("parts", {kScaledParts})},
                  {countParameter("stages", {3 * kScaledParts})},
                  {merged, choiceParameter("persistent", {1})},
                  buildRounds,
                  checkParts,
                  checkListsOfParts};
  ofParts.mostHeadDim = kMostPartColumns;
  ofParts.splits = ofParts.rewrites = true;
  ofParts.takes = needsSplit;
  ofParts.launches = launchesInRounds;
  return {"score_spill",
          "two matrix products that keep square tiles of their output; the "
          "probabilities of a strip are spilled in between",
          {strips, whole, pipelines, keeping, ofParts}};
}
} // namespace attn::schedules
