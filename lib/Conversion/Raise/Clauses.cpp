//===- Clauses.cpp - What becomes of scores, as clauses -------------------===//
//
// A cap and a bias have short forms; a tensor of truths is read by a region:
//
//   captures(%m : tensor<1x100x100xi1>)
//   sees (%b, %h, %i, %j, %nq, %nk, %x) {
//     %zero = arith.constant 0 : index
//     %r = attn.read %x[%zero, %i, %j] : tensor<1x100x100xi1>
//     attn.yield %r : i1
//   }
//
//===----------------------------------------------------------------------===//

#include "Form.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace attn::raise;
using namespace attn;
using namespace mlir;

/// The region of keys that a capture shows.
static void buildSees(Region &region, Location loc, unsigned capture,
                      TypeRange captures) {
  ImplicitLocOpBuilder b(loc, loc.getContext());
  SmallVector<Type> types =
      argumentTypes(loc.getContext(), /*isScore=*/false, captures);
  b.createBlock(&region, region.end(), types,
                SmallVector<Location>(types.size(), loc));
  Value array = capturesIn(region)[capture];
  auto type = cast<RankedTensorType>(array.getType());
  // [b, h, i, j], of which an array has the last.
  ValueRange positions =
      ValueRange(region.getArguments()).take_front(4).take_back(type.getRank());
  SmallVector<Value> indices;
  for (auto [size, position] : llvm::zip_equal(type.getShape(), positions))
    indices.push_back(size == 1 ? arith::ConstantIndexOp::create(b, 0)
                                : position);
  Value shown = ReadOp::create(b, type.getElementType(), array, indices);
  YieldOp::create(b, shown);
}

void attn::raise::addClauses(Form &form, OperationState &state) {
  SmallVector<Value> captures;
  auto capture = [&](Value tensor) {
    captures.push_back(tensor);
    return unsigned(captures.size() - 1);
  };
  std::optional<unsigned> seen;
  if (form.seen)
    seen = capture(form.seen);
  SmallVector<ShortForm> forms;
  if (form.softcap != 0)
    forms.push_back({ShortForm::softcap, 0, form.softcap});
  if (form.bias)
    forms.push_back({ShortForm::bias, capture(form.bias), 0});
  SmallVector<Type> types(ValueRange(captures).getTypes());
  if (seen)
    buildSees(*state.addRegion(), state.location, *seen, types);
  if (!forms.empty())
    buildRegion(*state.addRegion(), state.location, forms, types);
  if (captures.empty() && !form.usedKeys)
    return;
  state.addOperands(captures);
  SmallVector<int32_t> sizes(kClauseGroups, 0);
  sizes[unsigned(ClauseGroup::captures)] = captures.size();
  if (form.usedKeys) {
    state.addOperands(form.usedKeys);
    sizes[unsigned(ClauseGroup::usedKeys)] = 1;
  }
  state.addAttribute(kClauseSizesAttr,
                     DenseI32ArrayAttr::get(state.getContext(), sizes));
}
