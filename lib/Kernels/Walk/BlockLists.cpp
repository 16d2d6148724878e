//===- BlockLists.cpp - Blocks that a pattern lists -----------------------===//

#include "Walk/BlockLists.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

BlockList::BlockList(TileBuilder &b, ArrayRef<Run> runs) {
  steps = b.i32(0);
  for (const Run &run : runs) {
    stages.push_back({steps, run.begin - steps});
    steps = steps + run.count();
  }
  if (runs.empty()) // no step asks
    stages.push_back({steps, steps});
}

Scalar BlockList::block(TileBuilder &b, Scalar step) const {
  if (Value(before))
    step = step + before;
  if (!stages.empty()) {
    // Of runs that begin at the same step the last one has blocks.
    Scalar more = stages.front().more;
    for (const Stage &stage : llvm::drop_begin(stages))
      more = b.select(stage.step <= step, stage.more, more);
    return step + more;
  }
  Scalar place = begin + b.wide(step / ofNumber);
  Scalar number =
      b.wrap(LoadNumberOp::create(b, b.getI32Type(), numbers, place));
  return ofNumber == 1 ? number : number * ofNumber + step % ofNumber;
}

BlockList BlockList::from(TileBuilder &b, Scalar step) const {
  BlockList rest = *this;
  rest.before = Value(before) ? before + step : step;
  rest.steps = b.max(steps - step, b.i32(0));
  return rest;
}

Scalar ListWalk::steps() const {
  Scalar sum = lists.front().steps;
  for (const BlockList &list : llvm::drop_begin(lists))
    sum = sum + list.steps;
  return sum;
}

Scalar ListWalk::block(Scalar step) const {
  const BlockList &first = lists.front();
  if (lists.size() == 1)
    return first.block(*b, step);
  return b->wrap(b->choose(
      step < first.steps,
      [&]() -> SmallVector<Value> { return {first.block(*b, step)}; },
      [&]() -> SmallVector<Value> {
        return {lists[1].block(*b, step - first.steps)};
      })[0]);
}

Scalar ListWalk::ifAny(Scalar step) const {
  Scalar none = b->i32(0);
  return b->wrap(b->choose(
      none < steps(), [&]() -> SmallVector<Value> { return {block(step)}; },
      [&]() -> SmallVector<Value> { return {none}; })[0]);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

BlockLists::Roles BlockLists::rolesOf(ListSide side) {
  if (side == ListSide::keys)
    return {Role::transposedPartialCounts, Role::transposedPartialBlocks,
            Role::transposedFullCounts, Role::transposedFullBlocks};
  return {Role::partialCounts, Role::partialBlocks, Role::fullCounts,
          Role::fullBlocks};
}

void BlockLists::declare(Arguments &arguments, TileBuilder &b, ListSide side) {
  Roles roles = rolesOf(side);
  for (Role role : {roles.partialCounts, roles.partialBlocks, roles.fullCounts,
                    roles.fullBlocks})
    arguments.operand(role, b.getI32Type());
}

BlockLists::BlockLists(TileBuilder &b, const Arguments &arguments,
                       const BlockSize &size, int64_t step, ListSide side)
    : size(size), b(b), arguments(arguments), roles(rolesOf(side)),
      rows(side == ListSide::keys ? size.keys : size.queries),
      ofNumber((side == ListSide::keys ? size.queries : size.keys) / step) {}

Scalar BlockLists::stepsOf(Role counts, const Tile &tile) const {
  Scalar place =
      arguments.offset(b, counts, tile.batch, tile.head, rowOf(tile));
  Scalar count = b.wrap(
      LoadNumberOp::create(b, b.getI32Type(), arguments.get(b, counts), place));
  return count * ofNumber;
}

Tile BlockLists::counted(Tile tile) const {
  Scalar zero = b.i32(0);
  ValueRange steps = b.choose(
      b.i32(-1) < tile.row,
      [&]() -> SmallVector<Value> {
        return {stepsOf(roles.partialCounts, tile),
                stepsOf(roles.fullCounts, tile)};
      },
      [&]() -> SmallVector<Value> { return {zero, zero}; });
  tile.partialSteps = b.wrap(steps[0]);
  tile.fullSteps = b.wrap(steps[1]);
  return tile;
}

Tile BlockLists::countedOfAll(Tile tile, Scalar sharers) const {
  Scalar zero = b.i32(0), first = tile.head * sharers;
  // No head, where there is no tile.
  Scalar heads = b.select(b.i32(-1) < tile.row, sharers, zero);
  ValueRange steps =
      b.loop(zero, heads, {zero, zero},
             [&](Scalar member, ValueRange sums) -> SmallVector<Value> {
               Tile ofHead{tile.row, first + member, tile.batch};
               return {b.wrap(sums[0]) + stepsOf(roles.partialCounts, ofHead),
                       b.wrap(sums[1]) + stepsOf(roles.fullCounts, ofHead)};
             });
  tile.partialSteps = b.wrap(steps[0]);
  tile.fullSteps = b.wrap(steps[1]);
  return tile;
}

BlockList BlockLists::listOf(Role blocks, const Tile &tile,
                             Scalar steps) const {
  Scalar begin =
      arguments.offset(b, blocks, tile.batch, tile.head, rowOf(tile));
  return {arguments.get(b, blocks), begin, steps, ofNumber};
}

BlockList BlockLists::partialOf(const Tile &tile) const {
  return listOf(roles.partialBlocks, tile, tile.partialSteps);
}

BlockList BlockLists::fullOf(const Tile &tile) const {
  return listOf(roles.fullBlocks, tile, tile.fullSteps);
}

ClassedBlocks BlockLists::allOf(const Tile &tile) const {
  return ClassedBlocks::of(b, partialOf(tile), fullOf(tile));
}

ClassedBlocks ClassedBlocks::of(TileBuilder &b, const BlockList &cut,
                                const BlockList &open) {
  ListWalk walk(b, {cut, open});
  return {walk.steps(), [walk, steps = cut.steps](Scalar step) -> Block {
            return {walk.block(step), step < steps};
          }};
}
