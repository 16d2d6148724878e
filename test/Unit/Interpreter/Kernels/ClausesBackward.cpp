//===- ClausesBackward.cpp - Do gradients go through clauses? -------------===//
//
// Short forms, random regions and sinks, in all kernels of gradients that take
// them, and with them lists of blocks; bytes are those of the same problem
// without clauses.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltGradient.h"
#include "Harness/RandomRegion.h"

using namespace mlir;
using namespace attn;

namespace {

class ClausesBackward : public BuiltGradient {
protected:
  ClausesBackward(const std::string &schedule, const std::string &family)
      : BuiltGradient(schedule, family) {}

  /// Two heads that share keys, in two batch entries.
  Problem problemOf(int64_t queries, int64_t keys, Mask mask, DataType type) {
    Problem p = problem(queries, keys, headDim, 48, mask, type);
    p.batch = 2;
    p.heads = 4;
    p.kvHeads = 2;
    return p;
  }

  void checkClauses(Problem p, const Tiles &tiles, const std::string &text,
                    const std::vector<std::string> &captures = {}) {
    ClauseCase clauses(context, p, text, captures, ++seed);
    p.clauses = clauses.flags();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    check(GradientCase(p, seed, &clauses), tiles);
  }

  void checkShortForms(const Tiles &tiles, DataType type = DataType::bf16) {
    for (const Mask &mask :
         {Mask{MaskKind::causal}, Mask{MaskKind::window, 40, 7}}) {
      Problem p = problemOf(150, 170, mask, type);
      checkClauses(p, tiles, "softcap(2.5)");
      p.lseLow = true;
      std::string ids = "tensor<2x170xi32>", slopes = "tensor<4xf32>";
      checkClauses(p, tiles,
                   "document(%x0 : " + ids + ") softcap(3.0) alibi(%x1 : " +
                       slopes + ") sinks(%x1 : " + slopes + ")",
                   {ids, slopes});
    }
  }

  /// With lists of blocks of this size or twice as large, random ones of random
  /// owners.
  void checkListed(Problem p, int64_t size, const Tiles &tiles,
                   const std::string &text,
                   const std::vector<std::string> &captures = {}) {
    ClauseCase clauses(context, p, text, captures, ++seed);
    Draws draw(seed);
    p.clauses = clauses.flags();
    p.pattern.emplace(BlockSize{size * draw(1, 2), size * draw(1, 2)},
                      /*density=*/0.5);
    GradientCase truth(p, seed, &clauses);
    truth.list({draw(0, 1) != 0, draw(0, 1) != 0}, {}, seed);
    SCOPED_TRACE("blocks " + str(p.pattern->size()) + ", seed " +
                 std::to_string(seed) + "\n" + text);
    check(truth, tiles);
  }

  void checkListedRandom(int count, int64_t most, int64_t size,
                         const Tiles &tiles) {
    for (int i = 0; i < count; ++i) {
      Draws draw(seed);
      Problem p = problemOf(draw(1, most), draw(1, most), kMasks[draw(0, 5)],
                            draw(0, 1) ? DataType::bf16 : DataType::f16);
      RandomRegion region(p, seed * 17 + 3);
      int64_t which = draw(1, 5);
      std::string text = region.captures() + (which != 1 ? region.sees() : "") +
                         (which != 2 ? region.score() : "");
      checkListed(p, size, tiles, text, region.types());
    }
  }

  /// Where scores are turned, what a region hides stays hidden.
  void checkNegativeScale(const Tiles &tiles) {
    Problem p = problemOf(70, 90, {}, DataType::bf16);
    std::string ids = "tensor<2x90xi32>";
    ClauseCase clauses(context, p, "document(%x0 : " + ids + ")", {ids},
                       ++seed);
    p.clauses = clauses.flags();
    GradientCase truth(p, seed, &clauses);
    truth.scale = -truth.scale;
    truth.consultOracle();
    check(truth, tiles);
  }

  /// Quick ones: regions that read heads and batch entries, and random ones.
  void checkLists(int64_t size, const Tiles &tiles) {
    std::string ids = "tensor<2x110xi32>", slopes = "tensor<4xf32>";
    Problem p = problemOf(90, 110, {}, DataType::bf16);
    checkListed(p, size, tiles,
                "document(%x0 : " + ids +
                    ") softcap(3.0) alibi(%x1 : " + slopes + ")",
                {ids, slopes});
    p.mask = {MaskKind::causal};
    checkListed(p, size, tiles, kSingularBehindTheEnd);
    checkListedRandom(/*count=*/1, /*most=*/110, size, tiles);
  }

  /// Scores and slopes of pairs that do not exist are no numbers.
  static constexpr const char *kSingularBehindTheEnd =
      R"(score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
           %left = arith.subi %nk, %j : index
           %above = arith.subi %nq, %i : index
           %least = arith.minsi %left, %above : index
           %whole = arith.index_cast %least : index to i32
           %real = arith.sitofp %whole : i32 to f32
           %root = math.sqrt %real : f32
           %share = arith.divf %z, %root : f32
           attn.yield %share : f32
         })";

  void checkRandom(int count, const Tiles &tiles) {
    for (int i = 0; i < count; ++i) {
      Draws draw(seed);
      Problem p = problemOf(draw(1, 200), draw(1, 200), kMasks[draw(0, 5)],
                            draw(0, 1) ? DataType::bf16 : DataType::f16);
      RandomRegion region(p, seed * 31 + 7);
      std::string text = region.captures() + (draw(0, 1) ? region.sees() : "") +
                         (draw(0, 2) ? region.score() : "");
      checkClauses(p, tiles, text, region.types());
    }
  }

  uint64_t seed = 1;
  int64_t headDim = 32;
};

