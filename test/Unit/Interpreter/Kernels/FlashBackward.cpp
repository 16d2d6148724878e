//===- FlashBackward.cpp - Gradients in five products, byte for byte ------===//
//
// All three launches, two that finish dQ beside the tiles, or one that also
// prepares beside them, in every order of
// warps and with every option of the schedule.  Ordered sums have the same bits
// in all of them, others have not.
//
//===----------------------------------------------------------------------===//

#include "Harness/DroppedFences.h"
#include "Harness/GradientChecks.h"

#include "attn/Schedule/Registry.h"

using namespace mlir;
using namespace attn;

namespace {

struct FlashBackwardChoice {
  int64_t key = 128, queryBlock = 64, stages = 2, overlap = 1, beside = 0;
  int64_t ordered = 0, shortFirst = 0, firstStores = 0;

  operator Tiles() const {
    return {{"key", key},
            {"query_block", queryBlock},
            {"beside", beside},
            {"stages", stages},
            {"overlap", overlap},
            {"ordered", ordered},
            {"short_first", shortFirst},
            {"first_stores", firstStores},
            {"persistent", 1}};
  }
};

/// Strips whose sums are dealt out by columns, by rows, and not at all; by
/// columns they have two panels.  dQ is finished in its own launch and beside,
/// added up in any order and in that of tiles, to zeros and to what the first
/// tile stores; statistics come from a launch and from beside.  Blocks are
/// weighed whole and in halves.
const FlashBackwardChoice kFlashBackwardChoices[] = {
    {128, 64, 2},
    {128, 64, 3, 0},
    {128, 128, 2, 0},
    {64, 64, 2},
    {64, 64, 3},
    {128, 64, 2, 1, 1},
    {128, 64, 3, 0, 1},
    {128, 128, 2, 0, 1},
    {64, 64, 2, 1, 1},
    {128, 64, 2, 1, 1, 1},
    {128, 128, 2, 0, 0, 1},
    {64, 64, 3, 1, 1, 1},
    {128, 64, 3, 0, 0, 1, 1},
    {64, 64, 2, 1, 1, 1, 1},
    {128, 64, 2, 1, 0, 0, 0, 1},
    {128, 64, 3, 0, 1, 0, 0, 1},
    {128, 128, 2, 0, 0, 0, 0, 1},
    {128, 128, 2, 0, 1, 0, 0, 1},
    {64, 64, 3, 1, 0, 0, 0, 1},
    {64, 64, 2, 1, 1, 0, 0, 1},
    {128, 64, 2, 1, 1, 1, 0, 1},
    {128, 128, 2, 0, 0, 1, 0, 1},
    {128, 64, 3, 0, 0, 1, 1, 1},
    {64, 64, 2, 1, 1, 1, 1, 1},
    {128, 64, 3, 1, 2},
    {128, 128, 2, 0, 2, 0, 0, 1},
    {64, 64, 2, 1, 2, 0, 0, 1},
    {128, 128, 2, 0, 2, 1},
    {128, 64, 3, 0, 2, 1, 0, 1},
    {64, 64, 2, 1, 2, 1, 1, 1},
    {128, 128, 2, 2},
    {128, 128, 2, 2, 1, 0, 0, 1},
    {128, 128, 2, 2, 2, 1},
    {128, 128, 2, 2, 0, 1, 1, 1},
    {128, 128, 2, 2, 2, 0, 0, 1}};
int64_t headDimOf(const FlashBackwardChoice &choice) {
  return choice.key != choice.queryBlock ? 80 : 32;
}

class FlashBackward : public GradientChecks {
protected:
  FlashBackward() : GradientChecks("flash_backward", "wgmma") {}
};

} // namespace

TEST_F(FlashBackward, MasksAndRows) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    checkMasks({200, 300, 128}, headDimOf(c), c);
}

TEST_F(FlashBackward, HeadDimensions) {
  ATTN_LONG_TEST();
  using Dims = std::pair<int64_t, int64_t>;
  for (auto [beside, firstStores] :
       {Dims{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}}) {
    for (auto [d, dv] : {Dims{72, 8}, {128, 128}, {96, 128}, {128, 64}})
      check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16),
            FlashBackwardChoice{128, 64, 2, 1, beside, 0, 0, firstStores});
    for (auto [d, dv] : {Dims{8, 64}, {64, 64}, {40, 72}, {64, 128}})
      for (int64_t rows : {64, 128})
        check(problem(90, 140, d, dv, {MaskKind::causal}, DataType::f16),
              FlashBackwardChoice{rows, rows, 2, 1, beside, 0, 0, firstStores});
  }
  for (auto [d, dv] : {Dims{8, 64}, {64, 64}, {40, 24}})
    check(problem(90, 140, d, dv, {MaskKind::window, 60, 10}, DataType::f16),
          FlashBackwardChoice{128, 128, 2, /*overlap=*/2, 1, 0, 0, 1});
}

