//===- RaggedCache.cpp - Is each of many sequences on a cache right? ------===//
//
// Random queries of sequences one behind the other, on keys of which the device
// says how many each uses, in order and in pages: prefills of several tiles
// beside decoding steps of one query, sequences without queries and without
// keys, under every mask, on both families.  Tiles have rows of one head or of
// several, and walks are whole or in parts.  Rows behind the used ones are NaN,
// and table entries behind the used pages are no pages.  O and LSE are compared
// with the oracle of each sequence, and bytes that moved with those that the IR
// counts and the schedule promises.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelDraws.h"
#include "Harness/KernelTest.h"
#include "Harness/RaggedCase.h"

#include "attn/Schedule/Arithmetic.h"

#include "../../Share.h"

using namespace mlir;
using namespace attn;

namespace {

class RaggedCaches : public ::testing::Test {
protected:
  RaggedCaches() { loadDialects(context); }

  /// Mostly one query, or none, or up to so many; all keys, some or none.
  std::vector<Lengths> drawSequences(int64_t mostQueries, int64_t room) {
    std::vector<Lengths> all;
    for (int64_t n = 0, count = draw(1, 6); n < count; ++n) {
      int64_t kind = draw(0, 5);
      int64_t queries = kind < 3 ? 1 : kind == 3 ? 0 : draw(1, mostQueries);
      int64_t keys = draw(0, 4) ? draw(0, room) : draw(0, 1) * room;
      all.push_back({queries, keys});
    }
    return all;
  }

  Problem drawProblem(int64_t mostQueries, int64_t columns, bool isPaged,
                      DataType type) {
    Mask mask = drawRaggedMask(draw);
    if (mask.kind == MaskKind::causal)
      mask = {MaskKind::causalBottomRight};
    Problem p = oneHead(0, 0, columns * draw(1, 80 / columns),
                        columns * draw(1, 80 / columns), mask, type);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.lse = draw(0, 2) != 0;
    p.alignment = alignmentOfRows(columns, type);
    p.place.usedKeysBits = draw(0, 1) ? 32 : 64;
    p.keys = draw(0, 3) ? draw(1, 400) : draw(1, 40);
    if (isPaged) {
      constexpr int64_t usual[] = {8, 16, 64, 128, 256};
      p.place.pageRows = draw(0, 2) ? usual[draw(0, 4)] : 8 * draw(1, 12);
      p.keys = roundUp(p.keys, p.place.pageRows);
    }
    Problem all = raggedProblem(p, drawSequences(mostQueries, p.keys));
    all.ragged->isWide = draw(0, 1);
    return all;
  }

  void check(const Problem &problem, const Tiles &tiles) {
    InterpreterOptions options = drawOptions(draw);
    RaggedCase ragged(problem, tiles, uint64_t(draw(0, 1 << 20)));
    SCOPED_TRACE(textOf(problem, tiles) + "; " + str(problem.place) +
                 ", room for " + std::to_string(problem.keys));
    ragged.check(context, options, draw(1, 4));
  }

  /// A size of blocks that pages of powers of two divide, or the reverse.
  int64_t drawKey(const Problem &problem) {
    bool isPowerOfTwo =
        (problem.place.pageRows & (problem.place.pageRows - 1)) == 0;
    return problem.place.isPaged() && isPowerOfTwo ? 16 << draw(0, 3)
                                                   : 16 * draw(1, 8);
  }
  /// As many as fit a block.
  int64_t drawStages(int64_t key) { return key > 96 ? 2 : draw(2, 3); }
  Tiles drawPipeline(const Problem &problem) {
    int64_t query = 64 * draw(1, 2), persistent = draw(0, 3) != 0;
    int64_t key = drawKey(problem);
    Tiles tiles = {{"query", query},
                   {"key", key},
                   {"stages", drawStages(key)},
                   {"query_stages", persistent ? draw(1, 2) : 1},
                   {"staging", 64},
                   {"ping_pong", query > 64 ? draw(0, 1) : 0},
                   {"overlap", draw(0, 1)},
                   {"persistent", persistent}};
    bool isNarrow = std::max(problem.headDim, problem.headDimV) <= 64;
    if (query == 128 && persistent && problem.mask.hidesBefore() && key <= 64 &&
        isNarrow)
      tiles.set("pairs", 2);
    return tiles;
  }
  /// With parts, or with rows of several heads, or with both.
  Tiles drawShared(Problem &problem, bool hasParts) {
    int64_t query = 64 * draw(1, hasParts ? 2 : 3), packed = 1;
    int64_t key = drawKey(problem);
    if (query > 128) // in registers
      key = std::min<int64_t>(key, 64);
    Tiles tiles = {{"query", query}, {"key", key}, {"stages", drawStages(key)}};
    if (!hasParts || draw(0, 1)) {
      packed = int64_t(1) << draw(1, query == 128 ? 3 : 2);
      tiles.set("packed", packed);
      problem.heads = problem.kvHeads * packed * draw(1, 2);
    }
    if (hasParts)
      tiles.set("parts", draw(2, 6));
    tiles.set("overlap", draw(0, 1));
    tiles.set("persistent", packed > 1 || draw(0, 1) ? 1 : 0);
    return tiles;
  }
  void checkShared(int64_t mostQueries, bool isPaged, bool hasParts) {
    Problem p = drawProblem(mostQueries, 8, isPaged, draw16Bit(draw));
    Tiles tiles = drawShared(p, hasParts);
    check(p, tiles);
  }

