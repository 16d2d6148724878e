//===- OutputSpillFrame.cpp - Weights of a strip in registers -------------===//

#include "OutputSpill/OutputSpillFrame.h"

#include "Softmax/LogSumExp.h"

#include "attn/Schedule/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Columns that a product has a multiple of.
static constexpr int64_t kColumns = 16;

OutputSpillFrame::OutputSpillFrame(TileBuilder &b, const KernelRequest &request)
    : b(b), problem(request.problem), request(request),
      element(elementType(b.getContext(), problem.dtype)),
      slots(request.tiles.get("slots")),
      halves(request.tiles.get("key") / kHalf),
      ofWhole(request.tiles.get("part") / kHalf), parts(halves / ofWhole),
      panels(llvm::divideCeil(problem.headDim, kPanel)),
      column(std::min(request.tiles.get("column"),
                      int64_t(llvm::alignTo(problem.headDimV, kColumns)))),
      columnTiles(llvm::divideCeil(problem.headDimV, column)) {}

KernelOp OutputSpillFrame::declare() {
  arguments.map(b, "q", kRows, problem.headDim, element);
  arguments.map(b, "k", kHalf, problem.headDim, element);
  arguments.map(b, "v", kPiece, problem.headDimV, element);
  arguments.map(b, "o", kGroupRows, problem.headDimV, element);
  if (problem.lse)
    declareLse(arguments, b, problem);
  arguments.pointer(kCounterRole, b.getI32Type());
  arguments.perBlock(kScratchRole, b.getI32Type(), kRows * column * columnTiles,
                     /*beyondKeys=*/halves * kHalf);
  declareProblem(arguments, b, problem.mask);
  KernelOp kernel =
      arguments.createKernel(b, request, kWarpsPerGroup * (kGroups + 1));
  reserve();
  queries = arguments.get(b, "queries");
  band.emplace(b, arguments, problem.mask);
  blocks.emplace(*band, queries, kRows, kHalf);
  order.emplace(b, arguments, problem, kRows, request.sms, request.l2Bytes);
  return kernel;
}

void OutputSpillFrame::reserve() {
  auto typeOf = [&](int64_t stages, int64_t rows, int64_t columns) {
    return SmemType::get(b.getContext(), stages, rows, columns, element,
                         SmemLayout::sw128);
  };
  units = AllocOp::create(b, typeOf(slots, kHalf, kPanel), "ring");
  pairs = AliasOp::create(b, typeOf(slots / 2, 2 * kHalf, kPanel), units);
  pieces = AliasOp::create(b, typeOf(slots, kPiece, 2 * kPanel), units);
  // Panel by panel, so that one is written while the other is read.
  for (int64_t first = 0; first < column; first += kPanel)
    staging.push_back(
        AllocOp::create(b, typeOf(1, kRows, std::min(kPanel, column - first)),
                        first == 0 ? "staging0" : "staging1"));
  ring = Ring(b, "ring", slots, kConsumers);
  queue = tileQueue(b, kConsumers);
}

Run OutputSpillFrame::ofPart(const Run &seenOfStrip, Scalar part) const {
  Scalar first = part * ofWhole;
  Scalar begin = b.max(seenOfStrip.begin, first);
  return {begin, b.max(b.min(seenOfStrip.end, first + ofWhole), begin)};
}

//===----------------------------------------------------------------------===//
// The producer
//===----------------------------------------------------------------------===//

namespace {

class Producer {
public:
  explicit Producer(const OutputSpillFrame &frame) : f(frame), b(frame.b) {}

  void produce() {
    Place start = Place::writer(b);
    f.order->feedTiles(
        b, f.arguments, f.queue, {start.slot, start.parity},
        [&](const Tile &tile, ValueRange p) -> SmallVector<Value> {
          Place place = loadTile(tile, {b.wrap(p[0]), b.wrap(p[1])});
          return {place.slot, place.parity};
        });
  }

private:
  static constexpr int64_t kPanel = OutputSpillFrame::kPanel,
                           kHalf = OutputSpillFrame::kHalf;

  Scalar keyHead(const Tile &tile) {
    return tile.head / f.arguments.get(b, "group");
  }

  Place loadTile(const Tile &tile, Place place) {
    KeyWalk walk = f.walkOf(tile);
    return f.stripsOf(walk).forEach(b, place, [&](Scalar strip, Place place) {
      return loadStrip(tile, f.ofStrip(walk, strip), f.firstKeyOf(strip),
                       place);
    });
  }

