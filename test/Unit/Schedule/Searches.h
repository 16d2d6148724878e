//===- Searches.h - What tools/bench/choice.py measured ---------*- C++ -*-===//
//
// tools/bench/results has two tables.  searches.tsv holds the times of all
// candidates of random problems, on one GPU (attn_bench/searches.py has the
// format).  replays.tsv holds what the model was last seen to choose among
// them, by search (attn_bench/replays.py); BorderTest and ChoiceTest count
// again.  `tools/bench/searches.py replay` writes the second table anew.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_SCHEDULE_SEARCHES_H
#define ATTN_TEST_UNIT_SCHEDULE_SEARCHES_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Plan.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace attn {

struct TimedCandidate {
  std::string schedule;
  double seconds;
  std::optional<double> final; ///< of the longer measurement of the fastest

  /// Whether it is for like warps, on mma_sync.
  bool isOfLikeWarps() const {
    return schedule.find(", warps = ") != std::string::npos;
  }
  /// Without its tiles.
  std::string kind() const { return schedule.substr(0, schedule.find(',')); }
};

struct SearchedProblem {
  Problem problem;
  Machine machine;
  std::string text; ///< of the problem, for messages
  std::vector<TimedCandidate> candidates;
};

/// The problems of a search, by its name; an error names file and line.
llvm::Expected<std::vector<SearchedProblem>>
readSearch(const std::string &name);

/// A line of replays.tsv.
struct Replay {
  std::string search, asked, kernels;
  size_t judged, good, bad;
  double meanLoss, error;
};

/// All lines of the table.
llvm::Expected<std::vector<Replay>> readReplays();

/// Those of BorderTest ("border") or ChoiceTest ("choice") in the share that
/// ATTN_SHARE names: K/N is the K-th of N, no value is all of them.  Where that
/// or the table is wrong there is one whose search is the words of the error.
std::vector<Replay> shareOfReplays(const std::string &asked);

/// What became of a problem: by how much longer the chosen kernel takes than
/// the fastest, and whether its schedule is the same.
struct Outcome {
  double loss;
  bool agrees;
};

/// What a test has counted, as GoogleTest's report says it, with the outcomes
/// of all problems in their order.
void record(const Replay &counted, const std::vector<Outcome> &outcomes);

/// The one in the middle; of an even number the upper one.
double medianOf(std::vector<double> values);

/// Predicted seconds of all plans, by schedule and tiles.
std::map<std::string, double> predictedTimes(const Problem &problem,
                                             const Machine &machine);

/// A name for GoogleTest, and what it prints where a test fails.
std::string testName(const Replay &replay);
void PrintTo(const Replay &replay, std::ostream *out);

} // namespace attn

#endif
