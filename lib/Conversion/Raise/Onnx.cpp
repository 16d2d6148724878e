//===- Onnx.cpp - onnx.Attention of onnx-mlir -----------------------------===//
//
// Opset 23 to 25, as onnx-mlir writes it:
//
//   "onnx.Attention"(Q, K, V, attn_mask, past_key, past_value,
//                    nonpad_kv_seqlen) {is_causal = 1 : si64, ...}
//       -> (Y, present_key, present_value, qk_matmul_output)
//
// What is absent has type `none`, or is missing at the end.  Arrays are [batch,
// heads, rows, columns], or [batch, rows, heads x columns] with the head counts
// in q_num_heads and kv_num_heads; the past and the present always have four
// dimensions.  The present is the past and then K, V; attention reads it.
//
// Query i stands at i + (rows of the past): causal hides what is behind, and
// windows count from there.  A mask that is a band becomes one; any other is
// read by the kernel: softmax(softcap(scale Q K^T) + mask) V.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <limits>

using namespace attn::raise;
using namespace attn;
using namespace mlir;

/// More than any size or distance that there may be, and an integer.
static constexpr double kMost = 0x1p40;

namespace {

class Reader {
public:
  explicit Reader(Form &form) : form(form), op(form.op) {}
  Reason run();

private:
  Value operand(unsigned index);
  Value result(unsigned index);
  std::optional<double> number(StringRef name);
  double numberOr(StringRef name, double other) {
    return number(name).value_or(other);
  }

  Reason checkOp();
  Reason checkNumbers();
  Reason checkAttributes();
  Reason readHeadCounts();
  Reason headCount(StringRef attribute, Value tensor, int64_t &heads);
  Reason checkPast(StringRef name, Value past, Value now);
  Reason readSizes();
  void readArrays();
  Reason readRows();
  void readRowsOfLengths();
  Reason readMaskOf(bool isCaptured);
  Reason readScores();
  Reason checkLengths();
  Reason cutKeys(Value &mask, RankedTensorType &type);
  Value widen(Value mask, RankedTensorType type, int64_t columns);
  Reason captureMask(Value mask, RankedTensorType type);
  Number at(Value tensor, Index batch, Index heads, int64_t headCount,
            Index rows, Index columns, int64_t width);
  Value join(Value past, Value now, int64_t width);

  Form &form;
  Operation *op;
  int64_t heads = 0, kvHeads = 0, pastRows = 0;
  int64_t headDim = 0, headDimV = 0;
  Index batch;
  HeadLoops headLoops;
};

} // namespace

Value Reader::operand(unsigned index) {
  if (index >= op->getNumOperands() ||
      isa<NoneType>(op->getOperand(index).getType()))
    return {};
  return op->getOperand(index);
}

/// A result that somebody uses.
Value Reader::result(unsigned index) {
  if (index >= op->getNumResults() || op->getResult(index).use_empty())
    return {};
  return op->getResult(index);
}

std::optional<double> Reader::number(StringRef name) {
  return numberIn(attributeOf(op, name));
}

Reason Reader::checkOp() {
  if (op->getNumOperands() < 3 || op->getNumResults() < 1)
    return because("expects q, k, v and a result");
  for (unsigned index : {0, 1, 2}) {
    Value value = operand(index);
    if (!value || (!isTensor(value, 3) && !isTensor(value, 4)))
      return because("expects q, k and v of rank 3 or 4, but got {0}",
                     op->getOperand(index).getType());
  }
  int64_t rank = cast<RankedTensorType>(operand(0).getType()).getRank();
  for (Value value : {operand(1), operand(2), Value(op->getResult(0))})
    if (!isTensor(value, rank))
      return because("expects q, k, v and the result of rank {0}, but got {1}",
                     rank, value.getType());
  return std::nullopt;
}

/// A number of another kind would be taken for one that is absent.
Reason Reader::checkNumbers() {
  for (StringRef name : {"scale", "softcap"})
    if (Attribute given = attributeOf(op, name); given && !numberIn(given))
      return because("expects {0} to be a number, but got {1}", name, given);
  for (StringRef name :
       {"is_causal", "left_window_size", "right_window_size", "q_num_heads",
        "kv_num_heads", "softmax_precision", "qk_matmul_output_mode"})
    if (Attribute given = attributeOf(op, name);
        given && !(isa<IntegerAttr>(given) && numberIn(given)))
      return because("expects {0} to be an integer, but got {1}", name, given);
  return std::nullopt;
}

