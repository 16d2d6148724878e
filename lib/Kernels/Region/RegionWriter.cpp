//===- RegionWriter.cpp - Writes values of a region -----------------------===//

#include "Region/RegionWriter.h"

#include "Region/Tanh.h"
#include "Softmax/ScoreScale.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

Value RegionWriter::write(Value value) {
  if (Value is = known.lookup(value))
    return is;
  if (Value is = rows.numbers.lookup(value))
    return is;
  Value is;
  if (auto argument = dyn_cast<BlockArgument>(value))
    is = this->argument(argument);
  else
    is =
        operation(*value.getDefiningOp(), *scalarKindOf(value.getDefiningOp()));
  known[value] = is;
  return is;
}

Scalar RegionWriter::scale() {
  Scalar scale = code.arguments.get(b, Role::scale);
  const Scalar &beside = rows.place.ofProducts;
  return Value(beside) ? scale * beside : scale;
}

Value RegionWriter::argument(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  bool isOfScores = isScore(code.region);
  if (isOfScores && number == 0)
    return ofElement * scale();
  return position(number - isOfScores);
}

/// In the order of kPositions; rows of tiles and keys of blocks may be behind
/// the end.
Scalar RegionWriter::position(unsigned number) {
  enum { batch, head, query, ofKey, queries };
  auto size = [&](Role role) {
    const Scalar &ofSequence =
        role == Role::keys ? rows.place.keys : rows.place.queries;
    return Value(ofSequence) ? ofSequence : code.arguments.get(b, role);
  };
  switch (number) {
  case batch:
    return rows.place.batch;
  case head:
    return rows.place.head;
  case query:
  case ofKey: {
    bool isOfRow = (number == ofKey) == rows.place.areKeys;
    return isOfRow ? rows.place.row + row : firstColumn + column;
  }
  case queries:
    return size(Role::queries);
  default:
    return size(Role::keys);
  }
}

