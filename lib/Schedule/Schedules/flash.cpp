//===- flash.cpp - Queries stay, keys and values stream past --------------===//
//
// FlashAttention.  A block keeps a strip of queries and its output; keys and
// values stream past, and the running max repairs what came before.  Traffic is
// 2Nd + N + 2N²d/query words, so everything is in favour of a tall strip, and
// the strip is what fast memory must hold: optimal within a constant while
// M >= d².
//
// The portable form deals the rows out to warps that are all alike.  `slice`
// cuts keys and values along the head dimension, down to the theory's single
// column; kernels stream whole rows (slice = 0).
//
// The form for Hopper has one warp that loads and warpgroups that multiply.  K
// and V have a ring each, and V one more for its tiles by columns if the type
// asks for it.  K and V of another type than Q, of a cache of 8 bits, become of
// that on their way in.  f32 is split there and leaves from registers, and as a
// step then takes six times as long one stage of each is enough.  With two
// query stages the next tile's queries are there when
// this one ends; the output leaves through `staging` columns at a time.
//
// With `parts` the walk over keys is dealt out to blocks (KeyParts.h): a few
// rows that decode have many keys, and few tiles.  O leaves from registers, in
// f32 and with an LSE, and a second launch makes it whole.  Both forms have one
// with parts beside them.
//
// With `pairs` a block works on two tiles at once.  Each has a pair of
// warpgroups, buffers and a warp that loads; four warpgroups keep the tensor
// cores busier than two, but have fewer registers: 64 keys at a time.
//
// With `packed` a tile on Hopper has rows of several heads (SharedTiles.h), and
// all its warpgroups walk the same blocks: for few queries that are not rows of
// one head.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Census.h"
#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/SharedTiles.h"
#include <algorithm>

using namespace attn;

static Schedule build(const Tiles &t) {
  int64_t slice = t.get("slice"), stages = t.get("stages", 1);
  Body scores = {stream(Tensor::K, Level::Smem),
                 multiply(Tensor::S, Tensor::Q, Tensor::K)};
  Body output = {stream(Tensor::V, Level::Smem),
                 multiply(Tensor::O, Tensor::P, Tensor::V)};
  Body keyStep = sequence({{hold(Tensor::S)},
                           slices(Axis::HeadDim, slice, stages, scores),
                           {softmax(Tensor::S), rescale(Tensor::O)},
                           slices(Axis::HeadDimV, slice, stages, output)});
  return {
      "flash",
      {grid(Axis::Query, t.get("query"), t.get("warps", 1),
            {hold(Tensor::O), hold(Tensor::Stats), load(Tensor::Q, Level::Smem),
             loop(Axis::Key, t.get("key"), stages, keyStep), store(Tensor::O),
             store(Tensor::Lse)})}};
}

static Schedule buildPipeline(const Tiles &t) {
  Crew crew;
  crew.workers.warpgroups = t.get("query") / kWarpgroupRows;
  crew.workers.pairs = t.get("pairs", 1);
  crew.order.isPersistent = t.get("persistent", 1) != 0;
  crew.order.overlaps = t.get("overlap", 1) != 0;
  crew.order.takesTurns = t.get("ping_pong") != 0;
  crew.sharing.rowHeads = headsOfTile(t);
  crew.sharing.isInStep = headsOfTile(t) > 1;
  Body keyStep = {hold(Tensor::S),
                  stream(Tensor::K, Level::Smem),
                  widen(Tensor::K),
                  split(Tensor::K),
                  multiply(Tensor::S, Tensor::Q, Tensor::K),
                  softmax(Tensor::S),
                  rescale(Tensor::O),
                  stream(Tensor::V, Level::Smem),
                  transpose(Tensor::V),
                  widen(Tensor::V),
                  split(Tensor::V),
                  multiply(Tensor::O, Tensor::P, Tensor::V)};
  bool isStaged = t.get("staging", -1) != 0;
  return {"flash",
          {grid(Axis::Query, t.get("query"), crew,
                {hold(Tensor::O), hold(Tensor::Stats),
                 load(Tensor::Q, Level::Smem, t.get("query_stages", 1)),
                 split(Tensor::Q),
                 loop(Axis::Key, t.get("key"), t.get("stages", 2), keyStep),
                 isStaged ? store(Tensor::O, t.get("staging"))
                          : storeDirectly(Tensor::O),
                 store(Tensor::Lse)})}};
}

