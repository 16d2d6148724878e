//===- FlashWgmma.cpp - Are the kernels on wgmma right, byte for byte? ----===//
//
// In every order of warps, with every option of the schedule.
//
//===----------------------------------------------------------------------===//

#include "Harness/FlashWgmmaTest.h"

using namespace mlir;
using namespace attn;

namespace {
class FlashWgmma : public FlashWgmmaTest {};
} // namespace

static Tiles wgmmaTiles(int64_t query, int64_t key, int64_t stages,
                        int64_t queryStages, int64_t staging, bool pingPong,
                        bool persistent) {
  return {{"query", query},     {"key", key},
          {"stages", stages},   {"query_stages", queryStages},
          {"staging", staging}, {"ping_pong", pingPong},
          {"overlap", 1},       {"persistent", persistent}};
}

TEST_F(FlashWgmma, MasksAndOptions) {
  ATTN_LONG_TEST();
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causalBottomRight},
                        {MaskKind::window, 40, 0},
                        {MaskKind::window, 7, 90},
                        {MaskKind::prefix, 0, 0, 150}};
  for (const Mask &mask : masks)
    for (int64_t groups : {1, 2, 3})
      for (int option = 0; option < 4; ++option) {
        FlashCase flash(problem(200, 330, 32, 32, mask),
                        wgmmaTiles(64 * groups, 32, 2 + option % 2,
                                   1 + option / 2, 64,
                                   groups > 1 && option % 2 == 0, option != 3));
        check(flash, {{WarpOrder::forward},
                      {WarpOrder::reverse},
                      {WarpOrder::shuffled}});
      }
}

/// Output of more than one product's columns, and queries of more than a few
/// steps.
TEST_F(FlashWgmma, WideHeads) {
  for (auto [d, dV, key] : {std::array<int64_t, 3>{320, 320, 48},
                            {264, 264, 32},
                            {512, 64, 32},
                            {16, 376, 32}})
    for (const Mask &mask :
         {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::window, 40, 0}}) {
      FlashCase flash(problem(130, 100, d, dV, mask),
                      wgmmaTiles(128, key, 2, 1, 64, false, true));
      check(flash, {{WarpOrder::forward}, {WarpOrder::shuffled}});
    }
}

TEST_F(FlashWgmma, RandomBoundaries) {
  ATTN_LONG_TEST();
  Seed seed;
  BoundaryDraws draw(seed);
  for (int i = 0; i < drawsOf(600); ++i) {
    int64_t groups = draw(1, 3);
    const int64_t keys[] = {32, 48, 64, 96};
    bool persistent = draw(0, 7) != 0;
    Tiles choice = wgmmaTiles(64 * groups, keys[draw(0, 3)], draw(2, 4),
                              persistent ? draw(1, 2) : 1, 64,
                              groups > 1 && draw(0, 1), persistent);
    choice.set("overlap", draw(0, 7) != 0);
    if (groups == 2 && persistent && draw(0, 2) == 0)
      choice.set("pairs", 2);
    FlashCase flash(draw.problem(problem(1, 1, 16, 16), 64 * groups, 700),
                    choice, /*seed=*/i);
    check(flash, draw.place(flash, i));
    if (HasFatalFailure())
      return;
  }
}

TEST_F(FlashWgmma, EightBitsMasksAndOptions) {
  ATTN_LONG_TEST();
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causalBottomRight},
                        {MaskKind::window, 40, 7}};
  for (const Mask &mask : masks)
    for (int64_t groups : {1, 2, 3})
      for (int option = 0; option < 4; ++option) {
        Problem p = problem(200, 330, 32, 48, mask);
        p.dtype = DataType::f8e4m3;
        Tiles t = wgmmaTiles(64 * groups, option == 1 ? 64 : 32, 2 + option % 2,
                             1 + option / 2, 64, groups > 1 && option % 2 == 0,
                             option != 3);
        if (option == 2)
          t.set("overlap", 0);
        FlashCase flash(p, t);
        check(flash, {{WarpOrder::forward},
                      {WarpOrder::reverse},
                      {WarpOrder::shuffled}});
      }
}

TEST_F(FlashWgmma, EightBitsShapes) {
  // Head dimensions that are no multiple of 32, panels that are not full,
  // strips that do not go round evenly, one key.
  for (auto [keys, d, dV, key] : {std::array<int64_t, 4>{300, 16, 16, 96},
                                  {1, 48, 80, 32},
                                  {260, 144, 176, 160},
                                  {129, 128, 128, 128},
                                  {70, 256, 16, 64}}) {
    Problem p = problem(70, keys, d, dV);
    p.dtype = DataType::f8e4m3;
    FlashCase flash(p, wgmmaTiles(64, key, 2, 1, 64, false, true));
    check(flash, {{WarpOrder::forward}, {WarpOrder::shuffled}});
  }
}
