//===- Forward.cpp - attn.forward: constraints and interfaces -------------===//
//
// The verifier follows the numbered constraints of the op's description, in
// the order in which a later one may rely on an earlier one.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/Attn.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static ParseResult parseMaskBody(OpAsmParser &parser, MaskAttr &mask) {
  mask = MaskAttr::parseBody(parser);
  if (!mask)
    return failure();
  // One spelling in memory and in print: no mask is no attribute.
  if (mask.getKind() == MaskKind::none)
    mask = {};
  return success();
}

static void printMaskBody(OpAsmPrinter &printer, Operation *, MaskAttr mask) {
  mask.printBody(printer);
}

static ParseResult parsePrecisionBody(OpAsmParser &parser,
                                      PrecisionAttr &precision) {
  precision = PrecisionAttr::parseBody(parser);
  return failure(!precision);
}

static void printPrecisionBody(OpAsmPrinter &printer, Operation *,
                               PrecisionAttr precision) {
  precision.printBody(printer);
}

#define GET_OP_CLASSES
#include "attn/IR/AttnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

namespace {
/// A type that takes part in the op, and what the op calls it.
struct Part {
  StringRef name;
  ShapedType type;
  int64_t size(unsigned dimension) const { return type.getDimSize(dimension); }
};

/// A size for people: `?` where it is dynamic.
struct Size {
  int64_t value;
};
Diagnostic &operator<<(Diagnostic &diagnostic, Size size) {
  return ShapedType::isDynamic(size.value) ? diagnostic << '?'
                                           : diagnostic << size.value;
}

struct Verifier {
  ForwardOp op;
  Part q{"q", cast<ShapedType>(op.getQ().getType())};
  Part k{"k", cast<ShapedType>(op.getK().getType())};
  Part v{"v", cast<ShapedType>(op.getV().getType())};
  SmallVector<Part> outputs = {};

  LogicalResult form();        // C1
  LogicalResult outputCount(); // C2
  LogicalResult layouts();     // C3, C4
  LogicalResult elements();    // C5, C6
  LogicalResult sizes();       // C7 to C10
  LogicalResult outputSizes(); // C11, C12
  LogicalResult numbers();     // C13, C15; C14 is the mask's own
  LogicalResult aliases();     // C16
  LogicalResult alignment();   // C17
  LogicalResult precision();   // C18

  LogicalResult same(const Part &a, const Part &b, unsigned dimension,
                     StringRef what);
  LogicalResult positive(const Part &part, unsigned dimension, StringRef what);
};
} // namespace

/// Sizes that may be equal at run time.
static bool compatible(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

LogicalResult Verifier::same(const Part &a, const Part &b, unsigned dimension,
                             StringRef what) {
  if (compatible(a.size(dimension), b.size(dimension)))
    return success();
  return op.emitOpError("expects ")
         << a.name << " and " << b.name << " to have the same " << what
         << ", but got " << Size{a.size(dimension)} << " and "
         << Size{b.size(dimension)};
}

LogicalResult Verifier::positive(const Part &part, unsigned dimension,
                                 StringRef what) {
  if (!ShapedType::isDynamic(part.size(dimension)) && part.size(dimension) > 0)
    return success();
  return op.emitOpError("expects ")
         << part.name << " to have a static and positive " << what
         << ", but got " << Size{part.size(dimension)};
}

LogicalResult Verifier::form() {
  for (Value operand : op->getOperands()) {
    if (isa<MemRefType>(operand.getType()) == op.isOnTensors())
      return op.emitOpError("expects operands to be all tensors or all "
                            "memrefs, but got ")
             << op.getQ().getType() << " and " << operand.getType();
  }
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getEncoding())
      return op.emitOpError("expects tensors without encoding, but got ")
             << type;
  }
  return success();
}

