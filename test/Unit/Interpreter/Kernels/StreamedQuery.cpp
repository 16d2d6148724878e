//===- StreamedQuery.cpp - Wide heads, byte for byte ----------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/Draws.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class StreamedQuery : public BuiltKernel {};

struct StreamedQueryChoice {
  int64_t query = 32, key = 32, slice = 32, piece = 16, stages = 2, warps = 2,
          across = 1;

  operator Tiles() const {
    return {{"query", query},        {"key", key},       {"slice", slice},
            {"piece", piece},        {"stages", stages}, {"warps", warps},
            {"column_warps", across}};
  }
};
} // namespace

/// One warp to a row, and two or four.
static StreamedQueryChoice choice(int64_t across, int64_t stages) {
  StreamedQueryChoice c;
  c.key = std::max<int64_t>(32, 16 * across);
  c.warps = 2 * across;
  c.across = across;
  c.stages = stages;
  return c;
}

TEST_F(StreamedQuery, MasksRowsAndStages) {
  for (const Mask &mask : kMasks)
    for (int64_t stages : {2, 3})
      for (int64_t across : {1, 2})
        for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                     {90, 70},
                                     {1, 130},
                                     {130, 1},
                                     {32, 32}})
          check(oneHead(queries, keys, 64, 32, mask), choice(across, stages));
}

TEST_F(StreamedQuery, HeadDimensions) {
  for (int64_t across : {1, 2, 4})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                         {64, 64},
                         {40, 72},
                         {17, 65},
                         {96, 128},
                         {328, 80},
                         {256, 256}})
      check(oneHead(50, 60, d, dv, {MaskKind::causal}, DataType::f16),
            choice(across, 2));
}

TEST_F(StreamedQuery, WideHeads) {
  StreamedQueryChoice c = choice(4, 2);
  c.key = 64;
  c.slice = 64;
  c.piece = 32;
  check(oneHead(40, 100, 640, 640, {MaskKind::causal}), c);
  c.stages = 3;
  check(oneHead(20, 70, 4096, 512), c);
  c = choice(8, 2);
  c.query = 16;
  c.warps = 8;
  check(oneHead(20, 150, 1000, 1024, {}, DataType::f16), c);
}

TEST_F(StreamedQuery, HeadsBatchesAndTypes) {
  checkHeads(40, 32, choice(1, 2), choice(2, 3));
}

/// Slots of the rings go round in every way: one unit of a kind, or several,
/// and as many as a ring has stages or not.
TEST_F(StreamedQuery, UnitsAndStages) {
  for (int64_t stages : {2, 3})
    for (int64_t across : {1, 2})
      for (int64_t d : {32, 64, 96})
        for (int64_t pieces : {1, 2, 3}) {
          StreamedQueryChoice c = choice(across, stages);
          c.key = 96;
          c.piece = 96 / pieces;
          for (int64_t keys : {90, 100, 20, 300})
            check(oneHead(40, keys, d, 32), c);
        }
}

TEST_F(StreamedQuery, AllWarpOrders) {
  for (int64_t stages : {2, 3})
    for (int64_t across : {1, 2, 4})
      for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                              WarpOrder::shuffled, WarpOrder::shuffled}) {
        InterpreterOptions options;
        options.order = order;
        options.seed += 17;
        StreamedQueryChoice c = choice(across, stages);
        c.key = 64;
        check(oneHead(100, 120, 96, 80, {MaskKind::causal}), c, options);
      }
}

TEST_F(StreamedQuery, RowsThatSeeNoKeyAreZero) {
  for (int64_t across : {1, 2})
    for (int64_t stages : {2, 3}) {
      // Bottom-right: the first 60 of 80 queries see none of the 20 keys.
      check(oneHead(80, 20, 48, 32, {MaskKind::causalBottomRight}),
            choice(across, stages));
      check(oneHead(40, 0, 48, 32), choice(across, stages));
    }
}

TEST_F(StreamedQuery, NotANumberStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (int64_t across : {1, 2})
    for (float value : {nan, infinity}) {
      FlashCase flash(oneHead(80, 80, 48, 32, {MaskKind::causal}),
                      choice(across, 2));
      flash.k[37 * 48 + 5] = value;
      flash.consultOracle();
      check(flash);
    }
}

TEST_F(StreamedQuery, RandomProblems) {
  Seed seed;
  Draws draw(seed);
  for (int i = 0; i < drawsOf(80); ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 100), draw(0, 50)},
                          {MaskKind::prefix, 0, 0, draw(0, 100)}};
    StreamedQueryChoice c;
    c.across = int64_t(1) << draw(0, 2);
    int64_t groups = draw(1, 3), strip = 16 * draw(1, 2);
    c.warps = groups * c.across;
    c.query = groups * strip;
    c.piece = 16 * draw(1, 2);
    c.key = std::max(c.piece, 16 * c.across) * draw(1, 2);
    c.slice = 16 * draw(1, 4);
    c.stages = draw(2, 3);
    int64_t part = 16 * draw(1, 3);
    Problem p = oneHead(draw(1, 150), draw(0, 250), 8 * draw(1, 40),
                        part * c.across - 8 * draw(0, 1), masks[draw(0, 4)],
                        draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 3) != 0;
    FlashCase flash(p, c, /*seed=*/i);
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(flash, options);
  }
}