/// A schedule whose walks over keys are dealt out, from one of whole walks, and
/// of a grid that makes its parts whole.
static Schedule inParts(const Schedule &schedule, int64_t parts) {
  Grid walks = schedule.launches.front().main;
  auto stores = [](const Node &node) { return node.is<verb::Store>(); };
  Body &body = walks.body;
  body.erase(std::remove_if(body.begin(), body.end(), stores), body.end());
  for (Tensor result : {Tensor::O, Tensor::Lse})
    body.push_back(always(ofKeyParts(parts, spill(result))));
  walks.sharing.keyParts = parts;
  walks.sharing.isInStep = true;
  return {schedule.name, {std::move(walks), mergeOfParts(parts)}};
}

static Schedule buildInParts(const Tiles &t) {
  return inParts(build(t), t.get("parts"));
}

/// What leaves from registers needs no staging.
static Schedule buildPipelineInParts(const Tiles &t) {
  return inParts(buildPipeline(t), t.get("parts"));
}

static std::string number(int64_t value) { return std::to_string(value); }

/// Of f32, which is split for one stage of queries.
static std::optional<std::string> checkSplit(const Tiles &t) {
  if (t.get("staging") != 0)
    return "expects no staging in f32, but got " + number(t.get("staging"));
  if (t.get("query_stages") != 1)
    return "expects one query stage in f32, but got " +
           number(t.get("query_stages"));
  return std::nullopt;
}

static std::optional<std::string> checkPipeline(const Tiles &t,
                                                const Problem &problem) {
  int64_t query = t.get("query"), key = t.get("key");
  if (query % kWarpgroupRows != 0 || query > 3 * kWarpgroupRows)
    return "expects 64, 128 or 192 rows for one, two or three warpgroups, but "
           "got " +
           number(query);
  // With four warpgroups, the producer's with them, a thread begins with 128
  // registers, and ptxas takes no product that needs more.
  constexpr int64_t mostOfThree = 192;
  if (query == 3 * kWarpgroupRows && problem.headDimV > mostOfThree)
    return "expects a head dim of v up to " + number(mostOfThree) +
           " with three warpgroups, but got " + number(problem.headDimV);
  if (problem.place.any() && needsSplit(problem))
    return "expects bf16, f16 or f8e4m3 beside " + str(problem.place) +
           ", but got " + std::string(name(problem.dtype));
  // Boxes lie in one page each: of pages that tiles divide, or the reverse,
  // there are the fewest.
  int64_t page = problem.place.pageRows;
  bool isPowerOfTwo = (page & (page - 1)) == 0;
  if (page > 0 && isPowerOfTwo && page % key != 0 && key % page != 0)
    return "expects keys that divide pages of " + number(page) +
           ", or the reverse, but got " + number(key);
  // A step of P V contracts 32 bytes of keys.
  bool isSplit = needsSplit(problem);
  int64_t keyStep =
      kStepBytes / (isSplit ? kPartBytes : bytesOf(problem.dtype));
  if (key % keyStep != 0)
    return "expects a multiple of " + number(keyStep) + " keys in " +
           std::string(name(problem.dtype)) + ", but got " + number(key);
  if (key > 256)
    return "expects at most 256 keys, the columns of a product, but got " +
           number(key);
  int64_t panels = (problem.headDimV + 63) / 64;
  if (t.get("staging") % 64 != 0 || t.get("staging") > panels * 64)
    return "expects staging to be a multiple of 64 up to " +
           number(panels * 64) + " columns, but got " +
           number(t.get("staging"));
  if (t.get("query_stages") > 2)
    return "expects one or two query stages, but got " +
           number(t.get("query_stages"));
  if (t.get("query_stages") > 1 && t.get("persistent") == 0)
    return "expects one query stage where a block has one tile, but got " +
           number(t.get("query_stages"));
  if (t.get("ping_pong") != 0 && query == kWarpgroupRows)
    return std::string("expects two warpgroups or more to take turns, but got "
                       "one");
  if (isSplit)
    return checkSplit(t);
  if (t.get("staging") == 0 && !problem.isListed())
    return std::string("expects 64 columns of staging or more where no lists "
                       "say what is seen, but got 0");
  if (t.get("stages") < 2)
    return "expects two stages or more, but got " + number(t.get("stages"));
  return std::nullopt;
}

static std::optional<std::string> checkPattern(const Tiles &t,
                                               const Problem &problem) {
  return checkTilesOfBlocks({t.get("query"), t.get("key")}, problem);
}

/// Of warps that are all alike nobody reads ahead of the others.
static std::optional<std::string> checkNoPages(const Problem &problem) {
  if (!problem.place.isPaged())
    return std::nullopt;
  return "expects wgmma for " + str(problem.place) +
         ", since the copy engine takes them, but got mma.sync";
}

static std::optional<std::string> checkPortable(const Tiles &t,
                                                const Problem &problem) {
  if (auto sentence = checkNoPages(problem))
    return sentence;
  return checkPattern(t, problem);
}

