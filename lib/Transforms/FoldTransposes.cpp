//===- FoldTransposes.cpp - Attention reads transposed arrays in place ----===//
//
// A transpose that only attention reads moves memory for nothing: strides say
// as much.  One that only follows attention does so too, because O can be
// written where the transpose would put it.  Both become views.
//
// A view sees what is written to its array later.  So nothing may write to the
// array of an input behind the transpose, and the array of an output is one
// that is allocated for the purpose.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "attn/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace attn {
#define GEN_PASS_DEF_FOLDTRANSPOSESPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether rows stay rows.
static bool keepsRows(linalg::TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  return !permutation.empty() &&
         permutation.back() == int64_t(permutation.size()) - 1;
}

static bool hasUnitRows(Value array) {
  return cast<MemRefType>(array.getType()).isLastDimUnitStride();
}

/// The array that a chain of views is of.
static Value originOf(Value array) {
  while (auto view = array.getDefiningOp<ViewLikeOpInterface>())
    array = view.getViewSource();
  return array;
}

static bool isAllocated(Value array) {
  return array.getDefiningOp<memref::AllocOp>() != nullptr;
}

//===----------------------------------------------------------------------===//
// Views of views
//===----------------------------------------------------------------------===//

/// The type of a view of an array that now has that type; null if there is
/// none.
static MemRefType typeOfView(Operation *view, MemRefType source) {
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(view)) {
    FailureOr<MemRefType> type = memref::ExpandShapeOp::computeExpandedType(
        source, expand.getResultType().getShape(),
        expand.getReassociationIndices());
    return succeeded(type) ? *type : MemRefType();
  }
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(view)) {
    SmallVector<ReassociationIndices> groups =
        collapse.getReassociationIndices();
    return memref::CollapseShapeOp::isGuaranteedCollapsible(source, groups)
               ? memref::CollapseShapeOp::computeCollapsedType(source, groups)
               : MemRefType();
  }
  if (auto part = dyn_cast<memref::SubViewOp>(view)) {
    if (part.getDroppedDims().any())
      return {};
    return memref::SubViewOp::inferResultType(source, part.getMixedOffsets(),
                                              part.getMixedSizes(),
                                              part.getMixedStrides());
  }
  return {};
}

/// Whether all users of an array can take one of that type, and only read it.
static bool canTake(Value array, MemRefType type, Operation *except) {
  return llvm::all_of(array.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user == except)
      return true;
    // What clauses take keeps its type, which regions have too.
    if (auto attention = dyn_cast<AttentionOpInterface>(user))
      return use.getOperandNumber() < attention.givenInputs().size() &&
             type.isLastDimUnitStride();
    if (auto copy = dyn_cast<memref::CopyOp>(user))
      return copy.getSource() == array && copy.getTarget() != array;
    MemRefType next = typeOfView(user, type);
    return next && canTake(user->getResult(0), next, except);
  });
}

/// Gives views of an array, and views of these, the types that follow.
static void retypeViews(Value array) {
  for (Operation *user : array.getUsers()) {
    if (user->getNumResults() != 1)
      continue;
    user->getResult(0).setType(
        typeOfView(user, cast<MemRefType>(array.getType())));
    retypeViews(user->getResult(0));
  }
}

