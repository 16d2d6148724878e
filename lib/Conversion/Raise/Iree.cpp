//===- Iree.cpp - iree_linalg_ext.attention -------------------------------===//
//
// IREE says by indexing maps which loop is what:
//
//   "iree_linalg_ext.attention"(%q, %k, %v, %scale, %mask, %out)
//       <{indexing_maps = [(b, m, n, k1, k2) -> (b, m, k1),   Q
//                          (b, m, n, k1, k2) -> (b, k2, k1),  K
//                          (b, m, n, k1, k2) -> (b, k2, n),   V
//                          (b, m, n, k1, k2) -> (),           scale
//                          (b, m, n, k1, k2) -> (b, m, k2),   mask
//                          (b, m, n, k1, k2) -> (b, m, n)]}>  O
//       ({ ^bb0(%score: f32): "iree_linalg_ext.yield"(%score) })
//
// The mask may be absent, and so may the map of the scale.  The region changes
// scores; here it must not.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "mlir/IR/AffineMap.h"

using namespace attn::raise;
using namespace mlir;

namespace {

/// The operands and their maps.
struct Operands {
  Value q, k, v, scale, mask, out;
  AffineMap ofQ, ofK, ofV, ofMask, ofO;
};

class Reader {
public:
  explicit Reader(Form &form) : form(form), op(form.op) {}
  Reason run();

private:
  Reason readOperands();
  Reason readSizes();
  Reason sortLoops();
  Number element(Value tensor, AffineMap map);

  Form &form;
  Operation *op;
  Operands of;
  SmallVector<int64_t> sizes;
  Indices loops;
};

} // namespace

/// Whether a region hands on its only argument.
static bool isIdentity(Region &region) {
  if (region.empty())
    return true;
  if (!region.hasOneBlock() || region.getNumArguments() != 1)
    return false;
  Operation &first = region.front().front();
  return first.getNumOperands() == 1 &&
         first.getOperand(0) == region.getArgument(0) &&
         first.getName().getStringRef() == "iree_linalg_ext.yield";
}

Reason Reader::readOperands() {
  unsigned count = op->getNumOperands();
  if (op->getNumResults() != 1 || (count != 5 && count != 6))
    return because("expects q, k, v, a scale, perhaps a mask, and one output");
  of.q = op->getOperand(0);
  of.k = op->getOperand(1);
  of.v = op->getOperand(2);
  of.scale = op->getOperand(3);
  of.mask = count == 6 ? op->getOperand(4) : Value();
  of.out = op->getOperand(count - 1);
  if (!isa<FloatType>(of.scale.getType()))
    return because("expects a scale that is a number, but got {0}",
                   of.scale.getType());

  auto array = dyn_cast_or_null<ArrayAttr>(attributeOf(op, "indexing_maps"));
  SmallVector<AffineMap> maps;
  if (array)
    for (Attribute attribute : array)
      if (auto map = dyn_cast<AffineMapAttr>(attribute))
        maps.push_back(map.getValue());
  if (maps.size() == count)
    maps.erase(maps.begin() + 3); // of the scale
  if (maps.size() != count - 1)
    return because("expects an indexing map for every operand");
  of.ofQ = maps[0];
  of.ofK = maps[1];
  of.ofV = maps[2];
  of.ofMask = of.mask ? maps[3] : AffineMap();
  of.ofO = maps.back();
  if (op->getNumRegions() > 1 ||
      (op->getNumRegions() == 1 && !isIdentity(op->getRegion(0))))
    return because("the region changes scores");
  return std::nullopt;
}

/// The sizes of loops, by the tensors that they go over.
Reason Reader::readSizes() {
  sizes.assign(of.ofQ.getNumDims(), ShapedType::kDynamic);
  std::pair<Value, AffineMap> all[] = {{of.q, of.ofQ},
                                       {of.k, of.ofK},
                                       {of.v, of.ofV},
                                       {of.mask, of.ofMask},
                                       {op->getResult(0), of.ofO}};
  for (auto [tensor, map] : all) {
    if (!tensor)
      continue;
    if (!isTensor(tensor, map.getNumResults()) ||
        map.getNumDims() != sizes.size() ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return because("expects indexing maps that permute loops and fit the "
                     "operands");
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      int64_t size = sizeOf(tensor, dim);
      if (!loop || ShapedType::isDynamic(size))
        continue;
      int64_t &known = sizes[loop.getPosition()];
      if (!ShapedType::isDynamic(known) && known != size)
        return because("expects one size for loop {0}, but got {1} and {2}",
                       loop.getPosition(), known, size);
      known = size;
    }
  }
  for (int64_t size : sizes)
    loops.push_back(form.numbers.loops.add(size));
  return std::nullopt;
}

/// Says which loop is rows of Q, and so on.
Reason Reader::sortLoops() {
  int64_t row = -1, key = -1, headDim = -1, headDimV = -1;
  for (AffineExpr expr : of.ofQ.getResults())
    if (auto loop = dyn_cast<AffineDimExpr>(expr))
      if (!of.ofK.isFunctionOfDim(loop.getPosition()) &&
          of.ofO.isFunctionOfDim(loop.getPosition()))
        row = loop.getPosition(); // the last one; others are groups
  for (unsigned loop = 0; loop < sizes.size(); ++loop) {
    bool inQ = of.ofQ.isFunctionOfDim(loop), inK = of.ofK.isFunctionOfDim(loop),
         inV = of.ofV.isFunctionOfDim(loop), inO = of.ofO.isFunctionOfDim(loop);
    int64_t *place = inQ && inK && !inO && !inV   ? &headDim
                     : inK && inV && !inQ && !inO ? &key
                     : inV && inO && !inQ && !inK ? &headDimV
                                                  : nullptr;
    if (!place)
      continue;
    if (*place >= 0)
      return because("expects one loop each of keys and head dimensions, but "
                     "got several");
    *place = loop;
  }
  if (row < 0 || key < 0 || headDim < 0 || headDimV < 0)
    return because("expects loops of queries, keys and head dimensions");
  form.i = loops[row];
  form.j = loops[key];
  form.d = loops[headDim];
  form.e = loops[headDimV];
  form.rows = {form.i, form.j, sizes[row], sizes[key]};
  return std::nullopt;
}

Number Reader::element(Value tensor, AffineMap map) {
  Indices at;
  for (AffineExpr expr : map.getResults())
    at.push_back(expr.replaceDims(loops));
  return form.numbers.element(tensor, at);
}

Reason Reader::run() {
  if (Reason reason = readOperands())
    return reason;
  if (Reason reason = readSizes())
    return reason;
  if (Reason reason = sortLoops())
    return reason;
  form.scale = form.numbers.constant({of.scale, {}});
  if (!form.scale)
    return because("the scale is not a constant");
  form.q = element(of.q, of.ofQ);
  form.k = element(of.k, of.ofK);
  form.v = element(of.v, of.ofV);
  Number o = element(op->getResult(0), of.ofO);
  form.o = o.value;
  form.oAt = o.at;
  return of.mask ? readMask(form, element(of.mask, of.ofMask)) : std::nullopt;
}

Reason attn::raise::readIree(Form &form) { return Reader(form).run(); }
