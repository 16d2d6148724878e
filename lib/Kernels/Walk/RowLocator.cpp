//===- RowLocator.cpp - Where the device says that rows lie ---------------===//

#include "Walk/RowLocator.h"

#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Rows of a small box: as many as the pattern of swizzled rows repeats after.
static constexpr int64_t kOctet = 8;

void RowLocator::declare(Arguments &arguments, TileBuilder &b,
                         const Placement &place) {
  ArgumentRole used(Role::usedKeys), table(Role::pageTable);
  arguments.pointer(used, b.getIntegerType(unsigned(place.usedKeysBits)));
  arguments.scalar(used.at(Facet::offset), b.getI64Type());
  arguments.scalar(used.at(Facet::strideBatch), b.getI64Type());
  if (!place.isPaged())
    return;
  arguments.pointer(table, b.getI32Type());
  for (Facet facet : {Facet::offset, Facet::strideBatch, Facet::strideHead})
    arguments.scalar(table.at(facet), b.getI64Type());
}

RowLocator::RowLocator(TileBuilder &b, const Arguments &arguments,
                       const Placement &place, int64_t key)
    : b(b), arguments(arguments), place(place), key(key),
      boxRows(place.isPaged() ? std::gcd(place.pageRows, key) : key) {}

Scalar RowLocator::usedKeys(TileBuilder &b, const Arguments &arguments,
                            Scalar batch) {
  ArgumentRole used(Role::usedKeys);
  Scalar at = arguments.get(b, used.at(Facet::offset)) +
              b.wide(batch) * arguments.get(b, used.at(Facet::strideBatch));
  Scalar number = b.wrap(
      LoadNumberOp::create(b, b.getI32Type(), arguments.get(b, used), at));
  return b.min(b.max(number, b.i32(0)), arguments.get(b, Role::keys));
}

Tile RowLocator::located(Tile tile) const {
  if (tile.isOfSequence())
    return tile;
  Scalar none = b.i32(0);
  tile.usedKeys = b.wrap(b.choose(
      b.i32(-1) < tile.row,
      [&]() -> SmallVector<Value> {
        return {usedKeys(b, arguments, tile.batch)};
      },
      [&]() -> SmallVector<Value> { return {none}; })[0]);
  return tile;
}

//===----------------------------------------------------------------------===//
// Where keys lie
//===----------------------------------------------------------------------===//

Scalar RowLocator::outerOf(const Tile &tile, Scalar key) const {
  if (!place.isPaged())
    return tile.batch;
  // An entry that is there, whichever it is.
  Scalar last = b.max(usedOf(tile) - 1, b.i32(0));
  Scalar column = b.min(key, last) / place.pageRows;
  ArgumentRole table(Role::pageTable);
  Scalar at =
      arguments.get(b, table.at(Facet::offset)) +
      b.wide(tile.batch) * arguments.get(b, table.at(Facet::strideBatch)) +
      b.wide(column) * arguments.get(b, table.at(Facet::strideHead));
  return b.wrap(
      LoadNumberOp::create(b, b.getI32Type(), arguments.get(b, table), at));
}

Scalar RowLocator::outside() const {
  return place.isPaged() ? b.i32(place.pageRows) : arguments.get(b, Role::keys);
}

RowLocator::Source RowLocator::sourceOf(const Tile &tile, Scalar outer,
                                        Scalar key) const {
  Scalar isUsed = key < usedOf(tile);
  if (!place.isPaged())
    return {outer, b.select(isUsed, key, outside())};
  // Of an entry without keys the table says nothing.
  return {b.select(isUsed, outer, b.i32(0)),
          b.select(isUsed, key % place.pageRows, outside())};
}

SmallVector<Scalar> RowLocator::outersOf(const Tile &tile, Scalar first) const {
  SmallVector<Scalar> outers;
  // Boxes of one page share its number, where pages begin with blocks.
  int64_t ofPage = place.isPaged() && key % place.pageRows == 0
                       ? place.pageRows / boxRows
                       : 1;
  for (int64_t box = 0; box < key / boxRows; ++box)
    outers.push_back(box % ofPage == 0 ? outerOf(tile, first + box * boxRows)
                                       : outers.back());
  return outers;
}

//===----------------------------------------------------------------------===//
// What the copy engine brings
//===----------------------------------------------------------------------===//

void RowLocator::declareMapOfKeys(Arguments &arguments,
                                  const Problem &problem) const {
  arguments.map(b, "k", boxRows, problem.headDim,
                elementType(b.getContext(), kvTypeOf(problem)));
}

