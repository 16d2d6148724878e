//===- SmallCacheLists.cpp - Do wide rows walk what lists name? -----------===//
//
// What Lists.cpp asks of flash, of the schedules for rows that one block does
// not keep; and their bytes are those of the plan.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/BuiltRounds.h"

using namespace mlir;
using namespace attn;

namespace {

Problem problem(int64_t queries, int64_t keys, int64_t d, int64_t e,
                const BlockSize &size, Mask mask = {},
                DataType type = DataType::bf16) {
  Problem p = oneHead(queries, keys, d, e, mask, type);
  p.heads = 2;
  p.pattern.emplace(size, /*density=*/0.5);
  return p;
}

class SmallCacheLists : public BuiltKernel {
protected:
  void check(const Problem &problem, const char *schedule, const Tiles &tiles,
             const ListedBlocks::Owners &owners = {},
             const ListedBlocks::Shares &shares = {},
             ArrayRef<InterpreterOptions> runs = InterpreterOptions()) {
    FlashCase flash(problem, tiles, seed);
    flash.multiprocessors = multiprocessors;
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
      EXPECT_LT(outcome.relativeError, limitOf(flash));
      EXPECT_LT(outcome.largestError, limitOfLargest(problem));
      EXPECT_LT(outcome.lseError, limitOfLse(problem));
      if (!flash.lists->areOfBatch())
        expectPromised(flash, kernel, schedule, outcome.traffic);
    }
  }

  static void expectPromised(const FlashCase &flash, tile::KernelOp kernel,
                             const char *schedule, const tile::Traffic &moved) {
    FailureOr<tile::Traffic> counted = flash.count(kernel, flash.grid());
    ASSERT_TRUE(succeeded(counted));
    Bytes promised = flash.promised(schedule).front();
    EXPECT_EQ(moved.global, promised.l2);
    EXPECT_EQ(moved.smem, promised.smem);
    EXPECT_EQ(moved.global, counted->global);
    EXPECT_EQ(moved.smem, counted->smem);
  }

  static Tiles columnSplit(int64_t group, int64_t cluster = 1,
                           int64_t slots = 6, int64_t resident = 1) {
    return {{"query", 128},       {"key", 128},     {"group", group},
            {"cluster", cluster}, {"slots", slots}, {"resident", resident}};
  }

  uint64_t seed = 1;
  int64_t multiprocessors = 4;
};

/// In two parts of f16, in f32.
class ScoreSpillLists : public BuiltRounds {
protected:
  ScoreSpillLists() : BuiltRounds("score_spill", "score_spill_wgmma") {}

  void check(const Problem &problem, const Tiles &tiles,
             const ListedBlocks::Owners &owners = {},
             const ListedBlocks::Shares &shares = {},
             int64_t multiprocessors = 4,
             ArrayRef<InterpreterOptions> runs = InterpreterOptions()) {
    FlashCase flash(problem, tiles, seed);
    flash.multiprocessors = multiprocessors;
    flash.list(owners, shares, ++seed);
    SCOPED_TRACE("blocks " + str(problem.pattern->size()) + ", seed " +
                 std::to_string(seed));
    for (const InterpreterOptions &options : runs)
      BuiltRounds::check(flash, options);
  }

  static Problem problem(int64_t queries, int64_t keys, int64_t d, int64_t e,
                         const BlockSize &size, Mask mask = {}) {
    return ::problem(queries, keys, d, e, size, mask, DataType::f32);
  }
  static Tiles tiles(int64_t column = 64, int64_t strip = 256,
                     int64_t heads = 2) {
    return {{"query", 128},   {"key_block", 128}, {"column", column},
            {"strip", strip}, {"heads", heads},   {"parts", 2},
            {"stages", 6},    {"merged", 1},      {"persistent", 1}};
  }

  uint64_t seed = 1;
};

const InterpreterOptions kWarpOrders[] = {
    {WarpOrder::forward}, {WarpOrder::reverse}, {WarpOrder::shuffled}};

} // namespace

