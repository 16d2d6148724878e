//===- GroupsTest.h - Blocks that work together, in a test ------*- C++ -*-===//
//
// A fault in what blocks tell each other must be found in every schedule, and a
// right kernel be right in every one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_GROUPSTEST_H
#define ATTN_TEST_UNIT_INTERPRETER_GROUPSTEST_H

#include "Harness/KernelTest.h"

namespace attn {

/// Orders of warps and of blocks: kind, unkind and shuffled ones.
std::vector<InterpreterOptions> schedules();

/// Two blocks exchange strips of values through four slots of scratch, in the
/// way of a column split: iteration n stores strip n, and then adds up strip
/// n - 1 of both blocks.  Warp 0 publishes and awaits, warps 4 to 7 work.
class GroupsTest : public KernelTest {
protected:
  /// The right kernel, with each first text replaced by the second one.
  void exchange(const std::vector<Change> &changes = {});
  /// Runs it on fresh flags and scratch; true if no error was reported and the
  /// sums are right.
  bool exchanges(const InterpreterOptions &options);
  void expectCorrect();
  /// In every schedule one of the messages comes first, at a line that is
  /// marked `// HERE`.
  void expectFault(const std::vector<std::string> &messages);

  int64_t strips = 7;
  /// Of the last run.
  std::vector<KernelArgument> arguments;
  uint64_t flags = 0, sums = 0;
  /// What flags begin with.
  int32_t firstFlag = 0;
};

} // namespace attn

#endif
