//===- GradientChecks.h - Checks that all gradients must pass ---*- C++ -*-===//
//
// What is asked of every kernel for gradients, whatever its tiles: a fixture
// says with which of them, and how large problems must be for the question to
// bite.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_GRADIENTCHECKS_H
#define ATTN_TEST_UNIT_INTERPRETER_GRADIENTCHECKS_H

#include "../../Schedule/RandomProblem.h"
#include "Harness/BuiltGradient.h"

namespace attn {

class GradientChecks : public BuiltGradient {
protected:
  using BuiltGradient::BuiltGradient;

  /// Under every mask `few` queries of `many` keys, as many the other way
  /// round, single ones, and `whole` ones of each, which are whole tiles.
  struct Rows {
    int64_t few, many, whole;
  };
  void checkMasks(const Rows &rows, int64_t headDim, const Tiles &tiles);
  /// Heads that share keys or do not, in two batch entries.
  void checkHeads(Problem problem, const Tiles &tiles);
  void checkWarpOrders(const Problem &problem, const Tiles &tiles);
  /// `rows` queries of which most see none of 20 keys, 20 queries that do not
  /// see most of `rows` keys, and nothing at all.
  void checkBlindRows(int64_t rows, int64_t headDim, const Tiles &tiles);
  void checkGradientOfTheLse(Problem problem, const Tiles &tiles);
  void checkScales(const Problem &problem, const Tiles &tiles);
  /// Scores of about -200 everywhere: weights of keys that do not exist, with a
  /// score of 0, would be beyond all numbers.
  void checkRowsBehindTheEnd(int64_t headDim, const Tiles &tiles);
  /// A key whose value is NaN spoils the gradients of all queries that see it,
  /// but of none before: what is hidden has no dS, whatever dP is there.
  void checkNotANumber(int64_t key, const Problem &problem, const Tiles &tiles);

  /// Random problems of the sizes and with the tiles that `choose` draws.
  struct Drawn {
    int64_t queries, keys, headDim, headDimV;
    Tiles tiles;
  };
  void checkRandom(int count, llvm::function_ref<Drawn(Random &)> choose);
};

} // namespace attn

#endif
