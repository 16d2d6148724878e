//===- RaggedRows.cpp - Tiles of sequences of any length ------------------===//

#include "Walk/RaggedRows.h"
#include "Walk/RowLocator.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

void RaggedRows::declare(Arguments &arguments, TileBuilder &b,
                         const Problem &problem) {
  Type type = b.getIntegerType(problem.ragged->isWide ? 64 : 32);
  SmallVector<ArgumentRole> offsets = {Role::offsetsQ};
  if (areKeysRagged(problem))
    offsets.push_back(Role::offsetsK);
  for (const ArgumentRole &role : offsets) {
    arguments.pointer(role, type);
    // The only stride of an array of numbers is the first.
    for (Facet facet : {Facet::offset, Facet::strideBatch})
      arguments.scalar(role.at(facet), b.getI64Type());
  }
}

Scalar RaggedRows::slots(TileBuilder &b) const {
  return arguments->get(b, ownsKeys ? Role::keys : Role::queries) / tileRows +
         arguments->get(b, Role::batch);
}

Scalar RaggedRows::offset(TileBuilder &b, Role role, Scalar number) const {
  Scalar place = arguments->get(b, ArgumentRole(role, Facet::offset)) +
                 b.wide(number) *
                     arguments->get(b, ArgumentRole(role, Facet::strideBatch));
  return b.wrap(
      LoadNumberOp::create(b, b.getI32Type(), arguments->get(b, role), place));
}

Scalar RaggedRows::endOfQueries(TileBuilder &b) const {
  return offset(b, Role::offsetsQ, arguments->get(b, Role::batch));
}

Value RaggedRows::rank(TileBuilder &b, bool longestFirst) const {
  constexpr int64_t columns = 32; // of f32, whose rows follow each other
  constexpr int64_t bytes = kRankedSequences * RankOp::kEntryBytes;
  auto type =
      SmemType::get(b.getContext(), /*stages=*/1, bytes / SmemType::kPanelBytes,
                    columns, b.getF32Type(), SmemLayout::sw128);
  Value table = AllocOp::create(b, type, "ranks");
  auto get = [&](Role role, Facet facet) -> Value {
    return arguments->get(b, ArgumentRole(role, facet));
  };
  Role streamed = ownsKeys         ? Role::offsetsQ
                  : areKeysOfCache ? Role::usedKeys
                                   : Role::offsetsK;
  RankOp::create(b, arguments->get(b, owned()), get(owned(), Facet::offset),
                 get(owned(), Facet::strideBatch), arguments->get(b, streamed),
                 get(streamed, Facet::offset),
                 get(streamed, Facet::strideBatch),
                 arguments->get(b, Role::batch), uint32_t(tileRows), table,
                 /*differences=*/streamed != Role::usedKeys, longestFirst);
  return table;
}

Scalar RaggedRows::areRanked(TileBuilder &b) const {
  return arguments->get(b, Role::batch) <= b.i32(kRankedSequences);
}

Scalar RaggedRows::firstSlotAt(TileBuilder &b, Scalar rank) const {
  auto inMemory = [&] { return firstSlot(b, offset(b, owned(), rank), rank); };
  if (!ranks)
    return inMemory();
  return b.wrap(b.choose(
      areRanked(b),
      [&]() -> SmallVector<Value> {
        return {GetNumberOp::create(b, b.getI32Type(), ranks, rank * 2)};
      },
      [&]() -> SmallVector<Value> { return {inMemory()}; })[0]);
}

RaggedRows::Found RaggedRows::sequenceAt(TileBuilder &b, Scalar rank) const {
  if (!ranks)
    return {rank, {}};
  Scalar sequence = b.wrap(b.choose(
      areRanked(b),
      [&]() -> SmallVector<Value> {
        return {GetNumberOp::create(b, b.getI32Type(), ranks, rank * 2 + 1)};
      },
      [&]() -> SmallVector<Value> { return {rank}; })[0]);
  return {sequence, firstSlotAt(b, rank)};
}

// Sequence `from` begins with the slot or before it, and `to` behind it.
RaggedRows::Found RaggedRows::sequenceOf(TileBuilder &b, Scalar slot) const {
  ValueRange found = b.repeat(
      {b.i32(0), arguments->get(b, Role::batch)},
      [&](ValueRange s) { return b.wrap(s[0]) + 1 < b.wrap(s[1]); },
      [&](ValueRange s) -> SmallVector<Value> {
        Scalar from = b.wrap(s[0]), to = b.wrap(s[1]);
        Scalar middle = (from + to) / 2;
        Scalar isBehind = slot < firstSlotAt(b, middle);
        return {b.select(isBehind, from, middle),
                b.select(isBehind, middle, to)};
      });
  return sequenceAt(b, b.wrap(found[0]));
}

Tile RaggedRows::at(TileBuilder &b, Scalar slot, Scalar head) const {
  auto [sequence, first] = sequenceOf(b, slot);
  Tile tile;
  tile.firstQuery = offset(b, Role::offsetsQ, sequence);
  tile.queries = offset(b, Role::offsetsQ, sequence + 1) - tile.firstQuery;
  auto placeFrom = [&, sequence = sequence, first = first](Scalar begin) {
    Scalar from = ranks ? first : firstSlot(b, begin, sequence);
    tile.row = (slot - from) * tileRows;
    tile.head = head;
    tile.batch = sequence;
  };
  if (!ownsKeys)
    placeFrom(tile.firstQuery);
  if (areKeysOfCache) {
    tile.keys = RowLocator::usedKeys(b, *arguments, sequence);
  } else {
    tile.firstKey = offset(b, Role::offsetsK, sequence);
    tile.keys = offset(b, Role::offsetsK, sequence + 1) - tile.firstKey;
  }
  if (ownsKeys)
    placeFrom(tile.firstKey);
  Scalar &seen = ownsKeys ? tile.queries : tile.keys;
  seen = b.select(hasRows(tile), seen, b.i32(0));
  return tile;
}

/// The rows from `first` on end before `end`.
static Corner windowOf(TileBuilder &b, Value map, Scalar first, Scalar end) {
  int64_t rows = cast<TensorMapType>(map.getType()).getBoxRows();
  Scalar behind = first + rows;
  Scalar window = b.min(end, behind);
  return {window, behind - window, end <= first};
}

void Corner::load(TileBuilder &b, Value map, Value emptyMap,
                  llvm::function_ref<void(Value map)> start) const {
  if (!Value(isEmpty) || !emptyMap)
    return start(map);
  auto startBy = [&](Value map) -> SmallVector<Value> {
    start(map);
    return {};
  };
  b.choose(
      isEmpty, [&] { return startBy(emptyMap); }, [&] { return startBy(map); });
}

Corner Corner::ofQueries(TileBuilder &b, Value map, const Tile &tile,
                         Scalar row) {
  if (!tile.isOfSequence())
    return {tile.batch, row};
  return windowOf(b, map, tile.firstQuery + row,
                  tile.firstQuery + tile.queries);
}

Corner Corner::ofKeys(TileBuilder &b, Value map, const Tile &tile, Scalar row) {
  if (!tile.isOfSequence())
    return {tile.batch, row};
  return windowOf(b, map, tile.firstKey + row, tile.firstKey + tile.keys);
}