//===----------------------------------------------------------------------===//
// column_split
//===----------------------------------------------------------------------===//

/// Lists of odd lengths, and of none, in groups of two and of three.
TEST_F(SmallCacheLists, ColumnSplit) {
  for (bool ofHeads : {false, true}) {
    Problem p = problem(200, 700, 72, 128, {128, 128});
    check(p, "column_split", columnSplit(2), {true, ofHeads}, {}, kWarpOrders);
    p.headDimV = 192;
    check(p, "column_split", columnSplit(3, 1, 4, 2), {true, ofHeads});
  }
}

TEST_F(SmallCacheLists, ColumnSplitInBatches) {
  Problem p = problem(130, 300, 64, 72, {128, 128});
  p.batch = 2;
  for (bool ofBatch : {false, true})
    check(p, "column_split", columnSplit(2), {ofBatch, true}, {}, kWarpOrders);
}

/// Blocks of the pattern are those of the kernel, or several; clusters have
/// neighbouring tiles of one row of blocks.
TEST_F(SmallCacheLists, ColumnSplitSizes) {
  ATTN_LONG_TEST();
  for (const BlockSize &size : {BlockSize{128, 256}, {256, 128}, {256, 384}})
    for (const Mask &mask :
         {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::window, 150, 30}}) {
      // The last block of 256 keys or more has tiles behind the end.
      Problem p = problem(400, 600, 64, 128, size, mask);
      check(p, "column_split", columnSplit(2));
      if (size.queries == 256)
        check(p, "column_split", columnSplit(2, 2));
    }
}

/// Nothing but full blocks, or partial ones, or nearly nothing.
TEST_F(SmallCacheLists, ColumnSplitOneList) {
  for (const ListedBlocks::Shares &shares :
       {ListedBlocks::Shares{0, 60}, {60, 0}, {2, 2}, {0, 0}, {0, 100}})
    check(problem(200, 520, 64, 128, {128, 128}, {MaskKind::causal}),
          "column_split", columnSplit(2), {}, shares);
}

//===----------------------------------------------------------------------===//
// score_spill
//===----------------------------------------------------------------------===//

TEST_F(ScoreSpillLists, OfEveryOwner) {
  for (bool ofBatch : {false, true})
    for (bool ofHeads : {false, true}) {
      Problem p = problem(140, 300, 40, 72, {128, 128});
      p.batch = 2, p.heads = 4, p.kvHeads = 2;
      check(p, tiles(), {ofBatch, ofHeads});
    }
}

/// Of long lists a block draws several entries at once, of short ones one.
TEST_F(ScoreSpillLists, EntriesAtOnce) {
  for (int64_t multiprocessors : {1, 3, 40}) {
    Problem p = problem(200, 1300, 24, 40, {128, 128}, {MaskKind::causal});
    check(p, tiles(), {false, true}, {}, multiprocessors,
          kWarpOrders[multiprocessors % 3]);
  }
}

/// Blocks of the pattern are those of the kernel, or have more queries; strips
/// of queries cut them.
TEST_F(ScoreSpillLists, SizesOfBlocks) {
  ATTN_LONG_TEST();
  for (const BlockSize &size : {BlockSize{128, 128}, {256, 128}, {384, 128}})
    for (const Mask &mask :
         {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::window, 150, 30}})
      check(problem(400, 600, 40, 64, size, mask), tiles(64, 128),
            {false, true});
}

/// Nothing but full blocks, or partial ones, or nearly nothing.
TEST_F(ScoreSpillLists, OneList) {
  for (const ListedBlocks::Shares &shares :
       {ListedBlocks::Shares{0, 60}, {60, 0}, {2, 2}, {0, 0}, {0, 100}})
    check(problem(200, 400, 64, 130, {128, 128}, {MaskKind::causal}),
          tiles(128), {false, true}, shares);
}
