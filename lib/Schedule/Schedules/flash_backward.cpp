//===- flash_backward.cpp - Gradients by keys, dQ added from afar ---------===//
//
// A block keeps a tile of keys and values and their gradients; queries, the
// gradients of the output and the statistics of both stream past.  Scores and
// dP are computed once, so there are five products where split_backward has
// seven.  The price is dQ: every tile of keys has a part of it, which it adds
// to sums in slow memory, as f32.  What order they are added in is chance, and
// so the last bits of dQ; where gradients are to be deterministic they are
// `ordered`.
//
// Words (Li, Liang, Shi, Song, arXiv 2410.09397, for the order; the constants
// are counted): with tiles of `key`
//
//   6Nd + N + (N/key) (3Nd + 2N)   K and V stay, dK and dV leave, O and dO
//                                  give D; Q, dO, LSE and D stream past, dQ
//                                  is added
//   3Nd + 2N                       sums begin as zeros and are read in the
//                                  end, dQ leaves; LSE and D are passed on
//
// The launches before and behind are for what a block of keys cannot know: D is
// of whole rows, and sums are whole only when all blocks of a head are done.
//
// With `beside` nothing is launched behind: warps that the copies leave take
// the strips of a head as soon as its tiles are done, while sums are in L2 and
// the tensor cores busy with other heads.  That takes a flag for every key
// head, or a few, that counts them.  They are few, and where tiles are done
// before they are, as with few rows under a mask, a launch for the rest is
// shorter.
//
// With `beside = 2` nothing is launched before either: the same warps make D of
// a head before its tiles begin; of the heads that come first all warps do.
// Those that finish come later to it, and find sums in slow memory.
//
// With `ordered` a tile of keys adds to a block of queries when the tile before
// has, in the order in which tiles are drawn.  That takes a flag in scratch for
// every strip, and time: tiles of a head that begin at the same time do so one
// turn apart.  So tiles of many heads are worked on at once.  Under a mask
// tiles of a head have different lengths, and the longest are drawn first, of
// causal heads in lanes that lag behind each other (TileOrder.h), or
// with `short_first` the shortest, from the first block that they see to the
// last: they come to a block in the order in which they are drawn, and hardly
// wait, but long ones are left for the end.
//
// With `first_stores` sums do not begin as zeros: the first tile that sees a
// block of queries stores its part of dQ, and says so in a flag in scratch,
// for which the others wait before they add to it.  So the 3Nd words of the
// second line are 2Nd; tiles of keys that nobody sees make no step, and strips
// that see nothing are not read.  Of ordered sums the flag is that of turns.
//
// Sums and statistics lie in scratch memory in whole tiles, thread by thread.
// They take 4d and 8 bytes for each query: twice what Q does in 16 bits.
//
// With `overlap = 2` a block of 128 queries is weighed in two halves, each
// beside products of the other.  Rows of K, a left factor, are read once for
// each, those of V once for a tile: they stay in registers.
//
// A warpgroup has 64 keys.  Their scores and dP lie the other way round (S^T =
// K Q^T), so that P^T and dS^T are left factors as they come, in registers.
// Only dS crosses shared memory, because dQ sums over the keys of all
// warpgroups: each takes 64 of the block's queries, or, if there are fewer,
// some of dQ's columns.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"
#include <algorithm>

using namespace attn;

/// Warps of a block of the last grid: each has 16 rows of a strip.
static constexpr int64_t kStripWarps = 4;
/// Of `overlap`.
static constexpr int64_t kInHalves = 2;