class ClausesSplitBackward : public ClausesBackward {
protected:
  ClausesSplitBackward() : ClausesBackward("split_backward", "mma_sync") {}
  static Tiles tiles(int64_t stages = 2, int64_t separate = 0) {
    return {{"query", 32},      {"key_block", 32},     {"query_warps", 2},
            {"key", 32},        {"query_block", 32},   {"key_warps", 2},
            {"stages", stages}, {"separate", separate}};
  }
};

class ClausesSplitBackwardWgmma : public ClausesBackward {
protected:
  ClausesSplitBackwardWgmma() : ClausesBackward("split_backward", "wgmma") {}
  static Tiles tiles(int64_t separate = 0) {
    return {{"query", 64},          {"key_block", 64}, {"key", 64},
            {"query_block", 64},    {"stages", 2},     {"value_stages", 1},
            {"separate", separate}, {"persistent", 1}};
  }
};

class ClausesFlashBackward : public ClausesBackward {
protected:
  ClausesFlashBackward() : ClausesBackward("flash_backward", "wgmma") {}
  static Tiles tiles(int64_t key, int64_t beside, int64_t overlap,
                     int64_t queryBlock = 64) {
    return {{"query_block", queryBlock}, {"key", key},       {"stages", 2},
            {"overlap", overlap},        {"beside", beside}, {"ordered", 0},
            {"first_stores", 0},         {"short_first", 0}, {"persistent", 1}};
  }
};

} // namespace

TEST_F(ClausesSplitBackward, ShortForms) {
  checkShortForms(tiles());
  checkShortForms(tiles(/*stages=*/1, /*separate=*/1), DataType::f16);
}

TEST_F(ClausesSplitBackward, RandomRegions) { checkRandom(8, tiles()); }

TEST_F(ClausesSplitBackwardWgmma, ShortForms) {
  ATTN_LONG_TEST();
  checkShortForms(tiles());
  checkShortForms(tiles(/*separate=*/1), DataType::f16);
}

TEST_F(ClausesSplitBackwardWgmma, RandomRegions) { checkRandom(8, tiles()); }

TEST_F(ClausesFlashBackward, ShortForms) {
  ATTN_LONG_TEST();
  checkShortForms(tiles(/*key=*/64, /*beside=*/2, /*overlap=*/1));
  headDim = 80; // parts of dQ are columns
  checkShortForms(tiles(/*key=*/128, /*beside=*/0, /*overlap=*/0),
                  DataType::f16);
}

TEST_F(ClausesFlashBackward, Halves) {
  Tiles halves = tiles(/*key=*/128, /*beside=*/1, /*overlap=*/2,
                       /*queryBlock=*/128);
  checkNegativeScale(halves);
  std::string ids = "tensor<2x200xi32>";
  checkListed(problemOf(150, 200, {MaskKind::causal}, DataType::f16),
              /*size=*/128, halves, "document(%x0 : " + ids + ")", {ids});
}

TEST_F(ClausesFlashBackward, RandomRegions) {
  checkRandom(8, tiles(/*key=*/64, /*beside=*/2, /*overlap=*/1));
}

TEST_F(ClausesSplitBackward, Lists) { checkLists(/*size=*/32, tiles()); }

TEST_F(ClausesSplitBackward, RandomLists) {
  ATTN_LONG_TEST();
  checkListedRandom(/*count=*/4, /*most=*/300, /*size=*/64, tiles());
  checkListedRandom(/*count=*/2, /*most=*/200, /*size=*/32,
                    tiles(/*stages=*/1, /*separate=*/1));
}

TEST_F(ClausesSplitBackwardWgmma, Lists) { checkLists(/*size=*/64, tiles()); }

TEST_F(ClausesSplitBackwardWgmma, RandomLists) {
  ATTN_LONG_TEST();
  checkListedRandom(/*count=*/4, /*most=*/300, /*size=*/64, tiles());
  checkListedRandom(/*count=*/2, /*most=*/300, /*size=*/128,
                    tiles(/*separate=*/1));
}

TEST_F(ClausesFlashBackward, Lists) {
  checkLists(/*size=*/64, tiles(/*key=*/64, /*beside=*/2, /*overlap=*/1));
}

TEST_F(ClausesFlashBackward, RandomLists) {
  ATTN_LONG_TEST();
  checkListedRandom(/*count=*/4, /*most=*/300, /*size=*/64,
                    tiles(/*key=*/64, /*beside=*/2, /*overlap=*/1));
  headDim = 80; // parts of dQ are columns
  checkListedRandom(/*count=*/2, /*most=*/300, /*size=*/128,
                    tiles(/*key=*/128, /*beside=*/0, /*overlap=*/0));
}

TEST_F(ClausesSplitBackward, NegativeScale) { checkNegativeScale(tiles()); }

TEST_F(ClausesSplitBackwardWgmma, NegativeScale) {
  checkNegativeScale(tiles());
}

TEST_F(ClausesFlashBackward, NegativeScale) {
  checkNegativeScale(tiles(/*key=*/64, /*beside=*/2, /*overlap=*/1));
}
