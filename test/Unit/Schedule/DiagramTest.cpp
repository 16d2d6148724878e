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
#include "attn/Schedule/SharedTiles.h"
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
  EXPECT_EQ(page.most("data-words"),
            peakWords(schedule, withSharedRows(problem, schedule)));
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

/// No number is struck out by the line of what a machine has.
void checkLimit(const SvgPage &page) {
  for (const SvgElement *limit : page.ofClass("limit"))
    for (const SvgElement &element : page.elements) {
      if (element.name != "line" || &page.elements[element.parent] != limit)
        continue;
      for (const SvgElement &words : page.elements)
        if (words.name == "text") {
          EXPECT_FALSE(page.areaOf(words).overlaps(page.areaOf(element)))
              << "a line through '" << words.text << "'";
        }
    }
}

void checkPicture(const PlanReport &report, const Plan &plan) {
  SvgPage page(diagramSvg(report, plan));
  ASSERT_EQ(page.error, "");
  Problem problem = atLeastOne(report.problem);
  checkNumbers(page, plan, problem);
  checkMarks(page, plan, problem);
  checkFrames(page);
  checkPlaces(page);
  checkLimit(page);
}

/// What has to be drawn: every schedule, each on lists of blocks too, and walks
/// in parts.
std::set<std::string> everyKind() {
  std::set<std::string> all = {"flash in parts"};
  for (const std::string &schedule : scheduleNames())
    all.insert({schedule, schedule + " on lists"});
  all.erase("flash_backward on lists"); // few blocks suit it: below
  return all;
}

/// Every schedule, in every form that a random machine has a plan with: 200
/// problems, and more for as long as a rare kind is left.
TEST(Diagrams, ShowThePlanOfAnyProblem) {
  ATTN_LONG_TEST();
  Seed seed;
  Random random{seed};
  std::set<std::string> left = everyKind();
  for (int i = 0; i < drawsOf(200) || (!left.empty() && i < 5000); ++i) {
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
      bool isInParts = plan.schedule == "flash" && plan.tiles.has("parts");
      std::string kind = plan.schedule + (isInParts ? " in parts" : "");
      if (!seen.insert(kind + " " + std::string(name(plan.family))).second)
        continue;
      left.erase(kind);
      if (problem.pattern)
        left.erase(kind + " on lists");
      std::ostringstream where;
      where << problem << " on " << machine.name << ": "
            << decision(plan.schedule, plan.tiles);
      SCOPED_TRACE(where.str());
      checkPicture(report, plan);
      if (HasFailure())
        return;
    }
  }
  for (const std::string &kind : left)
    ADD_FAILURE() << "not drawn: " << kind;
}

TEST(Diagrams, ShowGradientsOnListsOfBlocks) {
  Problem problem;
  problem.direction = Direction::backward;
  problem.heads = problem.kvHeads = 3;
  problem.queries = 1000;
  problem.keys = 700;
  problem.headDim = problem.headDimV = 128;
  problem.pattern.emplace(BlockSize{128, 128}, 0.3, /*isPerHead=*/true);
  PlanReport report = plans(problem, *findMachine("h100_sxm"));
  int drawn = 0;
  for (const Plan &plan : report.plans)
    if (plan.schedule == "flash_backward" && drawn < 20) {
      checkPicture(report, plan);
      ++drawn;
    }
  EXPECT_GT(drawn, 0);
}

} // namespace