LogicalResult Verifier::outputCount() {
  TypeRange types = op.outputTypes();
  if (types.empty() || types.size() > 2)
    return op.emitOpError("expects one or two ")
           << (op.isOnTensors() ? "results" : "outs") << ", O and LSE, but got "
           << types.size();
  if (!op.isOnTensors() && op->getNumResults())
    return op.emitOpError("expects no results on memrefs, but got ")
           << op->getNumResults();
  TypeRange outs = op.getOuts().getTypes();
  if (!outs.empty() && !llvm::equal(outs, types))
    return op.emitOpError("expects outs to be absent or of the types of the "
                          "results, but got ")
           << outs << " and " << types;
  for (auto [index, type] : llvm::enumerate(types))
    outputs.push_back({index ? "LSE" : "O", cast<ShapedType>(type)});
  return success();
}

LogicalResult Verifier::layouts() {
  SmallVector<Part> parts = {q, k, v};
  llvm::append_range(parts, outputs);
  for (const Part &part : parts) {
    int64_t rank = part.name == "LSE" ? 3 : 4;
    if (part.type.getRank() != rank)
      return op.emitOpError("expects ")
             << part.name << " of rank " << rank << ", but got rank "
             << part.type.getRank();
  }
  for (const Part &part : parts) {
    auto memref = dyn_cast<MemRefType>(part.type);
    if (memref && !memref.isLastDimUnitStride())
      return op.emitOpError("expects ")
             << part.name << " to have an innermost stride of 1, but got "
             << memref;
  }
  return success();
}

LogicalResult Verifier::elements() {
  Type element = q.type.getElementType();
  if (!dataTypeOf(element)) {
    InFlightDiagnostic error =
        op.emitOpError("expects a supported element type, but got ") << element;
    error.attachNote() << "element types: bf16, f16, f32, f8E4M3FN";
    return error;
  }
  for (const Part &part : {k, v})
    if (part.type.getElementType() != element)
      return op.emitOpError("expects ")
             << part.name << " to have the element type " << element
             << " of q, but got " << part.type.getElementType();

  Builder builder(op.getContext());
  for (const Part &part : outputs) {
    Type expected = element;
    if (part.name == "LSE")
      expected = builder.getF32Type();
    else if (isa<Float8E4M3FNType>(element))
      expected = builder.getBF16Type();
    if (part.type.getElementType() != expected)
      return op.emitOpError("expects ")
             << part.name << " to have the element type " << expected
             << ", but got " << part.type.getElementType();
  }
  return success();
}

LogicalResult Verifier::sizes() {
  if (failed(same(q, k, 0, "batch size")) ||
      failed(same(k, v, 0, "batch size")) ||
      failed(same(q, v, 0, "batch size")))
    return failure();
  for (const Part &part : {q, k, v})
    if (failed(positive(part, 1, "head count")))
      return failure();
  if (failed(same(k, v, 1, "head count")))
    return failure();
  if (q.size(1) % k.size(1))
    return op.emitOpError("expects the head count of q to be a multiple of "
                          "that of k, but got ")
           << q.size(1) << " and " << k.size(1);
  if (failed(same(k, v, 2, "number of rows")))
    return failure();
  for (const Part &part : {q, k, v})
    if (failed(positive(part, 3, "head dimension")))
      return failure();
  return same(q, k, 3, "head dimension");
}

LogicalResult Verifier::outputSizes() {
  SmallVector<int64_t> shape(q.type.getShape());
  shape.back() = v.size(3);
  for (const Part &part : outputs) {
    if (failed(positive(part, 1, "head count")) ||
        (part.name == "O" && failed(positive(part, 3, "head dimension"))))
      return failure();
    ArrayRef<int64_t> expected =
        ArrayRef(shape).take_front(part.type.getRank());
    ArrayRef<int64_t> actual = part.type.getShape();
    if (llvm::all_of(llvm::zip_equal(expected, actual), [](auto sizes) {
          return compatible(std::get<0>(sizes), std::get<1>(sizes));
        }))
      continue;
    InFlightDiagnostic error = op.emitOpError("expects ");
    error << part.name << " of shape ";
    llvm::interleave(
        expected, [&](int64_t s) { error << Size{s}; }, [&] { error << 'x'; });
    error << ", but got ";
    llvm::interleave(
        actual, [&](int64_t s) { error << Size{s}; }, [&] { error << 'x'; });
    return error;
  }
  return success();
}