static Schedule build(const Tiles &t) {
  int64_t key = t.get("key"), queries = t.get("query_block");
  Crew crew;
  crew.workers.warpgroups = key / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.order.overlaps = t.get("overlap", 1) != 0;
  crew.order.isInHalves = t.get("overlap", 1) == kInHalves;
  crew.order.isOrdered = t.get("ordered") != 0;
  crew.order.takesShortFirst = t.get("short_first") != 0;
  crew.order.firstStores = t.get("first_stores") != 0;
  auto dealt = [&](auto node) {
    return queries == key ? node : byColumns(crew.workers.warpgroups, node);
  };
  auto inTiles = [&](auto node) {
    return inTilesOf(queries, dealt(std::move(node)));
  };

  Body zeros;
  if (!crew.order.firstStores)
    zeros.push_back(always(inTiles(spill(Tensor::GradQ))));
  Grid prepare = statisticsGrid(queries, std::move(zeros));
  bool inHalves = crew.order.isInHalves;
  // S of the next half is in flight beside that of this one.
  Body products = {hold(Tensor::S, Level::Registers, inHalves ? 2 : 1),
                   multiply(Tensor::S, Tensor::K, Tensor::Q),
                   weigh(Tensor::S),
                   hold(Tensor::GradP),
                   multiply(Tensor::GradP, Tensor::V, Tensor::GradO),
                   multiply(Tensor::GradV, Tensor::P, Tensor::GradO),
                   differentiate(Tensor::GradP),
                   multiply(Tensor::GradK, Tensor::GradS, Tensor::Q)};
  Body step = sequence(
      {{stream(Tensor::Q, Level::Smem), stream(Tensor::GradO, Level::Smem),
        inTilesOf(queries, stream(Tensor::Stats, Level::Smem))},
       slices(Axis::Query, inHalves ? kWarpgroupRows : 0, 1,
              std::move(products)),
       // Behind dK, whose factor is in registers.
       {hold(Tensor::GradS, Level::Smem, 2), dealt(hold(Tensor::GradQ)),
        dealt(multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)),
        inTiles(reduce(Tensor::GradQ, 0))}});
  Body kept;
  if (inHalves)
    kept.push_back(hold(Tensor::V));
  Grid main = grid(
      Axis::Key, key, crew,
      sequence({{hold(Tensor::GradK), hold(Tensor::GradV),
                 load(Tensor::K, Level::Smem), load(Tensor::V, Level::Smem)},
                std::move(kept),
                {loop(Axis::Query, queries, t.get("stages", 2), step),
                 store(Tensor::GradK), store(Tensor::GradV)}}));
  verb::Absorb sums = inTiles(absorb(Tensor::GradQ));
  Grid finish =
      grid(Axis::Query, kStripRows, kStripWarps,
           {crew.order.firstStores ? std::move(sums) : always(std::move(sums)),
            storeDirectly(Tensor::GradQ)});
  int64_t beside = t.get("beside");
  if (beside > 1)
    return {"flash_backward", {Schedule::Launch({prepare}, main, {finish})}};
  if (beside > 0)
    return {"flash_backward", {prepare, Schedule::Launch({}, main, {finish})}};
  return {"flash_backward", {prepare, main, finish}};
}

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkOrder(const Tiles &t,
                                             const Problem &problem) {
  bool isOrdered = t.get("ordered") != 0;
  if (problem.deterministic && !isOrdered)
    return std::string("expects sums of dQ in order for deterministic "
                       "gradients, but got ordered = 0");
  if (!problem.deterministic && isOrdered)
    return std::string("expects sums of dQ in any order for gradients that "
                       "need not be deterministic, but got ordered = 1");
  if (problem.isListed() && t.get("first_stores") != 0)
    return std::string("expects sums of dQ that begin as zeros where blocks "
                       "are listed or in runs of bands, but got first_stores "
                       "= 1");
  bool isMasked = !problem.mask.isOpen();
  if (t.get("short_first") != 0 && !(isOrdered && isMasked))
    return std::string("expects ordered sums under a mask for tiles of which "
                       "the shortest are first, but got short_first = 1");
  return std::nullopt;
}

/// Tiles of a sequence are found by who draws them; when all of a head are done
/// is not counted, nor which is first.
static std::optional<std::string> checkSequences(const Tiles &t,
                                                 const Problem &problem) {
  if (!problem.ragged)
    return std::nullopt;
  for (const char *name : {"beside", "ordered", "first_stores"})
    if (t.get(name) != 0)
      return "expects " + std::string(name) +
             " = 0 for ragged sequences, but got " + number(t.get(name));
  return std::nullopt;
}

