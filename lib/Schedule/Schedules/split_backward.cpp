//===- split_backward.cpp - Gradients by rows, then by columns ------------===//
//
// Two views of the same products.  A block of the first launch keeps a strip of
// queries and the gradient of them; keys and values stream past.  A block of
// the second keeps a strip of keys and values and their gradients; queries and
// the gradients of the output stream past.  Every sum is one block's, taken in
// one order: the result is the same in every run, and nothing but one number a
// row (D) is passed on.  The price is that scores and dP are computed twice,
// seven products where a schedule that adds up dQ in slow memory has five.
//
// Words (Li, Liang, Shi, Song, arXiv 2410.09397, for the order; the constants
// are counted): with strips of `query` and `key`
//
//   9Nd + 2N + (N/query) 2Nd + (N/key) (2Nd + 2N)
//
// 9Nd: Q and dO stay, O and dO once more for D, dQ leaves; K and V stay, dK and
// dV leave.  D costs no launch of its own: it is the first block's that needs
// it.
//
// dK and dV of a strip are both held in registers.  Where they do not both fit
// (`separate`), each has a launch, and scores are computed three times.
//
// D is also left for queries that see nothing: blocks of the second launch may
// read it beside that of others.
//
// As a pipeline, statistics have a launch of their own, so that those behind it
// are alike: both sides stream rows through rings, and a result leaves from
// where a tile's own rows were, since accumulators and rings leave no more
// room.
//
// Query heads that share a key head add up in its gradients: a block of the
// second launch belongs to a key head and goes over all of them.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

static Body scoresAndGradient(Tensor owned, Tensor streamed, Tensor ownedV,
                              Tensor streamedV) {
  return {hold(Tensor::S),
          multiply(Tensor::S, owned, streamed),
          weigh(Tensor::S),
          hold(Tensor::GradP),
          multiply(Tensor::GradP, ownedV, streamedV),
          differentiate(Tensor::GradP)};
}

/// dQ of a strip of queries, and D.
static Grid queryGrid(const Tiles &t) {
  Body step = sequence(
      {{stream(Tensor::K, Level::Smem), stream(Tensor::V, Level::Smem)},
       scoresAndGradient(Tensor::Q, Tensor::K, Tensor::GradO, Tensor::V),
       {multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)}});
  return grid(Axis::Query, t.get("query"), t.get("query_warps", 1),
              {hold(Tensor::GradQ), hold(Tensor::Delta),
               load(Tensor::Q, Level::Smem), load(Tensor::GradO, Level::Smem),
               always(absorb(Tensor::O)), always(absorb(Tensor::GradO)),
               always(load(Tensor::Lse, Level::Registers)),
               always(load(Tensor::GradLse, Level::Registers)),
               always(spill(Tensor::Delta)),
               loop(Axis::Key, t.get("key_block"), t.get("stages", 1), step),
               store(Tensor::GradQ)});
}

/// dK, dV or both of a strip of keys.
static Grid keyGrid(const Tiles &t, bool hasK, bool hasV) {
  Body held, step, stored;
  auto add = [](Body &body, Body more) {
    body = sequence({std::move(body), std::move(more)});
  };
  add(held, {load(Tensor::K, Level::Smem)});
  add(step, {stream(Tensor::Q, Level::Smem), stream(Tensor::GradO, Level::Smem),
             stream(Tensor::Lse, Level::Smem)});
  if (hasK) {
    add(held, {hold(Tensor::GradK), load(Tensor::V, Level::Smem)});
    add(step, {stream(Tensor::Delta, Level::Smem)});
    add(stored, {store(Tensor::GradK)});
  }
  add(step, {hold(Tensor::S), multiply(Tensor::S, Tensor::K, Tensor::Q),
             weigh(Tensor::S)});
  if (hasV) {
    add(held, {hold(Tensor::GradV)});
    add(step, {multiply(Tensor::GradV, Tensor::P, Tensor::GradO)});
    add(stored, {store(Tensor::GradV)});
  }
  if (hasK)
    add(step,
        {hold(Tensor::GradP), multiply(Tensor::GradP, Tensor::V, Tensor::GradO),
         differentiate(Tensor::GradP),
         multiply(Tensor::GradK, Tensor::GradS, Tensor::Q)});
  add(held, {loop(Axis::Query, t.get("query_block"), t.get("stages", 1),
                  std::move(step))});
  return grid(Axis::Key, t.get("key"), t.get("key_warps", 1),
              sequence({std::move(held), std::move(stored)}));
}

