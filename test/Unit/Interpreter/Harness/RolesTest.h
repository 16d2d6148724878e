//===- RolesTest.h - Kernels of two roles, written in a test ----*- C++ -*-===//
//
// Four warps with a role of a single lane, then four with another; or one,
// three with a role that helps it, and four.  What a test does not use is
// reserved all the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_ROLESTEST_H
#define ATTN_TEST_UNIT_INTERPRETER_ROLESTEST_H

#include "Harness/KernelTest.h"

namespace attn {

class RolesTest : public KernelTest {
protected:
  /// Bodies of the roles; `top` stands before them.
  void roles(const std::string &producer, const std::string &consumer,
             const std::string &top = "", const std::string &bottom = "",
             const std::string &helper = "");
  /// Correct in all orders.
  void expectCorrect();
  /// As `expectError`, with the arguments.
  void expectBreach(const std::string &message) {
    expectError(arguments, message);
  }
  /// In every order one of the messages is reported.
  void expectOneOf(const std::vector<std::string> &messages);

  /// The input, 64 rows of 64: element (i, j) is (i + 2 j) % 16.
  static float input(int64_t i, int64_t j) { return float((i + 2 * j) % 16); }
  static TensorMapArgument array(uint64_t address, int64_t rows = 64,
                                 int64_t columns = 64) {
    return {address,
            {1, 1, rows, columns},
            {rows * columns, rows * columns, columns, 1}};
  }

  /// Input and output maps, output of floats, counter, and the number 3.
  std::vector<KernelArgument> arguments;
  uint64_t in = 0, to = 0, f = 0, counter = 0;
};

} // namespace attn

#endif
