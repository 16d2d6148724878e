//===- TrafficSlice.h - What the counts of bytes depend on ------*- C++ -*-===//
//
// Most of a kernel is arithmetic on fragments, which moves nothing.  Who counts
// its bytes (Traffic.cpp) executes the ops of this slice only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TILE_TRAFFICSLICE_H
#define ATTN_LIB_TILE_TRAFFICSLICE_H

#include "attn/Tile/Tile.h"

#include "llvm/ADT/DenseSet.h"

namespace attn::tile {

/// The ops whose execution the counts depend on: traffic ops, control flow
/// around them, and the scalars both read.
class TrafficSlice {
public:
  explicit TrafficSlice(KernelOp kernel) {
    kernel.getBody().walk([&](TrafficInterface op) {
      keepWithParents(op);
      for (mlir::Value v : op.getTrafficOperands())
        add(v);
    });
  }
  bool contains(mlir::Operation *op) const { return keep.contains(op); }
  bool contains(mlir::Value value) const { return seen.contains(value); }

private:
  void keepWithParents(mlir::Operation *op) {
    keep.insert(op);
    for (mlir::Operation *o = op->getParentOp(); o && !llvm::isa<KernelOp>(o);
         o = o->getParentOp())
      if (keep.insert(o).second)
        addControl(o);
  }

  void addControl(mlir::Operation *op) {
    if (auto loop = llvm::dyn_cast<mlir::scf::WhileOp>(op)) {
      add(loop.getConditionOp().getCondition());
    } else if (auto loop = llvm::dyn_cast<mlir::scf::ForOp>(op)) {
      add(loop.getLowerBound());
      add(loop.getUpperBound());
      add(loop.getStep());
    } else if (auto branch = llvm::dyn_cast<mlir::scf::IfOp>(op)) {
      add(branch.getCondition());
    }
  }

  void add(mlir::Value value) {
    if (!seen.insert(value).second)
      return;
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
      // A loop-carried scalar: its start and what the loop yields.
      mlir::Operation *parent = argument.getOwner()->getParentOp();
      if (auto loop = llvm::dyn_cast<mlir::scf::WhileOp>(parent))
        return addArgument(loop, argument);
      auto loop = llvm::dyn_cast<mlir::scf::ForOp>(parent);
      if (!loop || argument.getArgNumber() == 0)
        return;
      unsigned i = argument.getArgNumber() - 1;
      add(loop.getInitArgs()[i]);
      add(loop.getYieldedValues()[i]);
      return;
    }
    mlir::Operation *op = value.getDefiningOp();
    keepWithParents(op);
    if (auto loop = llvm::dyn_cast<mlir::scf::WhileOp>(op)) {
      addControl(op);
      unsigned i = llvm::cast<mlir::OpResult>(value).getResultNumber();
      return add(loop.getConditionOp().getArgs()[i]);
    }
    if (auto pop = llvm::dyn_cast<PopOp>(op))
      for (mlir::Operation *user : pop.getQueue().getUsers())
        if (auto push = llvm::dyn_cast<PushOp>(user)) {
          keepWithParents(push);
          add(push.getSlot());
          for (mlir::Value sent : push.getValues())
            add(sent);
        }
    if (auto await = llvm::dyn_cast<AwaitOp>(op))
      for (mlir::Operation *user : await.getFlags().getUsers())
        if (auto publish = llvm::dyn_cast<PublishOp>(user)) {
          keepWithParents(publish);
          add(publish.getIndex());
          add(publish.getValue());
        }
    if (auto drawn = llvm::dyn_cast<GetDrawOp>(op))
      for (mlir::Operation *user : drawn.getBuffer().getUsers())
        if (auto draw = llvm::dyn_cast<PutDrawOp>(user)) {
          keepWithParents(draw);
          add(draw.getBelow());
        }
    if (auto number = llvm::dyn_cast<GetNumberOp>(op))
      for (mlir::Operation *user : number.getBuffer().getUsers())
        if (auto rank = llvm::dyn_cast<RankOp>(user)) {
          keepWithParents(rank);
          for (mlir::Value operand : rank->getOperands())
            add(operand);
        }
    if (auto loop = llvm::dyn_cast<mlir::scf::ForOp>(op)) {
      addControl(op);
      return add(loop.getRegionIterArg(
          llvm::cast<mlir::OpResult>(value).getResultNumber()));
    }
    if (auto branch = llvm::dyn_cast<mlir::scf::IfOp>(op)) {
      unsigned i = llvm::cast<mlir::OpResult>(value).getResultNumber();
      addControl(op);
      add(branch.thenYield().getOperand(i));
      add(branch.elseYield().getOperand(i));
      return;
    }
    for (mlir::Value operand : op->getOperands())
      add(operand);
  }

  /// A scalar that a while loop carries: both regions have the same ones.
  /// What the condition reads and what it passes on are lists of their own.
  void addArgument(mlir::scf::WhileOp loop, mlir::BlockArgument argument) {
    unsigned i = argument.getArgNumber();
    if (argument.getOwner() == loop.getAfterBody())
      return add(loop.getConditionOp().getArgs()[i]);
    add(loop.getInits()[i]);
    add(loop.getYieldedValues()[i]);
  }

  llvm::DenseSet<mlir::Operation *> keep;
  llvm::DenseSet<mlir::Value> seen;
};

} // namespace attn::tile

#endif
