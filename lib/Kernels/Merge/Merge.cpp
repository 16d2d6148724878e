//===- Merge.cpp - The kernels of attn.merge and its gradient -------------===//

#include "attn/Kernels/Merge.h"

#include "Softmax/ScoreScale.h"
#include "Walk/TileBlocks.h"
#include "Walk/TileOrder.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

/// Columns that a warp has at a time.
constexpr int64_t kColumns = 64;

class MergeKernel {
public:
  MergeKernel(TileBuilder &builder, const MergeRequest &request)
      : b(builder), request(request), merge(request.merge) {}

  KernelOp forward();
  KernelOp backward();

private:
  Type f32() { return b.getF32Type(); }
  Type typeOf(DataType type) { return elementType(b.getContext(), type); }
  void declare(const ArgumentRole &array, DataType type) {
    arguments.operand(array, typeOf(type));
    types.insert_or_assign(array, typeOf(type));
  }
  void declareStatistic(const ArgumentRole &array) {
    arguments.operand(array, f32());
  }
  /// Behind the arrays; then the builder stands where a warp knows its rows.
  KernelOp begin();

  Value statistic(const ArgumentRole &array) {
    return arguments.vector(b, array, batch, head, queries);
  }
  Value loadStatistic(const ArgumentRole &array) {
    return LoadRowOp::create(b, rowType(), statistic(array), row);
  }
  void storeStatistic(Value values, const ArgumentRole &array) {
    StoreRowOp::create(b, values, statistic(array), row);
  }
  Value rows(const ArgumentRole &array) {
    auto type = ViewType::get(b.getContext(), merge.headDim, types.at(array),
                              alignmentOf(array));
    return arguments.view(b, array, type, batch, head, queries);
  }
  int64_t alignmentOf(const ArgumentRole &array) const {
    auto found = request.alignments.find(str(array));
    return found == request.alignments.end() ? kMaxAlignment : found->second;
  }
  int64_t width() const {
    return std::min(kColumns, int64_t(llvm::alignTo(merge.headDim, 8)));
  }
  Value load(Value view, Scalar column) {
    return LoadFragmentOp::create(b, accType(), view, row, column);
  }
  /// Goes through all columns.
  ValueRange
  overColumns(ValueRange init,
              function_ref<SmallVector<Value>(Scalar, ValueRange)> body) {
    int64_t steps = llvm::divideCeil(merge.headDim, width());
    return b.loop(b.i32(0), b.i32(steps), init,
                  [&](Scalar step, ValueRange carried) {
                    return body(step * width(), carried);
                  });
  }
  RowType rowType() { return b.rowType(kWarpRows); }
  FragType accType() { return b.accType(kWarpRows, width()); }
  Value mapRows(ValueRange rows, function_ref<Scalar(ArrayRef<Scalar>)> body) {
    return b.map(rows, rowType(), [&](Scalar, Scalar, ArrayRef<Scalar> x) {
      return Value(body(x));
    });
  }
  Scalar isNone(Scalar lse) { return lse == b.f32(-kInfinity); }
  /// exp(lse - reference), which is 0 of -inf.
  Scalar weight(Scalar lse, Scalar reference) {
    return b.exp2((lse - reference) * b.f32(kLog2E));
  }

  TileBuilder &b;
  const MergeRequest &request;
  const Merge &merge;
  Arguments arguments;
  std::map<ArgumentRole, Type> types; ///< of the elements of arrays of rows
  Scalar batch, head, row, queries;
};

} // namespace

KernelOp MergeKernel::begin() {
  for (Role size : {Role::queries, Role::heads})
    arguments.scalar(size, b.getI32Type());
  KernelRequest plain;
  plain.name = request.name;
  KernelOp kernel = arguments.createKernel(b, plain, kWarpsPerGroup);
  queries = arguments.get(b, Role::queries);
  BlockOfHead at =
      BlockOfHead::of(b, b.programId(0), b.ceilDiv(queries, kMergeRows),
                      arguments.get(b, Role::heads));
  batch = at.batch;
  head = at.head;
  row = at.number * kMergeRows + b.warpId() * kWarpRows;
  return kernel;
}

