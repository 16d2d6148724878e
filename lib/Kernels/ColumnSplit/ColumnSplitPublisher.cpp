//===- ColumnSplitPublisher.cpp - The role that trades strips of P --------===//
//
// One lane per consumer warpgroup: tells the other parts of the group what this
// block has written, and its own consumers what the others have.
//
//===----------------------------------------------------------------------===//

#include "ColumnSplit/ColumnSplitFrame.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class Publisher {
public:
  explicit Publisher(const ColumnSplitFrame &frame) : f(frame), b(frame.b) {}

  void publish(int64_t group) {
    Value flags = f.arguments.get(b, kFlagsRole);
    Scalar own = f.flag(f.team->part, group), slot = b.i32(group);
    forEachTile(
        b, f.queue, Value(b.i32(0)), [&](const Tile &tile, ValueRange s) {
          Scalar first = b.wrap(s[0]), end = first + f.walkOf(tile).steps();
          b.loop(first, end, {}, [&](Scalar count, ValueRange) {
            MbarrierWaitOp::create(b, f.written, slot, f.parityOf(count));
            PublishOp::create(b, flags, own, count + 1);
            forOthers([&](Scalar part) {
              AwaitOp::create(b, b.getI32Type(), flags, f.flag(part, group),
                              count + 1);
            });
            MbarrierArriveOp::create(b, f.ready, slot, /*condition=*/Value());
            return SmallVector<Value>();
          });
          return SmallVector<Value>{end};
        });
    b.when(f.team->isWhole, [&] { leave(flags, group); });
  }

private:
  void forOthers(function_ref<void(Scalar part)> body) {
    for (int64_t distance = 1; distance < f.groupSize; ++distance)
      body(f.team->partAfter(b, b.i32(distance)));
  }

  /// Leaves the group's flags at 0, when nobody will read them any more.
  void leave(Value flags, int64_t group) {
    Scalar zero = b.i32(0), left = b.i32(kLeft);
    Scalar isFirst = f.team->part == zero;
    b.when(zero < f.team->part, [&] {
      PublishOp::create(b, flags, f.flag(f.team->part, group), left);
    });
    b.when(isFirst, [&] {
      forOthers([&](Scalar part) {
        AwaitOp::create(b, b.getI32Type(), flags, f.flag(part, group), left);
      });
      for (int64_t part = 0; part < f.groupSize; ++part)
        PublishOp::create(b, flags, f.flag(b.i32(part), group), zero);
      if (group > 0)
        return;
      for (int64_t slot = 0; slot < kDrawnSlots; ++slot)
        PublishOp::create(b, flags, f.drawnFlag(f.team->rowGroup, b.i32(slot)),
                          zero);
    });
  }

  static constexpr int64_t kDrawnSlots = ColumnSplitFrame::kDrawnSlots;
  static constexpr int64_t kLeft = ColumnSplitFrame::kLeft;
  const ColumnSplitFrame &f;
  TileBuilder &b;
};

} // namespace

void attn::publishStrips(const ColumnSplitFrame &frame, int64_t group) {
  Publisher(frame).publish(group);
}
