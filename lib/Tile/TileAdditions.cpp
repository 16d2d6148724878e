//===- TileAdditions.cpp - Sums of what elements have ---------------------===//

#include "attn/Tile/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult TotalOp::verify() {
  RowType type = getValues().getType();
  if (type.getElementType().isF32())
    return success();
  return emitOpError("expects a row of f32, but got ") << type;
}

LogicalResult AddElementsOp::verify() {
  if (!getBase().getType().getElementType().isF32())
    return emitOpError("expects an array of f32, but got ")
           << getBase().getType();
  auto first = getInputs().empty()
                   ? FragType()
                   : dyn_cast<FragType>(getInputs().front().getType());
  if (!first || first.getLayout() != FragmentLayout::acc)
    return emitOpError("expects a fragment in layout acc in front");
  Type i32 = IntegerType::get(getContext(), 32);
  SmallVector<Type> expected(2, i32);
  for (Type type : getInputs().getTypes()) {
    auto fragment = dyn_cast<FragType>(type);
    auto row = dyn_cast<RowType>(type);
    bool isLike = fragment
                      ? fragment == first
                      : row.getRows() == first.getRows() && !row.getPartial();
    if (!isLike)
      return emitOpError("expects fragments of type ")
             << first << " and whole rows of as many, but got " << type;
    expected.push_back(fragment ? fragment.getElementType()
                                : row.getElementType());
  }
  Block &body = getBody().front();
  if (TypeRange(expected) != TypeRange(body.getArgumentTypes()))
    return emitOpError("expects block arguments (")
           << expected << "), but got (" << body.getArgumentTypes() << ")";
  if (!isa<AddOp>(body.back()))
    return emitOpError("expects to end in tile.add, but got '")
           << body.back().getName() << "'";
  for (Operation &op : body)
    if (op.getNumRegions() != 0 || !isMemoryEffectFree(&op))
      return op.emitOpError("expects a scalar op without effects inside "
                            "tile.add_elements");
  return success();
}

Traffic AddElementsOp::getTraffic(const TrafficScalars &) {
  auto fragment = cast<FragType>(getInputs().front().getType());
  constexpr int64_t valueBytes = 4;
  return {fragment.getRows() * fragment.getColumns() * valueBytes, 0};
}