void RowLocator::declareMapsOfValues(Arguments &arguments,
                                     const Problem &problem) const {
  Type element = elementType(b.getContext(), kvTypeOf(problem));
  arguments.map(b, "v", boxRows, problem.headDimV, element);
  ArgumentRole v(Role::v);
  for (auto [facet, rows] :
       {std::pair(Facet::octetMap, kOctet), {Facet::rowMap, 1}})
    arguments.scalar(
        v.at(facet),
        TensorMapType::get(b.getContext(), rows, problem.headDimV, element));
}

void RowLocator::loadRows(const Block &block, const ArgumentRole &map,
                          const Source &source, Scalar target) const {
  block.ring.loadRows(b, block.slot, arguments.get(b, map), source.outer,
                      block.head, source.row, block.buffer, target,
                      block.columns);
}

void RowLocator::loadKeys(const Ring &ring, Place slot, const Tile &tile,
                          Scalar head, Scalar number, Value buffer,
                          const BoxColumns &columns) const {
  Block block{ring, slot, tile, head, number * key, buffer, columns};
  ArgumentRole map(Role::k, Facet::map);
  if (!place.isPaged())
    return ring.load(b, slot, arguments.get(b, map), tile.batch, head,
                     block.first, buffer, /*rank=*/{}, columns.first,
                     columns.count);
  SmallVector<Scalar> outers = outersOf(tile, block.first);
  ring.announce(b, slot, buffer, columns);
  for (auto [box, outer] : llvm::enumerate(outers)) {
    int64_t row = int64_t(box) * boxRows;
    loadRows(block, map, sourceOf(tile, outer, block.first + row), b.i32(row));
  }
}

void RowLocator::loadValues(const Ring &ring, Place slot, const Tile &tile,
                            Scalar head, Scalar number, Value buffer,
                            const BoxColumns &columns) const {
  Block block{ring, slot, tile, head, number * key, buffer, columns};
  ArgumentRole map(Role::v, Facet::map);
  SmallVector<Scalar> outers = outersOf(tile, block.first);
  // Where the array ends the copy engine knows.
  Scalar used = usedOf(tile) - block.first;
  Scalar cutBox = b.max(used, b.i32(0)) / boxRows;
  Scalar ofCutBox = used - cutBox * boxRows;
  Scalar isCut = (b.i32(0) < ofCutBox) & (cutBox < b.i32(key / boxRows)) &
                 (usedOf(tile) < arguments.get(b, Role::keys));
  Scalar cutOuter = outers.front();
  if (outers.size() > 1)
    cutOuter = outerOf(tile, block.first + cutBox * boxRows);
  ring.announce(b, slot, buffer, columns);
  Scalar notWhole = b.select(isCut, cutBox, b.i32(-1));
  for (auto [box, outer] : llvm::enumerate(outers)) {
    Scalar row = b.i32(int64_t(box) * boxRows);
    Scalar isOther = (notWhole == b.i32(int64_t(box))) ^ b.boolean(true);
    b.when(isOther, [&, outer = outer] {
      loadRows(block, map, sourceOf(tile, outer, block.first + row), row);
    });
  }
  b.when(isCut, [&] { loadCutBox(block, cutOuter, cutBox, ofCutBox); });
}

void RowLocator::prefetchKeys(const Tile &tile, Scalar head, Scalar block,
                              const ArgumentRole &map, Scalar column,
                              int64_t columns) const {
  Scalar first = block * key;
  for (auto [box, outer] : llvm::enumerate(outersOf(tile, first))) {
    Source source = sourceOf(tile, outer, first + int64_t(box) * boxRows);
    TmaPrefetchOp::create(b, arguments.get(b, map), source.outer, head,
                          source.row, column, uint64_t(columns));
  }
}

void RowLocator::loadCutBox(const Block &block, Scalar outer, Scalar box,
                            Scalar used) const {
  Scalar target = box * boxRows;
  Source source = sourceOf(block.tile, outer, block.first + target);
  auto load = [&](Facet facet, Scalar from, Scalar to) {
    loadRows(block, ArgumentRole(Role::v, facet), {source.outer, from},
             target + to);
  };
  auto forEach = [&](Scalar lower, Scalar upper,
                     function_ref<void(Scalar)> body) {
    b.loop(lower, upper, {},
           [&](Scalar index, ValueRange) -> SmallVector<Value> {
             body(index);
             return {};
           });
  };
  Scalar whole = used / kOctet, some = b.ceilDiv(used, kOctet);
  forEach(b.i32(0), whole, [&](Scalar octet) {
    Scalar row = octet * kOctet;
    load(Facet::octetMap, source.row + row, row);
  });
  forEach(whole * kOctet, some * kOctet, [&](Scalar row) {
    load(Facet::rowMap, b.select(row < used, source.row + row, outside()), row);
  });
  forEach(some, b.i32(boxRows / kOctet), [&](Scalar octet) {
    load(Facet::octetMap, outside(), octet * kOctet);
  });
}
