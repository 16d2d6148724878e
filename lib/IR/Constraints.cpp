//===- Constraints.cpp - What the ops of the attn dialect demand ----------===//
//
// The verifier follows the numbered constraints of the ops' descriptions, in
// the order in which a later one may rely on an earlier one.  The numbers mean
// the same in every op.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

#include "attn/Schedule/Layout.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringExtras.h"
#include <array>

using namespace mlir;
using namespace attn;

namespace {
class Verifier {
public:
  explicit Verifier(AttentionOpInterface op) : op(op) {}
  LogicalResult verify();

private:
  LogicalResult outputs();   // C2
  LogicalResult inputs();    // of C19 the first half
  LogicalResult ranks();     // C3
  LogicalResult elements();  // C5, C6
  LogicalResult sizes();     // C7 to C10
  LogicalResult shapes();    // C11, C12
  LogicalResult numbers();   // C13, C15; C14 is the mask's own
  LogicalResult alignment(); // C17
  LogicalResult precision(); // C18
  LogicalResult places();    // C35, C36

  LogicalResult same(StringRef a, StringRef b, unsigned dimension,
                     StringRef what);
  LogicalResult sameHeadDim();
  LogicalResult positive(StringRef role, unsigned dimension, StringRef what);
  int64_t size(StringRef role, unsigned dimension) {
    return type(role).getDimSize(dimension);
  }
  ShapedType type(StringRef role) {
    return cast<ShapedType>(op.array(role).getType());
  }

  AttentionOpInterface op;
  SmallVector<AttentionArray> arrays = {}; // once their number is right
  SmallVector<AttentionArray> all = {};    // with those of clauses
};
} // namespace

LogicalResult Verifier::same(StringRef a, StringRef b, unsigned dimension,
                             StringRef what) {
  if (compatible(size(a, dimension), size(b, dimension)))
    return success();
  return op->emitOpError("expects ")
         << a << " and " << b << " to have the same " << what << ", but got "
         << SizeForPeople{size(a, dimension)} << " and "
         << SizeForPeople{size(b, dimension)};
}

LogicalResult Verifier::positive(StringRef role, unsigned dimension,
                                 StringRef what) {
  int64_t actual = size(role, dimension);
  if (!ShapedType::isDynamic(actual) && actual > 0)
    return success();
  return op->emitOpError("expects ")
         << role << " to have a static and positive " << what << ", but got "
         << SizeForPeople{actual};
}

/// `three results, dq, dk and dv`, as the op wants them.
static std::string wantedOutputs(AttentionOpInterface op) {
  static constexpr StringLiteral numbers[] = {"no",    "one",  "two",
                                              "three", "four", "five"};
  ArrayRef<StringLiteral> roles = op.outputRoles();
  SmallVector<StringRef> counts;
  for (unsigned count = 0; count <= roles.size(); ++count)
    if (!op.rolesOfOutputs(count).empty())
      counts.push_back(numbers[count]);
  StringRef most = counts.pop_back_val();
  std::string text = llvm::join(counts, ", ");
  text += (text.empty() ? "" : " or ") + most.str();
  text += op.isOnTensors() ? " results, " : " outs, ";
  return text + llvm::join(roles.drop_back(), ", ") + " and " +
         roles.back().str();
}

LogicalResult Verifier::outputs() {
  TypeRange types = op.outputTypes();
  size_t gradients = op.gradientTargets().size();
  if (types.size() < gradients ||
      op.rolesOfOutputs(types.size() - gradients).empty()) {
    InFlightDiagnostic error = op->emitOpError("expects ") << wantedOutputs(op);
    if (gradients)
      error << ", and " << gradients << " more for gradients(..)";
    return error << ", but got " << types.size();
  }
  return verifyDestinations(op, op.getOuts().getTypes(), types);
}

