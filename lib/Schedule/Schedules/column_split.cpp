//===- column_split.cpp - A group of blocks shares the rows ---------------===//
//
// For M < d² <= G·M: one multiprocessor has no room for rows of O that are so
// wide, a group of G has.  Each block of a group owns an equal part of O's
// columns, in registers for the whole key range, and computes the scores of its
// share of every strip of keys; the probabilities are exchanged through places
// in scratch memory so small that they stay in L2.  No score is computed twice,
// and the group has the cache of G multiprocessors.
//
// A row tile is 128 rows, a share 128 keys, a strip the shares of a group.  Two
// neighbouring tiles are a cluster and load their keys and values together.
// `resident` panels of Q stay; the others come anew with every strip.  All that
// streams passes through one ring of `slots` units of 16 KiB, in the order of
// use: a panel of K, 32 rows of a part of V, a panel of Q.
//
// Of listed blocks a strip is the next G of a tile's list, wherever they lie;
// its last strip may have fewer, and then some shares have no keys.
//
// Of a cache the keys that are used end a tile's strips, and boxes lie in one
// page each; then every block loads by itself.
//
// Between L2 and the multiprocessors, per tile of 128 rows and strip, bytes of
// 16-bit elements for G blocks in clusters of c:
//
//   K and V                2 · 128 G (d_qk + d_v) / c
//   panels of Q            2 · 128 G (d_qk − 64 resident)
//   P and its statistics   G · G (2 · 128 · 128 + 4096) + G (G − 1) 4096
//
// With `parts` the strips of a tile are dealt out to teams (KeyParts.h), for a
// few rows that decode: O leaves in f32, and a second launch makes it whole.
//
// **Within a block.**  Where values are columns of keys (multi-head latent
// attention, d = 576 and d_v = 512), two warpgroups of one block share 64 rows
// instead.  A tile of 64 x d keys then lies in shared memory once, for both
// products, of which a strip has two; weights pass through shared memory.  With
// d = 576 a block holds Q, two tiles and an image of weights: 72 + 2 · 72 + 10
// KiB.  Between L2 and the multiprocessors, per tile of 64 rows and strip of
// 128 keys: 2 · 128 d bytes of K, and nothing else.
//
//   per 128 rows and 128 keys          K + V   P and rows    Q   in all, KiB
//   group = 2 of blocks                 272        74        32        378
//   within a block, two tiles of rows   288         -         -        288
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Registry.h"

using namespace attn;

/// Strips in flight: before a place is written again, all others have read it
/// (two strips of lag on either side of the exchange).
static constexpr int64_t kExchangeSlots = 4;
/// Columns of O that the registers of two warpgroups hold beside the scores.
static constexpr int64_t kMostColumns = 256;
static constexpr int64_t kMostHeadDimOfGroup = 4096;

/// A result of whole rows, or of a part of the keys.
static Node leaving(Tensor result, int64_t parts) {
  if (parts > 1)
    return always(ofKeyParts(parts, spill(result)));
  return result == Tensor::O ? storeDirectly(result) : store(result);
}

static Schedule build(const Tiles &t) {
  int64_t parts = t.get("parts", 1);
  int64_t query = t.get("query", 128), key = t.get("key", 128);
  int64_t group = t.get("group", 2);
  int64_t resident = t.get("resident", 1) * kPanelColumns;
  Crew crew;
  crew.workers.warpgroups = query / kWarpgroupRows;
  crew.order.isPersistent = true;
  crew.sharing.group = group;
  crew.sharing.cluster = t.get("cluster", 1);
  crew.sharing.units = t.get("slots", 6);
  crew.sharing.keyParts = parts;
  Body scores = {hold(Tensor::S),
                 columnsOf(stream(Tensor::Q, Level::Smem), resident, 0),
                 stream(Tensor::K, Level::Smem),
                 multiply(Tensor::S, Tensor::Q, Tensor::K),
                 softmax(Tensor::S),
                 spill(Tensor::P, kExchangeSlots),
                 spill(Tensor::Stats, kExchangeSlots)};
  // Those of all parts ahead, and each beside its P but in the last strip.
  Body output = {between(absorb(Tensor::Stats, kExchangeSlots)),
                 absorb(Tensor::P, kExchangeSlots),
                 absorb(Tensor::Stats, kExchangeSlots),
                 stream(Tensor::V, Level::Smem),
                 multiply(Tensor::O, Tensor::P, Tensor::V)};
  Body strip = {share(Axis::Key, key, scores), loop(Axis::Key, key, 1, output)};
  Body part = {hold(Tensor::O), hold(Tensor::Stats),
               columnsOf(load(Tensor::Q, Level::Smem), 0, resident),
               gathered(key, loop(Axis::Key, group * key, 1, strip)),
               leaving(Tensor::O, parts)};
  Grid tiles =
      grid(Axis::Query, query, crew,
           {share(Axis::HeadDimV, 0, part), leaving(Tensor::Lse, parts)});
  if (parts == 1)
    return {"column_split", {std::move(tiles)}};
  return {"column_split", {std::move(tiles), mergeOfParts(parts)}};
}

