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
  Value diagonal;
  auto shifted = [&](int64_t by) -> Value {
    if (!diagonal)
      diagonal = b.createOrFold<arith::SubIOp>(keys, queries);
    Value sum = b.createOrFold<arith::AddIOp>(diagonal, index(by));
    sum = b.createOrFold<arith::MinSIOp>(sum, index(kUnbounded));
    return b.createOrFold<arith::MaxSIOp>(sum, index(-kUnbounded));
  };
  switch (mask.kind) {
  case MaskKind::none:
    return {};
  case MaskKind::causal:
    return {{}, index(0)};
  case MaskKind::causalBottomRight:
    return {{}, shifted(0)};
  case MaskKind::window: {
    Value first = shifted(-mask.left);
    return {first, shifted(mask.right)};
  }
  }
  return {};
}