LogicalResult Verifier::inputs() {
  auto roles = op.givenInputs();
  SmallVector<AttentionArray> ofClauses = op.clauseArrays();
  size_t count = op.inputs().size() - op.clauseInputs().size();
  if (count != roles.size())
    return op->emitOpError("expects ")
           << roles.size() << " inputs, " << llvm::join(roles, ", ")
           << ", but got " << count;
  arrays = op.arrays();
  all = arrays;
  llvm::append_range(all, ofClauses);
  return success();
}

LogicalResult Verifier::ranks() {
  for (const AttentionArray &array : arrays) {
    size_t rank = op.shapeOf(array.role).size();
    if (array.type().getRank() != int64_t(rank))
      return op->emitOpError("expects ")
             << array.role << " of rank " << rank << ", but got rank "
             << array.type().getRank()
             << (rank < size_t(array.type().getRank()) && op.isRagged()
                     ? " (ragged rows are [rows, heads, columns])"
                     : "");
  }
  return success();
}

LogicalResult Verifier::elements() {
  Type element = type("q").getElementType();
  bool isF8 = isa<Float8E4M3FNType>(element);
  bool takesF8 = op.direction() == Direction::forward;
  if (!dataTypeOf(element) || (isF8 && !takesF8)) {
    InFlightDiagnostic error =
        op->emitOpError("expects a supported element type, but got ")
        << element;
    error.attachNote() << "element types: bf16, f16, f32"
                       << (takesF8 ? ", f8E4M3FN" : "");
    return error;
  }
  Builder builder(op->getContext());
  for (const AttentionArray &array : arrays) {
    Type expected = element;
    if (isStatistic(array.role))
      expected = builder.getF32Type();
    else if (array.isOutput && isF8)
      expected = builder.getBF16Type();
    if (array.type().getElementType() == expected)
      continue;
    return op->emitOpError("expects ")
           << array.role << " to have the element type " << expected
           << (expected == element ? " of q" : "") << ", but got "
           << array.type().getElementType();
  }
  return success();
}

LogicalResult Verifier::sizes() {
  bool isPaged = !op.clauseOperands(ClauseGroup::pageTable).empty();
  if (op.shapeOf("k").size() == 4 &&
      failed(same("k", "v", 0, isPaged ? "number of pages" : "batch size")))
    return failure();
  if (!op.isRagged() && !isPaged &&
      (failed(same("q", "k", 0, "batch size")) ||
       failed(same("q", "v", 0, "batch size"))))
    return failure();
  bool areRagged = op.shapeOf("k").size() == 3;
  for (StringRef role : {"q", "k", "v"})
    if (failed(positive(role, 1, "head count")))
      return failure();
  if (failed(same("k", "v", 1, "head count")))
    return failure();
  if (size("q", 1) % size("k", 1))
    return op->emitOpError("expects the head count of q to be a multiple of "
                           "that of k, but got ")
           << size("q", 1) << " and " << size("k", 1);
  if (failed(same("k", "v", areRagged ? 0 : 2, "number of rows")))
    return failure();
  for (StringRef role : {"q", "k", "v"})
    if (failed(positive(role, type(role).getRank() - 1, "head dimension")))
      return failure();
  return sameHeadDim();
}

LogicalResult Verifier::sameHeadDim() {
  int64_t q = type("q").getShape().back(), k = type("k").getShape().back();
  if (q == k)
    return success();
  return op->emitOpError("expects q and k to have the same head dimension, but "
                         "got ")
         << q << " and " << k;
}

