//===- Ring.cpp - Where a role stands in a ring of buffers ----------------===//

#include "Build/Ring.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

Ring::Ring(TileBuilder &b, StringRef name, int64_t slots, int64_t readers,
           int64_t writers, bool inCluster, int64_t rings)
    : slots(slots), inCluster(inCluster) {
  auto type = MbarrierType::get(b.getContext(), slots * rings);
  full = MbarrierOp::create(b, type, (name + "_full").str(), uint32_t(writers));
  empty =
      MbarrierOp::create(b, type, (name + "_empty").str(), uint32_t(readers));
}

Place Place::next(TileBuilder &b, int64_t slots, Scalar first) const {
  if (slots == 1)
    return {slot, parity ^ 1};
  if (slots == 2) // the first is even
    return {slot ^ 1, parity ^ (Value(first) ? slot & b.i32(1) : slot)};
  Scalar last = Value(first) ? first + (slots - 1) : b.i32(slots - 1);
  Scalar wraps = slot == last;
  return {b.select(wraps, Value(first) ? first : b.i32(0), slot + 1),
          b.select(wraps, parity ^ 1, parity)};
}

Place Place::loop(TileBuilder &b, Scalar lower, Scalar upper,
                  LoopBody body) const {
  ValueRange last =
      b.loop(lower, upper, {slot, parity},
             [&](Scalar index, ValueRange p) -> SmallVector<Value> {
               Place next = body(index, {b.wrap(p[0]), b.wrap(p[1])});
               return {next.slot, next.parity};
             });
  return {b.wrap(last[0]), b.wrap(last[1])};
}

Place Place::choose(TileBuilder &b, Scalar condition, Branch yes,
                    Branch no) const {
  auto after = [&](Branch branch) -> SmallVector<Value> {
    Place place = branch(*this);
    return {place.slot, place.parity};
  };
  ValueRange last = b.choose(
      condition, [&] { return after(yes); }, [&] { return after(no); });
  return {b.wrap(last[0]), b.wrap(last[1])};
}

void Ring::awaitFull(TileBuilder &b, Place place) const {
  MbarrierWaitOp::create(b, full, place.slot, place.parity);
}

void Ring::awaitEmpty(TileBuilder &b, Place place) const {
  MbarrierWaitOp::create(b, empty, place.slot, place.parity);
}

void Ring::handOver(TileBuilder &b, Place place) const {
  MbarrierArriveOp::create(b, full, place.slot, /*condition=*/Value());
}

void Ring::release(TileBuilder &b, Place place, Scalar condition) const {
  MbarrierArriveOp::create(b, empty, place.slot, Value(condition), inCluster);
}

void Ring::load(TileBuilder &b, Place place, Value map, Scalar batch,
                Scalar head, Scalar row, Value buffer, Scalar rank,
                Scalar column, std::optional<int64_t> columns) const {
  awaitEmpty(b, place);
  TmaLoadOp::create(b, map, batch, head, row, buffer, place.slot, full,
                    place.slot, Value(column), Value(rank),
                    columns ? b.getI64IntegerAttr(*columns) : IntegerAttr());
}

static IntegerAttr countOf(TileBuilder &b, const BoxColumns &columns) {
  return columns.count ? b.getI64IntegerAttr(*columns.count) : IntegerAttr();
}

void Ring::announce(TileBuilder &b, Place place, Value buffer,
                    const BoxColumns &columns) const {
  awaitEmpty(b, place);
  MbarrierExpectOp::create(b, full, place.slot, buffer, countOf(b, columns));
}

void Ring::loadRows(TileBuilder &b, Place place, Value map, Scalar batch,
                    Scalar head, Scalar row, Value buffer, Scalar targetRow,
                    const BoxColumns &columns) const {
  TmaLoadRowsOp::create(b, map, batch, head, row, buffer, place.slot, targetRow,
                        full, place.slot, Value(columns.first),
                        countOf(b, columns));
}

void Ring::startFrom(TileBuilder &b, Place place,
                     function_ref<void()> start) const {
  awaitFull(b, place);
  FenceAsyncOp::create(b);
  start();
}

void Ring::releaseStored(TileBuilder &b, Place place, int64_t younger) const {
  TmaStoreWaitOp::create(b, uint32_t(younger));
  release(b, place);
}