KernelOp MergeKernel::forward() {
  size_t count = merge.parts.size();
  for (size_t i = 0; i < count; ++i) {
    declare(partRole(Role::oPart, i), merge.parts[i]);
    declareStatistic(partRole(Role::lsePart, i));
  }
  declare(Role::o, merge.dtype);
  if (merge.lse)
    declareStatistic(Role::lse);
  KernelOp kernel = begin();

  SmallVector<Value> lses, weights;
  for (size_t i = 0; i < count; ++i)
    lses.push_back(loadStatistic(partRole(Role::lsePart, i)));
  Value largest = lses.front();
  for (Value lse : ArrayRef(lses).drop_front())
    largest = mapRows({largest, lse},
                      [&](ArrayRef<Scalar> x) { return b.max(x[0], x[1]); });
  // Of rows that see nothing: so that their weights are 0 and not NaN.
  Value reference = mapRows(largest, [&](ArrayRef<Scalar> x) {
    return b.select(isNone(x[0]), b.f32(0), x[0]);
  });
  Value sum;
  for (Value lse : lses) {
    weights.push_back(mapRows({lse, reference}, [&](ArrayRef<Scalar> x) {
      return weight(x[0], x[1]);
    }));
    Value own = weights.back();
    sum = sum ? mapRows({sum, own},
                        [&](ArrayRef<Scalar> x) { return x[0] + x[1]; })
              : own;
  }
  if (merge.lse)
    storeStatistic(mapRows({reference, sum},
                           [&](ArrayRef<Scalar> x) {
                             return x[0] + b.log2(x[1]) * b.f32(1 / kLog2E);
                           }),
                   Role::lse);
  for (Value &own : weights)
    own = mapRows({own, sum}, [&](ArrayRef<Scalar> x) {
      return b.select(x[1] == b.f32(0), b.f32(0), x[0] / x[1]);
    });

  SmallVector<Value> sources;
  for (size_t i = 0; i < count; ++i)
    sources.push_back(rows(partRole(Role::oPart, i)));
  Value target = rows(Role::o);
  overColumns({}, [&](Scalar column, ValueRange) -> SmallVector<Value> {
    SmallVector<Value> loaded;
    for (Value source : sources)
      loaded.push_back(load(source, column));
    Value merged = b.fill(b.f32(0), accType());
    for (size_t i = 0; i < count; ++i)
      merged =
          b.map({merged, loaded[i], weights[i], lses[i]}, accType(),
                [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                  return b.select(isNone(x[3]), x[0], b.fma(x[1], x[2], x[0]));
                });
    StoreFragmentOp::create(b, merged, target, row, column);
    return {};
  });
  ReturnOp::create(b);
  return kernel;
}

KernelOp MergeKernel::backward() {
  ArgumentRole part = partRole(Role::oPart, 0),
               partLse = partRole(Role::lsePart, 0);
  declare(Role::dO, merge.dtype);
  declare(Role::o, merge.dtype);
  declareStatistic(Role::lse);
  declare(part, merge.parts.front());
  declareStatistic(partLse);
  if (merge.dlse)
    declareStatistic(Role::dLse);
  ArgumentRole gradient = partRole(Role::dOPart, 0),
               gradientLse = partRole(Role::dLsePart, 0);
  declare(gradient, merge.parts.front());
  declareStatistic(gradientLse);
  KernelOp kernel = begin();

  Value lse = loadStatistic(Role::lse), own = loadStatistic(partLse);
  Value weights = mapRows({own, lse}, [&](ArrayRef<Scalar> x) {
    return b.select(isNone(x[0]), b.f32(0), weight(x[0], x[1]));
  });
  Value gradients = rows(Role::dO), whole = rows(Role::o), source = rows(part),
        target = rows(gradient);
  Value zeros = b.fill(b.f32(0), b.rowType(kWarpRows, /*partial=*/true));
  Value products = overColumns(
      zeros, [&](Scalar column, ValueRange sums) -> SmallVector<Value> {
        Value dO = load(gradients, column), o = load(whole, column),
              oPart = load(source, column);
        StoreFragmentOp::create(
            b,
            b.map({dO, weights, own}, accType(),
                  [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                    return b.select(isNone(x[2]), b.f32(0), x[0] * x[1]);
                  }),
            target, row, column);
        Value terms = b.map({dO, oPart, o}, accType(),
                            [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                              return x[0] * (x[1] - x[2]);
                            });
        return {b.rowSum(terms, sums.front())};
      })[0];
  Value sums = RowCombineOp::create(b, rowType(), /*max=*/false, products);
  SmallVector<Value> inputs = {sums, weights, own};
  if (merge.dlse)
    inputs.push_back(loadStatistic(Role::dLse));
  storeStatistic(mapRows(inputs,
                         [&](ArrayRef<Scalar> x) {
                           Scalar sum = merge.dlse ? x[0] + x[3] : x[0];
                           return b.select(isNone(x[2]), b.f32(0), x[1] * sum);
                         }),
                 gradientLse);
  ReturnOp::create(b);
  return kernel;
}

