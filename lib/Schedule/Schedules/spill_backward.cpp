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
// Two blocks may be a cluster: their tiles are neighbours, they go in step, and
// each loads half of every right factor for both.  Then those terms of the sum
// above that have rows in the denominator have twice as many.
//
// Scratch arrays are tiles as the copy engine moves them, whole, hidden pairs
// as zeros.  Blocks of scores that nothing sees are neither written nor read.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"
#include <algorithm>

using namespace attn;

/// Of what is contracted, rows of a slot of the ring.
static constexpr int64_t kDepth = 64;

static Pipeline pipelineOf(const Tiles &t, int64_t width) {
  Pipeline pipeline;
  pipeline.warpgroups = t.get("query") / kWarpgroupRows;
  pipeline.isPersistent = t.get("persistent", 1) != 0;
  pipeline.isInStep = true;
  pipeline.cluster = t.get("cluster", 1);
  pipeline.width = width;
  return pipeline;
}

/// A product of a tile, of which both factors come by slices.
static Node product(Axis axis, int64_t stages, Node left, Node right,
                    Node multiply) {
  return loop(axis, kDepth, stages,
              {std::move(left), std::move(right), std::move(multiply)});
}

static Node smem(Tensor tensor) { return stream(tensor, Level::Smem); }

/// P and dS of a strip.  A block of scores is a tile of its own: the tiles of
/// all multiprocessors then are some rows by some columns, and what they read
/// stays in L2.
static Node scoresGrid(const Tiles &t) {
  int64_t query = t.get("query"), stages = t.get("stages", 1);
  auto leave = [&](Tensor tensor) {
    return inTilesOf(query * t.get("cluster", 1), spillStaged(tensor));
  };
  Body block = {load(Tensor::Stats, Level::Registers),
                hold(Tensor::S),
                product(Axis::HeadDim, stages, smem(Tensor::Q), smem(Tensor::K),
                        multiply(Tensor::S, Tensor::Q, Tensor::K)),
                weigh(Tensor::S),
                leave(Tensor::P),
                hold(Tensor::GradP),
                product(Axis::HeadDimV, stages, smem(Tensor::GradO),
                        smem(Tensor::V),
                        multiply(Tensor::GradP, Tensor::GradO, Tensor::V)),
                differentiate(Tensor::GradP),
                leave(Tensor::GradS)};
  Node blocks = seek(Axis::Key, t.get("key_block"), 1, block);
  blocks.isParallel = true;
  return grid(Axis::Query, query, pipelineOf(t, t.get("key_block")),
              {loop(Axis::Key, t.get("strip"), 1, {std::move(blocks)})});
}

/// dV and dK of the keys of a strip: of those heads' queries, all of them.
static Node keysGrid(const Tiles &t) {
  auto gradient = [&](Axis columns, Tensor result, Tensor left, Tensor right) {
    Node sum =
        product(Axis::Query, t.get("stages", 1), inTilesOf(kDepth, smem(left)),
                smem(right), multiply(result, left, right));
    return parallel(columns, t.get("column"),
                    {hold(result), std::move(sum), store(result)});
  };
  return grid(
      Axis::Key, t.get("key"), pipelineOf(t, t.get("column")),
      {gradient(Axis::HeadDimV, Tensor::GradV, Tensor::P, Tensor::GradO),
       gradient(Axis::HeadDim, Tensor::GradK, Tensor::GradS, Tensor::Q)});
}

/// dQ of the queries that a strip of keys is seen by.
static Node queriesGrid(const Tiles &t) {
  int64_t stages = t.get("stages", 1);
  auto sums = [](Node node) {
    return between(inTilesOf(kWarpgroupRows, std::move(node)));
  };
  Node product =
      seek(Axis::Key, kDepth, stages,
           {inTilesOf(t.get("query"), smem(Tensor::GradS)), smem(Tensor::K),
            multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)});
  Node strips = loop(Axis::Key, t.get("strip"), stages,
                     {sums(absorb(Tensor::GradQ)), std::move(product),
                      sums(spill(Tensor::GradQ))});
  return grid(Axis::Query, t.get("query"), pipelineOf(t, t.get("column")),
              {parallel(Axis::HeadDim, t.get("column"),
                        {hold(Tensor::GradQ), std::move(strips),
                         store(Tensor::GradQ)})});
}

static Schedule build(const Tiles &t) {
  return {"spill_backward",
          {statisticsGrid(t.get("query_block")), scoresGrid(t), keysGrid(t),
           queriesGrid(t)},
          {t.get("heads", 1), t.get("strip")}};
}

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkStructure(const Tiles &t,
                                                 const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  for (const char *rows : {"query", "key"})
    if (t.get(rows) != kProductRows)
      return std::string("expects ") + rows + " to be " + number(kProductRows) +
             ", but got " + number(t.get(rows));
  if (t.get("key_block") != 128 && t.get("key_block") != 256)
    return "expects blocks of 128 or 256 keys, but got " +
           number(t.get("key_block"));
  int64_t column = t.get("column");
  if (column % kPanelColumns != 0 || column > kMostWgmmaColumns)
    return "expects whole panels of " + number(kPanelColumns) +
           " columns, at most " + number(kMostWgmmaColumns) + ", but got " +
           number(column);
  if (t.get("query_block") != kDepth)
    return "expects query_block to be " + number(kDepth) + ", but got " +
           number(t.get("query_block"));
  if (t.get("strip") % t.get("key_block") != 0)
    return "expects strips of whole blocks of keys, but got strip = " +
           number(t.get("strip")) +
           " and key_block = " + number(t.get("key_block"));
  int64_t cluster = t.get("cluster"), persistent = t.get("persistent");
  if (cluster > 2 || t.get("key_block") % (cluster * t.get("key")) != 0)
    return "expects one block in a cluster, or two with as many keys as a "
           "block of scores, but got cluster = " +
           number(cluster) + " and key_block = " + number(t.get("key_block"));
  if (t.get("stages") < 2 || t.get("stages") > 6)
    return "expects two to six stages, but got " + number(t.get("stages"));
  if (persistent != (cluster == 1))
    return "expects blocks that take tile after tile, or clusters that do not, "
           "but got cluster = " +
           number(cluster) + " and persistent = " + number(persistent);
  return std::nullopt;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind spill_backward() {
  Parameter heads = countParameter("heads", {1, 2, 4, 8, 16, 32, 64});
  heads.most = 64;
  Form pipelines = {{TensorCoreFamily::wgmma},
                    {extentParameter("query", {128}),
                     extentParameter("key_block", {256}),
                     extentParameter("key", {128}),
                     extentParameter("column", {256, 192, 128, 64}),
                     extentParameter("query_block", {64}),
                     extentParameter("strip", {1024, 2048, 4096, 8192}), heads,
                     countParameter("cluster", {2, 1})},
                    {countParameter("stages", {3, 2})},
                    {choiceParameter("persistent", {1, 0})},
                    build,
                    checkStructure,
                    nullptr};
  pipelines.mostHeadDim = kMaxHeadDim;
  return {"spill_backward",
          "five matrix products that keep tiles of their output; P and dS of "
          "a strip of keys are spilled in between",
          {pipelines},
          Regime::smallCache,
          Direction::backward};
}
} // namespace attn::schedules
