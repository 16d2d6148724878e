//===- SinglePrecisionWgmma.cpp - f32 in three parts of bf16: right? ------===//

#include "Harness/BuiltKernel.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class SinglePrecisionWgmma : public BuiltKernel {
protected:
  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {}) {
    return oneHead(queries, keys, headDim, headDimV, mask, DataType::f32);
  }
};
} // namespace

static Tiles tf32Tiles(int64_t query, int64_t key, int64_t stages = 1,
                       bool pingPong = false, bool overlap = true,
                       bool persistent = true) {
  return {{"query", query},     {"key", key},
          {"stages", stages},   {"query_stages", 1},
          {"staging", 0},       {"ping_pong", pingPong},
          {"overlap", overlap}, {"persistent", persistent}};
}

TEST_F(SinglePrecisionWgmma, MasksAndOptions) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (int64_t groups : {1, 2, 3})
      for (int option = 0; option < 4; ++option) {
        InterpreterOptions options;
        options.order = WarpOrder(option % 3);
        check(problem(200, 330, 32, 48, mask),
              tf32Tiles(64 * groups, option == 1 ? 48 : 32, 1 + option % 2,
                        groups > 1 && option % 2 == 0, option != 2,
                        option != 3),
              options);
      }
}

/// Head dimensions that fill no panel or no step, pieces of all sizes, outputs
/// of several parts, one key, one query.
TEST_F(SinglePrecisionWgmma, Shapes) {
  for (auto [queries, keys, d, dV, key] :
       {std::array<int64_t, 5>{70, 300, 4, 4, 64},
        {70, 300, 20, 36, 80},
        {1, 130, 128, 128, 64},
        {130, 1, 64, 64, 128},
        {70, 100, 256, 256, 32},
        {70, 100, 8, 200, 48},
        {70, 100, 200, 8, 16}})
    for (const Mask &mask : {Mask{}, Mask{MaskKind::causal}})
      check(problem(queries, keys, d, dV, mask), tf32Tiles(64, key));
}

TEST_F(SinglePrecisionWgmma, HeadsAndBatches) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}}) {
    Problem p = problem(70, 100, 64, 32, {MaskKind::causal});
    p.batch = 2;
    p.heads = heads;
    p.kvHeads = kvHeads;
    check(p, tf32Tiles(128, 64));
    p.lse = false;
    check(p, tf32Tiles(64, 32, 2));
  }
}

/// Blocks that go from tile to tile with one stage of everything: warps must
/// not wait for each other forever.
TEST_F(SinglePrecisionWgmma, RandomBoundaries) {
  Seed seed;
  BoundaryDraws draw(seed);
  for (int i = 0; i < drawsOf(200); ++i) {
    int64_t groups = draw(1, 3);
    const int64_t keys[] = {16, 32, 48, 64};
    Tiles choice =
        tf32Tiles(64 * groups, keys[draw(0, 3)], draw(1, 2),
                  groups > 1 && draw(0, 1), draw(0, 7) != 0, draw(0, 7) != 0);
    FlashCase flash(draw.problem(problem(1, 1, 16, 16), 64 * groups, 500),
                    choice, /*seed=*/i);
    check(flash, draw.place(flash, i));
    if (HasFailure())
      return;
  }
}

/// Parts of a finite factor all have its sign, so that those of an infinite one
/// make no NaN.
TEST_F(SinglePrecisionWgmma, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float value : {nan, infinity, -infinity}) {
    SCOPED_TRACE(value);
    FlashCase keys(problem(80, 80, 48, 48, {MaskKind::causal}),
                   tf32Tiles(64, 32));
    keys.k[37 * 48 + 5] = value;
    keys.consultOracle();
    check(keys);
    FlashCase queries(problem(80, 80, 48, 48), tf32Tiles(64, 32));
    queries.q[37 * 48 + 5] = value;
    queries.consultOracle();
    check(queries);
    // A weight of 0 times an infinite value is NaN, so all rows see it here.
    FlashCase values(problem(80, 80, 48, 48), tf32Tiles(64, 32));
    values.v[37 * 48 + 5] = value;
    values.consultOracle();
    check(values);
  }
}

/// Scores of minus infinity hide their keys and nothing else.
TEST_F(SinglePrecisionWgmma, InfiniteKey) {
  FlashCase flash(problem(64, 64, 64, 64), tf32Tiles(64, 32));
  for (float &number : flash.q)
    number = std::fabs(number);
  // As exact as may be: a part that nothing is left for.
  flash.q[3] = 1;
  flash.k[7 * 64 + 3] = -std::numeric_limits<float>::infinity();
  flash.consultOracle();
  check(flash);
}