static GridForm gridFormOf(const Tiles &t) {
  return t.get("persistent") == 0 ? GridForm::tiles : GridForm::persistent;
}

static Launches launchesOfPipeline(const Tiles &t) {
  Launches launches = oneLaunch(gridFormOf(t), queriesOfTile(t));
  launches.shapes.front().rowHeads = headsOfTile(t);
  return launches;
}

//===----------------------------------------------------------------------===//
// In parts of the keys
//===----------------------------------------------------------------------===//

static Launches inParts(Launches launches, const Tiles &t) {
  bool isPacked = launches.shapes.front().rowHeads > 1;
  return attn::inParts(std::move(launches), t.get("parts"),
                       isPacked ? "_packed_parts" : "_parts");
}

static Launches launchesInParts(const Tiles &t) {
  return inParts(oneLaunch(t), t);
}

static Launches launchesOfPipelineInParts(const Tiles &t) {
  return inParts(launchesOfPipeline(t), t);
}

static std::optional<std::string> checkPortableParts(const Tiles &t,
                                                     const Problem &problem) {
  if (auto sentence = checkNoPages(problem))
    return sentence;
  return checkKeyParts(t, problem);
}

static std::optional<std::string> checkPipelineInParts(const Tiles &t,
                                                       const Problem &problem) {
  if (auto sentence = checkKeyParts(t, problem))
    return sentence;
  Tiles whole = t;
  whole.set("query_stages", 1);
  whole.set("staging", needsSplit(problem) ? 0 : kPanelColumns);
  return checkPipeline(whole, problem);
}

//===----------------------------------------------------------------------===//
// Rows of several heads
//===----------------------------------------------------------------------===//

/// What tiles do not say: O is staged a panel at a time.
static Tiles wholeOfPacked(Tiles tiles) {
  tiles.set("query_stages", 1);
  tiles.set("staging", kPanelColumns);
  return tiles;
}

static Schedule buildPacked(const Tiles &t) {
  return buildPipeline(wholeOfPacked(t));
}

static Launches launchesOfPacked(const Tiles &t) {
  Launches launches = launchesOfPipeline(t);
  launches.shapes.front().suffix = "_packed";
  return launches;
}

static std::optional<std::string> checkRowsOfHeads(const Tiles &t,
                                                   const Problem &problem) {
  constexpr int64_t warpRows = 16;
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16 where a tile has rows of several heads, but "
           "got " +
           std::string(name(problem.dtype));
  // Of sequences a grid of all slots would have one of each head.
  if (problem.ragged && t.get("persistent") == 0)
    return std::string("expects persistent = 1 where tiles of ragged sequences "
                       "have rows of several heads, but got 0");
  return checkSharedTiles(t, problem, warpRows);
}

static std::optional<std::string> checkPacked(const Tiles &t,
                                              const Problem &problem) {
  if (auto sentence = checkRowsOfHeads(t, problem))
    return sentence;
  return checkPipeline(wholeOfPacked(t), problem);
}

static std::optional<std::string> checkPackedInParts(const Tiles &t,
                                                     const Problem &problem) {
  if (auto sentence = checkRowsOfHeads(t, problem))
    return sentence;
  return checkPipelineInParts(t, problem);
}

/// To be chosen beside the first form of its tensor cores.
static Form withParts(Form form) {
  form.sizes.push_back(partsParameter());
  form.isRival = true;
  return form;
}

/// Memory decides how long these take: what is left to choose is how much is on
/// its way.
static Form portableInParts() {
  Form form = withParts(
      {{TensorCoreFamily::none, TensorCoreFamily::mmaSync},
       {extentParameter("query", {16, 32, 64}),
        extentParameter("key", {32, 64, 128}), countParameter("stages", {2, 3}),
        countParameter("warps", {1, 2, 4})},
       {},
       {},
       buildInParts,
       nullptr,
       checkPortableParts});
  form.launches = launchesInParts;
  return form;
}

static Form pipelineInParts(const Form &whole) {
  Form form = withParts(
      {{TensorCoreFamily::wgmma},
       {extentParameter("query", {64, 128}), extentParameter("key", {64, 128}),
        countParameter("stages", {2, 3, 4, 1})},
       {},
       {choiceParameter("overlap", {1, 0}),
        choiceParameter("persistent", {0, 1})},
       buildPipelineInParts,
       checkPipelineInParts,
       nullptr});
  form.mostHeadDim = whole.mostHeadDim;
  form.splits = whole.splits;
  form.widens = whole.widens;
  form.launches = launchesOfPipelineInParts;
  return form;
}

