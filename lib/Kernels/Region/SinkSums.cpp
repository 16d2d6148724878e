//===- SinkSums.cpp - Gradients of sinks ----------------------------------===//

#include "Region/SinkSums.h"

#include "Softmax/ScoreScale.h"

using namespace mlir;
using namespace attn;

void attn::declareSinks(Arguments &arguments, TileBuilder &b) {
  ArgumentRole sinks(Role::sinks);
  arguments.pointer(sinks, b.getF32Type());
  arguments.scalar(sinks.at(Facet::offset), b.getI64Type());
  arguments.scalar(sinks.at(Facet::strideBatch), b.getI64Type());
}

Scalar attn::sinkOf(TileBuilder &b, const Arguments &arguments, Scalar head) {
  // The only stride of an array of heads.
  ArgumentRole sinks(Role::sinks);
  Scalar ofHead = b.wide(head) * arguments.get(b, sinks.at(Facet::strideBatch));
  return b.wrap(
      tile::ReadOp::create(b, b.getF32Type(), Value(arguments.get(b, sinks)),
                           Value(arguments.get(b, sinks.at(Facet::offset))),
                           Value(ofHead), Value()));
}

void attn::declareSinkSums(Arguments &arguments, TileBuilder &b,
                           const KernelRequest &request) {
  declareSinks(arguments, b);
  HeadSums::declare(arguments, b, request);
}

void attn::leaveSinkSum(TileBuilder &b, const Arguments &arguments,
                        const KernelRequest &request,
                        const RegionCode::Place &place, const LogSumExp &lse,
                        Value delta) {
  Scalar sink = sinkOf(b, arguments, place.head), nothing = b.f32(-kInfinity);
  SmallVector<Value> rows = {lse.high, delta};
  if (lse.low)
    rows.push_back(lse.low);
  Value values = b.map(
      rows, delta.getType(), [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
        Scalar apart = sink - x[0];
        if (x.size() > 2)
          apart = apart - x[2];
        Scalar weight = b.exp2(apart * b.f32(kLog2E));
        // Where neither is there, what is apart is not a number.
        return b.select(sink == nothing, b.f32(0), -(weight * x[1]));
      });
  HeadSums(arguments, request)
      .leave(b, place.batch, place.head, sumOfSinks(request), place.row,
             values);
}