static std::optional<std::string> checkPipeline(const Tiles &t,
                                                const Problem &problem) {
  int64_t key = t.get("key"), queries = t.get("query_block");
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  if (key != kWarpgroupRows && key != 2 * kWarpgroupRows)
    return "expects 64 or 128 keys for one or two warpgroups, but got " +
           number(key);
  if (queries != kWarpgroupRows && queries != 2 * kWarpgroupRows)
    return "expects blocks of 64 or 128 queries, but got " + number(queries);
  if (queries > key)
    return "expects as many queries as keys at most, but got " +
           number(queries) + " and " + number(key);
  int64_t panels = (problem.headDim + kPanelColumns - 1) / kPanelColumns;
  int64_t warpgroups = key / kWarpgroupRows;
  if (queries != key && panels % warpgroups != 0)
    return "expects 64 queries for each of " + number(warpgroups) +
           " warpgroups, or as many columns of dQ, but got " + number(queries) +
           " queries and a head dim of " + number(problem.headDim);
  int64_t widest = std::max(problem.headDim, problem.headDimV);
  if (t.get("overlap") == kInHalves &&
      (queries != 2 * kWarpgroupRows || widest > kPanelColumns))
    return "expects 128 queries of " + number(kPanelColumns) +
           " columns at most for blocks in halves, but got " + number(queries) +
           " of " + number(widest);
  // Slopes would stand beside the scores of both halves.
  if (t.get("overlap") == kInHalves && problem.clauses.score)
    return std::string("expects scores as they are multiplied for blocks in "
                       "halves, but got a function of them");
  if (t.get("stages") < 2 || t.get("stages") > 3)
    return "expects two or three stages, but got " + number(t.get("stages"));
  if (t.get("persistent") != 1)
    return std::string("expects persistent = 1, but got "
                       "persistent = 0");
  if (auto sentence = checkSequences(t, problem))
    return sentence;
  return checkOrder(t, problem);
}

/// Whose block of queries is first, and in which order others follow, is known
/// of masks only.
static std::optional<std::string> checkPattern(const Tiles &t,
                                               const Problem &problem) {
  if (t.get("ordered") != 0 && !problem.bands.isEmpty())
    return "expects no runs of bands for sums of dQ in order, but got " +
           str(problem.bands);
  if (!problem.pattern)
    return std::nullopt;
  if (t.get("ordered") != 0)
    return std::string("expects no lists of blocks for sums of dQ in order, "
                       "but got blocks of ") +
           str(problem.pattern->size());
  return checkTilesOfBlocks({t.get("query_block"), t.get("key")}, problem);
}

/// What is fused with the main launch is no launch of its own.
static Launches launches(const Tiles &t) {
  Launches launches;
  launches.stripsOfBlock = t.get("query_block") / kStripRows;
  LaunchShape prepare = {"_prepare", GridForm::tiles, false, kStripRows};
  prepare.unit = launches.stripsOfBlock;
  LaunchShape finish = prepare;
  finish.suffix = "_finish";
  LaunchShape main = {"", GridForm::persistent, true, t.get("key")};
  int64_t beside = t.get("beside");
  main.isNeverEmpty = beside > 0;
  if (beside < 2)
    launches.shapes.push_back(prepare);
  launches.shapes.push_back(main);
  if (beside < 1)
    launches.shapes.push_back(finish);
  return launches;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind flash_backward() {
  Form pipeline = {{TensorCoreFamily::wgmma},
                   {extentParameter("key", {128, 64}),
                    extentParameter("query_block", {64, 128}),
                    choiceParameter("beside", {2, 1, 0})},
                   {choiceParameter("overlap", {1, 0, kInHalves}),
                    countParameter("stages", {3, 2})},
                   {choiceParameter("ordered", {0, 1}),
                    choiceParameter("short_first", {0, 1}),
                    choiceParameter("first_stores", {1, 0}),
                    choiceParameter("persistent", {1})},
                   build,
                   checkPipeline,
                   checkPattern};
  // Accumulators of dK and dV, as wide as rows of K and V, side by side.
  pipeline.mostHeadDim = 128;
  pipeline.launches = launches;
  return {"flash_backward",
          "a block keeps a tile of keys and their gradients; queries stream "
          "past, and their gradients are added up in slow memory",
          {pipeline},
          Regime::largeCache,
          Direction::backward};
}
} // namespace attn::schedules