//===----------------------------------------------------------------------===//
// As pipelines
//===----------------------------------------------------------------------===//

static Crew crewOf(int64_t rows, bool overlaps) {
  Crew crew;
  crew.workers.warpgroups = rows / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.order.overlaps = overlaps;
  crew.sharing.isInStep = true;
  crew.sharing.reusesPlaces = true;
  return crew;
}

/// dQ of a tile of queries.
static Grid queryPipeline(const Tiles &t) {
  Body step = sequence(
      {{stream(Tensor::K, Level::Smem),
        deep(t.get("value_stages"), stream(Tensor::V, Level::Smem))},
       scoresAndGradient(Tensor::Q, Tensor::K, Tensor::GradO, Tensor::V),
       {multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)}});
  int64_t rows = t.get("query");
  return grid(Axis::Query, rows, crewOf(rows, /*overlaps=*/false),
              {hold(Tensor::GradQ), load(Tensor::Q, Level::Smem),
               load(Tensor::GradO, Level::Smem),
               load(Tensor::Stats, Level::Registers),
               loop(Axis::Key, t.get("key_block"), t.get("stages"), step),
               store(Tensor::GradQ)});
}

/// dK, dV or both of a tile of keys.
static Grid keyPipeline(const Tiles &t, bool hasK, bool hasV) {
  // Until its end a step needs what dV is a product of.
  verb::Stream gradient = stream(Tensor::GradO, Level::Smem);
  if (!hasV)
    gradient = deep(t.get("value_stages"), gradient);
  Body held = {load(Tensor::K, Level::Smem)}, stored;
  Body step = {
      stream(Tensor::Q, Level::Smem),
      inTilesOf(t.get("query_block"), stream(Tensor::Stats, Level::Smem)),
      gradient,
      hold(Tensor::S),
      multiply(Tensor::S, Tensor::K, Tensor::Q),
      weigh(Tensor::S)};
  if (hasK) {
    held =
        sequence({held, {load(Tensor::V, Level::Smem), hold(Tensor::GradK)}});
    step = sequence({step,
                     {hold(Tensor::GradP),
                      multiply(Tensor::GradP, Tensor::V, Tensor::GradO)}});
    stored = {store(Tensor::GradK)};
  }
  if (hasV) {
    held = sequence({held, {hold(Tensor::GradV)}});
    step.push_back(multiply(Tensor::GradV, Tensor::P, Tensor::GradO));
    stored.push_back(store(Tensor::GradV));
  }
  if (hasK)
    step = sequence({step,
                     {differentiate(Tensor::GradP),
                      multiply(Tensor::GradK, Tensor::GradS, Tensor::Q)}});
  int64_t rows = t.get("key"), queries = t.get("query_block");
  held.push_back(loop(Axis::Query, queries, t.get("stages"), std::move(step)));
  // dV beside dP, if there are registers for P beside both.
  bool overlaps = hasK && hasV && queries == kWarpgroupRows;
  return grid(Axis::Key, rows, crewOf(rows, overlaps),
              sequence({std::move(held), std::move(stored)}));
}

static Schedule buildPipelines(const Tiles &t) {
  Grid prepare = statisticsGrid(t.get("query_block")),
       queries = queryPipeline(t);
  if (t.get("separate") == 0)
    return {"split_backward", {prepare, queries, keyPipeline(t, true, true)}};
  return {"split_backward",
          {prepare, queries, keyPipeline(t, true, false),
           keyPipeline(t, false, true)}};
}

