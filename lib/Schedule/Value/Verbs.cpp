//===- Verbs.cpp - What verbs have in common ------------------------------===//

#include "attn/Schedule/Verbs.h"
#include <algorithm>

using namespace attn;

int64_t ColumnRange::of(int64_t whole) const {
  int64_t left = std::max<int64_t>(0, whole - first);
  return count ? std::min(count, left) : left;
}

/// What `get` finds in the verb, or a value of that type where it does not
/// compile: the verb has no such field.
template <typename Value, typename Get>
static Value fieldOf(const Node &node, Get get) {
  return node.match([&](const auto &verb) -> Value {
    if constexpr (std::is_invocable_v<Get, decltype(verb)>)
      return get(verb);
    else
      return Value();
  });
}

Tensor attn::tensorOf(const Node &node) {
  return fieldOf<Tensor>(node, [](const auto &verb) -> decltype(verb.tensor) {
    return verb.tensor;
  });
}

const Body &attn::bodyOf(const Node &node) {
  static const Body none;
  const Body *body =
      fieldOf<const Body *>(node, [](const auto &verb) -> decltype(&verb.body) {
        return &verb.body;
      });
  return body ? *body : none;
}

InScratch attn::scratchOf(const Node &node) {
  return fieldOf<InScratch>(
      node,
      [](const auto &verb) -> decltype(verb.scratch) { return verb.scratch; });
}

ColumnRange attn::columnsOf(const Node &node) {
  return fieldOf<ColumnRange>(
      node,
      [](const auto &verb) -> decltype(verb.columns) { return verb.columns; });
}

int64_t attn::columnGroupsOf(const Node &node) {
  int64_t own = fieldOf<int64_t>(
      node, [](const auto &verb) -> decltype(verb.columnGroups) {
        return verb.columnGroups;
      });
  return own ? own : scratchOf(node).columnGroups;
}

bool attn::isAlways(const Node &node) {
  return fieldOf<bool>(node, [](const auto &verb) -> decltype(verb.isAlways) {
    return verb.isAlways;
  });
}

bool attn::isBetween(const Node &node) {
  return fieldOf<bool>(node, [](const auto &verb) -> decltype(verb.isBetween) {
    return verb.isBetween;
  });
}

Move attn::moveOf(const Node &node) {
  using namespace verb;
  return node.match(
      [](OneOf<Load, Stream, Absorb>) { return Move::down; },
      [](OneOf<Spill, Reduce, Store>) { return Move::up; },
      [](OneOf<Loop, Share, Hold, Transpose, Widen, Split, Multiply, Softmax,
               Weigh, Differentiate, Rescale>) { return Move::none; });
}

Level attn::levelOf(const Node &node) {
  using namespace verb;
  return node.match(
      [](const Hold &hold) { return hold.level; },
      [](const Load &load) { return load.level; },
      [](const Stream &stream) { return stream.level; },
      [](const Rescale &scaled) {
        return scaled.isStaged ? Level::Smem : Level::Registers;
      },
      [](const Spill &spill) {
        return spill.isStaged ? Level::Smem : Level::Registers;
      },
      [](OneOf<Transpose, Widen, Split>) { return Level::Smem; },
      [](OneOf<Loop, Share, Absorb, Multiply, Softmax, Weigh, Differentiate,
               Reduce, Store>) { return Level::Registers; });
}

bool attn::putsInSmem(const Node &node) {
  using namespace verb;
  return node.match(
      [](const Hold &hold) { return hold.level == Level::Smem; },
      [](const Load &load) { return load.level == Level::Smem; },
      [](const Stream &stream) { return stream.level == Level::Smem; },
      [](const Rescale &scaled) { return scaled.isStaged; },
      [](OneOf<Transpose, Widen, Split>) { return true; },
      [](OneOf<Loop, Share, Absorb, Multiply, Softmax, Weigh, Differentiate,
               Spill, Reduce, Store>) { return false; });
}

bool attn::occupies(const Node &node) {
  using namespace verb;
  return node.match(
      [](OneOf<Hold, Load, Stream>) { return true; },
      // What is rewritten is counted already.
      [](OneOf<Loop, Share, Absorb, Transpose, Widen, Split, Multiply, Softmax,
               Weigh, Differentiate, Rescale, Spill, Reduce, Store>) {
        return false;
      });
}

bool attn::isIdle(const Node &node, const Problem &problem) {
  using namespace verb;
  return (node.is<Transpose>() && !needsTranspose(problem)) ||
         (node.is<Widen>() && !needsWidening(problem)) ||
         (node.is<Split>() && !needsSplit(problem));
}

int64_t attn::bytesMoved(const Node &node, const Problem &problem) {
  if (scratchOf(node).partColumns > 0)
    return kScaledParts * kPartBytes;
  Tensor tensor = tensorOf(node);
  bool isForward = problem.direction == Direction::forward;
  bool isSum = tensor == Tensor::GradQ || (tensor == Tensor::O && isForward);
  if (isSum && !node.is<verb::Store>())
    return 4;
  return bytesPerElement(tensor, problem);
}

int64_t attn::columnsMoved(const Node &node, int64_t columns) {
  int64_t step = scratchOf(node).partColumns;
  return step > 0 ? (columns + step - 1) / step * step : columns;
}