TEST_F(FlashBackward, HeadsShareKeys) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    checkHeads(problem(145, 167, headDimOf(c), 32, {MaskKind::causal}), c);
}

TEST_F(FlashBackward, AllWarpOrders) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices) {
    Problem p = problem(300, 420, headDimOf(c), 32, {MaskKind::causal});
    p.heads = 2;
    checkWarpOrders(p, c);
  }
}

// Who finishes waits for tiles of other blocks, and so does who adds in order
// or behind the first, whichever of them goes on.
TEST_F(FlashBackward, AllBlockOrders) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    for (int64_t blocks : {1, 2, 5})
      for (BlockOrder order : {BlockOrder::inTurn, BlockOrder::oldestFirst,
                               BlockOrder::newestFirst, BlockOrder::oneStarved,
                               BlockOrder::shuffled}) {
        if (!c.beside && !c.ordered && !c.firstStores)
          continue;
        Problem p = problem(150, 300, headDimOf(c), 16, {MaskKind::causal});
        p.heads = 4;
        p.kvHeads = 2;
        multiprocessors = blocks;
        InterpreterOptions options;
        options.order = blocks == 2 ? WarpOrder::reverse : WarpOrder::shuffled;
        options.blocks = order;
        options.seed = uint64_t(blocks);
        check(p, c, options);
      }
}

// Statistics that are prepared beside the tiles come by the copy engine.
TEST_F(FlashBackward, FencesBesideTheTiles) {
  multiprocessors = 5;
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    if (c.beside == 2)
      expectFencesNeeded(context, change, [&] {
        check(problem(150, 300, headDimOf(c), 16), c);
      });
}

// More key heads than flags: two share one, or at the end one has it alone.
TEST_F(FlashBackward, HeadsShareFlags) {
  ATTN_LONG_TEST();
  for (int64_t beside : {1, 2}) {
    Problem p = problem(1, 2, 8, 8, {});
    p.batch = kHeadFlags / 2 + 1;
    p.heads = p.kvHeads = 3;
    multiprocessors = 2;
    check(p, FlashBackwardChoice{64, 64, 2, 1, beside}, {});
  }
}

// Whatever warps and blocks go on, and however many there are.
TEST_F(FlashBackward, OrderedSumsHaveTheSameBits) {
  ATTN_LONG_TEST();
  for (const Mask &mask : {Mask{},
                           {MaskKind::causal},
                           {MaskKind::window, 150, 30},
                           {MaskKind::prefix, 0, 0, 200}})
    for (const FlashBackwardChoice &c : kFlashBackwardChoices) {
      if (c.shortFirst && mask.kind == MaskKind::none)
        continue;
      if (!c.ordered && c.stages == 2) // others stand for those
        continue;
      Problem p = problem(400, 440, headDimOf(c), 16, mask);
      p.heads = 2;
      p.kvHeads = 1;
      SCOPED_TRACE(Tiles(c).str() + ", " + str(mask));
      GradientCase truth(p);
      std::map<std::string, std::vector<float>> first;
      bool differs = false;
      uint64_t seed = 0;
      for (int64_t blocks : {1, 3, 16})
        for (BlockOrder order :
             {BlockOrder::newestFirst, BlockOrder::oneStarved,
              BlockOrder::shuffled}) {
          multiprocessors = blocks;
          InterpreterOptions options;
          options.order = seed % 2 ? WarpOrder::shuffled : WarpOrder::reverse;
          options.blocks = order;
          options.seed = ++seed;
          auto left = run(truth, c, options);
          ASSERT_EQ(left.size(), 4u);
          if (first.empty())
            first = left;
          EXPECT_EQ(left["dk"], first["dk"]);
          EXPECT_EQ(left["dv"], first["dv"]);
          differs |= left["scratch_dq"] != first["scratch_dq"];
          if (c.ordered)
            EXPECT_EQ(left["dq"], first["dq"]);
        }
      EXPECT_EQ(differs, c.ordered == 0);
    }
}

