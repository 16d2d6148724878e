//===- FlashBackwardStrips.cpp - Before and after flash_backward ----------===//
//
// Sums of dQ go through the cache in the form in which the main launch adds to
// them.  Before it they begin as zeros, where statistics are left, unless the
// first that adds to them stores; behind it they become rows of the problem's
// type, strip by strip.  Both are launches, or done beside it
// (FlashBackwardBeside.cpp).
//
//===----------------------------------------------------------------------===//

#include "FlashBackward/FlashBackwardFrame.h"
#include "Softmax/Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Scalar FlashBackwardFrame::imagePlace(const StripRows &at,
                                      int64_t image) const {
  Scalar part = splitsColumns ? b.i32(image) : at.strip;
  return (at.block * groups + part) * kWarpsPerGroup + at.warp;
}

void FlashBackwardFrame::storeSums(const StripRows &at, int64_t columns) const {
  auto type = ViewType::get(b.getContext(), problem.headDim, element,
                            request.alignmentOf("dq"));
  bool isOfSequence = at.sequence.isOfSequence();
  Value view =
      arguments.view(b, "dq", type, at.batch, at.head,
                     isOfSequence ? at.queries : arguments.get(b, "queries"),
                     /*column=*/Scalar(), at.sequence.firstQuery);
  int64_t pieces = gradientColumns / columns;
  auto load = [&](int64_t image, int64_t piece) -> Value {
    auto sums = LoadRegistersOp::create(
        b, TypeRange(b.accType(kWarpRows, columns)),
        arguments.get(b, "scratch_dq"), imagePlace(at, image) * pieces + piece);
    return sums.getResult(0);
  };
  // Whole images are on their way together.
  int64_t images = imagesOfWarp(), together = pieces == 1 ? images : 1;
  for (int64_t first = 0; first < images * pieces; first += together) {
    auto loadAll = [&]() -> SmallVector<Value> {
      SmallVector<Value> all;
      for (int64_t i = first; i < first + together; ++i)
        all.push_back(load(i / pieces, i % pieces));
      return all;
    };
    SmallVector<Value> all =
        orZeros(at.tile * kStripRows, loadAll, columns, together);
    for (int64_t i = 0; i < together; ++i) {
      Value scaled = scaleRows(b, all[i], arguments.get(b, "scale"));
      StoreFragmentOp::create(b, scaled, view, at.row,
                              b.i32((first + i) * columns));
    }
  }
}

//===----------------------------------------------------------------------===//
// Launches of their own
//===----------------------------------------------------------------------===//

/// As zeros.
static void clearSums(const FlashBackwardFrame &f, const StripRows &at) {
  TileBuilder &b = f.b;
  Value zeros = b.fill(b.f32(0), f.imageType());
  for (int64_t image = 0; image < f.imagesOfWarp(); ++image)
    StoreRegistersOp::create(b, ValueRange{zeros},
                             f.arguments.get(b, "scratch_dq"),
                             f.imagePlace(at, image));
}

void attn::beginSums(const FlashBackwardFrame &f, const StripRows &at) {
  TileBuilder &b = f.b;
  if (!f.firstStores)
    clearSums(f, at);
  if (!f.ordered && !f.firstStores)
    return;
  Scalar zero = b.i32(0);
  b.when((at.strip == zero) & (at.warp == zero), [&] {
    PublishOp::create(b, f.arguments.get(b, "scratch_turns"), at.block, zero)
        ->setAttr("begins", b.getUnitAttr());
  });
}

KernelOp attn::prepareSums(FlashBackwardFrame &f) {
  auto declare = [&] {
    declareOrigins(f);
    f.declareStatistics();
    if (!f.firstStores)
      f.declareSums();
    if (f.ordered || f.firstStores)
      f.declareTurns();
  };
  return prepareStrips(f, declare, [&](const StripRows &at) {
    leaveStatistics(f, at);
    beginSums(f, at);
  });
}

KernelOp attn::finishStrips(FlashBackwardFrame &f) {
  TileBuilder &b = f.b;
  f.arguments.operand("dq", f.element);
  f.declareSums();
  if (f.firstStores) {
    declareProblem(f.arguments, b, f.problem.mask);
  } else {
    declareStripSizes(f);
    f.arguments.scalar("scale", b.getF32Type());
  }
  KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
  // The sums that the main launch added to last are still in L2.
  StripRows at(f, /*fromEnd=*/true);
  at.ifAny(b, [&] { f.storeSums(at, f.gradientColumns); });
  ReturnOp::create(b);
  return kernel;
}