/// From a form on wgmma, one whose tiles have rows of several heads.
static Form packed(const Form &whole, std::vector<Parameter> sizes) {
  Parameter heads = countParameter("packed", {});
  heads.derived = headsToShare;
  Form form = {{TensorCoreFamily::wgmma},
               std::move(sizes),
               {},
               {choiceParameter("overlap", {1, 0}),
                choiceParameter("persistent", {0, 1})},
               buildPacked,
               checkPacked,
               nullptr};
  form.sizes.push_back(heads);
  form.isRival = true;
  form.mostHeadDim = whole.mostHeadDim;
  form.widens = whole.widens;
  form.launches = launchesOfPacked;
  return form;
}

static Form packedInParts(const Form &whole, std::vector<Parameter> sizes) {
  Form form = withParts(packed(whole, std::move(sizes)));
  form.build = buildPipelineInParts;
  form.checkStructure = checkPackedInParts;
  form.launches = launchesOfPipelineInParts;
  return form;
}

/// Two pairs of warpgroups have 112 registers a thread: for scores of 64 keys
/// beside O of 64 columns, and nothing that helps.  Where tiles may be of any
/// height three warpgroups are faster (d = 64, 32768 rows: 575 TFLOP/s, and 517
/// where lists show half of the blocks); a window wants low ones, in 63 us and
/// not 86 (255 keys).
static bool wantsPairs(const Problem &problem) {
  bool keepsTilesLow = problem.isListed() || problem.mask.hidesBefore();
  return keepsTilesLow && bytesOf(problem.dtype) == 2 &&
         !needsWidening(problem);
}

/// From a form on wgmma, with two tiles of a block: for tiles of two
/// warpgroups, which alone do not keep the tensor cores busy.  Of lists of 128
/// queries a visible block of d = 64 took 1.32 to 1.37 of a dense one's time
/// with one tile, and 1.08 to 1.13 with two (H200).  Two blocks of a
/// multiprocessor, each with a producer's warpgroup of its own, have 104
/// registers, too few to multiply beside a softmax: 1.11 to 1.18.
static Form inPairs(const Form &whole) {
  Form form = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {128}), extentParameter("key", {64}),
       countParameter("stages", {3, 4, 2}),
       countParameter("query_stages", {2, 1}), countParameter("pairs", {2}),
       choiceParameter("overlap", {1, 0})},
      {optionalExtent("staging", {64})},
      {choiceParameter("ping_pong", {1}), choiceParameter("persistent", {1})},
      buildPipeline,
      checkPipeline,
      checkPattern};
  form.isRival = true;
  form.mostHeadDim = whole.mostHeadDim;
  form.takes = wantsPairs;
  form.launches = launchesOfPipeline;
  return form;
}

namespace attn::schedules {
ScheduleKind flash() {
  Form portable = {{TensorCoreFamily::none, TensorCoreFamily::mmaSync},
                   {extentParameter("query", {16, 32, 64, 128, 256}),
                    extentParameter("key", {16, 32, 48, 64, 80, 96, 112, 128}),
                    countParameter("stages", {1, 2, 3}),
                    countParameter("warps", {1, 2, 4, 8})},
                   {},
                   {},
                   build,
                   nullptr,
                   checkPortable};
  // More keys are legal, but of 210 problems on an H100 none had a kernel with
  // 192 within 1 % of its best, 224 within 2 % or 256 within 11 %; in 8 bits
  // they lost 4 to 23 %.
  Form pipeline = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {64, 128, 192}),
       extentParameter("key", {32, 48, 64, 80, 96, 112, 128, 144, 160, 176}),
       countParameter("stages", {2, 3, 4, 6, 1}),
       countParameter("query_stages", {2, 1})},
      {optionalExtent("staging", {256, 192, 128, 64, 0})},
      {choiceParameter("ping_pong", {0, 1}), choiceParameter("overlap", {1, 0}),
       choiceParameter("persistent", {1, 0})},
      buildPipeline,
      checkPipeline,
      checkPattern};
  // Two products side by side; registers run out before.
  pipeline.mostHeadDim = 2 * kMostWgmmaColumns;
  pipeline.splits = true;
  pipeline.widens = true;
  pipeline.launches = launchesOfPipeline;
  std::vector<Parameter> sizesOfPacked = {
      extentParameter("query", {64, 128, 192}),
      extentParameter("key", {64, 80, 128}),
      countParameter("stages", {2, 3, 4})};
  return {"flash",
          "a block keeps a strip of queries and its output; keys and values "
          "stream past",
          {portable, pipeline, portableInParts(), pipelineInParts(pipeline),
           packed(pipeline, sizesOfPacked),
           packedInParts(pipeline, sizesOfPacked), inPairs(pipeline)},
          Regime::largeCache};
}
} // namespace attn::schedules