/// What attn.forward has no words for.
Reason Reader::checkAttributes() {
  if (numberOr("softcap", 0) < 0)
    return because("softcap: expects 0 or more, but got {0}",
                   numberOr("softcap", 0));
  if (Reason reason = readScores())
    return reason;
  if (Reason reason = checkLengths())
    return reason;
  // 11 is DOUBLE of TensorProto.
  if (numberOr("softmax_precision", 1) == 11)
    return because("softmax_precision: attn.forward has f32, not f64");
  if (bool(operand(4)) != bool(operand(5)))
    return because("expects past_key and past_value together");
  return std::nullopt;
}

/// What is taken of the pairs, where somebody uses it.
Reason Reader::readScores() {
  Value scores = result(3);
  if (!scores)
    return std::nullopt;
  double mode = numberOr("qk_matmul_output_mode", 0);
  if (!isTensor(scores, 4) || mode < 0 || mode > 3)
    return because("qk_matmul_output: expects rank 4 and a mode of 0 to 3, but "
                   "got {0} and {1}",
                   scores.getType(), int64_t(mode));
  form.scores = ScoresResult{scores, ScoresAt(int(mode))};
  return std::nullopt;
}

/// Of an external cache, whose rows behind are not used.
Reason Reader::checkLengths() {
  Value lengths = operand(6);
  if (!lengths)
    return std::nullopt;
  if (operand(4))
    return because("nonpad_kv_seqlen: expects no past_key beside it");
  if (isTensor(lengths, 1) &&
      cast<RankedTensorType>(lengths.getType()).getElementType().isInteger(64))
    return std::nullopt;
  return because("nonpad_kv_seqlen: expects i64 of rank 1, but got {0}",
                 lengths.getType());
}

Reason Reader::headCount(StringRef attribute, Value tensor, int64_t &heads) {
  if (isTensor(tensor, 4)) {
    heads = sizeOf(tensor, 1);
    return std::nullopt;
  }
  std::optional<double> given = number(attribute);
  if (!given || *given < 1)
    return because("expects {0} for tensors of rank 3", attribute);
  heads = int64_t(std::min(*given, kMost));
  if (!ShapedType::isDynamic(sizeOf(tensor, 2)) &&
      sizeOf(tensor, 2) % heads != 0)
    return because("expects columns that {0} divides, but got {1} and {2}",
                   attribute, sizeOf(tensor, 2), heads);
  return std::nullopt;
}

/// Columns of one head.
static int64_t widthOf(Value tensor, int64_t heads) {
  if (isTensor(tensor, 4))
    return sizeOf(tensor, 3);
  int64_t all = sizeOf(tensor, 2);
  return ShapedType::isDynamic(all) ? all : all / heads;
}

static int64_t rowsOf(Value tensor) {
  return sizeOf(tensor, isTensor(tensor, 4) ? 2 : 1);
}

Reason Reader::readHeadCounts() {
  int64_t valueHeads;
  if (Reason reason = headCount("q_num_heads", operand(0), heads))
    return reason;
  if (Reason reason = headCount("kv_num_heads", operand(1), kvHeads))
    return reason;
  if (Reason reason = headCount("kv_num_heads", operand(2), valueHeads))
    return reason;
  if (kvHeads != valueHeads)
    return because("expects k and v of one head count, but got {0} and {1}",
                   kvHeads, valueHeads);
  return readHeads(form, heads, kvHeads, headLoops);
}

/// Whether the past fits what comes behind it.
Reason Reader::checkPast(StringRef name, Value past, Value now) {
  if (!isTensor(past, 4))
    return because("expects {0} of rank 4, but got {1}", name, past.getType());
  if (!cast<RankedTensorType>(past.getType()).hasStaticShape() ||
      !cast<RankedTensorType>(now.getType()).hasStaticShape())
    return because("{0}: expects sizes that are static", name);
  if (sizeOf(past, 0) != sizeOf(now, 0) || sizeOf(past, 1) != kvHeads ||
      sizeOf(past, 3) != widthOf(now, kvHeads))
    return because("expects {0} of {1}x{2}x?x{3}, but got {4}", name,
                   sizeOf(now, 0), kvHeads, widthOf(now, kvHeads),
                   past.getType());
  return std::nullopt;
}

Reason Reader::readSizes() {
  for (unsigned index : {1, 2})
    if (Reason reason = expectSame("q", operand(0), index == 1 ? "k" : "v",
                                   operand(index), 0))
      return reason;
  if (operand(4)) {
    if (Reason reason = checkPast("past_key", operand(4), operand(1)))
      return reason;
    if (Reason reason = checkPast("past_value", operand(5), operand(2)))
      return reason;
    pastRows = sizeOf(operand(4), 2);
    if (pastRows != sizeOf(operand(5), 2))
      return because("expects past_key and past_value of as many rows");
  }
  int64_t keys = rowsOf(operand(1));
  headDim = widthOf(operand(0), heads);
  headDimV = widthOf(operand(2), kvHeads);
  batch = form.numbers.loops.add(sizeOf(operand(0), 0));
  form.setSizes(rowsOf(operand(0)), pastRows ? keys + pastRows : keys, headDim,
                headDimV);
  return std::nullopt;
}

