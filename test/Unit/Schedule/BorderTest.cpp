//===- BorderTest.cpp - The choice between the two regimes ----------------===//
//
// tools/bench/choice.py --border timed the best plans of every schedule for
// problems about the border of the two regimes, on an H100 80GB SXM that was
// told to have 48 to 227 KiB of shared memory; its results are committed.  Here
// the model chooses among those kernels.  It was fitted to most of them too:
// what it has kept, not what it does on others.
//
//===----------------------------------------------------------------------===//

#include "Searches.h"

#include "attn/Schedule/Footprint.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>

using namespace attn;

namespace {

struct Candidate {
  std::string kind; ///< its schedule, without tiles
  double seconds, predicted;
};

/// Kernels on mma.sync have changed: at first all of them, then those that take
/// the longest tiles under a mask first, then those whose rows stagger as they
/// do in memory.  A replay says which of these were timed; kernels that are no
/// longer as they were do not count, nor do problems that have no others.
class Border : public testing::TestWithParam<Replay> {
protected:
  /// Whether times of kernels on mma.sync stand for those of today.
  bool isToday(const Problem &problem) const {
    return GetParam().kernels == "staggered" || !staggersRows(problem);
  }
  bool isOrdered() const { return GetParam().kernels != "first"; }

  /// Those that are plans and count; by the longer measurement where there is
  /// one.
  std::vector<Candidate> candidatesOf(const SearchedProblem &entry) const {
    std::map<std::string, double> predicted =
        predictedTimes(entry.problem, entry.machine);
    std::vector<Candidate> candidates;
    for (const TimedCandidate &candidate : entry.candidates) {
      if (candidate.isOfLikeWarps() && !isToday(entry.problem))
        continue;
      auto found = predicted.find(candidate.schedule);
      if (found != predicted.end())
        candidates.push_back({candidate.kind(),
                              candidate.final.value_or(candidate.seconds),
                              found->second});
    }
    return candidates;
  }
};

/// A choice is good if its schedule is that of the fastest, and bad if it is
/// another one and loses more than 5 %.  Of a search one less may be good and
/// one more bad than its replay has.
TEST_P(Border, AgreesWithTheWinner) {
  auto problems = readSearch(GetParam().search);
  ASSERT_TRUE(bool(problems)) << llvm::toString(problems.takeError());
  Replay counted{
      GetParam().search, "border", GetParam().kernels, 0, 0, 0, 0, 0};
  std::vector<double> errors;
  std::vector<Outcome> outcomes;
  for (const SearchedProblem &entry : *problems) {
    if (entry.problem.mask.kind != MaskKind::none && !isOrdered())
      continue;
    std::vector<Candidate> candidates = candidatesOf(entry);
    if (candidates.empty()) {
      EXPECT_FALSE(isToday(entry.problem)) << entry.text;
      continue;
    }
    auto fastest = std::min_element(
        candidates.begin(), candidates.end(),
        [](auto &a, auto &b) { return a.seconds < b.seconds; });
    auto chosen = std::min_element(
        candidates.begin(), candidates.end(),
        [](auto &a, auto &b) { return a.predicted < b.predicted; });
    ++counted.judged;
    Outcome one{chosen->seconds / fastest->seconds - 1,
                chosen->kind == fastest->kind};
    counted.good += one.agrees;
    counted.bad += !one.agrees && one.loss > 0.05;
    counted.meanLoss += one.loss;
    outcomes.push_back(one);
    errors.push_back(std::abs(chosen->predicted / chosen->seconds - 1));
  }
  ASSERT_EQ(counted.judged, GetParam().judged);
  counted.meanLoss /= double(counted.judged);
  counted.error = medianOf(errors);
  record(counted, outcomes);
  EXPECT_GE(counted.good + 1, GetParam().good);
  EXPECT_LE(counted.bad, GetParam().bad + 1);
}

// A small share has none.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Border);
INSTANTIATE_TEST_SUITE_P(Searches, Border,
                         testing::ValuesIn(shareOfReplays("border")),
                         [](auto &info) { return testName(info.param); });

} // namespace
