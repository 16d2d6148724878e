//===- ListedSteps.cpp - Steps of gradients that lists name ---------------===//

#include "Gradients/ListedSteps.h"

#include "attn/Schedule/Footprint.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Head, block, whether it is cut, whether it is the last.
static constexpr int64_t kNumbers = 4;

Value attn::stepQueue(TileBuilder &b, int64_t readers) {
  auto type = QueueType::get(b.getContext(), kStepMessages, kNumbers);
  return QueueOp::create(b, type, "step", uint32_t(readers), /*rings=*/1);
}

//===----------------------------------------------------------------------===//
// Who walks lists
//===----------------------------------------------------------------------===//

namespace {

class Feed {
public:
  Feed(const GradientFrame &f, const Tile &tile, StepBody body)
      : f(f), b(f.b), tile(tile), body(body) {}

  StepsEnd walk(Place message, ValueRange init) {
    Scalar zero = b.i32(0);
    SmallVector<Value> start = {message.slot, message.parity, zero, b.i32(-1),
                                zero};
    llvm::append_range(start, init);
    ValueRange s = ValueRange(start);
    if (f.ownsKeys) {
      Scalar first = tile.head * f.sharers;
      s = b.loop(zero, f.sharers, s, [&](Scalar member, ValueRange s) {
        Scalar head = first + member;
        return llvm::to_vector(walkHead(head, head, s));
      });
    } else {
      s = walkHead(tile.head, tile.head / f.sharers, s);
    }
    s = b.choose(
        isPending(s), [&] { return tell(s, b.i32(1)); },
        [&] { return llvm::to_vector(s); });
    return {{b.wrap(s[0]), b.wrap(s[1])}, s.drop_front(kState)};
  }

private:
  /// Place in the queue, and the step that is known and not told yet.
  static constexpr size_t kState = 5;

  Scalar isPending(ValueRange s) { return b.i32(-1) < b.wrap(s[3]); }

  /// The lists of a head; what streams is of `from`.
  ValueRange walkHead(Scalar head, Scalar from, ValueRange s) {
    Tile ofHead = f.lists->counted({tile.row, head, tile.batch});
    ClassedBlocks walk = f.lists->allOf(ofHead);
    Scalar blocks = b.ceilDiv(f.streamedRows, f.streamed);
    return b.loop(b.i32(0), walk.steps, s,
                  [&](Scalar number, ValueRange s) -> SmallVector<Value> {
                    auto [block, asksMask] = walk.at(number);
                    Scalar exists = block < blocks;
                    Scalar isCut = b.select(asksMask, b.i32(1), b.i32(0));
                    auto told = llvm::to_vector(b.choose(
                        exists & isPending(s),
                        [&] { return tell(s, b.i32(0)); },
                        [&] { return llvm::to_vector(s); }));
                    Scalar known[] = {from, block, isCut};
                    for (auto [i, now] : llvm::enumerate(known))
                      told[2 + i] = b.select(exists, now, b.wrap(told[2 + i]));
                    return told;
                  });
  }

  SmallVector<Value> tell(ValueRange s, Scalar isLast) {
    auto at = [&](int i) { return b.wrap(s[i]); };
    Place message{at(0), at(1)};
    PushOp::create(b, f.steps, message.slot, message.parity,
                   ValueRange{s[2], s[3], s[4], isLast});
    message = message.next(b, kStepMessages);
    SmallVector<Value> next = {message.slot, message.parity, s[2], s[3], s[4]};
    llvm::append_range(next, body({at(2), at(3)}, s.drop_front(kState)));
    return next;
  }

  const GradientFrame &f;
  TileBuilder &b;
  const Tile &tile;
  StepBody body;
};

} // namespace

StepsEnd attn::feedSteps(const GradientFrame &f, const Tile &tile,
                         Place message, ValueRange init, StepBody body) {
  return Feed(f, tile, body).walk(message, init);
}

//===----------------------------------------------------------------------===//
// Who is told
//===----------------------------------------------------------------------===//

StepsEnd attn::followSteps(const GradientFrame &f, const Tile &tile,
                           Place message, ValueRange init, HeardBody body) {
  TileBuilder &b = f.b;
  Scalar zero = b.i32(0), one = b.i32(1);
  SmallVector<Value> start = {b.select(f.hasSteps(tile), one, zero),
                              message.slot, message.parity};
  llvm::append_range(start, init);
  ValueRange last = b.repeat(
      start, [&](ValueRange s) { return zero < b.wrap(s[0]); },
      [&](ValueRange s) -> SmallVector<Value> {
        Place message{b.wrap(s[1]), b.wrap(s[2])};
        Scalar more;
        auto hear = [&]() -> GradientStep {
          SmallVector<Type> types(kNumbers, b.getI32Type());
          auto op =
              PopOp::create(b, types, f.steps, message.slot, message.parity);
          auto at = [&](int i) { return b.wrap(op.getResults()[i]); };
          more = one - at(3);
          return {at(0), at(1), at(2) == one, at(3) == one};
        };
        SmallVector<Value> carried = body(hear, s.drop_front(3));
        Place next = message.next(b, kStepMessages);
        SmallVector<Value> result = {more, next.slot, next.parity};
        llvm::append_range(result, carried);
        return result;
      });
  return {{b.wrap(last[1]), b.wrap(last[2])}, last.drop_front(3)};
}
