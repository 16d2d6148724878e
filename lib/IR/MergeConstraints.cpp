//===- MergeConstraints.cpp - What merges demand --------------------------===//
//
// The verifier follows the numbered constraints of the ops' descriptions, in
// the order in which a later one may rely on an earlier one.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

namespace {
class MergeVerifier {
public:
  explicit MergeVerifier(MergeOpInterface op) : op(op) {}
  LogicalResult verify();

private:
  LogicalResult inputs();    // C2
  LogicalResult outputs();   // C3
  LogicalResult ranks();     // C4
  LogicalResult elements();  // C6
  LogicalResult shapes();    // C7
  LogicalResult sizes();     // C8
  LogicalResult alignment(); // C10

  ShapedType typeOf(StringRef role) {
    return cast<ShapedType>(op.array(role).getType());
  }

  MergeOpInterface op;
  SmallVector<AttentionArray> arrays = {};
};
} // namespace

LogicalResult MergeVerifier::inputs() {
  auto merge = dyn_cast<MergeOp>(op.getOperation());
  if (!merge)
    return success();
  size_t parts = merge.getParts().size(), lses = merge.getPartLses().size();
  if (parts == 0)
    return op->emitOpError("expects a part at least, but got none");
  if (parts != lses)
    return op->emitOpError("expects an LSE for each part, but got ")
           << parts << " parts and " << lses << " LSEs";
  return success();
}

LogicalResult MergeVerifier::outputs() {
  ArrayRef<StringLiteral> roles = op.outputRoles();
  size_t count = op.outputs().size(), least = op.leastOutputs();
  if (count < least || count > roles.size())
    return op->emitOpError("expects ")
           << (least < roles.size() ? "one or two" : "two")
           << (op.isOnTensors() ? " results, " : " outs, ")
           << llvm::join(roles, " and ") << ", but got " << count;
  return verifyDestinations(op, op.getOuts().getTypes(),
                            op.outputs().getTypes());
}

LogicalResult MergeVerifier::ranks() {
  for (const AttentionArray &array : arrays) {
    int64_t rank = isStatisticOfMerge(array.role) ? 3 : 4;
    if (array.type().getRank() != rank)
      return op->emitOpError("expects ")
             << array.role << " of rank " << rank << ", but got rank "
             << array.type().getRank();
  }
  return success();
}

LogicalResult MergeVerifier::elements() {
  Type whole = typeOf("o").getElementType();
  if (!whole.isBF16() && !whole.isF16() && !whole.isF32()) {
    InFlightDiagnostic error =
        op->emitOpError("expects a supported element type, but got ") << whole;
    error.attachNote() << "element types: bf16, f16, f32";
    return error;
  }
  for (const AttentionArray &array : arrays) {
    Type got = array.type().getElementType();
    bool isPart = StringRef(array.role).contains('_');
    auto mismatch = [&](StringRef wanted) {
      return op->emitOpError("expects ")
             << array.role << " to have the element type " << wanted
             << ", but got " << got;
    };
    if (isStatisticOfMerge(array.role)) {
      if (!got.isF32())
        return mismatch("f32");
      continue;
    }
    std::string name;
    llvm::raw_string_ostream(name) << whole << " of o";
    bool isPlain = got.isBF16() || got.isF16() || got.isF32();
    if (isPart &&
        (!isPlain || (got != whole && !got.isF32() && !whole.isF32())))
      return mismatch(whole.isF32() ? "bf16, f16 or f32" : name + " or f32");
    if (!isPart && got != whole)
      return mismatch(name);
  }
  if (!op.array("do_0"))
    return success();
  Type part = typeOf("o_0").getElementType(),
       gradient = typeOf("do_0").getElementType();
  if (part != gradient)
    return op->emitOpError("expects do_0 to have the element type of o_0, ")
           << part << ", but got " << gradient;
  return success();
}

LogicalResult MergeVerifier::shapes() {
  static constexpr StringLiteral whats[] = {"batch size", "head count",
                                            "number of rows", "head dimension"};
  // A dynamic size in between hides no difference.
  SmallVector<int64_t> known(4, ShapedType::kDynamic);
  for (const AttentionArray &array : arrays)
    for (auto [dimension, size] : llvm::enumerate(array.type().getShape())) {
      bool isStatic = dimension % 2 == 1; // heads and columns
      if (isStatic && (ShapedType::isDynamic(size) || size <= 0))
        return op->emitOpError("expects ")
               << array.role << " to have a static and positive "
               << whats[dimension] << ", but got " << SizeForPeople{size};
      if (!compatible(known[dimension], size)) {
        InFlightDiagnostic error = op->emitOpError("expects ");
        error << array.role << " of shape ";
        printShape(error, ArrayRef(known).take_front(array.type().getRank()));
        error << ", but got ";
        printShape(error, array.type().getShape());
        return error;
      }
      if (ShapedType::isDynamic(known[dimension]))
        known[dimension] = size;
    }
  return success();
}

LogicalResult MergeVerifier::sizes() {
  Merge merge = mergeOf(op);
  if (std::optional<std::string> error = check(limitsOf(merge)))
    return op->emitOpError(*error);
  return success();
}

LogicalResult MergeVerifier::alignment() {
  if (!op.getAlignment())
    return success();
  for (const AttentionArray &array : arrays) {
    if (isStatisticOfMerge(array.role))
      continue;
    DataType type = *dataTypeOf(array.type().getElementType());
    if (std::optional<std::string> error =
            checkAlignment(*op.getAlignment(), type))
      return op->emitOpError(*error);
  }
  return success();
}

LogicalResult MergeVerifier::verify() {
  if (failed(inputs()) || failed(verifyForm(op)) || failed(outputs()))
    return failure();
  arrays = op.arrays();
  return success(succeeded(ranks()) && succeeded(elements()) &&
                 succeeded(verifyLayouts(op, arrays)) &&
                 succeeded(verifySpaces(op, arrays)) && succeeded(shapes()) &&
                 succeeded(sizes()) && succeeded(verifyAliases(op, arrays)) &&
                 succeeded(alignment()));
}

LogicalResult attn::verifyMerge(MergeOpInterface op) {
  return MergeVerifier(op).verify();
}