// Heads in two lanes of which one lags by two tiles, in as many as there are
// multiprocessors, and in lanes that are not as long; all with the same bits.
TEST_F(FlashBackward, HeadsInLanes) {
  ATTN_LONG_TEST();
  FlashBackwardChoice c{128, 64, 2, 1, /*beside=*/0, /*ordered=*/1};
  for (auto [kvHeads, sharers] : {std::pair<int64_t, int64_t>{4, 8}, {3, 1}}) {
    Problem p = problem(400, 400, headDimOf(c), 16, {MaskKind::causal});
    p.kvHeads = kvHeads;
    p.heads = kvHeads * sharers;
    GradientCase truth(p);
    std::map<std::string, std::vector<float>> first;
    for (int64_t blocks : {8, 2, 24}) {
      multiprocessors = blocks;
      InterpreterOptions options;
      options.blocks = BlockOrder::shuffled;
      options.seed = uint64_t(blocks);
      auto left = run(truth, c, options);
      ASSERT_EQ(left.size(), 4u);
      if (first.empty())
        first = left;
      for (const char *gradient : {"dq", "dk", "dv"})
        EXPECT_EQ(left[gradient], first[gradient]) << blocks << " blocks";
    }
  }
}

// Also those that no query sees: they have no sums, and count all the same. Of
// many keys they are the ones that are drawn first, or last.
TEST_F(FlashBackward, TilesOfKeysThatNobodySees) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    for (const Mask &mask :
         {Mask{MaskKind::window, 20, 7}, {MaskKind::window, 0, 0}}) {
      Problem p = problem(70, 400, headDimOf(c), 16, mask);
      p.heads = 2;
      check(p, c);
    }
}

// The tiles of a window begin the sums of some blocks each, of all query heads
// that share their keys.
TEST_F(FlashBackward, ManyFirstTiles) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    for (const Mask &mask : {Mask{MaskKind::window, 90, 0},
                             {MaskKind::window, 10, 150},
                             {MaskKind::causalBottomRight},
                             {MaskKind::prefix, 0, 0, 200}})
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{700, 500}, {300, 700}}) {
        if (!c.firstStores)
          continue;
        Problem p = problem(queries, keys, headDimOf(c), 16, mask);
        p.heads = 2;
        p.kvHeads = 1;
        multiprocessors = 3;
        InterpreterOptions options;
        options.order = WarpOrder::shuffled;
        options.blocks = BlockOrder::shuffled;
        check(p, c, options);
      }
}

TEST_F(FlashBackward, RowsThatSeeNothingHaveNoGradient) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    checkBlindRows(180, headDimOf(c), c);
}

TEST_F(FlashBackward, GradientOfTheLse) {
  checkGradientOfTheLse(problem(70, 150, 32, 32, {MaskKind::causal}),
                        FlashBackwardChoice{128, 128, 2});
}

TEST_F(FlashBackward, Scales) {
  checkScales(problem(160, 170, 80, 32, {MaskKind::causal}),
              FlashBackwardChoice());
}

TEST_F(FlashBackward, LargeScores) {
  ATTN_LONG_TEST();
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    for (DataType type : {DataType::bf16, DataType::f16})
      checkLargeScores(problem(180, 150, headDimOf(c), 32,
                               {MaskKind::causalBottomRight}, type),
                       c);
}

TEST_F(FlashBackward, KeysBehindTheEnd) {
  for (const FlashBackwardChoice &c : kFlashBackwardChoices)
    checkRowsBehindTheEnd(headDimOf(c), c);
}

TEST_F(FlashBackward, NotANumberInAValue) {
  checkNotANumber(137, problem(180, 180, 80, 32, {MaskKind::causal}),
                  FlashBackwardChoice());
}

TEST_F(FlashBackward, RandomProblems) {
  checkRandom(40, [](Random &random) -> Drawn {
    auto draw = [&](int64_t least, int64_t most) {
      return random.number(least, most);
    };
    FlashBackwardChoice c =
        kFlashBackwardChoices[draw(0, std::size(kFlashBackwardChoices) - 1)];
    c.stages = draw(2, 3);
    c.overlap = draw(0, 1);
    bool splitsColumns = c.key != c.queryBlock;
    return {draw(1, 300), draw(1, 400),
            8 * (splitsColumns ? draw(9, 16) : draw(1, 8)), 8 * draw(1, 16), c};
  });
}
