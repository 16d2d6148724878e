//===- ListedGradients.cpp - Do gradients walk the blocks that lists name? ===//
//
// Random lists in any order, transposed ones in an order of their own, ragged
// ends, rows and columns without blocks, lists that heads and batch entries
// share, and nonsense behind the counts.  Bytes are those that the lists name,
// interpreted, counted in the IR and promised by plans.  Lists of columns that
// do not match those of rows show, and only in the rows that they are about.
//
//===----------------------------------------------------------------------===//

#include "../../Schedule/SpillBackwardTiles.h"
#include "../../Schedule/SplitBackwardTiles.h"
#include "Harness/GradientChecks.h"
#include "Harness/GradientTiles.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace attn;

namespace {

class ListedGradients : public GradientChecks {
protected:
  using GradientChecks::GradientChecks;
  using Owners = ListedBlocks::Owners;
  using Shares = ListedBlocks::Shares;

  /// Four heads of which two share keys.
  static Problem problem(int64_t queries, int64_t keys, const BlockSize &size,
                         Mask mask = {}, int64_t headDim = 32) {
    Problem p = BuiltGradient::problem(queries, keys, headDim, 16, mask);
    p.heads = 4;
    p.kvHeads = 2;
    p.pattern.emplace(size, /*density=*/0.5);
    return p;
  }

  void check(const Problem &problem, const Tiles &tiles,
             const Owners &owners = {false, true}, const Shares &shares = {},
             const InterpreterOptions &options = {}) {
    GradientCase truth(problem, seed);
    truth.list(owners, shares, ++seed);
    SCOPED_TRACE("blocks " + str(problem.pattern->size()) + ", seed " +
                 std::to_string(seed));
    BuiltGradient::check(truth, tiles, options);
  }

  /// Whose lists there are.
  void checkOwners(const Tiles &tiles, int64_t headDim = 32) {
    for (bool ofBatch : {false, true})
      for (bool ofHeads : {false, true}) {
        Problem p = problem(140, 330, {128, 128}, {}, headDim);
        p.batch = 2;
        check(p, tiles, {ofBatch, ofHeads});
      }
  }

