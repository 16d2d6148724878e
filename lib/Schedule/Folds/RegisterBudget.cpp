//===- RegisterBudget.cpp - How warpgroups share the registers ------------===//

#include "Folds/PipelineFootprint.h"
#include <algorithm>

using namespace attn;

/// Registers are set for a whole warpgroup, in steps of 8; what the producer
/// gives up, the consumers take.  512 per lane of a warpgroup is all there is,
/// and a thread addresses less than 256: 24 + 2·240 = 504, 32 + 3·160 = 512.
/// Warps that transpose need more than a producer has, 34 at d = 96 and more:
/// 40 + 2·232 = 504, 40 + 3·152 = 496.  Those that split need more again, and
/// there is so much to split that three warps are what all others wait for:
/// 3·56 + 248 = 416, 2·40 + 2·216 = 512, 56 + 3·152 = 512.  Three warpgroups
/// begin with 168 for each, so 504 is all that they have.  Those that widen
/// have 16 words on their way in and 16 out: 2·56 + 240 = 352, 56 + 2·224 =
/// 504, 56 + 3·152 = 512.  Who locates rows of a group's tiles needs as many as
/// who transposes, 24 were too few by 26 words with pages of 64; who draws
/// blocks of score_spill too, they were by 3 to 8; merged with outputs, 40 were
/// by 24 under a window: 72 + 2·216 = 504. Consumers of merged gradients keep P
/// beside dP in 224: 56 + 2·224 = 504, where 40 for the producer were too few
/// by 58 words, 56 are by 17.  Two pairs of consumers begin with 96 for each of
/// 640 threads, which is 480: 24 + 4·112 = 472.
RegisterBudget attn::registerBudget(int64_t consumerWarpgroups, Helper helper,
                                    bool merges, int64_t pairs) {
  if (pairs == 2)
    return {24, 112};
  if (merges && helper == Helper::transposer)
    return {72, 216};
  if (merges)
    return {56, 224};
  switch (helper) {
  case Helper::splitter:
    if (consumerWarpgroups == 1)
      return {56, 248, 3};
    if (consumerWarpgroups == 2)
      return {40, 216, 2};
    return {56, 152};
  case Helper::widener:
    if (consumerWarpgroups == 1)
      return {56, 240, 2};
    return {56, consumerWarpgroups == 2 ? 224 : 152};
  case Helper::transposer:
    return {40, consumerWarpgroups <= 2 ? 232 : 152};
  case Helper::none:
    break;
  }
  if (consumerWarpgroups <= 2)
    return {24, 240};
  return {32, 160};
}

template <typename Verb> static bool has(const Body &body) {
  return std::any_of(body.begin(), body.end(), [](const Node &node) {
    return node.is<Verb>() || has<Verb>(bodyOf(node));
  });
}

bool attn::splitsFactors(const Grid &grid, const Problem &problem) {
  return needsSplit(problem) && has<verb::Split>(grid.body);
}

static Helper helperOf(const Grid &grid, const Problem &problem) {
  bool transposes = needsTranspose(problem) && has<verb::Transpose>(grid.body);
  bool drawsBlocks =
      grid.workers.isOfProducts && problem.direction == Direction::forward;
  if (splitsFactors(grid, problem))
    return Helper::splitter;
  if (needsWidening(problem) && has<verb::Widen>(grid.body))
    return Helper::widener;
  // Who loads keys by pieces needs as many as who transposes, and if they are
  // located as who widens.
  if (grid.workers.handsOver)
    return problem.place.any() ? Helper::widener : Helper::transposer;
  // Who draws blocks, or locates rows of a group, needs as many registers.
  bool locates = problem.place.any() && grid.sharing.group > 1;
  return transposes || drawsBlocks || locates ? Helper::transposer
                                              : Helper::none;
}

static RegisterBudget budget(const Grid &grid, const Problem &problem,
                             bool isMerged) {
  return registerBudget(grid.workers.warpgroups, helperOf(grid, problem),
                        isMerged, grid.workers.pairs);
}

RegisterBudget attn::budgetOf(const Grid &grid, const Problem &problem) {
  return budget(grid, problem, /*isMerged=*/false);
}

RegisterBudget attn::budgetOf(const Schedule::Launch &launch,
                              const Problem &problem) {
  return budget(launch.main, problem, launch.isMerged());
}
