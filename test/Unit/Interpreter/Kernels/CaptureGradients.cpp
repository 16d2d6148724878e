//===- CaptureGradients.cpp - Do captures and sinks get theirs? -----------===//
//
// Bias, slopes, tables, functions and sinks, in all kernels that have gradients
// of them: those are compared with the oracle, and so are dQ, dK and dV beside
// them; bytes with what is counted in the IR and with what plans promise.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltGradient.h"

#include "attn/Schedule/Registry.h"

using namespace mlir;
using namespace attn;

namespace {

/// Clauses, the types that they capture, and of which they get gradients.
struct Asked {
  std::string text;
  std::vector<std::string> captures;
  std::vector<int64_t> gradients;
};

class CaptureGradients : public BuiltGradient {
protected:
  CaptureGradients(const std::string &schedule, const std::string &family)
      : BuiltGradient(schedule, family) {}

  /// Two heads that share keys, in two batch entries.
  Problem problemOf(int64_t queries, int64_t keys, Mask mask = {},
                    DataType type = DataType::bf16) {
    Problem p = problem(queries, keys, headDim, 48, mask, type);
    p.batch = 2;
    p.heads = 4;
    p.kvHeads = 2;
    return p;
  }

  void checkAsked(Problem p, const Tiles &tiles, const Asked &asked,
                  std::optional<BlockSize> blocks = std::nullopt) {
    ClauseCase clauses(context, p, asked.text, asked.captures, ++seed,
                       /*most=*/3, asked.gradients);
    p.clauses = clauses.flags();
    if (blocks)
      p.pattern.emplace(*blocks, /*density=*/0.5);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + asked.text);
    GradientCase truth(p, seed, &clauses);
    if (blocks)
      truth.list({true, true}, {}, seed);
    check(truth, tiles);
  }

  static std::string number(int64_t value) { return std::to_string(value); }
  /// Of every pair, of every pair of a head, of every pair of all heads.
  static std::vector<Asked> biases(const Problem &p) {
    std::string rows = number(p.queries) + "x" + number(p.keys) + "x";
    std::vector<Asked> all;
    for (const std::string &type :
         {"tensor<2x4x" + rows + "f32>", "tensor<4x" + rows + "bf16>",
          "tensor<1x1x" + rows + "f32>"})
      all.push_back({"bias(%x0 : " + type + ")", {type}, {0}});
    return all;
  }

  /// Read by distance, behind a function of scores.
  static Asked table(const Problem &p) {
    std::string type = "tensor<" + number(p.queries + p.keys) + "x4xf32>";
    return {readByDistance("%x0", type), {type}, {0}};
  }

  /// One of each kind: factors of a head that are read twice, of a query, of a
  /// key, and one that nobody asks for.
  static Asked factors(const Problem &p) {
    std::string heads = "tensor<4xf32>",
                queries = "tensor<" + number(p.queries) + "xf32>",
                keys = "tensor<2x" + number(p.keys) + "xf32>";
    return {"captures(%x0, %x1, %x2, %x3 : " + heads + ", " + queries + ", " +
                keys + ", " + heads +
                R"()
        score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x0, %x1, %x2, %x3) {
          %zero = arith.constant 0 : index
          %a = attn.read %x0[%h] : )" +
                heads +
                R"(
          %first = attn.read %x0[%zero] : )" +
                heads +
                R"(
          %q = attn.read %x1[%i] : )" +
                queries +
                R"(
          %k = attn.read %x2[%b, %j] : )" +
                keys +
                R"(
          %o = attn.read %x3[%h] : )" +
                heads +
                R"(
          %za = arith.mulf %z, %a : f32
          %zf = arith.addf %za, %first : f32
          %qk = arith.mulf %q, %k : f32
          %s = arith.addf %zf, %qk : f32
          %t = arith.addf %s, %o : f32
          attn.yield %t : f32
        })",
            {heads, queries, keys, heads},
            {2, 0, 1}};
  }

  static Asked slopes(const std::string &more = "") {
    std::string type = "tensor<4xf32>";
    return {"softcap(3.0) alibi(%x0 : " + type + ")" + more, {type}, {0}};
  }
  static Asked sinks() {
    std::string type = "tensor<4xf32>";
    return {"sinks(%x0 : " + type + ")", {type}, {0}};
  }
  /// Sinks and slopes, the former first.
  static Asked both() {
    std::string type = "tensor<4xf32>", wide = "tensor<2x4xf32>";
    return {"alibi(%x0 : " + wide + ") sinks(%x1 : " + type + ")",
            {wide, type},
            {1, 0}};
  }

  void checkPairs(const Tiles &tiles) {
    Problem causal = problemOf(90, 110, {MaskKind::causal});
    for (const Asked &asked : biases(causal))
      checkAsked(causal, tiles, asked);
    Problem window = problemOf(70, 50, {MaskKind::window, 40, 7});
    window.lseLow = window.dlse = true;
    checkAsked(window, tiles, table(window));
    Problem open = problemOf(33, 77, {}, DataType::f16);
    checkAsked(open, tiles, biases(open).front());
  }

  void checkHeads(const Tiles &tiles) {
    Problem causal = problemOf(150, 130, {MaskKind::causalBottomRight});
    causal.dlse = true;
    checkAsked(causal, tiles, slopes());
    checkAsked(causal, tiles, both());
    Problem open = problemOf(60, 90);
    checkAsked(open, tiles, factors(open));
    Problem few = problemOf(3, 2, {}, DataType::f16);
    checkAsked(few, tiles, both());
  }

  void checkSinks(const Tiles &tiles) {
    Problem causal = problemOf(150, 70, {MaskKind::causalBottomRight});
    checkAsked(causal, tiles, sinks()); // queries that see nothing
    causal.lseLow = causal.dlse = true;
    checkAsked(causal, tiles, sinks());
  }

  void checkListed(const Tiles &tiles, BlockSize size, const Asked &asked) {
    checkAsked(problemOf(150, 170), tiles, asked, size);
  }

  uint64_t seed = 1;
  int64_t headDim = 32;
};

