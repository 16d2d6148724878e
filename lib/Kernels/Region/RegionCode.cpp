//===- RegionCode.cpp - Regions of clauses as code of kernels -------------===//

#include "Region/RegionCode.h"

#include "Region/RegionWriter.h"
#include "Softmax/ScoreScale.h"

#include "attn/IR/RegionCost.h"

using namespace mlir;
using namespace attn;

void RegionCode::declare(Arguments &arguments, TileBuilder &b,
                         ArrayRef<Region *> regions) {
  llvm::SmallDenseSet<int> declared;
  for (Region *region : regions) {
    if (!region)
      continue;
    for (auto [number, capture] : llvm::enumerate(capturesIn(*region))) {
      if (capture.use_empty() || !declared.insert(int(number)).second)
        continue;
      auto type = cast<ShapedType>(capture.getType());
      ArgumentRole role(Role::capture, Facet::itself, int(number));
      arguments.pointer(role, type.getElementType());
      Type i64 = b.getI64Type();
      arguments.scalar(role.at(Facet::offset), i64);
      for (int64_t dim = 0; dim < type.getRank(); ++dim) {
        arguments.scalar(role.at(kCapturedStrides[dim]), i64);
        arguments.scalar(role.at(kCapturedSizes[dim]), i64);
      }
    }
  }
}

/// What takes more than a few instructions.
static bool isCostlyOp(ScalarKind kind) {
  return kind == ScalarKind::read || kind == ScalarKind::divf ||
         isIntegerQuotient(kind) || isFunction(kind);
}

static std::optional<double> realOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || scalarKindOf(op) != ScalarKind::constant)
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(op->getAttr("value")))
    return number.getValueAsDouble();
  return std::nullopt;
}

RegionCode::RegionCode(const Arguments &arguments, Region &region,
                       DataType inputs)
    : arguments(arguments), region(region), ranges(region),
      hasExactTanh(isTanhExact(region, inputs)) {
  bool isOfScores = isScore(region);
  dependence = dependencesIn(region);
  for (Operation &op : region.front().without_terminator())
    if (isCostlyOp(*scalarKindOf(&op)) ||
        llvm::any_of(op.getOperands(),
                     [&](Value operand) { return costly.contains(operand); }))
      costly.insert(op.getResult(0));
  result = region.front().back().getOperand(0);
  Operation *last = result.getDefiningOp();
  if (!isOfScores || !last || scalarKindOf(last) != ScalarKind::mulf)
    return;
  // Where a factor is neither near 0 nor large, scores stay as exact.
  constexpr double least = 0x1p-40, most = 0x1p40;
  for (unsigned place : {0, 1})
    if (std::optional<double> factor = realOf(last->getOperand(place));
        factor && *factor >= least && *factor <= most) {
      ofResult = *factor;
      result = last->getOperand(1 - place);
      return;
    }
}

SmallVector<Value> RegionCode::frontier(unsigned of) const {
  SmallVector<Value> values;
  for (Operation &op : region.front().without_terminator()) {
    Value value = op.getResult(0);
    bool isUsed =
        value == result || llvm::any_of(value.getUsers(), [&](Operation *user) {
          return user->getNumResults() == 1 &&
                 dependenceOf(user->getResult(0)) != of;
        });
    if (dependenceOf(value) == of && isUsed &&
        scalarKindOf(&op) != ScalarKind::constant)
      values.push_back(value);
  }
  return values;
}

RegionCode::Rows RegionCode::ofRows(TileBuilder &b, const Place &place) const {
  Rows rows;
  rows.place = place;
  RegionWriter numbers(b, *this, rows, Pairs::any);
  for (Value value : frontier(0))
    rows.numbers[value] = numbers.write(value);
  for (Value value : frontier(place.areKeys ? onKey : onQuery)) {
    Type type = value.getType();
    bool isReal = isa<FloatType>(type);
    if (!isCostly(value) ||
        (!isReal && (bitsOf(type) == 1 || !ranges.isSmall(value))))
      continue;
    Type rowType =
        isReal ? b.rowType(place.count) : b.indexRowType(place.count);
    Value ofRow =
        b.map({}, rowType, [&](Scalar r, Scalar, ArrayRef<Scalar>) -> Value {
          RegionWriter element(b, *this, rows, Pairs::any);
          element.setRow(r);
          return element.write(value);
        });
    rows.rows.push_back({value, ofRow});
  }
  return rows;
}

Value RegionCode::map(TileBuilder &b, const Rows &rows, Value scores,
                      Scalar column, Pairs pairs, Result result,
                      Value scored) const {
  SmallVector<Value> inputs = inputsOf(rows, scores);
  if (scored)
    inputs.push_back(scored);
  return b.map(inputs, scores.getType(),
               [&](Scalar r, Scalar c, ArrayRef<Scalar> elements) -> Value {
                 RegionWriter writer(b, *this, rows, pairs);
                 if (scored) {
                   writer.set(this->result, elements.back());
                   elements = elements.drop_back();
                 }
                 enter(writer, rows, r, column, c, elements, /*fragments=*/1);
                 return result(writer, elements.front());
               });
}