LogicalResult Verifier::numbers() {
  if (op.getScale() && !op.getScale()->isFinite())
    return op.emitOpError("expects a finite scale, but got ")
           << op.getScaleAttr();
  // An empty tensor is mathematics too; only the cost model has no use for it.
  Problem problem = problemOf(op);
  for (int64_t *size : {&problem.batch, &problem.queries, &problem.keys})
    *size = std::max<int64_t>(*size, 1);
  problem.alignment = kMaxAlignment; // has a rule of its own
  if (std::optional<std::string> error = check(problem))
    return op.emitOpError(*error);
  return success();
}

LogicalResult Verifier::aliases() {
  if (op.isOnTensors())
    return success();
  std::pair<StringRef, Value> inputs[] = {
      {"q", op.getQ()}, {"k", op.getK()}, {"v", op.getV()}};
  for (Value out : op.getOuts())
    for (auto [name, in] : inputs)
      if (out == in)
        return op.emitOpError("expects outs in buffers of their own, but got "
                              "that of ")
               << name;
  return success();
}

LogicalResult Verifier::alignment() {
  if (!op.getAlignment())
    return success();
  DataType type = *dataTypeOf(q.type.getElementType());
  if (std::optional<std::string> error =
          checkAlignment(*op.getAlignment(), type))
    return op.emitOpError(*error);
  return success();
}

LogicalResult Verifier::precision() {
  if (!op.getPrecision() || q.type.getElementType().isF32())
    return success();
  return op.emitOpError("expects a precision only for operands of f32, but got "
                        "operands of ")
         << q.type.getElementType();
}

LogicalResult ForwardOp::verify() {
  Verifier verifier{*this};
  return success(
      succeeded(verifier.form()) && succeeded(verifier.outputCount()) &&
      succeeded(verifier.layouts()) && succeeded(verifier.elements()) &&
      succeeded(verifier.sizes()) && succeeded(verifier.outputSizes()) &&
      succeeded(verifier.numbers()) && succeeded(verifier.aliases()) &&
      succeeded(verifier.alignment()) && succeeded(verifier.precision()));
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

attn::Mask ForwardOp::maskOrNone() {
  return getMask() ? getMask()->value() : Mask();
}

double ForwardOp::scaleOrDefault() {
  if (getScale())
    return getScale()->convertToFloat();
  return 1 /
         std::sqrt(double(cast<ShapedType>(getQ().getType()).getDimSize(3)));
}

attn::Precision ForwardOp::precisionOrDefault() {
  return getPrecision() ? getPrecision()->getValue() : Precision::tf32x3;
}

Speculation::Speculatability ForwardOp::getSpeculatability() {
  return isOnTensors() ? Speculation::Speculatable
                       : Speculation::NotSpeculatable;
}

void ForwardOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (isOnTensors())
    return;
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    bool written = operand.getOperandNumber() >= 3;
    MemoryEffects::Effect *effect = MemoryEffects::Read::get();
    if (written)
      effect = MemoryEffects::Write::get();
    effects.emplace_back(effect, &operand, /*stage=*/0,
                         /*effectOnFullRegion=*/true,
                         SideEffects::DefaultResource::get());
  }
}

/// A dynamic size of a result is that of Q: only batch and queries can be.
LogicalResult
ForwardOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &reified) {
  for (Type type : getResultTypes()) {
    SmallVector<OpFoldResult> &sizes = reified.emplace_back();
    for (auto [index, size] :
         llvm::enumerate(cast<ShapedType>(type).getShape())) {
      if (ShapedType::isDynamic(size))
        sizes.push_back(
            builder.createOrFold<tensor::DimOp>(getLoc(), getQ(), index));
      else
        sizes.push_back(builder.getIndexAttr(size));
    }
  }
  return success();
}
