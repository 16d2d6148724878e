//===- Bands.cpp - Which keys a query sees, at run time -------------------===//

#include "Bands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

BandValues attn::bandOf(ImplicitLocOpBuilder &b, const Mask &mask, Value keys,
                        Value queries) {
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto diagonal = [&] { return b.createOrFold<arith::SubIOp>(keys, queries); };
  auto shifted = [&](Value diagonal, int64_t by) {
    return b.createOrFold<arith::AddIOp>(diagonal, index(by));
  };
  switch (mask.kind) {
  case MaskKind::none:
    return {};
  case MaskKind::causal:
    return {{}, index(0), {}};
  case MaskKind::causalBottomRight:
    return {{}, diagonal(), {}};
  case MaskKind::window: { // sides beyond the rows bound nothing
    Value middle = diagonal();
    Value least = b.createOrFold<arith::SubIOp>(index(0), queries);
    Value first =
        b.createOrFold<arith::MaxSIOp>(shifted(middle, -mask.left), least);
    Value last =
        b.createOrFold<arith::MinSIOp>(shifted(middle, mask.right), keys);
    return {first, last, {}};
  }
  case MaskKind::prefix:
    return {
        {}, diagonal(), b.createOrFold<arith::MinSIOp>(index(mask.keys), keys)};
  }
  return {};
}

BandValues attn::bandOfSequence(ImplicitLocOpBuilder &b, const Mask &mask) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  BandValues band;
  if (mask.hidesBefore())
    band.first = index(-mask.left);
  if (mask.hidesBehind())
    band.last = index(mask.right); // 0 but of windows
  if (mask.opensKeys())
    band.openKeys = index(mask.keys);
  return band;
}