//===----------------------------------------------------------------------===//
// Within a block
//===----------------------------------------------------------------------===//

/// Warpgroups that share rows.
static constexpr int64_t kSharingWarpgroups = 2;

static Schedule buildWithinBlock(const Tiles &t) {
  int64_t parts = t.get("parts", 1);
  Crew crew;
  crew.workers.warpgroups = kSharingWarpgroups;
  crew.workers.across = kSharingWarpgroups;
  crew.workers.handsOver = true;
  crew.order.isPersistent = true;
  crew.order.overlaps = true;
  crew.sharing.isInStep = true;
  crew.sharing.keyParts = parts;
  Body strip = {hold(Tensor::S),
                stream(Tensor::K, Level::Smem),
                multiply(Tensor::S, Tensor::Q, Tensor::K),
                hold(Tensor::P, Level::Smem),
                softmax(Tensor::S),
                rescale(Tensor::O),
                multiply(Tensor::O, Tensor::P, Tensor::V)};
  Grid tiles =
      grid(Axis::Query, t.get("query", kWarpgroupRows), crew,
           {hold(Tensor::O), hold(Tensor::Stats), load(Tensor::Q, Level::Smem),
            loop(Axis::Key, t.get("key", 128), t.get("stages", 1), strip),
            leaving(Tensor::O, parts), leaving(Tensor::Lse, parts)});
  if (parts == 1)
    return {"column_split", {std::move(tiles)}};
  return {"column_split", {std::move(tiles), mergeOfParts(parts)}};
}

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkGroup(const Tiles &t,
                                             const Problem &problem) {
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  for (const char *extent : {"query", "key"})
    if (t.get(extent) != 128)
      return std::string("expects ") + extent + " to be 128, but got " +
             number(t.get(extent));
  int64_t panels = (problem.headDim + kPanelColumns - 1) / kPanelColumns;
  if (t.get("resident") > panels)
    return "expects at most the " + number(panels) +
           " panels of Q to be resident, but got " + number(t.get("resident"));
  if (t.get("cluster") > 2)
    return "expects one block or two in a cluster, but got " +
           number(t.get("cluster"));
  if (problem.place.any() && t.get("cluster") > 1)
    return "expects clusters of one block beside " + str(problem.place) +
           ", which each loads by itself, but got " + number(t.get("cluster"));
  if (t.get("slots") < 3)
    return "expects three slots or more, but got " + number(t.get("slots"));
  int64_t group = t.get("group"), most = kMostColumns;
  int64_t columns = equalPart(problem, Axis::HeadDimV, group);
  if (columns > most || (group - 1) * columns >= problem.headDimV)
    return "expects a group in which each block owns a part of the " +
           number(problem.headDimV) + " columns, at most " + number(most) +
           ", in whole panels of " + number(kPanelColumns) + ", but got " +
           number(group) + " blocks";
  // A panel of Q that streams takes a slot beside that of K, and is handed back
  // when the products of the next panel have been started.
  int64_t streamed = panels - t.get("resident");
  if (t.get("slots") < 4 && 2 * streamed > panels)
    return "expects four slots or more where panels of Q that stream follow "
           "one "
           "another, or at least " +
           number((panels + 1) / 2) + " of " + number(panels) +
           " to be resident, but got slots = " + number(t.get("slots")) +
           " and resident = " + number(t.get("resident"));
  return std::nullopt;
}

static std::optional<std::string> checkPattern(const Tiles &t,
                                               const Problem &problem) {
  return checkTilesOfBlocks({t.get("query") * t.get("cluster"), t.get("key")},
                            problem);
}

static std::optional<std::string> checkParts(const Tiles &t,
                                             const Problem &problem) {
  if (auto sentence = checkKeyParts(t, problem))
    return sentence;
  return checkGroup(t, problem);
}

static bool takesValuesOfKeys(const Problem &problem) {
  return problem.valuesOfKeys;
}

