//===- Lists.cpp - Do kernels walk the blocks that lists name? ------------===//
//
// Random lists in any order, ragged ends, rows without blocks, lists that heads
// and batch entries share, and nonsense behind the counts.  Only blocks that
// are listed are loaded.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"

#include "attn/Schedule/Tensor.h"

using namespace mlir;
using namespace attn;

namespace {

class Lists : public BuiltKernel {
protected:
  /// Two heads that share keys, in two batch entries.
  static Problem problem(int64_t queries, int64_t keys, const BlockSize &size,
                         Mask mask = {}, DataType type = DataType::bf16) {
    Problem p = oneHead(queries, keys, 32, 16, mask, type);
    p.batch = 2;
    p.heads = 4;
    p.kvHeads = 2;
    p.pattern.emplace(size, /*density=*/0.5);
    return p;
  }

  void check(const Problem &problem, const Tiles &tiles,
             const ListedBlocks::Owners &owners = {},
             const ListedBlocks::Shares &shares = {},
             ArrayRef<InterpreterOptions> runs = InterpreterOptions()) {
    FlashCase flash(problem, tiles, seed);
    flash.list(owners, shares, ++seed);
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    SCOPED_TRACE(tiles.str() + "; queries " + std::to_string(problem.queries) +
                 ", keys " + std::to_string(problem.keys) + ", blocks " +
                 str(problem.pattern->size()) + ", " + str(problem.mask) +
                 ", seed " + std::to_string(seed));
    for (const InterpreterOptions &options : runs) {
      Outcome outcome = flash.run(kernel, options);
      ASSERT_EQ(outcome.error, "");
      bool isF8 = problem.dtype == DataType::f8e4m3;
      EXPECT_LT(outcome.relativeError, isF8 ? 6e-2 : limitOf(flash));
      EXPECT_LT(outcome.lseError, limitOfLse(problem));
      EXPECT_EQ(outcome.traffic.global, bytesOfLists(flash));
    }
  }

  /// What tiles load of Q and of the blocks that are listed, and store.
  static int64_t bytesOfLists(const FlashCase &flash) {
    const Problem &p = flash.problem;
    int64_t tile = flash.tiles.get("query"), key = flash.tiles.get("key");
    bool isWgmma = flash.tiles.has("persistent");
    int64_t sum = 0;
    for (int64_t batch = 0; batch < p.batch; ++batch)
      for (int64_t head = 0; head < p.heads; ++head)
        for (int64_t row = 0; row < p.queries; row += tile) {
          int64_t rows = std::min(tile, p.queries - row);
          int64_t keys = flash.lists->keysListed(batch, head, row);
          bool sees = keys > 0;
          if (isWgmma && !sees)
            keys = std::min(key, p.keys);
          if (isWgmma || sees)
            sum += rows * p.headDim * bytesOf(p.dtype);
          sum += keys * (p.headDim + p.headDimV) * bytesOf(p.dtype);
          sum += rows * (p.headDimV * bytesOf(resultType(p)) + 4);
        }
    return sum;
  }

  static Tiles wgmma(int64_t query, int64_t key, int64_t stages,
                     int64_t queryStages, bool pingPong = false,
                     bool overlap = true) {
    return {{"query", query},     {"key", key},
            {"stages", stages},   {"query_stages", queryStages},
            {"staging", 64},      {"ping_pong", pingPong},
            {"overlap", overlap}, {"persistent", 1}};
  }

  static inline const InterpreterOptions kOrders[] = {
      {WarpOrder::forward}, {WarpOrder::reverse}, {WarpOrder::shuffled}};

  uint64_t seed = 1;
};

} // namespace

TEST_F(Lists, OfEveryOwner) {
  for (bool ofBatch : {false, true})
    for (bool ofHeads : {false, true}) {
      Problem p = problem(200, 330, {64, 64});
      check(p, wgmma(64, 64, 2, 1), {ofBatch, ofHeads}, {}, kOrders);
      check(p, mmaSyncTiles(64, 64, 2, 4), {ofBatch, ofHeads}, {}, kOrders);
    }
}

