//===- Scalars.cpp - Arithmetic on one scalar of a kernel -----------------===//

#include "attn/Tile/Scalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;

/// Wraps to the width of a type, sign-extended; i1 becomes 0 or 1.
static int64_t wrap(Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (width == 1)
    return value & 1;
  if (width >= 64)
    return value;
  return int64_t(uint64_t(value) << (64 - width)) >> (64 - width);
}

static uint64_t bitsOf(Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return width >= 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

static int64_t compare(arith::CmpIOp op, int64_t a, int64_t b) {
  Type type = op.getLhs().getType();
  uint64_t ua = bitsOf(type, a), ub = bitsOf(type, b);
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  return 0;
}

static int64_t floorDiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t ceilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

std::optional<int64_t> attn::tile::evaluateScalar(Operation *op,
                                                  ArrayRef<int64_t> v) {
  using Result = std::optional<int64_t>;
  auto divides = [&] { return v[1] != 0 && (v[0] != INT64_MIN || v[1] != -1); };
  auto add = [](int64_t a, int64_t b) { return int64_t(uint64_t(a) + b); };
  auto mul = [](int64_t a, int64_t b) {
    return int64_t(uint64_t(a) * uint64_t(b));
  };
  Result result =
      llvm::TypeSwitch<Operation *, Result>(op)
          .Case([&](arith::ConstantOp c) -> Result {
            if (auto integer = dyn_cast<IntegerAttr>(c.getValue()))
              return integer.getValue().getSExtValue();
            return std::nullopt;
          })
          .Case([&](arith::AddIOp) { return add(v[0], v[1]); })
          .Case([&](arith::SubIOp) {
            return int64_t(uint64_t(v[0]) - uint64_t(v[1]));
          })
          .Case([&](arith::MulIOp) { return mul(v[0], v[1]); })
          .Case([&](arith::AndIOp) { return v[0] & v[1]; })
          .Case([&](arith::OrIOp) { return v[0] | v[1]; })
          .Case([&](arith::XOrIOp) { return v[0] ^ v[1]; })
          .Case([&](arith::MinSIOp) { return std::min(v[0], v[1]); })
          .Case([&](arith::MaxSIOp) { return std::max(v[0], v[1]); })
          .Case([&](arith::DivSIOp) -> Result {
            return divides() ? Result(v[0] / v[1]) : std::nullopt;
          })
          .Case<arith::DivUIOp, arith::RemUIOp>([&](Operation *d) -> Result {
            Type type = d->getResult(0).getType();
            uint64_t number = bitsOf(type, v[0]), divisor = bitsOf(type, v[1]);
            if (divisor == 0)
              return std::nullopt;
            return int64_t(isa<arith::DivUIOp>(d) ? number / divisor
                                                  : number % divisor);
          })
          .Case([&](arith::RemSIOp) -> Result {
            return divides() ? Result(v[0] % v[1]) : std::nullopt;
          })
          .Case([&](arith::FloorDivSIOp) -> Result {
            return divides() ? Result(floorDiv(v[0], v[1])) : std::nullopt;
          })
          .Case([&](arith::CeilDivSIOp) -> Result {
            return divides() ? Result(ceilDiv(v[0], v[1])) : std::nullopt;
          })
          .Case([&](arith::CmpIOp c) { return compare(c, v[0], v[1]); })
          .Case([&](arith::SelectOp s) -> Result {
            if (!s.getType().isIntOrIndex())
              return std::nullopt;
            return v[0] ? v[1] : v[2];
          })
          .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
              [&](Operation *cast) -> Result {
                // An i1 is held as 0 or 1 but extends as a sign bit.
                bool bit = cast->getOperand(0).getType().isInteger(1);
                return bit && isa<arith::ExtSIOp>(cast) ? -v[0] : v[0];
              })
          .Case([&](arith::ExtUIOp e) {
            return int64_t(bitsOf(e.getIn().getType(), v[0]));
          })
          .Default([](Operation *) { return Result(); });
  if (!result)
    return std::nullopt;
  return wrap(op->getResult(0).getType(), *result);
}
