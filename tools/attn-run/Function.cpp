//===- Function.cpp - Inputs, outputs and sizes of a function -------------===//

#include "Function.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringExtras.h"

using namespace attn;
using namespace attn::run;
using namespace mlir;

FailureOr<func::FuncOp> run::findFunction(ModuleOp module, StringRef name) {
  SmallVector<func::FuncOp> candidates;
  SmallVector<std::string> names;
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    candidates.push_back(function);
    names.push_back(function.getSymName().str());
    if (function.getSymName() == name)
      return function;
  }
  if (candidates.empty())
    return module.emitError("expects a function with a body, but got none");
  if (name.empty() && candidates.size() == 1)
    return candidates.front();
  InFlightDiagnostic diagnostic =
      name.empty() ? module.emitError("expects one function, but got ")
                         << candidates.size() << "; name one with --function"
                   : module.emitError("expects a function '")
                         << name << "', but there is none";
  diagnostic.attachNote() << "functions: " << llvm::join(names, ", ");
  return diagnostic;
}

namespace {

/// Collects the parts of a Function.
class Reader {
public:
  Reader(func::FuncOp function, const Extents &extents)
      : function(function), extents(extents) {
    result.op = function;
  }

  FailureOr<Function> read();

private:
  LogicalResult readArguments();
  LogicalResult readForward(ForwardOp op);
  LogicalResult readReturn(func::ReturnOp op);
  /// Enters an output of an attention, by default of the last one.
  void addOutput(bool isLse, unsigned position, Type type,
                 std::optional<size_t> attention = std::nullopt);
  /// The position of an operand among the arguments.
  FailureOr<unsigned> argumentOf(ForwardOp op, Value value, StringRef operand);
  /// Enters sizes for the open ones of an argument.
  LogicalResult setSizes(unsigned argument, ArrayRef<std::optional<int64_t>>,
                         Operation *op);

  func::FuncOp function;
  const Extents &extents;
  Function result;
  llvm::SmallBitVector written;
};

} // namespace

FailureOr<Function> Reader::read() {
  if (failed(readArguments()))
    return failure();
  for (Operation &op : function.getBody().front()) {
    LogicalResult read = success();
    if (auto forward = dyn_cast<ForwardOp>(op))
      read = readForward(forward);
    else if (auto end = dyn_cast<func::ReturnOp>(op))
      read = readReturn(end);
    else if (op.getName().getStringRef() != "tensor.empty" &&
             op.getName().getStringRef() != "tensor.dim" &&
             op.getName().getStringRef() != "arith.constant")
      return op.emitError("expects attn.forward on arguments of the function, "
                          "for which there is a reference, but got '")
             << op.getName() << "'";
    if (failed(read))
      return failure();
  }
  if (result.attentions.empty())
    return function.emitError("expects an attn.forward in the function, but "
                              "got none");
  for (const Attention &attention : result.attentions)
    for (unsigned input : {attention.q, attention.k, attention.v})
      if (written.test(input))
        return attention.op->emitError("expects inputs that nothing writes, "
                                       "but got argument ")
               << input << ", which is also an output";
  return std::move(result);
}

LogicalResult Reader::readArguments() {
  written.resize(function.getNumArguments());
  for (auto [position, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (!shaped || !shaped.hasRank())
      return function.emitError("expects tensors or memrefs as arguments, but "
                                "argument ")
             << position << " is " << type;
    result.argumentSizes.push_back(llvm::to_vector(shaped.getShape()));
  }
  return success();
}

FailureOr<unsigned> Reader::argumentOf(ForwardOp op, Value value,
                                       StringRef operand) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &function.getBody().front())
    return argument.getArgNumber();
  return op->emitError("expects ")
         << operand << " to be an argument of the function, so that there is "
         << "a reference";
}

