//===- TimelineTest.cpp - One block, step by step -------------------------===//

#include "../Seed.h"
#include "../Share.h"
#include "RandomProblem.h"
#include "SvgPage.h"

#include "attn/Report/Pictures.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Timeline.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace attn;

namespace {

constexpr int64_t kJobs = 60;

Problem usual() {
  Problem p;
  p.heads = p.kvHeads = 16;
  p.queries = p.keys = 4096;
  p.headDim = p.headDimV = 128;
  return p;
}

/// A unit but the copy engine does one thing at a time.
void checkUnits(const Timeline &shown) {
  for (Unit unit :
       {Unit::helpers, Unit::products, Unit::arithmetic, Unit::results}) {
    std::vector<std::pair<double, double>> spans;
    for (const BusySpan &span : shown.spans)
      if (span.unit == unit)
        spans.push_back({span.begin, span.end});
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i)
      ASSERT_GE(spans[i].first, spans[i - 1].second * (1 - 1e-12));
  }
}

/// Every worker does everything in every step, equally often.
void checkWork(const Timeline &shown) {
  std::map<const Node *, std::map<std::pair<int64_t, int64_t>, int>> counts;
  for (const BusySpan &span : shown.spans)
    if (span.step >= 0)
      ++counts[span.node][{span.worker, span.step}];
  for (auto &[node, all] : counts) {
    bool isOfAll = moveOf(*node) == Move::down || node->is<verb::Transpose>() ||
                   node->is<verb::Split>();
    ASSERT_EQ(int64_t(all.size()), shown.steps * (isOfAll ? 1 : shown.workers));
    for (auto &[place, count] : all)
      ASSERT_EQ(count, all.begin()->second);
  }
}

/// Nothing is multiplied before the first copy of its step has come.
void checkOrder(const Timeline &shown) {
  std::map<std::pair<int64_t, Tensor>, double> there;
  for (const BusySpan &span : shown.spans)
    if (span.unit == Unit::copies && span.step >= 0) {
      auto [found, isNew] =
          there.insert({{span.step, tensorOf(*span.node)}, span.end});
      if (!isNew)
        found->second = std::min(found->second, span.end);
    }
  for (const BusySpan &span : shown.spans)
    if (auto *product = span.node->as<verb::Multiply>())
      for (Tensor tensor : {product->a, product->b})
        if (auto found = there.find({span.step, tensor}); found != there.end())
          ASSERT_GE(span.begin, found->second);
}

TEST(Timelines, AreOrderedForAnyProblem) {
  Seed seed;
  Random random{seed};
  for (int i = 0; i < drawsOf(100); ++i) {
    Problem problem = random.anyProblem();
    if (random.number(0, 4) == 0)
      random.hideBlocks(problem);
    const Machine &machine = random.anyMachine();
    PlanReport report = plans(problem, machine);
    std::set<std::string> seen;
    for (const Plan &plan : report.plans) {
      if (!seen.insert(plan.schedule).second)
        continue;
      std::ostringstream where;
      where << problem << " on " << machine.name << ": "
            << decision(plan.schedule, plan.tiles);
      SCOPED_TRACE(where.str());
      Schedule schedule = findScheduleKind(plan.schedule)->build(plan.tiles);
      for (size_t launch = 0; launch < schedule.launches.size(); ++launch) {
        Timeline shown = timeline(schedule, launch, atLeastOne(problem),
                                  machine, plan.family, kJobs);
        ASSERT_GE(shown.steps, 1);
        checkUnits(shown);
        checkWork(shown);
        checkOrder(shown);
      }
      SvgPage page(timelineSvg(report, plan));
      ASSERT_EQ(page.error, "");
      checkPlaces(page);
      if (HasFailure())
        return;
    }
  }
}

Timeline flash(const char *tiles) {
  static std::vector<std::unique_ptr<Schedule>> schedules; // outlive
  std::string error;
  auto plan = planFor(usual(), *findMachine("h100_sxm"), "flash",
                      *parseTiles(tiles, error), error);
  schedules.push_back(std::make_unique<Schedule>(
      findScheduleKind("flash")->build(plan->tiles)));
  return timeline(*schedules.back(), 0, usual(), *findMachine("h100_sxm"),
                  plan->family, kJobs);
}

/// Clocks of a step: 2 x 2 x 128 x 128 x 128 FLOPs, 4096 a clock; 128 x 128
/// exponentials, 16 a clock; and instructions, 4 a clock: 5.3 for 32 scores and
/// 99 for 16 rows.
TEST(Timelines, HaveTheClocksOfTheModel) {
  Timeline shown = flash("query = 128, key = 128, stages = 2, overlap = 1");
  EXPECT_EQ(shown.workers, 2);
  EXPECT_EQ(shown.stepsOfTile, 32);
  double steps = double(shown.steps);
  EXPECT_NEAR(shown.busy(Unit::products), steps * 2048, 1e-6);
  double instructions = (512 * 5.3 + 8 * 99) / 4;
  EXPECT_NEAR(shown.busy(Unit::arithmetic), steps * (1024 + instructions),
              1e-6);
}

/// Half of all blocks are half of the steps, whosever lists they are.
TEST(Timelines, WalkAlongListsOfBlocks) {
  for (bool isShared : {true, false}) {
    Problem p = usual();
    p.pattern.emplace(BlockSize{128, 128}, 0.5, isShared);
    std::string error;
    Tiles tiles = *parseTiles("query = 128, key = 128", error);
    const Machine &machine = *findMachine("h100_sxm");
    auto plan = planFor(p, machine, "flash", tiles, error);
    ASSERT_TRUE(plan) << error;
    Schedule schedule = findScheduleKind("flash")->build(plan->tiles);
    Timeline shown = timeline(schedule, 0, p, machine, plan->family, kJobs);
    EXPECT_NEAR(shown.stepsOfTile, 16, 0.1) << isShared;
  }
}

/// With overlap some product runs beside the softmax of the same worker;
/// without, none does.
TEST(Timelines, ShowOverlap) {
  auto overlaps = [](const Timeline &shown) {
    for (const BusySpan &a : shown.spans)
      for (const BusySpan &b : shown.spans)
        if (a.unit == Unit::products && b.unit == Unit::arithmetic &&
            a.worker == b.worker && a.begin < b.end && b.begin < a.end)
          return true;
    return false;
  };
  EXPECT_TRUE(overlaps(flash("query = 128, key = 128, overlap = 1")));
  EXPECT_FALSE(overlaps(flash("query = 128, key = 128, overlap = 0")));
  EXPECT_LT(flash("query = 64, key = 128, overlap = 1").clocks,
            flash("query = 64, key = 128, overlap = 0").clocks);
}

/// Copies of a step begin when its slot is free: never more are on their way or
/// unread than the ring has.
TEST(Timelines, FillNoMoreThanTheRing) {
  for (int64_t stages : {2, 3}) {
    Timeline shown = flash(
        ("query = 64, key = 64, stages = " + std::to_string(stages)).c_str());
    for (const BusySpan &copy : shown.spans) {
      bool isOfKeys =
          copy.unit == Unit::copies && tensorOf(*copy.node) == Tensor::K;
      if (!isOfKeys || copy.step < stages)
        continue;
      for (const BusySpan &span : shown.spans)
        if (span.unit == Unit::products && span.step == copy.step - stages &&
            tensorOf(*span.node) == Tensor::S)
          EXPECT_GE(copy.begin, span.end);
    }
  }
}

} // namespace
