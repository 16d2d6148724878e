//===- cluster.cpp - FlashAttention whose blocks load together ------------===//
//
// As `flash`, on Hopper and newer: the blocks of a cluster have neighbouring
// strips of queries, so they need the same keys and values.  Each loads a part
// of every tile and multicasts it to all.  Between L2 and the multiprocessors
// that makes the strip as tall as the cluster, at the price of going in step.
// Words: 2Nd + N + 2N²d/(query · cluster).
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

namespace attn::schedules {
ScheduleKind flash();
} // namespace attn::schedules

/// What is done with the tiles that both have.
static const Form &flashForm() {
  return findScheduleKind("flash")->forms.back();
}

static Schedule build(const Tiles &t) {
  Schedule schedule = flashForm().build(t);
  schedule.name = "cluster";
  schedule.grids.front().pipeline.cluster = t.get("cluster", 2);
  return schedule;
}

static std::optional<std::string> checkCluster(const Tiles &t,
                                               const Problem &problem) {
  int64_t cluster = t.get("cluster");
  if (cluster < 2 || (cluster & (cluster - 1)) != 0)
    return "expects clusters of 2, 4 or 8 blocks, but got " +
           std::to_string(cluster);
  if (t.get("key") % (8 * cluster) != 0)
    return "expects keys in equal parts of 8 rows for each block of a cluster, "
           "but got " +
           std::to_string(t.get("key")) + " keys and " +
           std::to_string(cluster) + " blocks";
  return flashForm().checkStructure(t, problem);
}

/// Blocks of f32 are split as they land, a few rows at a time.
static bool isWritten(const Problem &problem, const Tiles &) {
  return !needsSplit(problem);
}

static Launches launches(const Tiles &t) {
  int64_t team = t.get("cluster");
  bool isPersistent = t.get("persistent") != 0;
  return oneLaunch(isPersistent ? GridForm::teams : GridForm::tiles,
                   t.get("query") * team, team);
}

namespace attn::schedules {
ScheduleKind cluster() {
  Form form = flash().forms.back();
  form.sizes = {extentParameter("query", {64, 128, 192}),
                extentParameter("key", {64, 96, 128, 160, 192}),
                countParameter("stages", {2, 3}),
                countParameter("query_stages", {2, 1}),
                countParameter("cluster", {2, 4})};
  form.choices = {choiceParameter("ping_pong", {0}),
                  choiceParameter("overlap", {1}),
                  choiceParameter("persistent", {1})};
  form.build = build;
  form.checkStructure = checkCluster;
  form.hasKernel = isWritten;
  form.launches = launches;
  // 256 columns and 16384 causal rows took 2.1 ms on an H100, where flash takes
  // 1.4 and 1.48 were predicted; without a mask 0 to 8 % more than flash.
  form.isOnRequest = true;
  return {"cluster",
          "as flash; the blocks of a cluster load keys and values for all of "
          "them",
          {form},
          Regime::largeCache};
}
} // namespace attn::schedules
