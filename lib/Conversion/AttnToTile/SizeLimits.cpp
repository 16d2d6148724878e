//===- SizeLimits.cpp - Sizes that turn out at run time -------------------===//

#include "SizeLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

void attn::assertLimits(ImplicitLocOpBuilder &b,
                        function_ref<Value(Size)> valueOf) {
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  };
  for (const Limit &limit : limits()) {
    Value most = index(limit.most), last;
    for (const Factor &factor : limit.factors) {
      if (last) // instead of a product, which may overflow
        most = b.createOrFold<arith::DivSIOp>(most, last);
      last = valueOf(factor.size);
      if (factor.least > 0)
        last = b.createOrFold<arith::MaxSIOp>(last, index(factor.least));
      if (factor.unit > 1)
        last = b.createOrFold<arith::CeilDivSIOp>(last, index(factor.unit));
    }
    Value holds =
        b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, last, most);
    if (!getConstantIntValue(holds))
      cf::AssertOp::create(b, holds, limit.sentence());
  }
}
