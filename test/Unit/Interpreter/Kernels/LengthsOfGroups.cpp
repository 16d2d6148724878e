//===- LengthsOfGroups.cpp - Do groups use the keys the device says? ------===//
//
// What Lengths.cpp asks of flash, of the blocks that share the rows of
// `column_split`: some, all or none of the keys of each batch entry, in order
// or in pages, with NaN behind, by whole walks and in parts.  Bytes that moved
// are those counted in the IR, and where all keys are used those that the
// schedule promises.
//
//===----------------------------------------------------------------------===//

#include "Harness/BuiltKernel.h"
#include "Harness/KernelDraws.h"

#include "../../Share.h"

using namespace mlir;
using namespace attn;

namespace {

class UsedKeysOfGroups : public BuiltKernel {
protected:
  Draws draw{22};
  uint64_t seed = 1;

  static Tiles tilesOf(int64_t group, int64_t slots, int64_t resident) {
    return {{"query", 128}, {"key", 128},     {"group", group},
            {"cluster", 1}, {"slots", slots}, {"resident", resident}};
  }

  Tiles drawTiles(const Problem &p) {
    int64_t group = p.headDimV > 128 ? draw(2, 3) : 2;
    int64_t panels = (p.headDim + 63) / 64;
    int64_t resident = draw(1, panels);
    bool follows = 2 * (panels - resident) > panels;
    Tiles tiles = tilesOf(group, draw(follows ? 4 : 3, 6), resident);
    if (draw(0, 1))
      tiles.set("parts", draw(2, 5));
    return tiles;
  }

  /// Blocks of a group have equal parts of the columns: two, or three.
  Problem drawProblem() {
    Mask masks[] = {{},
                    {MaskKind::causalBottomRight},
                    {MaskKind::window, draw(0, 200), draw(0, 50)},
                    {MaskKind::prefix, 0, 0, draw(0, 200)}};
    Problem p = oneHead(draw(0, 2) ? draw(1, 16) : draw(100, 300),
                        draw(0, 3) ? draw(1, 700) : draw(1, 100),
                        8 * draw(1, 18), 64 * draw(1, 2) + 8 * draw(1, 8),
                        masks[draw(0, 3)], draw16Bit(draw));
    p.batch = draw(1, 4);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 2);
    p.lse = draw(0, 2) != 0;
    p.place.usedKeysBits = draw(0, 1) ? 32 : 64;
    return p;
  }

  Problem drawPaged() {
    Problem p = drawProblem();
    constexpr int64_t usual[] = {8, 16, 64, 128, 256};
    int64_t rows = draw(0, 2) ? usual[draw(0, 4)] : 8 * draw(1, 12);
    p.place.pageRows = rows;
    p.keys = (p.keys + rows - 1) / rows * rows;
    return p;
  }

  void checkPlaced(const Problem &problem) {
    FlashCase flash(problem, drawTiles(problem), seed);
    flash.multiprocessors = draw(3, 9); // a team at least
    flash.place(++seed);
    std::string trace = "seed " + std::to_string(seed) + ", used";
    for (int64_t used : flash.placed->used)
      trace += " " + std::to_string(used);
    SCOPED_TRACE(trace + ", " + str(problem.place));
    check(flash, drawOptions(draw));
  }

  /// A plan promises what there is at most.
  void checkMost(const Problem &problem) {
    Tiles tiles = drawTiles(problem);
    FlashCase flash(problem, tiles);
    flash.place(++seed, /*usesAll=*/true);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + str(problem.place));
    checkPromise(flash, "column_split");
  }
};

} // namespace

TEST_F(UsedKeysOfGroups, InOrder) {
  for (int i = 0; i < 4; ++i)
    checkPlaced(drawProblem());
}

TEST_F(UsedKeysOfGroups, OfPages) {
  for (int i = 0; i < 4; ++i)
    checkPlaced(drawPaged());
}

TEST_F(UsedKeysOfGroups, OfMoreProblems) {
  ATTN_LONG_TEST();
  for (int i = 0; i < 30; ++i) {
    checkPlaced(drawProblem());
    checkPlaced(drawPaged());
  }
}

TEST_F(UsedKeysOfGroups, AtMost) {
  checkMost(drawProblem());
  checkMost(drawPaged());
}

/// One latent vector for each key, of which values are most: all query heads
/// are rows of one head, keys lie in pages of 64.
TEST_F(UsedKeysOfGroups, OfLatentVectors) {
  Problem p = oneHead(128, 512, 576, 512);
  p.batch = 3;
  p.place = {/*usedKeysBits=*/32, /*pageRows=*/64};
  for (int64_t parts : {1, 2}) {
    Tiles tiles = tilesOf(2, 6, 8);
    if (parts > 1)
      tiles.set("parts", parts);
    FlashCase flash(p, tiles);
    flash.multiprocessors = 4;
    flash.place(5);
    check(flash);
  }
}

/// Without lengths, of a tile that sees nothing too; parts that have no strip,
/// since there are fewer.
TEST_F(UsedKeysOfGroups, Parts) {
  for (Mask mask : {Mask{}, Mask{MaskKind::causalBottomRight},
                    Mask{MaskKind::window, 30, 0}}) {
    Problem p = oneHead(200, draw(50, 600), 72, 136, mask, draw16Bit(draw));
    Tiles tiles = tilesOf(2, 6, 1);
    tiles.set("parts", draw(2, 4));
    FlashCase flash(p, tiles);
    flash.multiprocessors = draw(2, 8);
    check(flash, drawOptions(draw));
  }
}
