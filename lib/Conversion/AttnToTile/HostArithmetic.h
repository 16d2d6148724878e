//===- HostArithmetic.h - Sizes as values of a host function ----*- C++ -*-===//
//
// The arithmetic that launches are computed with (Launches.h), where a size is
// a value that the host knows at run time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_HOSTARITHMETIC_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_HOSTARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

struct HostArithmetic {
  using Number = mlir::Value;
  Number constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, value);
  }
  Number times(Number x, Number y) {
    return b.createOrFold<mlir::arith::MulIOp>(x, y);
  }
  Number plus(Number x, Number y) {
    return b.createOrFold<mlir::arith::AddIOp>(x, y);
  }
  Number least(Number x, Number y) {
    return b.createOrFold<mlir::arith::MinSIOp>(x, y);
  }
  Number most(Number x, Number y) {
    return b.createOrFold<mlir::arith::MaxSIOp>(x, y);
  }
  Number ceilDiv(Number x, int64_t divisor) {
    return b.createOrFold<mlir::arith::CeilDivSIOp>(x, constant(divisor));
  }
  Number floorDiv(Number x, int64_t divisor) {
    return b.createOrFold<mlir::arith::DivSIOp>(x, constant(divisor));
  }

  mlir::ImplicitLocOpBuilder &b;
};

} // namespace attn

#endif