Value RegionWriter::operation(Operation &op, ScalarKind kind) {
  switch (kind) {
  case ScalarKind::constant:
    return constant(op);
  case ScalarKind::read:
    return read(op);
  case ScalarKind::select:
    if (isa<FloatType>(op.getResult(0).getType()))
      return arith::SelectOp::create(b, write(op.getOperand(0)),
                                     write(op.getOperand(1)),
                                     write(op.getOperand(2)));
    return integers(op, kind);
  case ScalarKind::cmpi:
    return comparison(op);
  case ScalarKind::extsi:
  case ScalarKind::extui:
  case ScalarKind::sitofp:
  case ScalarKind::uitofp:
  case ScalarKind::fptosi:
  case ScalarKind::fptoui:
    return converted(op, kind);
  case ScalarKind::mulf:
  case ScalarKind::divf:
    return product(op, kind);
  default:
    return isa<FloatType>(op.getResult(0).getType()) || kind == ScalarKind::cmpf
               ? floats(op, kind)
               : integers(op, kind);
  }
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Type RegionWriter::typeOf(Value integer) const {
  unsigned bits = bitsOf(integer.getType());
  if (bits == 1)
    return b.getI1Type();
  return bits <= 32 || code.ranges.isSmall(integer) ? b.getI32Type()
                                                    : b.getI64Type();
}

Value RegionWriter::number(Type type, int64_t value) {
  return arith::ConstantOp::create(
      b, cast<TypedAttr>(b.getIntegerAttr(type, value)));
}

Value RegionWriter::constant(Operation &op) {
  Value value = op.getResult(0);
  if (std::optional<int64_t> integer = integerOf(value)) {
    if (bitsOf(value.getType()) == 1)
      return b.boolean(*integer != 0);
    return number(typeOf(value), *integer);
  }
  return real(cast<FloatAttr>(op.getAttr("value")).getValueAsDouble());
}

Value RegionWriter::as(Value value, unsigned bits, bool isUnsigned) {
  unsigned from = bitsOf(value.getType());
  Type type = b.getIntegerType(bits);
  if (from == bits)
    return value;
  if (from > bits)
    return b.createOrFold<arith::TruncIOp>(type, value);
  if (isUnsigned)
    return b.createOrFold<arith::ExtUIOp>(type, value);
  return b.createOrFold<arith::ExtSIOp>(type, value);
}

Value RegionWriter::masked(Value value, unsigned bits) {
  if (bits >= bitsOf(value.getType()))
    return value;
  return make<arith::AndIOp>(value,
                             number(value.getType(), (int64_t(1) << bits) - 1));
}

Value RegionWriter::wrapped(Value value, unsigned bits) {
  unsigned have = bitsOf(value.getType());
  if (bits >= have)
    return value;
  Value places = number(value.getType(), have - bits);
  return make<arith::ShRSIOp>(make<arith::ShLIOp>(value, places), places);
}

/// Of two integers that are not below 0.
static bool isUnsigned(ScalarKind kind) {
  switch (kind) {
  case ScalarKind::divui:
  case ScalarKind::ceildivui:
  case ScalarKind::remui:
  case ScalarKind::shrui:
  case ScalarKind::maxui:
  case ScalarKind::minui:
    return true;
  default:
    return false;
  }
}

static bool isShift(ScalarKind kind) {
  return kind == ScalarKind::shli || kind == ScalarKind::shrsi ||
         kind == ScalarKind::shrui;
}

/// By 0 the quotient is 0, and so is the remainder.
Value RegionWriter::quotient(ScalarKind kind, Value a, Value divisor) {
  Type type = a.getType();
  Value zero = number(type, 0), one = number(type, 1);
  Value isZero =
      b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, divisor, zero);
  Value by = b.createOrFold<arith::SelectOp>(isZero, one, divisor);
  auto isBelow = [&](Value x) -> Value {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, zero);
  };
  auto rest = [&](Value quotient) -> Value {
    return make<arith::SubIOp>(a, make<arith::MulIOp>(quotient, by));
  };
  auto isThere = [&](Value rest) -> Value {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, zero);
  };
  auto oneIf = [&](Value condition) -> Value {
    return b.createOrFold<arith::SelectOp>(condition, one, zero);
  };
  Value found;
  switch (kind) {
  case ScalarKind::divui:
    found = make<arith::DivUIOp>(a, by);
    break;
  case ScalarKind::remui:
    found = make<arith::RemUIOp>(a, by);
    break;
  case ScalarKind::ceildivui: {
    Value floor = make<arith::DivUIOp>(a, by);
    found = make<arith::AddIOp>(floor, oneIf(isThere(rest(floor))));
    break;
  }
  case ScalarKind::remsi:
    found = make<arith::RemSIOp>(a, by);
    break;
  case ScalarKind::divsi:
    found = make<arith::DivSIOp>(a, by);
    break;
  default: {
    // Towards 0 is up where the signs differ, and down where they do not.
    Value cut = make<arith::DivSIOp>(a, by), left = rest(cut);
    Value differ = make<arith::XOrIOp>(isBelow(left), isBelow(by));
    bool isFloor = kind == ScalarKind::floordivsi;
    if (!isFloor)
      differ = make<arith::XOrIOp>(differ, b.boolean(true));
    Value more = oneIf(make<arith::AndIOp>(isThere(left), differ));
    found = isFloor ? make<arith::SubIOp>(cut, more)
                    : make<arith::AddIOp>(cut, more);
    break;
  }
  }
  return b.createOrFold<arith::SelectOp>(isZero, zero, found);
}