KernelOp attn::buildMerge(OpBuilder &builder, Location loc,
                          const MergeRequest &request) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  MergeKernel kernel(b, request);
  return request.merge.direction == Direction::forward ? kernel.forward()
                                                       : kernel.backward();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string attn::mergeName(const Merge &merge) {
  bool isBackward = merge.direction == Direction::backward;
  std::string text = isBackward ? "merge_backward"
                                : "merge_" + std::to_string(merge.parts.size());
  text += "_" + std::string(name(merge.dtype)) + "_" +
          std::to_string(merge.headDim);
  if (llvm::any_of(merge.parts, [&](DataType t) { return t != merge.dtype; }))
    text += "_of_f32";
  if (isBackward)
    return merge.dlse ? text + "_dlse" : text;
  return merge.lse ? text + "_lse" : text;
}

namespace {

struct Field {
  StringLiteral name;
  int64_t Merge::*member;
};

constexpr Field kFields[] = {{"batch", &Merge::batch},
                             {"heads", &Merge::heads},
                             {"queries", &Merge::queries},
                             {"head_dim", &Merge::headDim}};

} // namespace

DictionaryAttr attn::mergeAttr(MLIRContext *context, const Merge &merge) {
  Builder b(context);
  auto text = [&](std::string_view value) {
    return b.getStringAttr(StringRef(value));
  };
  SmallVector<Attribute> parts;
  for (DataType part : merge.parts)
    parts.push_back(text(name(part)));
  bool isBackward = merge.direction == Direction::backward;
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr("dtype", text(name(merge.dtype))),
      b.getNamedAttr("direction", text(name(merge.direction))),
      b.getNamedAttr("parts", b.getArrayAttr(parts)),
      isBackward ? b.getNamedAttr("dlse", b.getBoolAttr(merge.dlse))
                 : b.getNamedAttr("lse", b.getBoolAttr(merge.lse))};
  for (const Field &field : kFields)
    attributes.push_back(
        b.getNamedAttr(field.name, b.getI64IntegerAttr(merge.*field.member)));
  return b.getDictionaryAttr(attributes);
}

std::optional<Merge> attn::mergeFromAttr(DictionaryAttr attribute) {
  auto textOf = [](Attribute value) -> std::string_view {
    auto text = dyn_cast_or_null<StringAttr>(value);
    return text ? std::string_view(text.getValue()) : std::string_view();
  };
  auto parts = attribute.getAs<ArrayAttr>("parts");
  std::optional<DataType> dtype = parseDataType(textOf(attribute.get("dtype")));
  std::optional<Direction> direction =
      parseDirection(textOf(attribute.get("direction")));
  if (!parts || !dtype || !direction)
    return std::nullopt;
  Merge merge;
  merge.dtype = *dtype;
  merge.direction = *direction;
  for (Attribute part : parts) {
    std::optional<DataType> type = parseDataType(textOf(part));
    if (!type)
      return std::nullopt;
    merge.parts.push_back(*type);
  }
  if (auto lse = attribute.getAs<BoolAttr>("lse"))
    merge.lse = lse.getValue();
  if (auto dlse = attribute.getAs<BoolAttr>("dlse"))
    merge.dlse = dlse.getValue();
  for (const Field &field : kFields) {
    auto value = attribute.getAs<IntegerAttr>(field.name);
    if (!value)
      return std::nullopt;
    merge.*field.member = value.getInt();
  }
  if (check(merge))
    return std::nullopt;
  return merge;
}
