//===- KernelDraws.h - What random tests of kernels draw alike --*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_KERNELDRAWS_H
#define ATTN_TEST_UNIT_INTERPRETER_KERNELDRAWS_H

#include "Harness/Draws.h"

#include "attn/Interpreter/Interpreter.h"
#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Ragged.h"
#include "attn/Schedule/Tiles.h"

#include <string>
#include <vector>

namespace attn {

/// Any order of warps.
inline InterpreterOptions drawOptions(Draws &draw) {
  InterpreterOptions options;
  options.order = WarpOrder(draw(0, 2));
  options.seed = uint64_t(draw(0, 1000));
  return options;
}

inline DataType draw16Bit(Draws &draw) {
  return draw(0, 1) ? DataType::bf16 : DataType::f16;
}

/// Any mask of ragged sequences.
inline Mask drawRaggedMask(Draws &draw) {
  switch (draw(0, 4)) {
  case 0:
    return {};
  case 1:
    return {MaskKind::causalBottomRight};
  case 2:
    return {MaskKind::window, draw(0, 100), draw(0, 1) ? 0 : draw(0, 50)};
  case 3:
    return {MaskKind::prefix, 0, 0, draw(0, 200)};
  default:
    return {MaskKind::causal};
  }
}

/// Of up to so many sequences of up to so many rows, some of none.
inline std::vector<Lengths> drawLengths(Draws &draw, int64_t sequences,
                                        int64_t most, bool areSame) {
  std::vector<Lengths> all;
  for (int64_t n = 0, count = draw(1, sequences); n < count; ++n) {
    Lengths one{draw(0, 3) ? draw(1, most) : draw(0, 3),
                draw(0, 3) ? draw(1, most) : draw(0, 2)};
    if (areSame)
      one.keys = one.queries;
    all.push_back(one);
  }
  return all;
}

/// A ragged problem and its tiles, for who reads of a failure.
inline std::string textOf(const Problem &problem, const Tiles &tiles) {
  std::string text = tiles.str() + "; " + str(problem.mask) + ", heads " +
                     std::to_string(problem.heads) + "/" +
                     std::to_string(problem.kvHeads) + ", d " +
                     std::to_string(problem.headDim) + ", e " +
                     std::to_string(problem.headDimV) + ", lengths";
  for (const Lengths &each : problem.ragged->lengths)
    text +=
        " " + std::to_string(each.queries) + "x" + std::to_string(each.keys);
  return text;
}

} // namespace attn

#endif
