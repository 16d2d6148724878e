//===- OperandScale.cpp - Scales of operands at run time ------------------===//

#include "Region/OperandScale.h"

using namespace mlir;
using namespace attn;

static void declare(Arguments &arguments, TileBuilder &b, ArgumentRole scale) {
  arguments.pointer(scale, b.getF32Type());
  for (Facet facet : {Facet::offset, Facet::strideBatch, Facet::strideHead})
    arguments.scalar(scale.at(facet), b.getI64Type());
}

void attn::declareScales(Arguments &arguments, TileBuilder &b,
                         const OperandScales &scales) {
  if (scales.q)
    declare(arguments, b, Role::scaleQ);
  if (scales.k)
    declare(arguments, b, Role::scaleK);
  if (scales.v)
    declare(arguments, b, Role::scaleV);
}

static Scalar read(TileBuilder &b, const Arguments &arguments,
                   ArgumentRole scale, Scalar batch, Scalar keyHead) {
  Scalar place =
      b.wide(batch) * arguments.get(b, scale.at(Facet::strideBatch)) +
      b.wide(keyHead) * arguments.get(b, scale.at(Facet::strideHead));
  return b.wrap(tile::ReadOp::create(
      b, b.getF32Type(), Value(arguments.get(b, scale)),
      Value(arguments.get(b, scale.at(Facet::offset))), Value(place), Value()));
}

Scalar attn::scaleOfScores(TileBuilder &b, const Arguments &arguments,
                           const OperandScales &scales, Scalar batch,
                           Scalar keyHead) {
  Scalar product;
  for (auto [isThere, role] :
       {std::pair(scales.q, Role::scaleQ), std::pair(scales.k, Role::scaleK)}) {
    if (!isThere)
      continue;
    Scalar scale = read(b, arguments, role, batch, keyHead);
    product = Value(product) ? product * scale : scale;
  }
  return product;
}

Scalar attn::scaleOfValues(TileBuilder &b, const Arguments &arguments,
                           const OperandScales &scales, Scalar batch,
                           Scalar keyHead) {
  return scales.v ? read(b, arguments, Role::scaleV, batch, keyHead) : Scalar();
}

Value attn::withScale(TileBuilder &b, Value rows, Scalar ofValues) {
  if (!Value(ofValues))
    return rows;
  return b.map(rows, rows.getType(),
               [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                 return x[0] * ofValues;
               });
}