  /// Blocks of the pattern are tiles, or several.
  void checkSizes(const Tiles &tiles, const BlockSize &least,
                  int64_t headDim = 32) {
    for (int64_t more : {1, 2})
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{256, 256}, {130, 257}, {1, 70}})
        for (const Mask &mask : {Mask{}, Mask{MaskKind::causal}})
          check(problem(queries, keys,
                        {least.queries * more, least.keys * (3 - more)}, mask,
                        headDim),
                tiles);
  }

  /// Nothing but full blocks, or partial ones, or nearly nothing, or nothing.
  void checkShares(const Tiles &tiles, int64_t headDim = 32) {
    for (const Shares &shares : {Shares{0, 60}, {60, 0}, {4, 4}, {0, 0}})
      for (const Mask &mask : {Mask{}, Mask{MaskKind::window, 40, 7}})
        check(problem(270, 290, {128, 128}, mask, headDim), tiles,
              {false, true}, shares);
  }

  /// Every order of warps, each with a mask.
  void checkOrders(const Tiles &tiles, int64_t headDim = 32) {
    for (auto [i, mask] : llvm::enumerate(kMasks)) {
      InterpreterOptions options;
      options.order = WarpOrder(i % 3);
      options.blocks = BlockOrder::shuffled;
      options.seed = i + 1;
      check(problem(300, 260, {128, 128}, mask, headDim), tiles, {false, true},
            {}, options);
    }
  }

  void checkStatistics(const Tiles &tiles, int64_t headDim = 32) {
    Problem p = problem(150, 140, {128, 128}, {MaskKind::causal}, headDim);
    p.dlse = true;
    check(p, tiles);
    p.lseLow = true;
    check(p, tiles);
    // Weights of keys that do not exist would be beyond all numbers.
    GradientCase truth(problem(150, 140, {128, 128}, {}, headDim));
    for (size_t i = 0; i < truth.q.size(); i += headDim)
      truth.q[i] = 2048;
    for (size_t i = 0; i < truth.k.size(); i += headDim)
      truth.k[i] = -1;
    truth.list({false, true}, {40, 40}, ++seed);
    BuiltGradient::check(truth, tiles);
  }

  /// A block that the lists of columns leave out, though those of rows have it,
  /// is missing from the gradients of its keys, and of its queries where dQ is
  /// summed on the same walk; all other rows are right.
  void checkMistakes(const Tiles &tiles, bool isDqOfColumns,
                     int64_t headDim = 32) {
    SCOPED_TRACE(tiles.str());
    GradientCase truth(problem(300, 280, {128, 128}, {}, headDim), seed);
    truth.list({true, true}, {0, 60}, ++seed);
    ListedBlocks::Block block = truth.lists->leaveOutOfTransposed();
    std::map<std::string, std::vector<float>> left = run(truth, tiles);
    auto compare = [&](const char *name, const std::vector<double> &exact,
                       double size, int64_t head, int64_t first, bool isLess) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(left.count(name));
      ArrayShape shape = shapeOfArray(name, truth.problem);
      int64_t begin = (head * shape.rows + first) * shape.columns,
              rows = std::min<int64_t>(128, shape.rows - first);
      std::vector<float> &values = left[name];
      MutableArrayRef<float> ofBlock(&values[begin], rows * shape.columns);
      ArrayRef<double> exactly(&exact[begin], rows * shape.columns);
      if (isLess) {
        EXPECT_GT(relativeError(ofBlock, exactly, /*size=*/0), 0.1);
        llvm::copy(exactly, ofBlock.begin());
      }
      EXPECT_LT(relativeError(values, exact, size), 6e-3);
    };
    int64_t group = truth.problem.heads / truth.problem.kvHeads;
    compare("dq", truth.dq, truth.sizes.dq, block.head, block.query,
            isDqOfColumns);
    compare("dk", truth.dk, truth.sizes.dk, block.head / group, block.key,
            true);
    compare("dv", truth.dv, truth.sizes.dv, block.head / group, block.key,
            true);
  }

  uint64_t seed = 1;
};

class FlashBackwardOfLists : public ListedGradients {
protected:
  FlashBackwardOfLists() : ListedGradients("flash_backward", "wgmma") {}

  const std::array<TilesOfDim, 5> choices = flashBackwardChoices();
};

class SplitBackwardOfLists : public ListedGradients {
protected:
  SplitBackwardOfLists() : ListedGradients("split_backward", "wgmma") {}

  const Tiles choices[4] = {SplitBackwardTiles{128, 64, 128, 64, 0, 2, 1},
                            SplitBackwardTiles{128, 64, 128, 64, 1, 2, 1},
                            SplitBackwardTiles{64, 128, 128, 128, 0, 3, 2},
                            SplitBackwardTiles{64, 64, 64, 64, 0, 4, 4}};
};

class SplitMmaSyncOfLists : public ListedGradients {
protected:
  SplitMmaSyncOfLists() : ListedGradients("split_backward", "mma_sync") {}

  const Tiles choices[3] = {splitMmaSyncTiles(1, 0), splitMmaSyncTiles(2, 1),
                            splitMmaSyncTiles(3, 0, 64)};
};

class SpillBackwardOfLists : public ListedGradients {
protected:
  SpillBackwardOfLists() : ListedGradients("spill_backward", "wgmma") {}

  const Tiles choices[2] = {SpillBackwardTiles{128, 128, 512, 1, 3, true},
                            SpillBackwardTiles{256, 64, 512, 3, 2, true}};
  /// Of a pattern with such tiles.
  static BlockSize sizeOf(const Tiles &tiles, int64_t more = 1) {
    return {128 * more, tiles.get("key_block")};
  }
};

} // namespace

