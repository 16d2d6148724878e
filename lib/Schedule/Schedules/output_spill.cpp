//===- output_spill.cpp - Only a tile of scores stays ---------------------===//
//
// For M < d² with little scratch: a block keeps a tile of scores; queries, keys
// and values stream past it in slices, and the output lies in slow memory, as
// f32 in places of the block's own, from which a tile of columns comes and to
// which it goes for every block of keys.  Words, with strips of `query` and
// blocks of `key`:
//
//   2N²d/query + 3N²d/key                         (less Nd)
//
// Adding from afar would need the final maximum of every row, so a pass over
// the scores that only finds statistics, and would move more words.
//
// On wgmma a block of `key` = 512 keys is worked out in parts, whose weights
// take the place of their scores in the register file.  Queries come anew for
// every part, and with a tile of columns of the output the block has P as it
// is, so with one block of keys nothing but the output leaves.  Words:
//
//   2N²d/query + N²d/part + 2N²d/key              (less Nd)
//
//===----------------------------------------------------------------------===//

#include "Folds/WarpRows.h"
#include "attn/Schedule/Registry.h"
#include <string>

using namespace attn;

static Body scores(const Tiles &t) {
  return sequence({scoresBySlices(t.get("slice"), t.get("stages", 1)),
                   {softmax(Tensor::S)}});
}

/// A tile of columns of the output of a block of keys.
static Body product(const Tiles &t) {
  return {loop(Axis::Key, t.get("piece", kKeysOfPiece), t.get("stages", 1),
               {stream(Tensor::V, Level::Smem),
                multiply(Tensor::O, Tensor::P, Tensor::V)})};
}

static Node overKeys(const Tiles &t, Body column) {
  Body columns = {loop(Axis::HeadDimV, t.get("column"), 1, std::move(column))};
  return loop(Axis::Key, t.get("key"), t.get("stages", 1),
              sequence({scores(t), columns}));
}

static Schedule build(const Tiles &t) {
  Body updated = sequence(
      {{hold(Tensor::O), between(absorb(Tensor::O, 1)), rescale(Tensor::O)},
       product(t),
       {between(spill(Tensor::O, 1))}});
  Body body = {
      hold(Tensor::Stats), overKeys(t, updated),
      loop(Axis::HeadDimV, t.get("column"), 1, {storeDirectly(Tensor::O)}),
      store(Tensor::Lse)};
  return {"output_spill",
          {grid(Axis::Query, t.get("query"), t.get("warps", 1), body)}};
}

/// With more columns the places of 132 blocks are more than any plan may have
/// (kMostScratchBytes), and kernels are built for any number of keys.
static constexpr int64_t kMostHeadDimOfPipeline = 3968;
/// Keys of half a part, or of a part that has none.
static constexpr int64_t kHalf = 128;

/// With the weights of a block in registers; those of a part of it take the
/// place of its scores.
static Schedule buildPipeline(const Tiles &t) {
  int64_t query = t.get("query", 128), key = t.get("key", 512);
  int64_t part = t.get("part", 256);
  Crew crew;
  crew.workers.warpgroups = query / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.sharing.isInStep = true;
  crew.sharing.units = t.get("slots", 12);
  auto heldWeights = [](int64_t keys) -> Body {
    if (keys == 0)
      return {};
    return {columnsOf(hold(Tensor::P), 0, keys)};
  };
  Body scores = sequence(
      {heldWeights(key - part),
       {hold(Tensor::S), stream(Tensor::Q, Level::Smem),
        stream(Tensor::K, Level::Smem),
        multiply(Tensor::S, Tensor::Q, Tensor::K), softmax(Tensor::S)}});
  Body values = {stream(Tensor::V, Level::Smem),
                 multiply(Tensor::O, Tensor::P, Tensor::V)};
  Body output = sequence(
      {heldWeights(key),
       {hold(Tensor::O), between(absorb(Tensor::O, 1)), rescale(Tensor::O),
        seek(Axis::Key, kHalf, 1, std::move(values)),
        between(spill(Tensor::O, 1))}});
  int64_t column = t.get("column", 128);
  verb::Loop scoresOfPart = seek(Axis::Key, part, 1, std::move(scores));
  Body block = {part > kHalf ? halved(scoresOfPart) : scoresOfPart,
                loop(Axis::HeadDimV, column, 1, std::move(output))};
  return {"output_spill",
          {grid(Axis::Query, query, crew,
                {hold(Tensor::Stats), loop(Axis::Key, key, 1, std::move(block)),
                 loop(Axis::HeadDimV, column, 1, {store(Tensor::O)}),
                 store(Tensor::Lse)})}};
}

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkStructure(const Tiles &t,
                                                 const Problem &problem) {
  if (auto sentence = checkWarpRows(t.get("query"), t.get("warps")))
    return sentence;
  if (t.get("key") % kKeysOfPiece != 0)
    return "expects blocks of whole pieces of " + number(kKeysOfPiece) +
           " keys, but got key = " + number(t.get("key"));
  if (t.get("stages") > 3)
    return "expects one to three stages, but got " + number(t.get("stages"));
  return std::nullopt;
}

static std::optional<std::string> checkPipeline(const Tiles &t,
                                                const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  constexpr std::pair<const char *, int64_t> extents[] = {
      {"query", 128}, {"key", 512}, {"column", 128}};
  for (auto [extent, only] : extents)
    if (t.get(extent) != only)
      return std::string("expects ") + extent + " to be " + number(only) +
             ", but got " + number(t.get(extent));
  if (t.get("part") != 128 && t.get("part") != 256)
    return "expects parts of 128 or 256 keys, but got " + number(t.get("part"));
  // What a product and the next one read: panels of Q and K each, of two with
  // both halves of K (OutputSpillFrame.h).
  int64_t least = t.get("part") > kHalf ? 6 : 4;
  if (t.get("slots") < least || t.get("slots") % 2 != 0)
    return "expects an even number of slots, " + number(least) +
           " or more with parts of " + number(t.get("part")) +
           " keys, but got " + number(t.get("slots"));
  return std::nullopt;
}

/// Blocks have places of their own for O.
static Launches launchesOfPlaces(const Tiles &t) {
  return oneLaunch(GridForm::resident, t.get("query"));
}

static Launches launchesOfPipeline(const Tiles &t) {
  return oneLaunch(GridForm::persistent, t.get("query"));
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind output_spill() {
  Form form = {{TensorCoreFamily::none, TensorCoreFamily::mmaSync},
               {extentParameter("query", {32, 64, 128}),
                extentParameter("key", {64, 128}),
                extentParameter("column", {32, 64, 128}),
                extentParameter("slice", {16, 64}),
                countParameter("stages", {2, 3}),
                countParameter("warps", {2, 4, 8})},
               {},
               {},
               build,
               checkStructure,
               nullptr};
  form.launches = launchesOfPlaces;
  Form pipeline = {{TensorCoreFamily::wgmma},
                   {extentParameter("query", {128}),
                    extentParameter("key", {512}),
                    extentParameter("column", {128})},
                   {extentParameter("part", {256, 128}),
                    countParameter("slots", {12, 10, 8, 6, 4})},
                   {},
                   buildPipeline,
                   checkPipeline,
                   nullptr};
  pipeline.mostHeadDim = kMostHeadDimOfPipeline;
  pipeline.launches = launchesOfPipeline;
  return {
      "output_spill",
      "a block keeps a tile of scores; the output lies in slow memory, where "
      "every block of keys adds to it",
      {form, pipeline}};
}
} // namespace attn::schedules