Value RegionWriter::integers(Operation &op, ScalarKind kind) {
  Value result = op.getResult(0);
  unsigned bits = bitsOf(result.getType());
  bool isChoice = kind == ScalarKind::select;
  unsigned first = isChoice ? 1 : 0, count = op.getNumOperands();
  auto of = [&](unsigned place) { return op.getOperand(first + place); };
  // Truth values by themselves.
  if (bits == 1 && !isChoice) {
    Value x = write(of(0)), y = write(of(1));
    if (kind == ScalarKind::andi)
      return make<arith::AndIOp>(x, y);
    if (kind == ScalarKind::ori)
      return make<arith::OrIOp>(x, y);
    if (kind == ScalarKind::xori)
      return make<arith::XOrIOp>(x, y);
  }
  bool isSmall = bits <= 32 || code.ranges.isSmall(result);
  std::optional<int64_t> places;
  if (isShift(kind))
    places = integerOf(of(1));
  for (unsigned place = first; place < count; ++place) {
    Value operand = op.getOperand(place);
    isSmall &= bits <= 32 || code.ranges.isSmall(operand);
    isSmall &=
        bits <= 32 || !isUnsigned(kind) || code.ranges.isNatural(operand);
  }
  if (bits > 32 && isShift(kind))
    isSmall &= places && *places >= 0 && *places < 32;
  unsigned width = isSmall ? 32 : 64;
  auto operand = [&](unsigned place) -> Value {
    Value value = as(write(of(place)), width);
    return isUnsigned(kind) ? masked(value, bits) : value;
  };
  Value x = operand(0), y, found;
  if (count > first + 1)
    y = operand(1);
  switch (kind) {
  case ScalarKind::select:
    found = b.createOrFold<arith::SelectOp>(write(op.getOperand(0)), x, y);
    break;
  case ScalarKind::addi:
    found = make<arith::AddIOp>(x, y);
    break;
  case ScalarKind::subi:
    found = make<arith::SubIOp>(x, y);
    break;
  case ScalarKind::muli:
    found = make<arith::MulIOp>(x, y);
    break;
  case ScalarKind::andi:
    found = make<arith::AndIOp>(x, y);
    break;
  case ScalarKind::ori:
    found = make<arith::OrIOp>(x, y);
    break;
  case ScalarKind::xori:
    found = make<arith::XOrIOp>(x, y);
    break;
  case ScalarKind::maxsi:
    found = make<arith::MaxSIOp>(x, y);
    break;
  case ScalarKind::minsi:
    found = make<arith::MinSIOp>(x, y);
    break;
  case ScalarKind::maxui:
    found = make<arith::MaxUIOp>(x, y);
    break;
  case ScalarKind::minui:
    found = make<arith::MinUIOp>(x, y);
    break;
  case ScalarKind::absi:
    found =
        make<arith::MaxSIOp>(x, make<arith::SubIOp>(number(x.getType(), 0), x));
    break;
  case ScalarKind::shli:
  case ScalarKind::shrsi:
  case ScalarKind::shrui: {
    found = kind == ScalarKind::shli    ? make<arith::ShLIOp>(x, y)
            : kind == ScalarKind::shrsi ? make<arith::ShRSIOp>(x, y)
                                        : make<arith::ShRUIOp>(x, y);
    Value zero = number(x.getType(), 0);
    Value fits = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, y,
                                               number(x.getType(), bits));
    if (!places || *places < 0 || *places >= bits)
      found = b.createOrFold<arith::SelectOp>(fits, found, zero);
    break;
  }
  default:
    found = quotient(kind, x, y);
    break;
  }
  if (bits == 1)
    return as(found, 1);
  return as(wrapped(found, bits), bitsOf(typeOf(result)));
}

Value RegionWriter::comparison(Operation &op) {
  arith::CmpIPredicate predicate = integerPredicateOf(op);
  bool isUnsigned = predicate >= arith::CmpIPredicate::ult;
  unsigned bits = bitsOf(op.getOperand(0).getType());
  bool isSmall = bits <= 32 || llvm::all_of(op.getOperands(), [&](Value value) {
                   return code.ranges.isSmall(value);
                 });
  auto operand = [&](unsigned place) -> Value {
    Value value = as(write(op.getOperand(place)), isSmall ? 32 : 64);
    return isUnsigned ? masked(value, bits) : value;
  };
  // Of numbers with their signs the unsigned order is that of 64 bits.
  Value x = operand(0), y = operand(1);
  return b.createOrFold<arith::CmpIOp>(predicate, x, y);
}

