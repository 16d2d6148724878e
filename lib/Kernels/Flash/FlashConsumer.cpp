//===- FlashConsumer.cpp - A consumer of flash, and its rows --------------===//

#include "Flash/FlashConsumer.h"

#include "Pipe/Epilogue.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void FlashConsumer::beginConsumer() {
  group = warp / kWarpsPerGroup - budget.others;
  if (pairs > 1) {
    Scalar pair = group / groups;
    firstGroup = pair * groups;
    group = group - firstGroup;
    firstStaged = pair * query;
    enter(pair);
  }
  groupRow = group * kGroupRows;
  warpRow = groupRow + (warp % kWarpsPerGroup) * kWarpRows;
}

attn::Tile FlashConsumer::ownOf(const Tile &tile) const {
  Tile own = tile;
  if (heads.areSeveral())
    own.head = tile.head + heads.of(b, tile, queries, warpRow).head;
  return own;
}

Scalar FlashConsumer::queryOf(const Tile &tile) const {
  return heads.areSeveral() ? heads.of(b, tile, queries, warpRow).query
                            : warpRow;
}

void FlashConsumer::storeTile(ValueRange output, const LazySoftmax::End &end,
                              const Tile &tile) {
  if (parts.areSeveral())
    return storeKeyPart(output, end, tile);
  if (staging == 0)
    storeParts(output, end.inverse, tile);
  else
    storeStaged(output.front(), end.inverse, tile);
  if (problem.lse)
    storeLse(b, arguments, end.lse, ownOf(tile), queries,
             tile.row + queryOf(tile));
}

/// From registers: pairs of f32 fill sectors, and of 16 bits a quad's pairs
/// half of one.
void FlashConsumer::storeParts(ValueRange output, Value inverse,
                               const Tile &tile) {
  auto type = ViewType::get(b.getContext(), problem.headDimV, outputElement(),
                            request.alignmentOf("o"));
  storeParts(output, inverse, tile,
             arguments.view(b, "o", type, tile.batch, tile.head,
                            tile.isOfSequence() ? tile.queries : queries,
                            /*column=*/Scalar(), tile.firstQuery));
}
void FlashConsumer::storeParts(ValueRange output, Value inverse,
                               const Tile &tile, Value view) {
  for (auto [part, sum] : llvm::enumerate(output))
    StoreFragmentOp::create(
        b,
        average(b, sum, inverse,
                cast<ViewType>(view.getType()).getElementType()),
        view, tile.row + queryOf(tile), b.i32(int64_t(part) * kSumColumns));
}

/// Of a part of the keys, O and LSE in f32.
void FlashConsumer::storeKeyPart(ValueRange output, const LazySoftmax::End &end,
                                 const Tile &tile) {
  KeyParts::Owner owner = KeyParts::ownerOf(ownOf(tile));
  storeParts(output, end.inverse, tile,
             parts.output(b, arguments, problem, owner));
  StoreRowOp::create(b, end.lse.high, parts.lse(b, arguments, owner),
                     tile.row + queryOf(tile));
}

/// Which warp leads is a predicate throughout the walk.  Compared with zero, it
/// would be joined with that of the leading lane: LLVM compares the OR of both
/// numbers, which take a register each.
void FlashConsumer::storeStaged(Value output, Value inverse, const Tile &tile) {
  Scalar barrier = group + (1 + pairs * groups);
  Strips strips{buffersO,
                map("o"),
                groupRow,
                warpRow,
                warp % kWarpsPerGroup < b.i32(1),
                Value(firstGroup) ? barrier + firstGroup : barrier,
                firstStaged};
  if (heads.areSeveral()) {
    strips.ofHeads = &heads;
    strips.queries = queries;
  }
  storeOutputAsync(b, average(b, output, inverse, outputElement()), strips,
                   tile);
}