class CapturesSplitBackward : public CaptureGradients {
protected:
  CapturesSplitBackward() : CaptureGradients("split_backward", "mma_sync") {}
  static Tiles tiles(int64_t stages = 2, int64_t separate = 0) {
    return {{"query", 32},      {"key_block", 32},     {"query_warps", 2},
            {"key", 32},        {"query_block", 32},   {"key_warps", 2},
            {"stages", stages}, {"separate", separate}};
  }
  /// Two strips of 16 rows in a warp.
  static Tiles wide() {
    return {{"query", 64}, {"key_block", 16},   {"query_warps", 2},
            {"key", 32},   {"query_block", 32}, {"key_warps", 2},
            {"stages", 1}, {"separate", 1}};
  }
};

class CapturesSplitBackwardWgmma : public CaptureGradients {
protected:
  CapturesSplitBackwardWgmma() : CaptureGradients("split_backward", "wgmma") {}
  static Tiles tiles(int64_t query = 64) {
    return {{"query", query},    {"key_block", 64}, {"key", 64},
            {"query_block", 64}, {"stages", 2},     {"value_stages", 1},
            {"separate", 0},     {"persistent", 1}};
  }
};

class CapturesFlashBackward : public CaptureGradients {
protected:
  CapturesFlashBackward() : CaptureGradients("flash_backward", "wgmma") {}
  static Tiles tiles(int64_t key, int64_t beside) {
    return {{"query_block", 64}, {"key", key},       {"stages", 2},
            {"overlap", 1},      {"beside", beside}, {"ordered", 0},
            {"first_stores", 0}, {"short_first", 0}, {"persistent", 1}};
  }
};

} // namespace

TEST_F(CapturesSplitBackward, Pairs) {
  checkPairs(tiles());
  checkPairs(wide());
}
TEST_F(CapturesSplitBackward, Heads) {
  checkHeads(tiles());
  checkHeads(wide());
}
TEST_F(CapturesSplitBackward, Sinks) {
  checkSinks(tiles());
  checkSinks(wide());
}
TEST_F(CapturesSplitBackward, Lists) {
  checkListed(tiles(), {32, 64}, slopes());
  checkListed(tiles(), {64, 32}, biases(problemOf(150, 170)).front());
}

TEST_F(CapturesSplitBackwardWgmma, Pairs) { checkPairs(tiles()); }
TEST_F(CapturesSplitBackwardWgmma, Heads) { checkHeads(tiles(128)); }
TEST_F(CapturesSplitBackwardWgmma, Sinks) { checkSinks(tiles()); }
TEST_F(CapturesSplitBackwardWgmma, Lists) {
  checkListed(tiles(), {64, 128}, both());
  checkListed(tiles(), {64, 64}, biases(problemOf(150, 170)).front());
}

TEST_F(CapturesFlashBackward, Pairs) {
  checkPairs(tiles(/*key=*/64, /*beside=*/2));
  headDim = 80; // parts of dQ are columns
  checkPairs(tiles(/*key=*/128, /*beside=*/0));
}
TEST_F(CapturesFlashBackward, Sinks) {
  checkSinks(tiles(/*key=*/64, /*beside=*/2));
  checkSinks(tiles(/*key=*/64, /*beside=*/1));
}
TEST_F(CapturesFlashBackward, Lists) {
  checkListed(tiles(/*key=*/64, /*beside=*/2), {64, 64},
              biases(problemOf(150, 170)).front());
}

/// The plan says who has sums of heads, and flash_backward has not.
TEST(CaptureGradientPlans, WhoSumsOverHeads) {
  EXPECT_TRUE(sumsOfHeads("split_backward_wgmma"));
  EXPECT_TRUE(sumsOfHeads("split_backward_mma_sync"));
  EXPECT_FALSE(sumsOfHeads("flash_backward_wgmma"));
}
