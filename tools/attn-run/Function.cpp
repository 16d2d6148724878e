//===- Function.cpp - Inputs, outputs and sizes of a function -------------===//

#include "Function.h"

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

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

SmallVector<int64_t> Attention::sizesOf(StringRef role) const {
  auto sizeOf = [&](Extent extent) {
    switch (extent) {
    case Extent::batch:
      return problem.batch;
    case Extent::heads:
      return problem.heads;
    case Extent::kvHeads:
      return problem.kvHeads;
    case Extent::queries:
      return problem.queries;
    case Extent::keys:
      return problem.keys;
    case Extent::headDim:
      return problem.headDim;
    case Extent::headDimV:
      return problem.headDimV;
    case Extent::keptRows:
      return keptRows(problem.keys);
    }
    llvm_unreachable("closed enum");
  };
  return llvm::map_to_vector<4>(shapeOf(role), sizeOf);
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
  LogicalResult readAttention(AttentionOpInterface op);
  LogicalResult readInputs(Attention &attention);
  LogicalResult readSizes(Attention &attention);
  LogicalResult readOuts(const Attention &attention);
  LogicalResult readReturn(func::ReturnOp op);
  void addOutput(size_t attention, StringRef role, unsigned position,
                 Type type);
  /// The position of an operand among the arguments.
  FailureOr<unsigned> argumentOf(Operation *op, Value value, StringRef operand);
  /// Whether a value is O or LSE of a forward op before.
  bool isGiven(Value value, StringRef role);
  /// An option that gives a size, whether one is open, and what others are.
  struct SizeOption {
    Extent extent;
    StringRef name;
    std::optional<int64_t> given;
    bool isUsed = false;
    std::set<int64_t> known;
  };
  SizeOption *optionOf(Extent extent);
  /// A size that is given and is not that of any array.
  LogicalResult checkOptions();

  /// Enters sizes for the open ones of an argument.
  LogicalResult setSizes(unsigned argument, StringRef role, Operation *op);

  func::FuncOp function;
  const Extents &extents;
  Function result;
  llvm::SmallBitVector written;
  SizeOption sizeOptions[3] = {
      {Extent::batch, "--batch", extents.batch, false, {}},
      {Extent::queries, "--queries", extents.queries, false, {}},
      {Extent::keys, "--keys", extents.keys, false, {}}};
};

} // namespace

FailureOr<Function> Reader::read() {
  if (failed(readArguments()))
    return failure();
  for (Operation &op : function.getBody().front()) {
    LogicalResult read = success();
    if (auto attention = dyn_cast<AttentionOpInterface>(op))
      read = readAttention(attention);
    else if (auto end = dyn_cast<func::ReturnOp>(op))
      read = readReturn(end);
    else if (op.getName().getStringRef() != "tensor.empty" &&
             op.getName().getStringRef() != "tensor.dim" &&
             op.getName().getStringRef() != "arith.constant")
      return op.emitError("expects attn.forward or attn.backward on arguments "
                          "of the function, for which there is a reference, "
                          "but got '")
             << op.getName() << "'";
    if (failed(read))
      return failure();
  }
  if (result.attentions.empty())
    return function.emitError("expects an attn.forward or attn.backward in the "
                              "function, but got none");
  if (failed(checkOptions()))
    return failure();
  for (Attention &attention : result.attentions)
    for (const auto &[role, input] : attention.inputs)
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

FailureOr<unsigned> Reader::argumentOf(Operation *op, Value value,
                                       StringRef operand) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &function.getBody().front())
    return argument.getArgNumber();
  return op->emitError("expects ")
         << operand << " to be an argument of the function, so that there is "
         << "a reference";
}

Reader::SizeOption *Reader::optionOf(Extent extent) {
  auto *found = llvm::find_if(
      sizeOptions, [&](SizeOption &each) { return each.extent == extent; });
  return found == std::end(sizeOptions) ? nullptr : found;
}

LogicalResult Reader::checkOptions() {
  for (const SizeOption &option : sizeOptions)
    if (option.given && !option.isUsed && !option.known.count(*option.given)) {
      InFlightDiagnostic error = function.emitError("expects ");
      error << option.name << " where a type leaves that size open, but got "
            << *option.given << " for ";
      llvm::interleaveComma(option.known, error);
      return error;
    }
  return success();
}