//===----------------------------------------------------------------------===//
// In order
//===----------------------------------------------------------------------===//

void FlashBackwardFrame::declareTurns() {
  arguments.perStrip("scratch_turns", b.getI32Type(), 1);
}

FlashBackwardFrame::Turn FlashBackwardFrame::turnOf(const Tile &tile) const {
  Run seen = blocks->seenByTile(b, tile.row);
  Run below = blocks->seenByTile(b, tile.row - own);
  Run above = blocks->seenByTile(b, tile.row + own);
  Scalar none = b.i32(0), number = tile.row / own;
  if (keyOrder.takesShortFirst)
    number = tilesOfKeyHead() - 1 - number;
  return {number, seen.begin < seen.end,
          b.select(below.begin < below.end, below.end, none),
          b.select(above.begin < above.end, above.begin, seen.end)};
}

Scalar FlashBackwardFrame::seesToo(const Turn &turn, Scalar block,
                                   bool isBefore) const {
  return isBefore != keyOrder.takesShortFirst ? block < turn.endBelow
                                              : turn.beginAbove <= block;
}

Scalar FlashBackwardFrame::isFirst(const Turn &turn, Scalar block) const {
  return turn.seesAny &
         (seesToo(turn, block, /*isBefore=*/true) == b.boolean(false));
}

void FlashBackwardFrame::awaitTurn(const Turn &turn, Scalar block,
                                   Scalar number) const {
  b.when(turn.seesAny & seesToo(turn, block, /*isBefore=*/true), [&] {
    AwaitOp::create(b, b.getI32Type(), arguments.get(b, "scratch_turns"),
                    number, turn.number)
        ->setAttr("mostly_set", b.getUnitAttr());
  });
}

void FlashBackwardFrame::passTurn(const Turn &turn, Scalar block,
                                  Scalar number) const {
  b.when(turn.seesAny, [&] {
    Scalar next = b.select(seesToo(turn, block, /*isBefore=*/false),
                           turn.number + 1, b.i32(0));
    PublishOp::create(b, arguments.get(b, "scratch_turns"), number, next);
  });
}

//===----------------------------------------------------------------------===//
// The first stores
//===----------------------------------------------------------------------===//

Scalar FlashBackwardFrame::isFirst(const Tile &tile, Scalar block) const {
  // But in a window whoever sees a key sees the first one too.
  if (!problem.mask.hidesBefore())
    return tile.row == b.i32(0);
  Run below = blocks->seenByTile(b, tile.row - own);
  return b.select(below.begin < below.end, below.end, b.i32(0)) <= block;
}

void FlashBackwardFrame::awaitFirst(Scalar number) const {
  AwaitOp::create(b, b.getI32Type(), arguments.get(b, "scratch_turns"), number,
                  b.i32(1))
      ->setAttr("mostly_set", b.getUnitAttr());
}

void FlashBackwardFrame::tellFirst(Scalar number) const {
  PublishOp::create(b, arguments.get(b, "scratch_turns"), number, b.i32(1))
      ->setAttr("kept", b.getUnitAttr());
}

SmallVector<Value> FlashBackwardFrame::orZeros(Scalar strip,
                                               TileBuilder::Branch load,
                                               int64_t columns,
                                               int64_t count) const {
  if (!firstStores)
    return load();
  KeyBand keys(b, arguments, problem.mask);
  Scalar last = b.min(strip + kStripRows, arguments.get(b, "queries")) - 1;
  KeyBand::Keys seen = keys.seenBy(b, strip, last);
  Scalar haveSums = (strip <= last) & (seen.someFirst < seen.someEnd);
  auto fill = [&]() -> SmallVector<Value> {
    Value zeros = b.fill(b.f32(0), b.accType(kWarpRows, columns));
    return SmallVector<Value>(count, zeros);
  };
  return llvm::to_vector(b.choose(haveSums, load, fill));
}

Scalar FlashBackwardFrame::parityBehind(Scalar parity, const Walk &walk) const {
  Scalar next = parity ^ 1;
  bool mayHaveNone = walksOnlySeen || problem.ragged;
  return mayHaveNone ? b.select(b.i32(0) < walk.steps, next, parity) : next;
}
