//===- Lengths.cpp - Do kernels use as many keys as the device says? ------===//
//
// Batch entries that use some, all or none of their keys, under every mask,
// whole walks and walks in parts.  What lies behind is NaN.  Bytes that moved
// are those that are counted in the IR, and those that tiles of the used keys
// have; and where all keys are used, those that the schedule promises.  The
// same of keys in pages, which lie in a pool in any order.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"

#include "attn/Schedule/KeyParts.h"

#include "../../Share.h"

#include <numeric>

using namespace mlir;
using namespace attn;

namespace {

class UsedKeys : public BuiltKernel {
protected:
  Draws draw{21};
  uint64_t seed = 1;

  Problem drawProblem(int64_t mostQueries, int64_t columns = 1) {
    Mask masks[] = {{},
                    {MaskKind::causalBottomRight},
                    {MaskKind::window, draw(0, 100), draw(0, 50)},
                    {MaskKind::prefix, 0, 0, draw(0, 200)},
                    {MaskKind::causal}};
    int64_t least = std::max<int64_t>(8 / columns, 1);
    Problem p =
        oneHead(draw(1, mostQueries), draw(0, 3) ? draw(1, 400) : draw(1, 40),
                columns * draw(least, 80 / columns),
                columns * draw(least, 80 / columns), masks[draw(0, 4)],
                draw(0, 1) ? DataType::bf16 : DataType::f16);
    if (p.mask.kind == MaskKind::causal)
      p.queries = p.keys;
    p.batch = draw(1, 4);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 2) != 0;
    p.place.usedKeysBits = draw(0, 1) ? 32 : 64;
    return p;
  }

  /// The same in pages, of any number of rows.
  Problem drawPaged(int64_t mostQueries, int64_t columns = 8) {
    Problem p = drawProblem(mostQueries, columns);
    constexpr int64_t usual[] = {8, 16, 64, 128, 256};
    int64_t rows = draw(0, 2) ? usual[draw(0, 4)] : 8 * draw(1, 12);
    p.place.pageRows = rows;
    p.keys = (p.keys + rows - 1) / rows * rows;
    if (p.mask.kind == MaskKind::causal)
      p.mask = {MaskKind::causalBottomRight};
    return p;
  }

  Tiles drawWarps() {
    int64_t warps = draw(1, 2);
    Tiles tiles = {{"query", 16 * warps},
                   {"key", 16 * draw(1, 4)},
                   {"stages", draw(1, 3)},
                   {"warps", warps}};
    if (draw(0, 1))
      tiles.set("parts", draw(2, 8));
    return tiles;
  }
  Tiles drawWarpgroups() {
    Tiles tiles = {{"query", 64 * draw(1, 2)},
                   {"key", 16 * draw(1, 8)},
                   {"stages", draw(2, 3)},
                   {"overlap", draw(0, 1)},
                   {"persistent", draw(0, 1)}};
    if (draw(0, 1)) {
      tiles.set("parts", draw(2, 8));
      return tiles;
    }
    tiles.set("query_stages", tiles.get("persistent") ? draw(1, 2) : 1);
    tiles.set("staging", 64);
    tiles.set("ping_pong", tiles.get("query") > 64 ? draw(0, 1) : 0);
    return tiles;
  }

  /// The same of eight bits, of which a step contracts 32 keys.
  static Problem inEightBits(Problem p) {
    p.dtype = DataType::f8e4m3;
    return p;
  }
  /// Keys and values of eight bits under queries of sixteen.
  static Problem withNarrowKeys(Problem p) {
    return withKvType(p, DataType::f8e4m3);
  }
  Tiles drawWarpgroupsOfEightBits() {
    Tiles tiles = drawWarpgroups();
    tiles.set("key", 32 * draw(1, 4));
    return tiles;
  }

  /// What tiles load of the used keys, and what they store.
  static int64_t bytesOf(const FlashCase &flash) {
    const Problem &p = flash.problem;
    bool isWgmma = flash.tiles.has("persistent");
    int64_t query = flash.tiles.get("query"), key = flash.tiles.get("key");
    int64_t parts = flash.tiles.get("parts", 1), sum = 0;
    // Boxes of keys come whole.
    int64_t page = p.place.pageRows, box = std::gcd(page, key);
    for (int64_t batch = 0; batch < p.batch; ++batch) {
      Problem entry = flash.placed->entry(batch);
      int64_t endOfKeys = !isWgmma ? entry.keys
                          : p.place.isPaged()
                              ? (entry.keys + box - 1) / box * box
                              : p.keys;
      for (int64_t row = 0; row < p.queries; row += query) {
        int64_t rows = std::min(query, p.queries - row);
        Span seen = visible(entry).seenBySome({row, row + rows}, entry.keys);
        Span blocks = {seen.begin / key, (seen.end + key - 1) / key};
        if (seen.isEmpty())
          blocks = {0, isWgmma ? 1 : 0};
        for (int64_t part = 0; part < parts; ++part) {
          Span own = stepsOfPart(blocks.size(), parts, part);
          own = {blocks.begin + own.begin, blocks.begin + own.end};
          if (own.isEmpty() && isWgmma)
            own = {0, 1};
          auto rowsUntil = [&](int64_t end) {
            return std::clamp<int64_t>(own.end * key, 0, end) -
                   std::clamp<int64_t>(own.begin * key, 0, end);
          };
          if (!own.isEmpty())
            sum += rows * p.headDim * attn::bytesOf(p.dtype) +
                   (rowsUntil(endOfKeys) * p.headDim +
                    rowsUntil(entry.keys) * p.headDimV) *
                       attn::bytesOf(kvTypeOf(p));
        }
        if (parts > 1)
          sum += rows * parts * (p.headDimV + 1) * 4;
        else
          sum += rows * (p.headDimV * 2 + (p.lse ? 4 : 0));
      }
    }
    return sum * p.heads;
  }