SmallVector<Value> RegionCode::inputsOf(const Rows &rows,
                                        ArrayRef<Value> fragments) const {
  SmallVector<Value> inputs(fragments);
  for (auto [value, row] : rows.rows)
    inputs.push_back(row);
  return inputs;
}

void RegionCode::enter(RegionWriter &writer, const Rows &rows, Scalar row,
                       Scalar first, Scalar column, ArrayRef<Scalar> elements,
                       size_t fragments) const {
  writer.setRow(row);
  writer.setColumn(first, column);
  for (auto [known, element] :
       llvm::zip_equal(rows.rows, elements.drop_front(fragments)))
    writer.set(known.first, element);
  if (isScore(region))
    writer.setProduct(elements.front());
}

/// The gradient of what is read of one score.
static Scalar pulledOf(TileBuilder &b, RegionWriter &writer, Value result,
                       double factor, Scalar gradient) {
  if (!writer.slope(result))
    return b.f32(0);
  return gradient * writer.slopeOf(result, factor);
}

Value RegionCode::pulled(TileBuilder &b, const Rows &rows, Value products,
                         Value gradient, Scalar column, Operation *read) const {
  return b.map(inputsOf(rows, {products, gradient}), gradient.getType(),
               [&](Scalar r, Scalar c, ArrayRef<Scalar> elements) -> Value {
                 RegionWriter writer(b, *this, rows, Pairs::any);
                 enter(writer, rows, r, column, c, elements, /*fragments=*/2);
                 writer.setSource(read->getResult(0));
                 // What is hidden has no gradient, whatever a slope is there.
                 Scalar pulled =
                     pulledOf(b, writer, result, ofResult, elements[1]);
                 return b.select(elements[1] == b.f32(0), b.f32(0), pulled);
               });
}

void RegionCode::addPulled(TileBuilder &b, const Rows &rows, Value products,
                           Value gradient, Scalar column, Operation *read,
                           Scalar base, Scalar offset, Scalar endOfRows,
                           Scalar endOfColumns) const {
  b.addElements(inputsOf(rows, {products, gradient}), base, offset,
                [&](Scalar r, Scalar c,
                    ArrayRef<Scalar> elements) -> TileBuilder::Addition {
                  RegionWriter writer(b, *this, rows, Pairs::any);
                  enter(writer, rows, r, column, c, elements, /*fragments=*/2);
                  writer.setSource(read->getResult(0));
                  Scalar value =
                      pulledOf(b, writer, result, ofResult, elements[1]);
                  Scalar isThere = (rows.place.row + r < endOfRows) &
                                   (column + c < endOfColumns);
                  Scalar isNothing = elements[1] == b.f32(0);
                  return {value, writer.placeOf(read),
                          isThere & (isNothing == b.boolean(false))};
                });
}

Scalar RegionCode::placeOfHead(TileBuilder &b, const Rows &rows,
                               Operation *read) const {
  RegionWriter writer(b, *this, rows, Pairs::any);
  return writer.placeOf(read);
}

Value RegionCode::scored(TileBuilder &b, const Rows &rows, Value products,
                         Scalar column, Pairs pairs) const {
  return map(b, rows, products, column, pairs,
             [&](RegionWriter &writer, Scalar) -> Value {
               return writer.write(result);
             });
}

Value RegionCode::slopes(TileBuilder &b, const Rows &rows, Value products,
                         Value scores, Scalar column, Pairs pairs) const {
  if (addsToScore(region))
    return {};
  return map(
      b, rows, products, column, pairs,
      [&](RegionWriter &writer, Scalar) -> Value {
        return writer.slopeOf(result, ofResult);
      },
      scores);
}

Value RegionCode::hidden(TileBuilder &b, const Rows &rows, Value scores,
                         Scalar column, Pairs pairs) const {
  return map(b, rows, scores, column, pairs,
             [&](RegionWriter &writer, Scalar score) -> Value {
               Scalar isSeen = b.wrap(writer.write(result));
               return b.select(isSeen, score, b.f32(-kInfinity));
             });
}

Value RegionCode::shown(TileBuilder &b, const Rows &rows, Scalar column,
                        int64_t columns, Pairs pairs) const {
  Value ones = b.fill(b.f32(1), b.accType(rows.place.count, columns));
  return map(b, rows, ones, column, pairs,
             [&](RegionWriter &writer, Scalar one) -> Value {
               Scalar isSeen = b.wrap(writer.write(result));
               return b.select(isSeen, one, b.f32(0));
             });
}