/// Gives all users of an array another one.
static void take(Value array, Value other, Operation *except) {
  array.replaceUsesWithIf(
      other, [&](OpOperand &use) { return use.getOwner() != except; });
  retypeViews(other);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Whether an op may write to an array that is no allocation of its own, or to
/// that one.
static bool mayWrite(Operation *op, Value array) {
  if (isa<memref::DeallocOp>(op))
    return originOf(op->getOperand(0)) == array;
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects =
      getEffectsRecursively(op);
  if (!effects)
    return true;
  return llvm::any_of(*effects, [&](const MemoryEffects::EffectInstance &each) {
    if (!isa<MemoryEffects::Write>(each.getEffect()))
      return false;
    if (!each.getValue())
      return true;
    Value written = originOf(each.getValue());
    return written == array || (!isAllocated(written) && !isAllocated(array));
  });
}

static bool foldInput(linalg::TransposeOp op) {
  Value source = op.getInput(), target = op.getInit();
  if (!isAllocated(target) || !keepsRows(op) || !hasUnitRows(source))
    return false;
  Value origin = originOf(source);
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
    if (mayWrite(next, origin))
      return false;
  for (Operation *user : target.getUsers())
    if (user->getBlock() != op->getBlock() ||
        (user != op && user->isBeforeInBlock(op)))
      return false;
  OpBuilder b(op);
  AffineMap permutation =
      AffineMap::getPermutationMap(op.getPermutation(), op.getContext());
  auto view = memref::TransposeOp::create(b, op.getLoc(), source,
                                          AffineMapAttr::get(permutation));
  if (!canTake(target, cast<MemRefType>(view.getType()), op)) {
    view->erase();
    return false;
  }
  take(target, view, op);
  op->erase();
  return true;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// The attention that writes an array as an output, if nothing but that and
/// one more op touches the array.
static AttentionOpInterface writerOf(Value array, Operation *other) {
  AttentionOpInterface writer;
  for (OpOperand &use : array.getUses()) {
    if (use.getOwner() == other)
      continue;
    auto attention = dyn_cast<AttentionOpInterface>(use.getOwner());
    if (!attention || writer ||
        use.getOperandNumber() < attention.inputs().size())
      return {};
    writer = attention;
  }
  return writer;
}

/// The view that undoes another one, of an array of the latter's type; null if
/// there is none.
static Value undo(OpBuilder &b, Operation *view, Value array) {
  auto type = cast<MemRefType>(array.getType());
  if (auto collapse = dyn_cast<memref::CollapseShapeOp>(view)) {
    SmallVector<ReassociationIndices> groups =
        collapse.getReassociationIndices();
    MemRefType source = collapse.getSrcType();
    FailureOr<MemRefType> expanded = memref::ExpandShapeOp::computeExpandedType(
        type, source.getShape(), groups);
    if (!source.hasStaticShape() || failed(expanded))
      return {};
    return memref::ExpandShapeOp::create(b, view->getLoc(), *expanded, array,
                                         groups);
  }
  if (auto expand = dyn_cast<memref::ExpandShapeOp>(view)) {
    SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
    if (!memref::CollapseShapeOp::isGuaranteedCollapsible(type, groups))
      return {};
    return memref::CollapseShapeOp::create(b, view->getLoc(), array, groups);
  }
  return {};
}

/// Whether a new array can be allocated as early as that op, because nothing
/// uses it before `last` and its sizes are known by then.
static bool canMove(memref::AllocOp allocation, Operation *to,
                    Operation *last) {
  for (Operation *user : allocation->getUsers())
    if (user->getBlock() != last->getBlock() ||
        (user != last && user->isBeforeInBlock(last)))
      return false;
  DominanceInfo dominance;
  return llvm::all_of(allocation->getOperands(), [&](Value size) {
    return dominance.properlyDominates(size, to);
  });
}

static bool foldOutput(linalg::TransposeOp op) {
  Value source = op.getInput(), target = op.getInit();
  if (!isAllocated(target) || !keepsRows(op))
    return false;
  // Reshapes between the attention and the transpose.
  SmallVector<Operation *> between;
  Operation *reader = op;
  for (; !isAllocated(source); source = reader->getOperand(0)) {
    reader = source.getDefiningOp();
    if (!isa_and_nonnull<memref::CollapseShapeOp, memref::ExpandShapeOp>(
            reader) ||
        !source.hasOneUse())
      return false;
    between.push_back(reader);
  }
  AttentionOpInterface writer = writerOf(source, reader);
  auto allocation = target.getDefiningOp<memref::AllocOp>();
  if (!writer || writer->getBlock() != op->getBlock() ||
      !writer->isBeforeInBlock(op) || !canMove(allocation, writer, op))
    return false;
  allocation->moveBefore(writer);
  OpBuilder b(writer);
  AffineMap back = inversePermutation(
      AffineMap::getPermutationMap(op.getPermutation(), op.getContext()));
  Value view = memref::TransposeOp::create(b, op.getLoc(), target,
                                           AffineMapAttr::get(back));
  for (Operation *each : between)
    if (!(view = undo(b, each, view)))
      return false;
  source.replaceUsesWithIf(
      view, [&](OpOperand &use) { return use.getOwner() == writer; });
  op->erase();
  for (Operation *each : between)
    each->erase();
  return true;
}

/// Erases arrays that a fold has left without use.
static void eraseUnused(ArrayRef<Value> arrays) {
  for (Value array : arrays)
    if (auto allocation = array.getDefiningOp<memref::AllocOp>())
      if (allocation->use_empty())
        allocation->erase();
}

namespace {

class FoldTransposesPass
    : public attn::impl::FoldTransposesPassBase<FoldTransposesPass> {
public:
  using FoldTransposesPassBase::FoldTransposesPassBase;

  void runOnOperation() override {
    SmallVector<linalg::TransposeOp> transposes;
    getOperation()->walk([&](linalg::TransposeOp op) {
      if (op.hasPureBufferSemantics())
        transposes.push_back(op);
    });
    for (linalg::TransposeOp op : transposes) {
      Value source = originOf(op.getInput()), target = op.getInit();
      if (foldOutput(op) || foldInput(op))
        eraseUnused({source, target});
    }
  }
};

} // namespace
