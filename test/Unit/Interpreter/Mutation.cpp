//===- Mutation.cpp - Does the interpreter see what is wrong? -------------===//
//
// Every mutant of a flash kernel is run on several problems in several warp
// orders.  It is killed when the interpreter reports an error or the numbers
// differ from the oracle's.  Survivors are listed in survivors.txt, one a line:
//
//   stages 1, barrier 2 moved up; same: why nothing changes
//   stages 2, commit_group 3 dropped; missed: why it is not seen
//
// `same` says that the mutant computes the same with the same order of memory;
// `missed` counts against the interpreter.  An unexplained survivor fails the
// test, and so does an explanation of one that was killed.
//
//===----------------------------------------------------------------------===//

#include "FlashCase.h"
#include "KernelTest.h"
#include "Mutations.h"

#include <fstream>
#include <map>

using namespace mlir;
using namespace attn;

namespace {
class Mutation : public ::testing::TestWithParam<int64_t> {
protected:
  Mutation() { loadDialects(context); }
  MLIRContext context;
};

struct Explanation {
  bool same;
  bool used = false;
};
} // namespace

/// The lines about kernels of so many stages, by mutant.
static std::map<std::string, Explanation> explanations(int64_t stages) {
  std::map<std::string, Explanation> result;
  std::ifstream file(ATTN_SURVIVORS);
  EXPECT_TRUE(file.good()) << "expects " << ATTN_SURVIVORS;
  std::string prefix = "stages " + std::to_string(stages) + ", ";
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, prefix.size(), prefix) != 0)
      continue;
    size_t end = line.find("; ");
    bool same = line.find("; same: ") == end;
    bool missed = line.find("; missed: ") == end;
    EXPECT_TRUE(end != std::string::npos && (same || missed)) << line;
    result[line.substr(prefix.size(), end - prefix.size())] = {same};
  }
  return result;
}

/// What the interpreter has to say against the mutant, or nothing.
static std::string verdict(std::vector<FlashCase> &cases, ModuleOp module) {
  tile::KernelOp kernel = *module.getOps<tile::KernelOp>().begin();
  for (FlashCase &flash : cases)
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      Outcome outcome = flash.run(kernel, options);
      if (!outcome.error.empty())
        return outcome.error;
      if (outcome.relativeError > 4e-3 || outcome.lseError > 1e-4)
        return "wrong numbers";
    }
  return "";
}

TEST_P(Mutation, MutantsAreKilled) {
  int64_t stages = GetParam();
  // O is wider than Q, whose place it takes, so that strips of two warps
  // overlap; four blocks are cut by the mask, more than there are stages.
  Tiles tiles{{"query", 64}, {"key", 16}, {"stages", stages}, {"warps", 2}};
  Problem problem;
  problem.headDim = 32;
  problem.headDimV = 48;
  problem.mask = {MaskKind::causal};
  std::vector<FlashCase> cases;
  for (auto [queries, keys] :
       {std::pair<int64_t, int64_t>{150, 140}, {70, 30}, {9, 5}}) {
    problem.queries = queries;
    problem.keys = keys;
    cases.emplace_back(problem, tiles);
  }
  OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
  ASSERT_EQ(verdict(cases, *module), "") << "the kernel itself";

  std::map<std::string, Explanation> explained = explanations(stages);
  int killed = 0, same = 0, missed = 0;
  for (Mutant &mutant : mutants(*module)) {
    std::string error = verdict(cases, *mutant.module);
    auto explanation = explained.find(mutant.name);
    if (!error.empty()) {
      ++killed;
      EXPECT_EQ(explanation, explained.end())
          << "stale explanation: stages " << stages << ", " << mutant.name
          << " is killed by: " << error;
      continue;
    }
    if (explanation == explained.end()) {
      ADD_FAILURE() << "expects an explanation for the survivor: stages "
                    << stages << ", " << mutant.name;
      continue;
    }
    explanation->second.used = true;
    ++(explanation->second.same ? same : missed);
  }
  for (auto &[name, explanation] : explained)
    EXPECT_TRUE(explanation.used || ::testing::Test::HasFailure())
        << "no such mutant: stages " << stages << ", " << name;
  RecordProperty("killed", killed);
  RecordProperty("same", same);
  RecordProperty("missed", missed);
  std::printf("stages %d: %d killed, %d missed, %d that change nothing\n",
              int(stages), killed, missed, same);
  EXPECT_GT(killed, 20);
  EXPECT_GE(killed, 0.95 * (killed + missed));
}

INSTANTIATE_TEST_SUITE_P(Stages, Mutation, ::testing::Values(1, 2, 3));
