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

// Sequence `from` begins with the slot or before it, and `to` behind it.
Scalar RaggedRows::sequenceOf(TileBuilder &b, Scalar slot) const {
  Role role = ownsKeys ? Role::offsetsK : Role::offsetsQ;
  ValueRange found = b.repeat(
      {b.i32(0), arguments->get(b, Role::batch)},
      [&](ValueRange s) { return b.wrap(s[0]) + 1 < b.wrap(s[1]); },
      [&](ValueRange s) -> SmallVector<Value> {
        Scalar from = b.wrap(s[0]), to = b.wrap(s[1]);
        Scalar middle = (from + to) / 2;
        Scalar isBehind = slot < firstSlot(b, offset(b, role, middle), middle);
        return {b.select(isBehind, from, middle),
                b.select(isBehind, middle, to)};
      });
  return b.wrap(found[0]);
}

Tile RaggedRows::at(TileBuilder &b, Scalar slot, Scalar head) const {
  Scalar sequence = sequenceOf(b, slot);
  Tile tile;
  tile.firstQuery = offset(b, Role::offsetsQ, sequence);
  tile.queries = offset(b, Role::offsetsQ, sequence + 1) - tile.firstQuery;
  auto placeFrom = [&](Scalar begin) {
    tile.row = (slot - firstSlot(b, begin, sequence)) * tileRows;
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