  MLIRContext context;
  Draws draw{29};
};

} // namespace

TEST_F(RaggedCaches, InOrderOnMmaSync) {
  for (int i = 0; i < 20; ++i) {
    Tiles tiles = {{"query", 32 * draw(1, 2)},
                   {"key", 16 * draw(1, 4)},
                   {"stages", draw(1, 3)},
                   {"warps", 2}};
    if (draw(0, 1))
      tiles.set("parts", draw(2, 5));
    check(drawProblem(100, draw(0, 1) ? 8 : 1, /*isPaged=*/false,
                      draw16Bit(draw)),
          tiles);
  }
}

TEST_F(RaggedCaches, OnWgmma) {
  for (int i = 0; i < 16; ++i) {
    Problem p = drawProblem(200, 8, /*isPaged=*/i % 2, draw16Bit(draw));
    check(p, drawPipeline(p));
  }
}

TEST_F(RaggedCaches, WithRowsOfSeveralHeads) {
  for (int i = 0; i < 10; ++i)
    checkShared(100, /*isPaged=*/i % 2, /*hasParts=*/false);
}

TEST_F(RaggedCaches, InParts) {
  for (int i = 0; i < 10; ++i)
    checkShared(80, /*isPaged=*/i % 2, /*hasParts=*/true);
}

/// Keys and values of eight bits, which are widened on their way.
TEST_F(RaggedCaches, OfNarrowKeys) {
  for (int i = 0; i < 8; ++i) {
    Problem p =
        withKvType(drawProblem(100, 16, /*isPaged=*/i % 2, draw16Bit(draw)),
                   DataType::f8e4m3);
    Tiles tiles = drawShared(p, /*hasParts=*/i % 4 > 1);
    tiles.set("key", std::min<int64_t>(tiles.get("key"), 64));
    check(p, tiles);
  }
}

/// Keys that lie one behind the other too.
TEST_F(RaggedCaches, SharedTilesOfSequences) {
  for (int i = 0; i < 8; ++i) {
    Problem p = oneHead(0, 0, 8 * draw(1, 10), 8 * draw(1, 10),
                        drawRaggedMask(draw), draw16Bit(draw));
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads;
    p = raggedProblem(
        p, drawLengths(draw, 5, 120, p.mask.kind == MaskKind::causal));
    Tiles tiles = drawShared(p, /*hasParts=*/i % 2);
    check(p, tiles);
  }
}

/// The mixture of a server: prefills behind a cache, and decoding steps.
TEST_F(RaggedCaches, OfAServer) {
  Problem p = oneHead(0, 0, 64, 64, {MaskKind::causalBottomRight});
  p.heads = 8;
  p.kvHeads = 2;
  p.place = {/*usedKeysBits=*/32, /*pageRows=*/16};
  p.keys = 512;
  std::vector<Lengths> lengths = {{70, 300}, {64, 64}, {5, 500}};
  for (int64_t n = 0; n < 20; ++n)
    lengths.push_back({1, 17 * n + 1});
  lengths.push_back({1, 0});
  check(raggedProblem(p, lengths), {{"query", 64},
                                    {"key", 64},
                                    {"stages", 3},
                                    {"packed", 4},
                                    {"overlap", 1},
                                    {"persistent", 1}});
}

TEST_F(RaggedCaches, OfMoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 40; ++i) {
    Problem p = drawProblem(200, 8, /*isPaged=*/i % 2, draw16Bit(draw));
    check(p, drawPipeline(p));
    checkShared(150, /*isPaged=*/i % 2, /*hasParts=*/i % 4 > 1);
  }
}