  Place loadStrip(const Tile &tile, const Run &seen, Scalar key, Place place) {
    Scalar firstPart = seen.begin / f.ofWhole;
    place =
        place.loop(b, firstPart, b.ceilDiv(seen.end, f.ofWhole),
                   [&](Scalar part, Place place) {
                     return loadScores(tile, f.ofPart(seen, part), key,
                                       /*isBack=*/part % 2 == b.i32(1), place);
                   });
    return place.loop(
        b, b.i32(0), b.i32(f.columnTiles), [&](Scalar number, Place place) {
          return loadValues(tile, seen, key, number * f.column, place);
        });
  }

  Place loadScores(const Tile &tile, const Run &halves, Scalar firstKey,
                   Scalar isBack, Place place) {
    Scalar key = firstKey + halves.begin * kHalf;
    auto one = [&](Place place) { return loadOne(tile, key, isBack, place); };
    if (f.ofWhole == 1)
      return one(place);
    return place.choose(
        b, halves.begin + 1 < halves.end,
        [&](Place place) { return loadBoth(tile, key, isBack, place); }, one);
  }

  /// Panels of Q and of one half.
  Place loadOne(const Tile &tile, Scalar key, Scalar isBack, Place place) {
    return place.loop(b, b.i32(0), b.i32(f.panels),
                      [&](Scalar panel, Place place) {
                        Scalar back = b.i32(f.panels - 1) - panel;
                        Scalar column = b.select(isBack, back, panel) * kPanel;
                        place = loadQuery(tile, column, place);
                        return loadKeys(tile, key, column, place);
                      });
  }

  /// Panels of Q and of both halves.
  Place loadBoth(const Tile &tile, Scalar key, Scalar isBack, Place place) {
    int64_t whole = f.panels / 2 * 2;
    place = place.loop(
        b, b.i32(0), b.i32(whole / 2), [&](Scalar pair, Place place) {
          Scalar back = b.i32(f.panels - 2) - pair * 2;
          Scalar first = b.select(isBack, back, pair * 2) * kPanel;
          return loadPair(tile, key, first, /*isWhole=*/true, place);
        });
    if (whole == f.panels)
      return place;
    Scalar last = b.select(isBack, b.i32(0), b.i32(whole)) * kPanel;
    return loadPair(tile, key, last, /*isWhole=*/false, place);
  }

  /// Two panels, or one and an empty unit.
  Place loadPair(const Tile &tile, Scalar key, Scalar first, bool isWhole,
                 Place place) {
    Scalar second = first + kPanel;
    auto loadHalves = [&](Scalar column) {
      for (int64_t half = 0; half < 2; ++half)
        place = loadKeys(tile, key + half * kHalf, column, place);
    };
    loadHalves(first);
    place = loadQuery(tile, first, place);
    if (!isWhole)
      return leaveEmpty(place);
    place = loadQuery(tile, second, place);
    loadHalves(second);
    return place;
  }

  Place leaveEmpty(Place place) {
    f.ring.awaitEmpty(b, place);
    f.ring.handOver(b, place);
    return f.ring.next(b, place);
  }

  Place loadQuery(const Tile &tile, Scalar column, Place place) {
    return load(place, "q", f.units, tile, tile.head, tile.row, column);
  }
  Place loadKeys(const Tile &tile, Scalar key, Scalar column, Place place) {
    return load(place, "k", f.units, tile, keyHead(tile), key, column);
  }

  Place loadValues(const Tile &tile, const Run &seen, Scalar key, Scalar column,
                   Place place) {
    Scalar first = seen.begin * OutputSpillFrame::kPieces;
    return place.loop(b, first, seen.end * OutputSpillFrame::kPieces,
                      [&](Scalar piece, Place place) {
                        return load(place, "v", f.pieces, tile, keyHead(tile),
                                    key + piece * OutputSpillFrame::kPiece,
                                    column);
                      });
  }

  Place load(Place place, StringRef operand, Value buffer, const Tile &tile,
             Scalar head, Scalar row, Scalar column) {
    std::optional<int64_t> columns;
    if (operand == "v" && f.column <= kPanel)
      columns = kPanel;
    f.ring.load(b, place, f.map(operand), tile.batch, head, row, buffer,
                /*rank=*/{}, column, columns);
    return f.ring.next(b, place);
  }

  const OutputSpillFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::produceHeldTiles(const OutputSpillFrame &frame) {
  Producer(frame).produce();
}
