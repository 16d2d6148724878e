//===- Survivors.cpp - Mutants that nobody kills --------------------------===//

#include "Mutants/Survivors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

using namespace mlir;
using namespace attn;

namespace {
struct Explanation {
  bool same;
  bool used = false;
};
} // namespace

/// The lines about a kernel, by mutant.
static std::map<std::string, Explanation>
explanations(const std::string &subject) {
  std::map<std::string, Explanation> result;
  std::ifstream file(ATTN_SURVIVORS);
  EXPECT_TRUE(file.good()) << "expects " << ATTN_SURVIVORS;
  std::string prefix = subject + ", ";
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

void attn::expectKilled(const std::string &subject, ModuleOp module,
                        int atLeast,
                        llvm::function_ref<std::string(ModuleOp)> verdict) {
  std::map<std::string, Explanation> explained = explanations(subject);
  int killed = 0, same = 0, missed = 0;
  for (Mutant &mutant : mutants(module)) {
    std::string error = verdict(*mutant.module);
    auto explanation = explained.find(mutant.name);
    if (!error.empty()) {
      ++killed;
      EXPECT_EQ(explanation, explained.end())
          << "stale explanation: " << subject << ", " << mutant.name
          << " is killed by: " << error;
      continue;
    }
    if (!mutant.asksForMore.empty()) {
      EXPECT_EQ(explanation, explained.end())
          << "needs no explanation, " << mutant.asksForMore << ": " << subject
          << ", " << mutant.name;
      ++same;
      continue;
    }
    if (explanation == explained.end()) {
      ADD_FAILURE() << "expects an explanation for the survivor: " << subject
                    << ", " << mutant.name;
      continue;
    }
    explanation->second.used = true;
    ++(explanation->second.same ? same : missed);
  }
  for (auto &[name, explanation] : explained)
    EXPECT_TRUE(explanation.used || ::testing::Test::HasFailure())
        << "no such mutant: " << subject << ", " << name;
  ::testing::Test::RecordProperty("killed", killed);
  ::testing::Test::RecordProperty("same", same);
  ::testing::Test::RecordProperty("missed", missed);
  std::printf("%s: %d killed, %d missed, %d that change nothing\n",
              subject.c_str(), killed, missed, same);
  EXPECT_GT(killed, atLeast);
  EXPECT_GE(killed, 0.95 * (killed + missed));
}
