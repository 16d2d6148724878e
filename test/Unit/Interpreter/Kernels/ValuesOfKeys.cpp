//===- ValuesOfKeys.cpp - Are tiles of keys used for both products? -------===//
//
// `column_split` within a block: two warpgroups share rows, and values are the
// first columns of the keys that lie in shared memory.  Random shapes, masks
// and types, with and without the LSE, by whole walks and in parts; some, all
// or none of the keys of each batch entry, in order or in pages, with NaN
// behind.  Bytes that moved are those counted in the IR, and those that the
// schedule promises.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"

#include "../../Seed.h"
#include "../../Share.h"

using namespace mlir;
using namespace attn;

namespace {

class ValuesOfKeys : public BuiltKernel {
protected:
  const Seed drawn;
  Draws draw{drawn};
  uint64_t seed = drawn;

  static Tiles tilesOf(int64_t stages, int64_t parts = 1, int64_t late = 1,
                       bool prefetches = true) {
    Tiles tiles = {
        {"query", 64}, {"key", 128}, {"warpgroups", 2}, {"stages", stages}};
    if (parts > 1)
      tiles.set("parts", parts);
    tiles.set("late", late);
    tiles.set("prefetch", prefetches);
    return tiles;
  }
  /// Wide keys fill shared memory with one strip.
  Tiles drawTiles(const Problem &p) {
    int64_t parts = draw(0, 1) ? draw(2, 5) : 1;
    return tilesOf(draw(1, p.headDim > 320 ? 1 : 2), parts, draw(0, 2),
                   draw(0, 1) != 0);
  }

  Problem drawProblem() {
    Mask masks[] = {{},
                    {MaskKind::causal},
                    {MaskKind::causalBottomRight},
                    {MaskKind::window, draw(0, 200), draw(0, 50)},
                    {MaskKind::prefix, 0, 0, draw(0, 200)}};
    int64_t dimV = 128 * draw(1, 3);
    Problem p =
        oneHead(draw(0, 2) ? draw(1, 16) : draw(60, 200),
                draw(0, 3) ? draw(1, 600) : draw(1, 100), dimV + 8 * draw(0, 9),
                dimV, masks[draw(0, 4)], draw16Bit(draw));
    p.batch = draw(1, 3);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 2) != 0;
    p.valuesOfKeys = true;
    return p;
  }

  Problem drawPlaced() {
    Problem p = drawProblem();
    if (p.mask.kind == MaskKind::causal)
      p.mask.kind = MaskKind::causalBottomRight;
    p.place.usedKeysBits = draw(0, 1) ? 32 : 64;
    if (draw(0, 1)) {
      constexpr int64_t usual[] = {8, 16, 64, 128, 256};
      int64_t rows = draw(0, 2) ? usual[draw(0, 4)] : 8 * draw(1, 12);
      p.place.pageRows = rows;
      p.keys = (p.keys + rows - 1) / rows * rows;
    }
    return p;
  }

  void checkOne(const Problem &problem) {
    checkOne(problem, drawTiles(problem));
  }
  void checkOne(const Problem &problem, const Tiles &tiles) {
    FlashCase flash(problem, tiles, seed);
    flash.multiprocessors = draw(1, 5);
    std::string trace = "seed " + std::to_string(seed) + ", used";
    if (problem.place.any()) {
      flash.place(++seed);
      for (int64_t used : flash.placed->used)
        trace += " " + std::to_string(used);
    }
    SCOPED_TRACE(trace + ", " + str(problem.place));
    check(flash, drawOptions(draw));
  }

  /// Where lengths say what is used, a plan promises what there is at most.
  void checkPromised(const Problem &problem) {
    FlashCase flash(problem, drawTiles(problem));
    if (problem.place.any())
      flash.place(++seed, /*usesAll=*/true);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + str(problem.place));
    checkPromise(flash, "column_split");
  }
};

} // namespace

TEST_F(ValuesOfKeys, Problems) {
  for (int i = 0; i < 3; ++i) {
    checkOne(drawProblem());
    checkOne(drawPlaced());
  }
}

TEST_F(ValuesOfKeys, MoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 25; ++i) {
    checkOne(drawProblem());
    checkOne(drawPlaced());
  }
}

TEST_F(ValuesOfKeys, Promises) {
  for (int i = 0; i < 2; ++i) {
    checkPromised(drawProblem());
    checkPromised(drawPlaced());
  }
}

/// All query heads of a latent cache are rows of one head, in two tiles; keys
/// lie in pages of 64, and a strip may have keys for one warpgroup alone.
TEST_F(ValuesOfKeys, LatentVectors) {
  Problem p = oneHead(128, 320, 576, 512);
  p.batch = 2;
  p.lse = true;
  p.valuesOfKeys = true;
  p.place = {/*usedKeysBits=*/32, /*pageRows=*/64};
  for (int64_t parts : {1, 2})
    checkOne(p, tilesOf(1, parts));
}

/// Rows whose largest scores grow from strip to strip, so that references move
/// while sums of the other warpgroup are under way; or fall.
TEST_F(ValuesOfKeys, MaximaThatMove) {
  Problem p = oneHead(100, 700, 192, 128);
  p.valuesOfKeys = true;
  for (float growth : {0.5f, 4.0f, -4.0f}) {
    FlashCase flash(p, drawTiles(p));
    flash.growScores(growth, 40);
    SCOPED_TRACE(growth);
    check(flash, drawOptions(draw));
  }
}