/// An element of a tensor of either rank.
Number Reader::at(Value tensor, Index batch, Index heads, int64_t headCount,
                  Index rows, Index columns, int64_t width) {
  Numbers &numbers = form.numbers;
  if (isTensor(tensor, 4))
    return numbers.element(tensor, {batch, heads, rows, columns});
  return numbers.element(
      tensor,
      {batch, rows, numbers.loops.join({heads, columns}, {headCount, width})});
}

/// The past and then what is new, [batch, heads, rows, columns].
Value Reader::join(Value past, Value now, int64_t width) {
  OpBuilder &b = form.builder;
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(past.getType());
  int64_t newRows = rowsOf(now);
  if (!isTensor(now, 4)) {
    // As [batch, rows, heads x columns] it has loops of its own.
    Loops &loops = form.numbers.loops;
    Index rows = loops.add(newRows), columns = loops.add(width);
    Number number =
        at(now, batch, headLoops.ofK, kvHeads, rows, columns, width);
    now = arrange(form, number, {batch, headLoops.ofK, rows, columns});
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[2] += newRows;
  Value whole = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  SmallVector<OpFoldResult> offsets(4, b.getIndexAttr(0)),
      ones(4, b.getIndexAttr(1));
  for (Value part : {past, now}) {
    auto sizes = getAsIndexOpFoldResult(
        b.getContext(), cast<RankedTensorType>(part.getType()).getShape());
    whole = tensor::InsertSliceOp::create(b, loc, part, whole, offsets, sizes,
                                          ones);
    offsets[2] = b.getIndexAttr(pastRows);
  }
  return whole;
}

void Reader::readArrays() {
  Value k = operand(1), v = operand(2);
  if (pastRows) {
    k = join(operand(4), k, headDim);
    v = join(operand(5), v, headDimV);
  }
  form.q = at(operand(0), batch, headLoops.ofQ, heads, form.i, form.d, headDim);
  form.k = at(k, batch, headLoops.ofK, kvHeads, form.j, form.d, headDim);
  form.v = at(v, batch, headLoops.ofK, kvHeads, form.j, form.e, headDimV);
  Number y = at(op->getResult(0), batch, headLoops.ofQ, heads, form.i, form.e,
                headDimV);
  form.o = y.value;
  form.oAt = y.at;
  Index columns[] = {form.d, form.e};
  for (const auto &[index, present] :
       {std::pair(1, form.k), std::pair(2, form.v)})
    if (result(index))
      form.others.push_back(
          {op->getResult(index),
           arrange(form, present,
                   {batch, headLoops.ofK, form.j, columns[index - 1]})});
}

/// The mask that counts from the last key that a batch entry uses.
void Reader::readRowsOfLengths() {
  form.usedKeys = operand(6);
  static constexpr StringLiteral names[] = {"left_window_size",
                                            "right_window_size"};
  int64_t sides[2];
  for (auto [side, name] : llvm::zip_equal(sides, names)) {
    double given = std::min(numberOr(name, -1), kMost);
    side = given < 0 ? kUnbounded : std::min(int64_t(given), kUnbounded);
  }
  if (numberOr("is_causal", 0) != 0)
    sides[1] = 0;
  if (sides[0] == kUnbounded && sides[1] == 0)
    form.named = Mask{MaskKind::causalBottomRight};
  else if (sides[0] != kUnbounded || sides[1] != kUnbounded)
    form.named = Mask{MaskKind::window, sides[0], sides[1]};
}

/// Which keys a query sees.
Reason Reader::readRows() {
  if (operand(6)) {
    readRowsOfLengths();
    return readMaskOf(/*isCaptured=*/true);
  }
  if (numberOr("is_causal", 0) != 0)
    form.visible.narrow(-kUnbounded, pastRows);
  double left = std::min(numberOr("left_window_size", -1), kMost),
         right = std::min(numberOr("right_window_size", -1), kMost);
  if (left >= 0)
    form.visible.narrow(pastRows - int64_t(left), kUnbounded);
  if (right >= 0)
    form.visible.narrow(-kUnbounded, pastRows + int64_t(right));
  return readMaskOf(/*isCaptured=*/false);
}

/// What attn_mask hides: a band, if it need not be captured.
Reason Reader::readMaskOf(bool isCaptured) {
  Value mask = operand(3);
  if (!mask)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(mask.getType());
  if (!type || type.getRank() < 1 || type.getRank() > 4)
    return because("expects attn_mask of rank 1 to 4, but got {0}",
                   mask.getType());
  if (Reason reason = cutKeys(mask, type))
    return reason;
  if (isCaptured || form.seenKeys) {
    Reason reason = captureMask(mask, type);
    return reason ? Reason("attn_mask: " + *reason) : std::nullopt;
  }
  // Broadcast as in NumPy: what is absent is in front.
  Index all[] = {batch, headLoops.ofQ, form.i, form.j};
  Indices indices(ArrayRef(all).take_back(type.getRank()));
  VisibleBand before = form.visible;
  Reason noBand =
      readMask(form, form.numbers.element(mask, std::move(indices)));
  if (!noBand && !form.visible.isExact &&
      mayHideAll(form.visible.band, form.rows))
    noBand = std::string("finite numbers may hide every key of a query");
  if (!noBand && !form.visible.isExact && form.scores)
    noBand = std::string("finite numbers are part of the scores");
  if (!noBand)
    return std::nullopt;
  form.visible = before;
  if (Reason reason = captureMask(mask, type))
    return "attn_mask: " + *noBand + ", and " + *reason;
  return std::nullopt;
}

/// Keys behind the last column of a mask are hidden.  Where nobody counts from
/// the last key, or wants scores of all, they are not even read.
Reason Reader::cutKeys(Value &mask, RankedTensorType &type) {
  int64_t columns = type.getShape().back(), keys = form.rows.keys;
  Type element = type.getElementType();
  if (ShapedType::isDynamic(columns) || ShapedType::isDynamic(keys) ||
      columns == 1 || columns >= keys ||
      (!element.isInteger(1) && !isa<FloatType>(element)))
    return std::nullopt;
  if (!form.usedKeys && !form.scores) {
    form.seenKeys = columns;
    return std::nullopt;
  }
  if (!type.hasStaticShape())
    return because("attn_mask: expects sizes that are static where it has "
                   "fewer columns than keys, but got {0}",
                   type);
  mask = widen(mask, type, keys);
  type = cast<RankedTensorType>(mask.getType());
  return std::nullopt;
}

/// The mask with columns that hide, up to so many.
Value Reader::widen(Value mask, RankedTensorType type, int64_t columns) {
  OpBuilder &b = form.builder;
  Location loc = op->getLoc();
  Type element = type.getElementType();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = columns;
  TypedAttr hides = b.getZeroAttr(element);
  if (auto real = dyn_cast<FloatType>(element))
    hides = b.getFloatAttr(real, -std::numeric_limits<double>::infinity());
  Value number = arith::ConstantOp::create(b, loc, hides);
  Value wide = tensor::EmptyOp::create(b, loc, shape, element);
  wide = linalg::FillOp::create(b, loc, number, wide).getResult(0);
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0)),
      ones(shape.size(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(
      b, loc, mask, wide, offsets,
      getAsIndexOpFoldResult(b.getContext(), type.getShape()), ones);
}

/// A mask that is no band is read by the kernel.
Reason Reader::captureMask(Value mask, RankedTensorType type) {
  Type element = type.getElementType();
  if (!element.isInteger(1) && !isa<FloatType>(element))
    return because("expects truths or floats, but got {0}", element);
  int64_t sizes[] = {sizeOf(operand(0), 0), heads, form.rows.queries,
                     form.seenKeys.value_or(form.rows.keys)};
  for (auto [dim, size, wanted] : llvm::enumerate(
           type.getShape(), ArrayRef(sizes).take_back(type.getRank()))) {
    // A size that is not known may be 1, which stands for all.
    bool isKnown = size == 1 || size == wanted || ShapedType::isDynamic(wanted);
    if (ShapedType::isDynamic(size) || !isKnown)
      return because("expects it to have size 1 or {0} in dimension {1}, but "
                     "got {2}",
                     wanted, dim, type);
  }
  if (type.getRank() == 1) {
    type = RankedTensorType::get({1, type.getDimSize(0)}, element);
    mask =
        tensor::ExpandShapeOp::create(form.builder, op->getLoc(), type, mask,
                                      ArrayRef<ReassociationIndices>{{0, 1}});
  }
  (element.isInteger(1) ? form.seen : form.bias) = mask;
  return std::nullopt;
}

Reason Reader::run() {
  if (Reason reason = checkOp())
    return reason;
  if (Reason reason = checkNumbers())
    return reason;
  if (Reason reason = checkAttributes())
    return reason;
  if (Reason reason = readHeadCounts())
    return reason;
  if (Reason reason = readSizes())
    return reason;
  form.scale = number("scale");
  form.softcap = numberOr("softcap", 0);
  if (Reason reason = readRows())
    return reason;
  readArrays();
  return std::nullopt;
}

Reason attn::raise::readOnnx(Form &form) { return Reader(form).run(); }