  /// Of the launch that makes parts whole.
  static int64_t bytesOfMerge(const FlashCase &flash) {
    const Problem &p = flash.problem;
    int64_t parts = flash.tiles.get("parts", 1);
    if (parts == 1)
      return 0;
    int64_t strips = (p.headDimV + kMergedColumns - 1) / kMergedColumns;
    int64_t ofRow = parts * (p.headDimV * 4 + strips * 4) + p.headDimV * 2 +
                    (p.lse ? 4 : 0);
    return p.batch * p.heads * p.queries * ofRow;
  }

  void checkPlaced(const Problem &problem, const Tiles &tiles) {
    FlashCase flash(problem, tiles, seed);
    flash.place(++seed);
    std::string trace = "seed " + std::to_string(seed) + ", used";
    for (int64_t used : flash.placed->used)
      trace += " " + std::to_string(used);
    SCOPED_TRACE(trace);
    check(flash, drawOptions(draw));
    OwningOpRef<ModuleOp> module = buildFlash(context, problem, tiles);
    Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
    EXPECT_EQ(outcome.traffic.global, bytesOf(flash) + bytesOfMerge(flash))
        << tiles.str() << ", " << str(problem.mask);
  }

  /// A plan promises what there is at most.
  void checkMost(const Problem &problem, const Tiles &tiles) {
    FlashCase flash(problem, tiles);
    flash.place(++seed, /*usesAll=*/true);
    checkPromise(flash, "flash");
  }
};

} // namespace

TEST_F(UsedKeys, OfWarps) {
  for (int i = 0; i < 20; ++i)
    checkPlaced(drawProblem(i % 3 ? 8 : 90), drawWarps());
}

TEST_F(UsedKeys, OfWarpgroups) {
  for (int i = 0; i < 16; ++i)
    checkPlaced(drawProblem(i % 3 ? 8 : 150, 8), drawWarpgroups());
}

TEST_F(UsedKeys, OfPages) {
  for (int i = 0; i < 16; ++i)
    checkPlaced(drawPaged(i % 3 ? 8 : 100), drawWarpgroups());
}

/// Values have a transpose of their own, in which what is behind is 0 too.
TEST_F(UsedKeys, OfEightBits) {
  for (int i = 0; i < 4; ++i) {
    checkPlaced(inEightBits(drawProblem(i % 3 ? 8 : 100, 16)),
                drawWarpgroupsOfEightBits());
    checkPlaced(inEightBits(drawPaged(i % 3 ? 8 : 100, 16)),
                drawWarpgroupsOfEightBits());
  }
}

/// What is widened on its way.
TEST_F(UsedKeys, OfNarrowKeys) {
  for (int i = 0; i < 6; ++i) {
    checkPlaced(withNarrowKeys(drawProblem(i % 3 ? 8 : 100, 16)),
                drawWarpgroups());
    checkPlaced(withNarrowKeys(drawPaged(i % 3 ? 8 : 100, 16)),
                drawWarpgroups());
  }
}

TEST_F(UsedKeys, OfMoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 60; ++i) {
    checkPlaced(inEightBits(drawPaged(i % 3 ? 8 : 150, 16)),
                drawWarpgroupsOfEightBits());
    checkPlaced(withNarrowKeys(drawPaged(i % 3 ? 8 : 150, 16)),
                drawWarpgroups());
    checkPlaced(drawPaged(i % 3 ? 8 : 150), drawWarpgroups());
    checkPlaced(drawProblem(i % 3 ? 8 : 90), drawWarps());
    checkPlaced(drawProblem(i % 3 ? 8 : 150, 8), drawWarpgroups());
  }
}

TEST_F(UsedKeys, AtMost) {
  for (int i = 0; i < 4; ++i) {
    checkMost(drawProblem(40), drawWarps());
    checkMost(drawProblem(40, 8), drawWarpgroups());
    Tiles ofPages = drawWarpgroups();
    ofPages.set("key",
                64); // which pages of powers of two divide, or the reverse
    checkMost(drawPaged(40), ofPages);
    checkMost(inEightBits(drawPaged(40, 16)), ofPages);
    checkMost(withNarrowKeys(drawPaged(40, 16)), ofPages);
  }
}

/// f32 on mma.sync, where rows behind the used ones are not copied.
TEST_F(UsedKeys, OfF32) {
  Problem p =
      oneHead(9, 200, 32, 24, {MaskKind::causalBottomRight}, DataType::f32);
  p.batch = 3;
  p.place.usedKeysBits = 32;
  FlashCase flash(p, {{"query", 16}, {"key", 32}, {"stages", 2}, {"warps", 1}});
  flash.place(7);
  check(flash);
}
