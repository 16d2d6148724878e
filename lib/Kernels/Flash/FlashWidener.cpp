//===- FlashWidener.cpp - The role that makes 8 bits 16 -------------------===//
//
// wgmma takes two factors of one type.  Where a cache has keys and values of 8
// bits and queries have 16, warps beside the producer read each block where TMA
// has put it and write it in 16 bits to a second ring, from which the consumers
// take it as they take any other.  So the cache comes from memory in half the
// bytes, and products have the precision of the queries.
//
// It goes K[last] V[last] | K[n] V[n] ..., where consumers ask for V[n + 1]
// beside K[n]: they find both, and what they ask for next is on its way.  Who
// holds values while he passes over keys of the next tile would wait for
// himself where the ring has no room for them (`mayJoin` of flash_wgmma.cpp).
//
// Conversion keeps up.  Of 3.3 TB/s a multiprocessor of an H100 takes 14 bytes
// per clock; a warp needs about 150 clocks for 1024 bytes, so three warps widen
// 20 bytes per clock and seven 47.  Shared memory moves 128 bytes per clock; of
// a byte that comes, 1 is written, 1 read, 2 written, and 2 read by products,
// beside Q, which S reads again, 64 rows for each block: with blocks of 64 keys
// 1 more, 7 in all, 98 per clock.
//
// Shared memory binds, and what a step costs by itself.  On an H200 64 caches
// of 8192 keys of d = 128 take 437 us in blocks of 64 keys and 380 in blocks of
// 96, where 16 bits take 523: about 570 clocks for a step and 15 for a key, of
// which shared memory has 13.  Instructions take less: for 1024 bytes a warp
// issues 86, of which 64 convert, so four schedulers need 5 clocks for a key.
//
// Example: blocks of 64 keys of d = 128 are eight units of 16 rows and a panel;
// seven warps take them in turn, beginning where they left off in the block
// before.
//
//===----------------------------------------------------------------------===//

#include "Flash/FlashFrame.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Widener {
public:
  explicit Widener(const FlashFrame &frame)
      : f(frame), b(frame.b), worker(b.warpId() - FlashFrame::kProducerWarps) {}

  void run() {
    Place reader = Place::reader(b), writer = Place::writer(b);
    forEachTile(b, f.queue, Places{reader, writer}.pack(),
                [&](const Tile &tile, ValueRange s) { return widen(tile, s); });
  }

private:
  /// Where the role stands in the rings of what is loaded and of what it makes;
  /// those of keys and of values are as deep and go in step.
  struct Places {
    Place loaded, widened;

    SmallVector<Value> pack() const {
      return {loaded.slot, loaded.parity, widened.slot, widened.parity};
    }
    static Places of(TileBuilder &b, ValueRange s) {
      return {{b.wrap(s[0]), b.wrap(s[1])}, {b.wrap(s[2]), b.wrap(s[3])}};
    }
  };

  SmallVector<Value> widen(const Tile &tile, ValueRange places) {
    Scalar steps = f.blocks->walkOf(b, tile).steps();
    return llvm::to_vector(
        b.loop(b.i32(0), steps, llvm::to_vector(places),
               [&](Scalar, ValueRange s) -> SmallVector<Value> {
                 Places at = Places::of(b, s);
                 int64_t units = 0;
                 block(at, f.ringLoadedK, f.bufferLoadedK, f.ringK,
                       f.buffersK.front(), units);
                 block(at, f.ringLoadedV, f.bufferLoadedV, f.ringV,
                       f.buffersV.front(), units);
                 return Places{f.ringLoadedK.next(b, at.loaded),
                               f.ringK.next(b, at.widened)}
                     .pack();
               }));
  }

  /// The warp's share of a block, of which `before` units have been dealt out
  /// in this step.
  void block(const Places &at, const Ring &from, Value loaded, const Ring &to,
             Value widened, int64_t &before) {
    constexpr int64_t rows = WidenRowsOp::kRows;
    auto type = cast<SmemType>(loaded.getType());
    int64_t panels = llvm::divideCeil(type.getColumns(), WidenRowsOp::kColumns);
    int64_t units = f.key / rows * panels, warps = f.helperWarps;
    from.awaitFull(b, at.loaded);
    to.awaitEmpty(b, at.widened);
    Scalar first = (worker + (warps - before % warps)) % warps;
    b.loop(b.i32(0), (b.i32(units + warps - 1) - first) / warps, {},
           [&](Scalar i, ValueRange) -> SmallVector<Value> {
             Scalar unit = first + i * warps, strip = unit / panels;
             WidenRowsOp::create(b, loaded, at.loaded.slot, strip * rows,
                                 (unit - strip * panels) *
                                     WidenRowsOp::kColumns,
                                 widened, at.widened.slot);
             return {};
           });
    before += units;
    FenceAsyncOp::create(b);
    to.handOver(b, at.widened);
    from.release(b, at.loaded);
  }

  const FlashFrame &f;
  TileBuilder &b;
  Scalar worker; ///< number of the warp in the role
};

} // namespace

void attn::widenKeys(const FlashFrame &frame) { Widener(frame).run(); }
