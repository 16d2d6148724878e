//===- WarpgroupSplitProducer.cpp - The role that feeds it ----------------===//
//
// One lane: draws tiles and starts every load, piece by piece in the order in
// which the warpgroups hand slots back.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/WarpgroupSplitFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Producer {
public:
  explicit Producer(const WarpgroupSplitFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Place stage = Place::writer(b);
    f.order->feedTiles(
        b, f.arguments, f.queue,
        {stage.slot, stage.parity, /*parity of queries=*/b.i32(1)},
        [&](const Tile &tile, ValueRange s) -> SmallVector<Value> {
          Scalar parity = b.wrap(s[2]);
          loadQueries(tile, parity);
          Place end = f.walkOf(tile).forEach(
              b, {b.wrap(s[0]), b.wrap(s[1])}, [&](Scalar strip, Place stage) {
                if (f.prefetches)
                  forEach(kParts, [&](Scalar part) {
                    prefetchTile(tile, f.keyTileOf(strip + 1, part));
                  });
                forEach(kParts, [&](Scalar part) {
                  loadTile(tile, strip, part, f.slotOf(stage, part));
                });
                return f.next(stage);
              });
          return {end.slot, end.parity, parity ^ 1};
        },
        [&](const Tile &tile) { return f.blocks->drawn(tile); });
  }

private:
  void loadQueries(const Tile &tile, Scalar parity) {
    Scalar zero = b.i32(0);
    MbarrierWaitOp::create(b, f.queryEmpty, zero, parity);
    auto load = [&](Value buffer, Scalar stage, int64_t column) {
      TmaLoadOp::create(b, f.map("q"), tile.batch, tile.head, tile.row, buffer,
                        stage, f.queryFull, zero, b.i32(column),
                        /*rank=*/Value(), /*columns=*/IntegerAttr());
    };
    if (f.rest > 0)
      load(f.queriesOfRest, zero, f.problem.headDimV);
    for (int64_t each = 0; each < kParts * f.halves; ++each)
      load(f.queriesOfParts, b.i32(each), each * f.piece);
  }

  /// A loop, since few registers hold little of what is worked out.
  void forEach(int64_t count, function_ref<void(Scalar)> body) {
    b.loop(b.i32(0), b.i32(count), {},
           [&](Scalar index, ValueRange) -> SmallVector<Value> {
             body(index);
             return {};
           });
  }

  /// The keys of a warpgroup.
  void loadTile(const Tile &tile, Scalar strip, Scalar part, Place slot) {
    Scalar number = f.keyTileOf(strip, part);
    if (f.rest > 0)
      load(f.ringRest, slot, tile, number, f.keysRest,
           b.i32(f.problem.headDimV), /*isValue=*/false);
    auto loadPieces = [&](const Ring &ring, Value buffer, Scalar owner) {
      forEach(f.halves, [&](Scalar half) {
        load(ring, f.pieceOf(slot, half), tile, number, buffer,
             owner * f.columns + half * f.piece, /*isValue=*/true);
      });
    };
    loadPieces(f.ringOwn, f.keysOwn, part);
    loadPieces(f.ringShared, f.keysShared, b.i32(kParts - 1) - part);
  }

  void load(const Ring &ring, Place slot, const Tile &tile, Scalar number,
            Value buffer, Scalar column, bool isValue) {
    Scalar head = tile.head / f.arguments.get(b, "group");
    BoxColumns columns{column};
    if (!f.locator)
      return ring.load(b, slot, f.map("k"), tile.batch, head, number * kKeys,
                       buffer, /*rank=*/{}, columns.first);
    if (isValue)
      f.locator->loadValues(ring, slot, tile, head, number, buffer, columns);
    else
      f.locator->loadKeys(ring, slot, tile, head, number, buffer, columns);
  }

  /// Tells L2 of keys that are loaded a strip later: a slot comes free shortly
  /// before it is needed, and device memory is too far away then.  Behind the
  /// last strip that may be nobody's.
  void prefetchTile(const Tile &tile, Scalar number) {
    Scalar head = tile.head / f.arguments.get(b, "group");
    auto prefetch = [&](Role array, int64_t column, int64_t columns) {
      columns = llvm::alignTo(columns, kPanelColumns);
      ArgumentRole map(array, Facet::map);
      if (f.locator)
        f.locator->prefetchKeys(tile, head, number, map, b.i32(column),
                                columns);
      else
        TmaPrefetchOp::create(b, f.arguments.get(b, map), tile.batch, head,
                              number * kKeys, b.i32(column), uint64_t(columns));
    };
    if (!f.locator)
      return prefetch(Role::k, 0, f.problem.headDim);
    prefetch(Role::v, 0, f.problem.headDimV);
    if (f.rest > 0)
      prefetch(Role::k, f.problem.headDimV, f.rest);
  }

  static constexpr int64_t kParts = WarpgroupSplitFrame::kParts;
  static constexpr int64_t kKeys = WarpgroupSplitFrame::kKeys;
  const WarpgroupSplitFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceKeyTiles(const WarpgroupSplitFrame &frame) {
  Producer(frame).produce();
}
