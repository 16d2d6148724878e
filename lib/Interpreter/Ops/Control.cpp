//===- Control.cpp - Scalars, loops, conditions, position -----------------===//

#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runScalar(Warp &warp, const Instruction &in) {
  SmallVector<Lanes, 3> operands;
  for (unsigned slot : in.operands) {
    Number &number = std::get<Number>(warp.cell(slot));
    operands.push_back({&number.integer, &number.real});
  }
  Number result;
  if (const char *error =
          evaluate(*in.scalar, operands, {&result.integer, &result.real}, 1))
    return warp.stop(in, "scalar", error);
  return warp.set(in, result);
}

/// Copies values all at once: a yield may permute them.
static void assign(Warp &warp, ArrayRef<unsigned> from, ArrayRef<unsigned> to) {
  SmallVector<Cell> values;
  for (unsigned slot : from)
    values.push_back(warp.cell(slot));
  for (auto [slot, value] : llvm::zip_equal(to, values))
    warp.cell(slot) = std::move(value);
}

//===----------------------------------------------------------------------===//
// scf.for: operands are lower, upper, step and the initial values
//===----------------------------------------------------------------------===//

Step attn::interpreter::runFor(Warp &warp, const Instruction &in) {
  int64_t lower = warp.integer(in, 0), upper = warp.integer(in, 1),
          step = warp.integer(in, 2);
  ArrayRef<unsigned> initial = ArrayRef(in.operands).drop_front(3);
  if (step <= 0)
    return warp.stop(in, "step",
                     "expects a step of at least 1, but got " + Twine(step));
  if (lower >= upper) {
    assign(warp, initial, in.results);
    return Step::next;
  }
  const Code &body = *in.regions[0];
  assign(warp, initial, ArrayRef(body.arguments).drop_front());
  warp.cell(body.arguments[0]) = Number{lower};
  warp.frames.push_back({&body, 0, &in, lower, upper, step});
  return Step::next;
}

Step attn::interpreter::runForYield(Warp &warp, const Instruction &in) {
  Frame &frame = warp.frames.back();
  const Code &body = *frame.code;
  // Written so that it cannot overflow.
  if (frame.step < frame.upper - frame.iteration) {
    frame.iteration += frame.step;
    frame.next = 0;
    assign(warp, in.operands, ArrayRef(body.arguments).drop_front());
    warp.cell(body.arguments[0]) = Number{frame.iteration};
    return Step::next;
  }
  assign(warp, in.operands, frame.owner->results);
  warp.frames.pop_back();
  return Step::next;
}

//===----------------------------------------------------------------------===//
// scf.while: the region before decides, the region behind goes round
//===----------------------------------------------------------------------===//

Step attn::interpreter::runWhile(Warp &warp, const Instruction &in) {
  const Code &before = *in.regions[0];
  assign(warp, in.operands, before.arguments);
  warp.frames.push_back({&before, 0, &in});
  return Step::next;
}

Step attn::interpreter::runCondition(Warp &warp, const Instruction &in) {
  const Instruction &loop = *warp.frames.back().owner;
  ArrayRef<unsigned> values = ArrayRef(in.operands).drop_front();
  warp.frames.pop_back();
  if (!warp.integer(in, 0)) {
    assign(warp, values, loop.results);
    return Step::next;
  }
  const Code &after = *loop.regions[1];
  assign(warp, values, after.arguments);
  warp.frames.push_back({&after, 0, &loop});
  return Step::next;
}

Step attn::interpreter::runWhileYield(Warp &warp, const Instruction &in) {
  const Instruction &loop = *warp.frames.back().owner;
  const Code &before = *loop.regions[0];
  warp.frames.pop_back();
  assign(warp, in.operands, before.arguments);
  warp.frames.push_back({&before, 0, &loop});
  return Step::next;
}

//===----------------------------------------------------------------------===//
// scf.if
//===----------------------------------------------------------------------===//

Step attn::interpreter::runIf(Warp &warp, const Instruction &in) {
  const Code *taken = in.regions[warp.integer(in, 0) ? 0 : 1].get();
  if (taken)
    warp.frames.push_back({taken, 0, &in});
  return Step::next;
}

Step attn::interpreter::runIfYield(Warp &warp, const Instruction &in) {
  assign(warp, in.operands, warp.frames.back().owner->results);
  warp.frames.pop_back();
  return Step::next;
}

//===----------------------------------------------------------------------===//
// Position and end
//===----------------------------------------------------------------------===//

Step attn::interpreter::runProgramId(Warp &warp, const Instruction &in) {
  int64_t dim = int64_t(cast<tile::ProgramIdOp>(in.op).getDim());
  return warp.set(in, Number{warp.block.position[dim]});
}

Step attn::interpreter::runGridSize(Warp &warp, const Instruction &in) {
  int64_t dim = int64_t(cast<tile::GridSizeOp>(in.op).getDim());
  return warp.set(in, Number{warp.block.launch.grid[dim]});
}

Step attn::interpreter::runWarpId(Warp &warp, const Instruction &in) {
  return warp.set(in, Number{int64_t(warp.id)});
}

/// As if multiprocessors had blocks in turn.
Step attn::interpreter::runSide(Warp &warp, const Instruction &in) {
  return warp.set(in, Number{warp.block.position[0] % 2});
}

Step attn::interpreter::runClusterRank(Warp &warp, const Instruction &in) {
  const ThreadBlock &block = warp.block;
  return warp.set(in, Number{block.position[0] % block.program.cluster});
}

/// A copy that is in flight when its warp is gone may land in the memory of
/// the next block.
Step attn::interpreter::runReturn(Warp &warp, const Instruction &in) {
  auto report = [&](unsigned copy, StringRef kind, StringRef state) {
    Operation *op =
        warp.block.program.ops[warp.block.shared.copy(copy).instruction];
    warp.report(in, kind,
                "expects every copy to be waited for, but got one that is " +
                    state,
                op, "the copy is here");
  };
  if (!warp.openGroup.empty())
    report(warp.openGroup.front(), "uncommitted", "in no group");
  for (const std::vector<unsigned> &group : warp.groups)
    if (!group.empty())
      report(group.front(), "in flight", "in flight");
  for (const InFlight &read : warp.products)
    warp.report(in, "product",
                "expects every product to be waited for, but got one in flight",
                read.op, "the product is here");
  for (const InFlight &read : warp.stores)
    warp.report(in, "store",
                "expects every store to be waited for, but got one in flight",
                read.op, "the store is here");
  return Step::finished;
}