static std::optional<std::string> checkPipelines(const Tiles &t,
                                                 const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  auto isOneOrTwo = [](int64_t rows) {
    return rows == kWarpgroupRows || rows == 2 * kWarpgroupRows;
  };
  for (const char *name : {"query", "key", "query_block", "key_block"})
    if (!isOneOrTwo(t.get(name)))
      return "expects 64 or 128 rows in " + std::string(name) + ", but got " +
             std::to_string(t.get(name));
  for (const char *name : {"stages", "value_stages"})
    if (t.get(name) > 4)
      return "expects four buffers at most in " + std::string(name) +
             ", but got " + std::to_string(t.get(name));
  if (t.get("persistent") != 1)
    return std::string("expects persistent = 1, but got "
                       "persistent = 0");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// As launches of like warps
//===----------------------------------------------------------------------===//

/// One launch for each side, or one for each gradient of keys.
static std::vector<LaunchShape> sides(const Tiles &t, GridForm form) {
  int64_t queries = t.get("query"), keys = t.get("key");
  std::vector<LaunchShape> shapes = {{"_dq", form, false, queries}};
  if (t.get("separate") == 0) {
    shapes.push_back({"_dk_dv", form, true, keys});
  } else {
    shapes.push_back({"_dk", form, true, keys});
    shapes.push_back({"_dv", form, true, keys});
  }
  return shapes;
}

static Launches launchesOfTiles(const Tiles &t) {
  Launches launches;
  launches.shapes = sides(t, GridForm::tiles);
  return launches;
}

/// Blocks that take tile after tile have no time for statistics.
static Launches launchesOfPipelines(const Tiles &t) {
  Launches launches;
  launches.stripsOfBlock = t.get("query_block") / kStripRows;
  launches.shapes = sides(t, GridForm::persistent);
  LaunchShape prepare = {"_prepare", GridForm::tiles, false, kStripRows};
  prepare.unit = launches.stripsOfBlock;
  launches.shapes.insert(launches.shapes.begin(), prepare);
  return launches;
}

static Schedule build(const Tiles &t) {
  if (t.get("separate") == 0)
    return {"split_backward", {queryGrid(t), keyGrid(t, true, true)}};
  return {"split_backward",
          {queryGrid(t), keyGrid(t, true, false), keyGrid(t, false, true)}};
}

/// Tiles of either side walk lists, those of keys transposed ones.
static std::optional<std::string> checkPattern(const Tiles &t,
                                               const Problem &problem) {
  if (auto sentence =
          checkTilesOfBlocks({t.get("query"), t.get("key_block")}, problem))
    return sentence;
  return checkTilesOfBlocks({t.get("query_block"), t.get("key")}, problem);
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind split_backward() {
  Form portable = {
      {TensorCoreFamily::none, TensorCoreFamily::mmaSync},
      {extentParameter("query", {64, 128}),
       extentParameter("key_block", {16, 32, 64}),
       countParameter("query_warps", {4, 8}), extentParameter("key", {64, 128}),
       extentParameter("query_block", {16, 32, 64}),
       countParameter("key_warps", {4, 8}), countParameter("stages", {1, 2, 3}),
       choiceParameter("separate", {0, 1})},
      {},
      {},
      build,
      nullptr,
      checkPattern};
  Form pipelines = {{TensorCoreFamily::wgmma},
                    {extentParameter("query", {128, 64}),
                     extentParameter("key_block", {64, 128}),
                     extentParameter("key", {128, 64}),
                     extentParameter("query_block", {64, 128}),
                     choiceParameter("separate", {0, 1})},
                    {countParameter("stages", {3, 2}),
                     countParameter("value_stages", {2, 1})},
                    {choiceParameter("persistent", {1})},
                    buildPipelines,
                    checkPipelines,
                    checkPattern};
  portable.launches = launchesOfTiles;
  pipelines.launches = launchesOfPipelines;
  return {"split_backward",
          "gradients of queries by strips of queries, of keys and values by "
          "strips of keys; each sum in one order",
          {portable, pipelines},
          Regime::largeCache,
          Direction::backward};
}
} // namespace attn::schedules