/// Blocks of the pattern are those of the kernel, or several.
TEST_F(Lists, SizesOfBlocks) {
  ATTN_LONG_TEST();
  for (const BlockSize &size :
       {BlockSize{64, 64}, {128, 64}, {64, 128}, {128, 256}})
    for (auto [queries, keys] :
         {std::pair<int64_t, int64_t>{128, 256}, {130, 257}, {1, 70}})
      for (const Mask &mask : {Mask{}, Mask{MaskKind::causal}}) {
        Problem p = problem(queries, keys, size, mask);
        check(p, wgmma(64, 32, 2, 1));
        check(p, wgmma(64, 64, 3, 2));
        check(p, mmaSyncTiles(32, 64, 1, 2));
        check(p, mmaSyncTiles(64, 32, 3, 2));
      }
}

TEST_F(Lists, MasksAndOptions) {
  ATTN_LONG_TEST();
  for (const Mask &mask : kMasks)
    for (int64_t groups : {1, 2, 3})
      for (int option = 0; option < 4; ++option) {
        Problem p = problem(400, 330, {64 * groups, 64}, mask);
        p.batch = 1, p.heads = 2, p.kvHeads = 1;
        Tiles tiles = wgmma(64 * groups, 64, 2 + option % 2, 1 + option / 2,
                            /*pingPong=*/groups > 1 && option % 2 == 0,
                            /*overlap=*/option != 2);
        tiles.set("persistent", option != 3);
        check(p, tiles, {false, true}, {}, kOrders);
      }
}

/// Two tiles of a block at once.
TEST_F(Lists, TilesInPairs) {
  ATTN_LONG_TEST();
  for (const Mask &mask : {Mask{}, Mask{MaskKind::causal}})
    for (bool turns : {false, true}) {
      Problem p = problem(300, 460, {128, 64}, mask);
      p.headDim = p.headDimV = 64;
      for (bool overlaps : {false, true}) {
        Tiles tiles =
            wgmma(128, 64, 2 + turns + overlaps, 2 - turns, turns, overlaps);
        tiles.set("pairs", 2);
        check(p, tiles, {false, true}, {}, kOrders);
      }
      Tiles narrow = wgmma(128, 32, 4, 2, turns);
      narrow.set("pairs", 2);
      check(p, narrow, {false, true}, {}, kOrders);
    }
}

/// O leaves straight from registers, whatever its columns, and in f16 the
/// largest averages with it.
TEST_F(Lists, OutputOfRegisters) {
  ATTN_LONG_TEST();
  for (DataType type : {DataType::bf16, DataType::f16})
    for (int64_t dimV : {64, 72, 136})
      for (bool turns : {false, true}) {
        Problem p = problem(300, 460, {128, 64}, {}, type);
        p.headDimV = dimV;
        Tiles tiles = wgmma(128, 64, 2, 1 + turns, turns);
        tiles.set("staging", 0);
        check(p, tiles, {false, true}, {}, kOrders);
      }
  Problem p = problem(300, 460, {128, 64}, Mask{MaskKind::causal});
  Tiles tiles = wgmma(128, 64, 2, 2, /*pingPong=*/true);
  tiles.set("staging", 0);
  tiles.set("pairs", 2);
  check(p, tiles, {false, true}, {}, kOrders);
}

/// Nothing but full blocks, or partial ones, or nearly nothing.
TEST_F(Lists, OneList) {
  ATTN_LONG_TEST();
  for (const ListedBlocks::Shares &shares :
       {ListedBlocks::Shares{0, 60}, {60, 0}, {2, 2}, {0, 0}, {0, 100}})
    for (const Mask &mask : {Mask{}, Mask{MaskKind::window, 40, 7}}) {
      Problem p = problem(300, 300, {64, 64}, mask);
      check(p, wgmma(64, 64, 2, 2), {}, shares, kOrders);
      check(p, mmaSyncTiles(64, 64, 1, 4), {}, shares, kOrders);
      check(p, mmaSyncTiles(64, 64, 3, 4), {}, shares, kOrders);
    }
}

/// Roles beside the producer go through the lists too.
TEST_F(Lists, TypesWithHelpers) {
  Problem p = problem(200, 330, {128, 128}, {MaskKind::causal});
  p.dtype = DataType::f8e4m3;
  p.headDim = p.headDimV = 64;
  check(p, wgmma(128, 128, 2, 1), {}, {}, kOrders);
  p.dtype = DataType::f32;
  for (bool overlap : {false, true}) {
    Tiles tiles = wgmma(128, 64, 1, 1, /*pingPong=*/false, overlap);
    tiles.set("staging", 0);
    check(p, tiles, {}, {}, kOrders);
  }
}