static std::optional<std::string> checkWithinBlock(const Tiles &t,
                                                   const Problem &problem) {
  if (!problem.valuesOfKeys)
    return std::string("expects values(keys, first N) where warpgroups of a "
                       "block share the rows, but got V as an array of its "
                       "own");
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  if (t.get("query") != kWarpgroupRows || t.get("key") != 128)
    return "expects query to be " + number(kWarpgroupRows) +
           " and key to be 128, but got " + number(t.get("query")) + " and " +
           number(t.get("key"));
  if (t.get("warpgroups") != kSharingWarpgroups)
    return "expects " + number(kSharingWarpgroups) +
           " warpgroups on the same rows, but got " +
           number(t.get("warpgroups"));
  constexpr int64_t unit = kSharingWarpgroups * kPanelColumns;
  constexpr int64_t most = kSharingWarpgroups * kMostColumns;
  if (problem.headDimV % unit != 0 || problem.headDimV > most)
    return "expects a head dim of v in multiples of " + number(unit) +
           ", whole panels for each of two warpgroups, up to " + number(most) +
           ", but got " + number(problem.headDimV);
  if (problem.pattern)
    return std::string("expects no listed blocks where warpgroups of a block "
                       "share the rows, but got some");
  return std::nullopt;
}

static std::optional<std::string>
checkWithinBlockInParts(const Tiles &t, const Problem &problem) {
  if (auto sentence = checkKeyParts(t, problem))
    return sentence;
  return checkWithinBlock(t, problem);
}

static Launches launches(const Tiles &t) {
  int64_t cluster = t.get("cluster");
  return oneLaunch(GridForm::teams, t.get("query") * cluster,
                   t.get("group") * cluster);
}

static Launches launchesInParts(const Tiles &t) {
  return inParts(launches(t), t.get("parts"), "_parts");
}

/// For few tiles, whose neighbours are other parts.
static Form withParts(const Form &whole) {
  Form form = whole;
  form.sizes = {extentParameter("query", {128}),
                extentParameter("key", {128}),
                countParameter("group", {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                         14, 15, 16}),
                countParameter("cluster", {1}),
                countParameter("slots", {6, 8, 10, 4}),
                partsParameter()};
  form.checkStructure = checkParts;
  form.check = nullptr;
  form.launches = launchesInParts;
  form.isRival = true;
  return form;
}

static Launches launchesWithinBlock(const Tiles &t) {
  Launches all = oneLaunch(GridForm::persistent, t.get("query"));
  all.shapes.front().suffix = "_within_block";
  return all;
}

static Launches launchesWithinBlockInParts(const Tiles &t) {
  return inParts(launchesWithinBlock(t), t.get("parts"), "_within_block_parts");
}

/// Of choices that are priced alike the first is taken.  `late` halves of a
/// product behind the scores keep registers longer: with lengths one, and with
/// pages two as well, make ptxas spill four bytes, none does not.
static Form withinBlock() {
  Form form = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {kWarpgroupRows}),
       extentParameter("key", {128}),
       countParameter("warpgroups", {kSharingWarpgroups}),
       countParameter("stages", {1, 2})},
      {},
      {choiceParameter("late", {0, 1, 2}), choiceParameter("prefetch", {0, 1})},
      buildWithinBlock,
      checkWithinBlock,
      nullptr};
  form.mostHeadDim = kMostHeadDimOfGroup;
  form.launches = launchesWithinBlock;
  form.takes = takesValuesOfKeys;
  form.isRival = true;
  return form;
}

static Form withinBlockInParts() {
  Form form = withinBlock();
  form.sizes.push_back(partsParameter());
  form.build = buildWithinBlock;
  form.checkStructure = checkWithinBlockInParts;
  form.launches = launchesWithinBlockInParts;
  return form;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind column_split() {
  Form pipeline = {
      {TensorCoreFamily::wgmma},
      {extentParameter("query", {128}), extentParameter("key", {128}),
       countParameter("group",
                      {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}),
       countParameter("cluster", {2, 1}),
       countParameter("slots", {6, 7, 8, 9, 10, 5, 4, 3})},
      {countParameter("resident", {8, 7, 6, 5, 4, 3, 2, 1})},
      {},
      build,
      checkGroup,
      checkPattern};
  pipeline.mostHeadDim = kMostHeadDimOfGroup;
  pipeline.launches = launches;
  return {"column_split",
          "a group of blocks shares the rows, each owns columns of the output; "
          "probabilities are exchanged through L2",
          {pipeline, withParts(pipeline), withinBlock(), withinBlockInParts()}};
}
} // namespace attn::schedules