LogicalResult Verifier::shapes() {
  // What Q, K and V say holds for the others, and what one of these adds holds
  // for the rest: a dynamic size in between hides no difference.
  std::array<int64_t, kExtents> known;
  known.fill(ShapedType::kDynamic);
  auto learn = [&](const AttentionArray &array) {
    for (auto [extent, size] :
         llvm::zip_equal(op.shapeOf(array.role), array.type().getShape()))
      if (ShapedType::isDynamic(known[unsigned(extent)]))
        known[unsigned(extent)] = size;
  };
  auto isOperandOfScores = [](const AttentionArray &array) {
    return array.role == "q" || array.role == "k" || array.role == "v";
  };
  for (const AttentionArray &array : arrays)
    if (isOperandOfScores(array))
      learn(array);
  if (int64_t keys = known[unsigned(Extent::keys)];
      !ShapedType::isDynamic(keys))
    known[unsigned(Extent::keptRows)] = keptRows(keys);
  for (const AttentionArray &array : arrays) {
    if (isOperandOfScores(array))
      continue;
    SmallVector<Extent> shape = op.shapeOf(array.role);
    bool hasHeadDim =
        shape.back() == Extent::headDim || shape.back() == Extent::headDimV;
    unsigned heads = llvm::find_if(shape,
                                   [](Extent extent) {
                                     return extent == Extent::heads ||
                                            extent == Extent::kvHeads;
                                   }) -
                     shape.begin();
    if (failed(positive(array.role, heads, "head count")) ||
        (hasHeadDim &&
         failed(positive(array.role, shape.size() - 1, "head dimension"))))
      return failure();
    SmallVector<int64_t> expected;
    for (Extent extent : shape)
      expected.push_back(known[unsigned(extent)]);
    ArrayRef<int64_t> actual = array.type().getShape();
    if (!llvm::all_of(llvm::zip_equal(expected, actual), [](auto sizes) {
          return compatible(std::get<0>(sizes), std::get<1>(sizes));
        })) {
      InFlightDiagnostic error = op->emitOpError("expects ");
      error << array.role << " of shape ";
      printShape(error, expected);
      error << ", but got ";
      printShape(error, actual);
      return error;
    }
    learn(array);
  }
  return success();
}

LogicalResult Verifier::numbers() {
  if (op.getScaleAttr() && !op.getScaleAttr().getValue().isFinite())
    return op->emitOpError("expects a finite scale, but got ")
           << op.getScaleAttr();
  // Regions are verified later.
  Problem problem = problemWithoutRegions(op);
  problem.alignment = kMaxAlignment; // has a rule of its own
  if (std::optional<std::string> error = check(problem))
    return op->emitOpError(*error);
  return success();
}

LogicalResult Verifier::alignment() {
  if (!op.getAlignment())
    return success();
  DataType type = *dataTypeOf(this->type("q").getElementType());
  if (std::optional<std::string> error =
          checkAlignment(*op.getAlignment(), type))
    return op->emitOpError(*error);
  return success();
}

LogicalResult Verifier::precision() {
  Type element = type("q").getElementType();
  if (!op.getPrecisionAttr() || element.isF32())
    return success();
  return op->emitOpError("expects a precision only for operands of f32, but "
                         "got operands of ")
         << element;
}

/// What keys of a cache have none of, before shapes are read, which are those
/// of pages.
LogicalResult Verifier::places() {
  if (op.direction() != Direction::backward)
    return success();
  for (auto [group, name] : {std::pair(ClauseGroup::pageTable, "pages"),
                             {ClauseGroup::usedKeys, "lengths"}})
    if (!op.clauseOperands(group).empty())
      return op->emitOpError("expects no ")
             << name << "(..) for gradients, but got some";
  return success();
}

LogicalResult Verifier::verify() {
  return success(succeeded(verifyForm(op)) &&
                 succeeded(verifyClauseSizes(op)) && succeeded(places()) &&
                 succeeded(outputs()) && succeeded(inputs()) &&
                 succeeded(ranks()) && succeeded(verifyLayouts(op, all)) &&
                 succeeded(verifySpaces(op, all)) && succeeded(elements()) &&
                 succeeded(sizes()) && succeeded(shapes()) &&
                 succeeded(verifyClauses(op)) && succeeded(numbers()) &&
                 succeeded(verifyAliases(op, all)) && succeeded(alignment()) &&
                 succeeded(precision()));
}

LogicalResult attn::verifyAttention(AttentionOpInterface op) {
  return Verifier(op).verify();
}