Value RegionWriter::converted(Operation &op, ScalarKind kind) {
  Value result = op.getResult(0), from = op.getOperand(0);
  Value value = write(from);
  if (kind == ScalarKind::fptosi || kind == ScalarKind::fptoui) {
    unsigned bits = bitsOf(result.getType());
    bool isWide = bits == 64 || kind == ScalarKind::fptoui;
    Type type = isWide ? b.getI64Type() : b.getI32Type();
    Value whole = arith::FPToSIOp::create(b, type, value);
    if (bits == 1)
      return as(whole, 1);
    return as(wrapped(whole, bits), bits == 64 ? 64 : 32);
  }
  unsigned bits = bitsOf(from.getType());
  bool hasSign = kind == ScalarKind::extsi || kind == ScalarKind::sitofp ||
                 (bits > 1 && code.ranges.isNatural(from));
  if (kind == ScalarKind::sitofp || kind == ScalarKind::uitofp) {
    if (bits == 1)
      value = as(value, 32, !hasSign);
    else if (!hasSign)
      value = masked(value, bits);
    if (hasSign || bits < 32)
      return arith::SIToFPOp::create(b, b.getF32Type(), value);
    return arith::UIToFPOp::create(b, b.getF32Type(), value);
  }
  unsigned to = bitsOf(result.getType());
  unsigned emitted = to == 1 ? 1 : bitsOf(typeOf(result));
  if (to == 1)
    return as(value, 1);
  if (to < bits)
    return wrapped(as(value, emitted), to);
  if (!hasSign && bits > 1)
    value = masked(value, bits);
  return as(value, emitted, !hasSign);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

Value RegionWriter::product(Operation &op, ScalarKind kind) {
  Value x = op.getOperand(0), y = op.getOperand(1);
  Value z = isScore(code.region) ? code.region.getArgument(0) : Value();
  bool isQuotient = kind == ScalarKind::divf;
  if (!isQuotient && y == z)
    std::swap(x, y);
  // What z is, or what takes its place together with the scale.
  Scalar left =
      x == z && code.dependenceOf(y) == 0 ? scale() : b.wrap(write(x));
  Scalar result;
  Scalar right = b.wrap(write(y));
  auto constant = Value(right).getDefiningOp<arith::ConstantOp>();
  if (!isQuotient) {
    result = left * right;
  } else if (constant) {
    double inverse =
        1 / cast<FloatAttr>(constant.getValue()).getValueAsDouble();
    constexpr double least = std::numeric_limits<float>::min();
    bool isOrdinary =
        std::abs(inverse) >= least && std::abs(inverse) <= kLargest;
    result = isOrdinary ? left * real(inverse) : left / right;
  } else {
    result = left / right;
  }
  return x == z && code.dependenceOf(y) == 0 ? ofElement * result : result;
}

Value RegionWriter::floats(Operation &op, ScalarKind kind) {
  auto of = [&](unsigned place) -> Scalar {
    return b.wrap(write(op.getOperand(place)));
  };
  Type f32 = b.getF32Type();
  switch (kind) {
  case ScalarKind::addf:
    return of(0) + of(1);
  case ScalarKind::subf:
    return of(0) - of(1);
  case ScalarKind::negf:
    return -of(0);
  case ScalarKind::maximumf:
    return arith::MaximumFOp::create(b, of(0), of(1));
  case ScalarKind::minimumf:
    return arith::MinimumFOp::create(b, of(0), of(1));
  case ScalarKind::maxnumf:
    return b.max(of(0), of(1));
  case ScalarKind::minnumf:
    return b.min(of(0), of(1));
  case ScalarKind::cmpf:
    return arith::CmpFOp::create(b, cast<arith::CmpFOp>(op).getPredicate(),
                                 of(0), of(1));
  case ScalarKind::extf:
    return of(0);
  case ScalarKind::truncf: {
    Type type = op.getResult(0).getType();
    Value narrow = arith::TruncFOp::create(b, type, Value(of(0)));
    return arith::ExtFOp::create(b, f32, narrow);
  }
  case ScalarKind::fma:
    return b.fma(of(0), of(1), of(2));
  case ScalarKind::absf:
    return b.abs(of(0));
  case ScalarKind::exp:
    return b.exp2(of(0) * real(kLog2E));
  case ScalarKind::exp2:
    return b.exp2(of(0));
  case ScalarKind::log:
    return b.log2(of(0)) * real(1 / kLog2E);
  case ScalarKind::log2:
    return b.log2(of(0));
  case ScalarKind::log10:
    return b.log2(of(0)) * real(std::log10(2.0));
  case ScalarKind::sqrt:
    return math::SqrtOp::create(b, of(0));
  case ScalarKind::rsqrt:
    return math::RsqrtOp::create(b, of(0));
  case ScalarKind::tanh:
    return code.hasExactTanh ? Value(exactTanh(b, of(0)))
                             : math::TanhOp::create(b, of(0));
  case ScalarKind::floor:
    return math::FloorOp::create(b, of(0));
  case ScalarKind::ceil:
    return math::CeilOp::create(b, of(0));
  case ScalarKind::roundeven:
    return math::RoundEvenOp::create(b, of(0));
  case ScalarKind::trunc:
    return math::TruncOp::create(b, of(0));
  case ScalarKind::copysign:
    return math::CopySignOp::create(b, of(0), of(1));
  default:
    llvm_unreachable("kernels have code for the ops of their regions");
  }
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

/// Whether neighbours in the last dimension are neighbours in memory.
static bool isDense(ShapedType type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || memref.getLayout().isIdentity())
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(memref.getStridesAndOffset(strides, offset)) &&
         !strides.empty() && strides.back() == 1;
}

Scalar RegionWriter::placeOf(Operation *read) {
  ArgumentRole role = captureOf(read->getOperand(0));
  Scalar place;
  for (auto [dim, index] : llvm::enumerate(read->getOperands().drop_front())) {
    Scalar own = b.wrap(as(write(index), 64));
    place =
        Value(place)
            ? place * code.arguments.get(b, role.at(kCapturedSizes[dim])) + own
            : own;
  }
  return Value(place) ? place : b.wide(b.i32(0));
}

/// What an index must be below, in 32 bits where it has so many.
Scalar RegionWriter::extentOf(Operation &read, int64_t dim, bool isSmall) {
  Value array = read.getOperand(0);
  int64_t size = cast<ShapedType>(array.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return b.wrap(number(b.getIntegerType(isSmall ? 32 : 64),
                         isSmall ? std::min<int64_t>(size, INT32_MAX) : size));
  Scalar whole =
      code.arguments.get(b, captureOf(array).at(kCapturedSizes[dim]));
  if (!isSmall)
    return whole;
  Scalar most = b.wrap(number(b.getI64Type(), INT32_MAX));
  return b.wrap(as(b.min(whole, most), 32));
}

ArgumentRole RegionWriter::captureOf(Value array) const {
  ArrayRef<BlockArgument> captures = capturesIn(code.region);
  return {Role::capture, Facet::itself,
          int(llvm::find(captures, array) - captures.begin())};
}

/// Whether a value's positions may be behind the end where no pair is hidden.
bool RegionWriter::mayBeBehind(Value value) const {
  unsigned ofRow = onQuery, ofColumn = onKey;
  if (rows.place.areKeys)
    std::swap(ofRow, ofColumn);
  unsigned dependence = code.dependenceOf(value);
  return (dependence & ofRow) ||
         (pairs == Pairs::inRange && (dependence & ofColumn));
}

/// Where some pairs of a block are hidden an index must be checked; elsewhere
/// one may be wrong of rows and keys that there are none of, and then is any
/// that is right.
Value RegionWriter::read(Operation &op) {
  Value array = op.getOperand(0);
  ArgumentRole role = captureOf(array);
  auto type = cast<ShapedType>(array.getType());
  auto argument = [&](Facet facet) {
    return code.arguments.get(b, role.at(facet));
  };
  Value base = argument(Facet::itself);
  Scalar offset = argument(Facet::offset), index = b.i32(0), exists;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Value wanted = op.getOperand(1 + unsigned(dim));
    int64_t size = type.getDimSize(dim);
    std::optional<int64_t> known = integerOf(wanted);
    bool isThere = known && *known >= 0 && size > *known;
    bool isSmall = code.ranges.isSmall(wanted);
    Value place = as(write(wanted), isSmall ? 32 : 64);
    if (pairs == Pairs::any && !isThere) {
      Scalar isInside = b.wrap(b.createOrFold<arith::CmpIOp>(
          arith::CmpIPredicate::ult, place, extentOf(op, dim, isSmall)));
      exists = Value(exists) ? exists & isInside : isInside;
    } else if (pairs != Pairs::any && mayBeBehind(wanted)) {
      Scalar last =
          extentOf(op, dim, isSmall) + b.wrap(number(place.getType(), -1));
      place = make<arith::MinUIOp>(place, last);
    }
    if (known == 0)
      continue;
    if (dim + 1 == type.getRank() && isDense(type))
      index = b.wrap(place);
    else
      offset = offset + b.wrap(as(place, 64)) * argument(kCapturedStrides[dim]);
  }
  Type element = type.getElementType();
  Value read = tile::ReadOp::create(b, tile::ReadOp::resultOf(element), base,
                                    Value(offset), Value(index), Value(exists));
  if (!element.isInteger(1))
    return read;
  return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ne, read,
                                       number(b.getI32Type(), 0));
}