LogicalResult Reader::setSizes(unsigned argument, StringRef role,
                               Operation *op) {
  // Open key counts follow the queries unless they are given.
  std::optional<int64_t> keys = extents.keys ? extents.keys : extents.queries;
  for (auto [dim, extent] : llvm::enumerate(shapeOf(role))) {
    int64_t &size = result.argumentSizes[argument][dim];
    if (!ShapedType::isDynamic(size)) {
      if (SizeOption *option = optionOf(extent))
        option->known.insert(size);
      continue;
    }
    std::optional<int64_t> given = extents.batch;
    StringRef option = "--batch";
    if (extent == Extent::queries || extent == Extent::keys) {
      given = extent == Extent::keys ? keys : extents.queries;
      option = "--queries or --keys";
    }
    if (SizeOption *used = optionOf(extent))
      used->isUsed = true;
    if (extent == Extent::keys && !extents.keys)
      optionOf(Extent::queries)->isUsed = true;
    if (!given)
      return op->emitError("expects a value for dimension ")
             << dim << " of argument " << argument << ", which is dynamic: "
             << "give " << option;
    size = *given;
  }
  return success();
}

bool Reader::isGiven(Value value, StringRef role) {
  return llvm::any_of(result.attentions, [&](Attention &attention) {
    return !attention.isBackward() && attention.op.array(role) == value;
  });
}

LogicalResult Reader::readInputs(Attention &attention) {
  AttentionOpInterface op = attention.op;
  for (const AttentionArray &array : op.arrays()) {
    bool isResult =
        array.role == "o" || array.role == "lse" || array.role == "lse_low";
    if (array.isOutput || (isResult && isGiven(array.value, array.role)))
      continue;
    FailureOr<unsigned> position = argumentOf(op, array.value, array.role);
    if (failed(position))
      return failure();
    attention.inputs[array.role.str()] = *position;
    if (failed(setSizes(*position, array.role, op)))
      return failure();
  }
  return success();
}

/// Sizes that types leave open are those of the arguments, and must agree.
LogicalResult Reader::readSizes(Attention &attention) {
  Problem &problem = attention.problem;
  problem = problemOf(attention.op);
  auto sizesOf = [&](StringRef role) -> ArrayRef<int64_t> {
    return result.argumentSizes[attention.input(role)];
  };
  problem.batch = sizesOf("q")[0];
  problem.queries = sizesOf("q")[2];
  problem.keys = sizesOf("k")[2];
  for (const auto &[role, position] : attention.inputs) {
    ArrayRef<int64_t> actual = result.argumentSizes[position];
    SmallVector<int64_t> expected = attention.sizesOf(role);
    if (actual == ArrayRef(expected))
      continue;
    InFlightDiagnostic error = attention.op->emitError("expects ");
    error << role << " of sizes ";
    llvm::interleave(expected, error, "x");
    error << ", which follow from q and k, but got ";
    llvm::interleave(actual, error, "x");
    return error;
  }
  if (std::optional<std::string> wrong = check(problem))
    return attention.op->emitError(*wrong);
  return success();
}

LogicalResult Reader::readOuts(const Attention &attention) {
  AttentionOpInterface op = attention.op;
  for (auto [role, target] : llvm::zip(op.givenOutputs(), op.getOuts())) {
    FailureOr<unsigned> position = argumentOf(op, target, "an output");
    if (failed(position))
      return failure();
    if (written.test(*position))
      return op->emitError("expects each output in its own argument, but "
                           "argument ")
             << *position << " is written twice";
    written.set(*position);
    addOutput(result.attentions.size() - 1, role, *position, target.getType());
    result.argumentSizes[*position] = result.outputs.back().sizes;
  }
  return success();
}

LogicalResult Reader::readAttention(AttentionOpInterface op) {
  if (problemOf(op).keepsWeights)
    return op->emitError("expects attention that keeps no weights, for which "
                         "there is a reference");
  Attention attention;
  attention.op = op;
  attention.scale = op.scaleOrDefault();
  if (failed(readInputs(attention)) || failed(readSizes(attention)))
    return failure();
  result.onTensors = op.isOnTensors();
  result.attentions.push_back(attention);
  return result.onTensors ? success() : readOuts(attention);
}

void Reader::addOutput(size_t attention, StringRef role, unsigned position,
                       Type type) {
  Output output;
  output.attention = attention;
  output.role = role.str();
  output.position = position;
  output.elementType = cast<ShapedType>(type).getElementType();
  output.sizes = result.attentions[attention].sizesOf(role);
  result.outputs.push_back(output);
}

LogicalResult Reader::readReturn(func::ReturnOp op) {
  for (auto [position, value] : llvm::enumerate(op.getOperands())) {
    Operation *source = value.getDefiningOp();
    auto found = llvm::find_if(result.attentions, [&](Attention &attention) {
      return attention.op.getOperation() == source;
    });
    if (found == result.attentions.end())
      return op.emitError("expects to return results of attn.forward or "
                          "attn.backward, but operand ")
             << position << " is something else";
    unsigned number = cast<OpResult>(value).getResultNumber();
    addOutput(found - result.attentions.begin(),
              found->op.givenOutputs()[number], position, value.getType());
  }
  return success();
}

FailureOr<Function> run::readFunction(func::FuncOp function,
                                      const Extents &extents) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("expects a function without control flow");
  return Reader(function, extents).read();
}
