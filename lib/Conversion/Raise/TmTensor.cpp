//===- TmTensor.cpp - tm_tensor.attention of torch-mlir -------------------===//
//
// What torch-mlir makes of scaled_dot_product_attention:
//
//   "tm_tensor.attention"(%q, %k, %v, %mask, %out)
//       <{operandSegmentSizes = array<i32: 4, 1>}>
//
// Q, K, V and the mask are [batch, rows, columns], where batch entries and
// heads have been collapsed; the mask may be absent, of booleans, or added. The
// scale is always 1/sqrt(d), and the contents of %out are not read.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

using namespace attn::raise;
using namespace mlir;

Reason attn::raise::readTmTensor(Form &form) {
  Operation *op = form.op;
  std::optional<SmallVector<int64_t>> segments = segmentsOf(op);
  if (!segments || segments->size() != 2 || (*segments)[1] != 1 ||
      ((*segments)[0] != 3 && (*segments)[0] != 4))
    return because("expects q, k, v, perhaps a mask, and one output in "
                   "operandSegmentSizes");
  if (op->getNumResults() != 1)
    return because("expects one result, on tensors");
  Value q = op->getOperand(0), k = op->getOperand(1), v = op->getOperand(2);
  const std::pair<StringRef, Value> factors[] = {{"q", q}, {"k", k}, {"v", v}};
  for (auto [name, value] : factors)
    if (!isTensor(value, 3))
      return because("expects {0} of rank 3, but got {1}", name,
                     value.getType());
  if (!isTensor(op->getResult(0), 3))
    return because("expects a result of rank 3");
  for (auto [name, value] : ArrayRef(factors).drop_front())
    if (Reason reason = expectSame("q", q, name, value, 0))
      return reason;
  form.setSizes(sizeOf(q, 1), sizeOf(k, 1), sizeOf(q, 2), sizeOf(v, 2));
  Numbers &numbers = form.numbers;
  Index batch = numbers.loops.add(sizeOf(q, 0));
  form.q = numbers.element(q, {batch, form.i, form.d});
  form.k = numbers.element(k, {batch, form.j, form.d});
  form.v = numbers.element(v, {batch, form.j, form.e});
  form.o = op->getResult(0);
  form.oAt = {batch, form.i, form.e};
  if ((*segments)[0] == 3)
    return std::nullopt;
  Value mask = op->getOperand(3);
  if (!isTensor(mask, 3))
    return because("expects a mask of rank 3, but got {0}", mask.getType());
  return readMask(form, numbers.element(mask, {batch, form.i, form.j}));
}