TEST_F(FlashBackwardOfLists, Owners) {
  ATTN_LONG_TEST();
  for (const auto &[tiles, headDim] : choices)
    checkOwners(tiles, headDim);
}
TEST_F(FlashBackwardOfLists, Sizes) {
  ATTN_LONG_TEST();
  for (const auto &[tiles, headDim] : choices)
    checkSizes(tiles, {128, 128}, headDim);
}
TEST_F(FlashBackwardOfLists, Shares) {
  ATTN_LONG_TEST();
  for (const auto &[tiles, headDim] : choices)
    checkShares(tiles, headDim);
}
TEST_F(FlashBackwardOfLists, Orders) {
  ATTN_LONG_TEST();
  for (const auto &[tiles, headDim] : choices)
    checkOrders(tiles, headDim);
}
TEST_F(FlashBackwardOfLists, Statistics) {
  for (const auto &[tiles, headDim] : choices)
    checkStatistics(tiles, headDim);
}

TEST_F(FlashBackwardOfLists, Mistakes) {
  for (const auto &[tiles, headDim] : choices)
    checkMistakes(tiles, /*isDqOfColumns=*/true, headDim);
}

TEST_F(SplitBackwardOfLists, Owners) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkOwners(tiles);
}
TEST_F(SplitBackwardOfLists, Sizes) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkSizes(tiles, {128, 128});
}
TEST_F(SplitBackwardOfLists, Shares) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkShares(tiles);
}
TEST_F(SplitBackwardOfLists, Orders) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkOrders(tiles);
}
TEST_F(SplitBackwardOfLists, Statistics) {
  for (const Tiles &tiles : choices)
    checkStatistics(tiles);
}
TEST_F(SplitBackwardOfLists, Mistakes) {
  for (const Tiles &tiles : choices)
    checkMistakes(tiles, /*isDqOfColumns=*/false);
}

TEST_F(SplitMmaSyncOfLists, Owners) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkOwners(tiles);
}
TEST_F(SplitMmaSyncOfLists, Sizes) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkSizes(tiles, {64, 64});
}
TEST_F(SplitMmaSyncOfLists, Shares) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkShares(tiles);
}
TEST_F(SplitMmaSyncOfLists, Orders) {
  ATTN_LONG_TEST();
  for (const Tiles &tiles : choices)
    checkOrders(tiles);
}
TEST_F(SplitMmaSyncOfLists, Statistics) {
  for (const Tiles &tiles : choices)
    checkStatistics(tiles);
}
TEST_F(SplitMmaSyncOfLists, Mistakes) {
  for (const Tiles &tiles : choices)
    checkMistakes(tiles, /*isDqOfColumns=*/false);
}

TEST_F(SpillBackwardOfLists, Owners) {
  ATTN_LONG_TEST();
  for (bool ofBatch : {false, true})
    for (bool ofHeads : {false, true}) {
      Problem p = problem(140, 330, sizeOf(choices[0]), {}, 72);
      p.batch = 2;
      check(p, choices[0], {ofBatch, ofHeads});
    }
}
/// Last blocks have steps behind the end of queries, and of keys.
TEST_F(SpillBackwardOfLists, Sizes) {
  for (const Tiles &tiles : choices)
    for (int64_t more : {1, 2})
      for (auto [queries, keys] :
           {std::pair<int64_t, int64_t>{256, 256}, {180, 300}, {1, 70}})
        check(problem(queries, keys, sizeOf(tiles, more),
                      {more == 1 ? MaskKind::causal : MaskKind::none}),
              tiles);
}
TEST_F(SpillBackwardOfLists, Shares) {
  for (const Shares &shares : {Shares{0, 60}, {60, 0}, {4, 4}, {0, 0}})
    check(problem(270, 290, sizeOf(choices[0]), {MaskKind::window, 40, 7}),
          choices[0], {false, true}, shares);
}
TEST_F(SpillBackwardOfLists, Orders) {
  ATTN_LONG_TEST();
  for (auto [i, mask] : llvm::enumerate(kMasks)) {
    InterpreterOptions options;
    options.order = WarpOrder(i % 3);
    options.blocks = BlockOrder::shuffled;
    options.seed = i + 1;
    multiprocessors = i % 2 ? 4 : 1;
    check(problem(300, 500, sizeOf(choices[i % 2]), mask), choices[i % 2],
          {false, true}, {}, options);
  }
}
TEST_F(SpillBackwardOfLists, Statistics) { checkStatistics(choices[0]); }
