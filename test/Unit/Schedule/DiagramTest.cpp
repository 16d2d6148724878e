//===- DiagramTest.cpp - What pictures of schedules show ------------------===//

#include "../Seed.h"
#include "../Share.h"
#include "RandomProblem.h"
#include "SvgPage.h"

#include "attn/Report/Pictures.h"
#include "attn/Schedule/Diagram.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include "gtest/gtest.h"
#include <set>

using namespace attn;

namespace {

/// Of two frames one is in the other, or they are apart.
void checkFrames(const SvgPage &page) {
  std::vector<Area> frames;
  for (const SvgElement *frame : page.ofClass("frame"))
    frames.push_back(page.rectangleIn(*frame));
  ASSERT_FALSE(frames.empty());
  for (size_t i = 0; i < frames.size(); ++i)
    for (size_t j = i + 1; j < frames.size(); ++j)
      EXPECT_TRUE(!frames[i].overlaps(frames[j]) ||
                  frames[i].contains(frames[j]) ||
                  frames[j].contains(frames[i]));
}

/// The numbers of a picture are those of the plan.
void checkNumbers(const SvgPage &page, const Plan &plan,
                  const Problem &problem) {
  Schedule schedule = findScheduleKind(plan.schedule)->build(plan.tiles);
  EXPECT_EQ(page.sum("data-bytes"), plan.bytes.l2);
  EXPECT_EQ(page.sum("data-smem-bytes"), plan.bytes.smem);
  EXPECT_EQ(page.most("data-words"), peakWords(schedule, problem));
  EXPECT_EQ(page.most("data-block-bytes"), plan.footprint.smemBytes);
  if (int64_t bytes = page.sum("data-memory-bytes")) {
    EXPECT_EQ(bytes, plan.bytes.hbm);
  }
  for (const SvgElement *arrow : page.ofClass("arrow"))
    EXPECT_TRUE(arrow->has("data-bytes"));
}

/// Every grid, loop and share has its frame, and every leaf of the census that
/// moves anything its arrow.
void checkMarks(const SvgPage &page, const Plan &plan, const Problem &problem) {
  Schedule schedule = findScheduleKind(plan.schedule)->build(plan.tiles);
  Diagram shown = diagram(schedule, problem);
  EXPECT_EQ(page.ofClass("frame").size(), shown.frames.size());
  size_t arrows = 0;
  for (size_t i = 0; i < shown.marks.size(); ++i) {
    const Mark &mark = shown.marks[i];
    arrows += moveOf(mark.node()) != Move::none;
    for (size_t frame = mark.frame;; frame = shown.frames[frame].parent) {
      EXPECT_LE(shown.frames[frame].first, i);
      EXPECT_GE(shown.frames[frame].last, i);
      if (shown.frames[frame].parent == frame)
        break;
    }
  }
  EXPECT_EQ(page.ofClass("arrow").size(), arrows);
}

void checkPicture(const PlanReport &report, const Plan &plan) {
  SvgPage page(diagramSvg(report, plan));
  ASSERT_EQ(page.error, "");
  Problem problem = atLeastOne(report.problem);
  checkNumbers(page, plan, problem);
  checkMarks(page, plan, problem);
  checkFrames(page);
  checkPlaces(page);
}

/// Every schedule, in every form that a random machine has a plan with: 200
/// problems, and more for as long as a rare schedule is left.
TEST(Diagrams, ShowThePlanOfAnyProblem) {
  Seed seed;
  Random random{seed};
  std::set<std::string> drawn;
  const size_t schedules = scheduleNames().size();
  for (int i = 0; i < drawsOf(200) || (drawn.size() < schedules && i < 5000);
       ++i) {
    Problem problem = random.anyProblem();
    problem.keepsWeights = random.number(0, 5) == 0;
    if (check(problem))
      problem.keepsWeights = false;
    if (random.number(0, 4) == 0)
      random.hideBlocks(problem);
    const Machine &machine = random.anyMachine();
    PlanReport report = plans(problem, machine);
    std::set<std::string> seen;
    for (const Plan &plan : report.plans) {
      std::string form = plan.schedule + " " + std::string(name(plan.family));
      if (!seen.insert(form).second)
        continue;
      drawn.insert(plan.schedule);
      std::ostringstream where;
      where << problem << " on " << machine.name << ": "
            << decision(plan.schedule, plan.tiles);
      SCOPED_TRACE(where.str());
      checkPicture(report, plan);
      if (HasFailure())
        return;
    }
  }
  for (const std::string &schedule : scheduleNames())
    EXPECT_TRUE(drawn.count(schedule)) << schedule;
}

} // namespace