LogicalResult Reader::setSizes(unsigned argument,
                               ArrayRef<std::optional<int64_t>> open,
                               Operation *op) {
  static constexpr StringLiteral options[] = {"--batch", "",
                                              "--queries or "
                                              "--keys"};
  SmallVector<int64_t> &sizes = result.argumentSizes[argument];
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (!ShapedType::isDynamic(size))
      continue;
    if (dim >= open.size() || !open[dim])
      return op->emitError("expects a value for dimension ")
             << dim << " of argument " << argument << ", which is dynamic: "
             << "give " << (dim < 3 ? options[dim] : "a static size");
    size = *open[dim];
  }
  return success();
}

LogicalResult Reader::readForward(ForwardOp op) {
  Attention attention;
  attention.op = op;
  attention.scale = op.scaleOrDefault();
  FailureOr<unsigned> q = argumentOf(op, op.getQ(), "q");
  FailureOr<unsigned> k = argumentOf(op, op.getK(), "k");
  FailureOr<unsigned> v = argumentOf(op, op.getV(), "v");
  if (failed(q) || failed(k) || failed(v))
    return failure();
  attention.q = *q;
  attention.k = *k;
  attention.v = *v;
  // Open key counts follow the queries unless they are given.
  std::optional<int64_t> keys = extents.keys ? extents.keys : extents.queries;
  if (failed(setSizes(*q, {extents.batch, {}, extents.queries}, op)) ||
      failed(setSizes(*k, {extents.batch, {}, keys}, op)) ||
      failed(setSizes(*v, {extents.batch, {}, keys}, op)))
    return failure();

  Problem &problem = attention.problem;
  problem = problemOf(op);
  problem.batch = result.argumentSizes[*q][0];
  problem.queries = result.argumentSizes[*q][2];
  problem.keys = result.argumentSizes[*k][2];
  if (result.argumentSizes[*k][0] != problem.batch ||
      result.argumentSizes[*v][0] != problem.batch ||
      result.argumentSizes[*v][2] != problem.keys)
    return op->emitError("expects one batch size and one key count, but got ")
           << "Q of " << problem.batch << ", K of "
           << result.argumentSizes[*k][0] << "x" << problem.keys << ", V of "
           << result.argumentSizes[*v][0] << "x" << result.argumentSizes[*v][2];
  if (std::optional<std::string> wrong = check(problem))
    return op->emitError(*wrong);

  result.onTensors = op.isOnTensors();
  result.attentions.push_back(attention);
  if (result.onTensors)
    return success();
  for (auto [number, target] : llvm::enumerate(op.getOuts())) {
    FailureOr<unsigned> position = argumentOf(op, target, "an output");
    if (failed(position))
      return failure();
    if (written.test(*position))
      return op->emitError("expects each output in its own argument, but "
                           "argument ")
             << *position << " is written twice";
    written.set(*position);
    addOutput(number == 1, *position, target.getType());
    result.argumentSizes[*position] = result.outputs.back().sizes;
  }
  return success();
}

void Reader::addOutput(bool isLse, unsigned position, Type type,
                       std::optional<size_t> attention) {
  Output output;
  output.attention = attention.value_or(result.attentions.size() - 1);
  output.isLse = isLse;
  output.position = position;
  output.elementType = cast<ShapedType>(type).getElementType();
  const Problem &problem = result.attentions[output.attention].problem;
  output.sizes = {problem.batch, problem.heads, problem.queries};
  if (!isLse)
    output.sizes.push_back(problem.headDimV);
  result.outputs.push_back(output);
}

LogicalResult Reader::readReturn(func::ReturnOp op) {
  for (auto [position, value] : llvm::enumerate(op.getOperands())) {
    auto forward = value.getDefiningOp<ForwardOp>();
    auto found =
        llvm::find_if(result.attentions, [&](const Attention &attention) {
          return attention.op == forward;
        });
    if (!forward || found == result.attentions.end())
      return op.emitError("expects to return results of attn.forward, but "
                          "operand ")
             << position << " is something else";
    addOutput(cast<OpResult>(value).getResultNumber() == 1, position,
              value.getType(), found - result.attentions.begin());
  }
  return success();
}

FailureOr<Function> run::readFunction(func::FuncOp function,
                                      const Extents &extents) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("expects a function without control flow");
  return Reader(function, extents).read();
}
