//===- TileProducts.cpp - Constraints of products of warpgroups -----------===//

#include "attn/Tile/Tile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::tile;

int64_t WgmmaOp::depth() {
  SmemType rhs = getRhs().getType();
  return getTranspose() ? rhs.getColumns() : rhs.getRows();
}

/// The sum that a product goes on with.
static LogicalResult verifyAccumulator(WgmmaOp op) {
  if (!op.getAcc())
    return success();
  PendingType result = op.getResult().getType();
  Type type = op.getAcc().getType();
  if (isa<PendingType>(type) && type != result)
    return op.emitOpError("expects an accumulator of the shape of ")
           << result << ", but got " << type;
  auto fragment = dyn_cast<FragType>(type);
  if (fragment && (fragment.getLayout() != FragmentLayout::acc ||
                   fragment.getRows() != result.getRows() ||
                   fragment.getColumns() != result.getColumns()))
    return op.emitOpError("expects an accumulator of the shape of ")
           << result << ", but got " << type;
  Operation *before = op.getAcc().getDefiningOp();
  if (!fragment && (!isa_and_nonnull<WgmmaOp>(before) ||
                    before->getBlock() != op->getBlock()))
    return op.emitOpError("expects a product started in the same block to go "
                          "on with");
  if (!fragment && !op.getAcc().hasOneUse())
    return before->emitOpError("expects to be waited for, or gone on with, "
                               "once");
  return success();
}

bool WgmmaOp::joins() {
  auto before = getAcc() ? getAcc().getDefiningOp<WgmmaOp>() : WgmmaOp();
  return before && before.getOpen();
}

/// The product that closes the group of an open one.
static LogicalResult verifyOpen(WgmmaOp op) {
  if (!op.getOpen())
    return success();
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    if (auto product = dyn_cast<WgmmaOp>(next);
        product && product.getAcc() == op.getResult())
      return success();
    if (isa<WgmmaOp, WgmmaWaitOp>(next))
      break;
  }
  return op.emitOpError("expects the next product to go on with it");
}

/// Where the columns of the right factor begin.
static LogicalResult verifyColumn(WgmmaOp op) {
  if (!op.getRhsColumn())
    return success();
  if (op.getTranspose())
    return op.emitOpError("expects no column with `transpose`");
  SmemType rhs = op.getRhs().getType();
  int64_t most = rhs.getColumns() - op.getResult().getType().getColumns();
  std::optional<int64_t> column = getConstantIntValue(op.getRhsColumn());
  if (column &&
      (*column < 0 || *column > most || *column % rhs.panelColumns() != 0))
    return op.emitOpError("expects a column in steps of ")
           << rhs.panelColumns() << " from 0 to " << most << ", but got "
           << *column;
  return success();
}

LogicalResult WgmmaOp::verify() {
  PendingType result = getResult().getType();
  SmemType rhs = getRhs().getType();
  Type element = rhs.getElementType();
  if (RoleOp role = RoleOp::of(*this); role && role.sharesWarpgroup())
    return emitOpError("expects to stand in a role of whole warpgroups, but "
                       "got one of ")
           << role.getWarps() << " warps";
  bool inRegisters = isa<FragType>(getLhs().getType());
  bool paired = inRegisters && rhs.elementBytes() == 1;
  if (!rhs.isSwizzled() || rhs.isPaired() != paired)
    return emitOpError("expects a right factor in layout sw128")
           << (paired ? "_paired" : "") << ", but got " << rhs;
  int64_t step = 32 / rhs.elementBytes();
  if (depth() % step != 0)
    return emitOpError("expects a contracted extent in multiples of ")
           << step << ", but got " << depth();
  if (rhs.elementBytes() == 1 && !getTranspose())
    return emitOpError("expects `transpose` for elements of 8 bits");
  int64_t columns = getTranspose() ? rhs.getRows() : rhs.getColumns();
  if (getTranspose() ? result.getColumns() != columns
                     : result.getColumns() > columns)
    return emitOpError("expects a product of ")
           << columns << " columns, but got " << result;
  if (failed(verifyColumn(*this)))
    return failure();
  if (failed(verifyAccumulator(*this)) || failed(verifyOpen(*this)))
    return failure();
  if (bool(getLhsStage()) != bool(getLhsRow()))
    return emitOpError("expects stage and row of the left factor together");
  if (auto lhs = dyn_cast<FragType>(getLhs().getType())) {
    if (getLhsStage() || getLhsTranspose())
      return emitOpError("expects no place for a left factor in registers");
    if (lhs.getLayout() != FragmentLayout::lhs ||
        lhs.getElementType() != element || lhs.getRows() != result.getRows() ||
        lhs.getColumns() != depth())
      return emitOpError("expects a left factor of ")
             << result.getRows() << " x " << depth() << " " << element
             << " in layout lhs, but got " << lhs;
    return success();
  }
  auto lhs = cast<SmemType>(getLhs().getType());
  if (!getLhsStage())
    return emitOpError("expects stage and row of the left factor");
  if (getLhsTranspose()) {
    if (lhs.getLayout() == SmemLayout::sw128 && lhs.elementBytes() == 2 &&
        lhs.getElementType() == element && lhs.getRows() == depth())
      return success();
    return emitOpError("expects the transpose of a left factor of ")
           << depth() << " rows of " << element
           << " of 16 bits in layout sw128, but got " << lhs;
  }
  if (lhs.getLayout() != SmemLayout::sw128 || lhs.getElementType() != element ||
      lhs.getColumns() < depth() || lhs.getRows() % 64 != 0)
    return emitOpError("expects a left factor of 64 rows or a multiple and ")
           << depth() << " columns of " << element
           << " in layout sw128, but got " << lhs;
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  if (getProducts().size() != getFragments().size())
    return emitOpError("expects a fragment for each product, but got ")
           << getProducts().size() << " and " << getFragments().size();
  if (getProducts().empty())
    return success();
  for (auto [product, fragment] : llvm::zip(getProducts(), getFragments())) {
    auto pending = cast<PendingType>(product.getType());
    auto frag = cast<FragType>(fragment.getType());
    if (frag.getLayout() != FragmentLayout::acc ||
        frag.getRows() != pending.getRows() ||
        frag.getColumns() != pending.getColumns())
      return emitOpError("expects the accumulator of ")
             << pending << ", but got " << frag;
    Operation *issue = product.getDefiningOp();
    if (!isa_and_nonnull<WgmmaOp>(issue) ||
        issue->getBlock() != (*this)->getBlock())
      return emitOpError("expects products started in the same block");
    if (!product.hasOneUse())
      return issue->emitOpError("expects to be waited for once");
  }
  // Everything older must be done, and exactly the younger ones in flight.
  int64_t younger = 0;
  Operation *last = getProducts().back().getDefiningOp();
  for (Operation &op : *(*this)->getBlock()) {
    if (&op == getOperation())
      break;
    auto issue = dyn_cast<WgmmaOp>(op);
    if (!issue || llvm::is_contained(getProducts(), issue.getResult()))
      continue;
    bool waited = llvm::any_of(issue->getUsers(), [&](Operation *user) {
      return user->getBlock() == (*this)->getBlock() &&
             user->isBeforeInBlock(*this);
    });
    if (waited)
      continue;
    if (issue->isBeforeInBlock(last))
      return emitOpError("expects the older product to be waited for first")
                 .attachNote(issue.getLoc())
             << "the product is here";
    ++younger;
  }
  if (younger != getInFlight())
    return emitOpError("expects in_flight to be the number of younger "
                       "products, ")
           << younger << ", but got " << getInFlight();
  return success();
}
