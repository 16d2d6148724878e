//===- Differentiate.cpp - Functions of attention get gradients -----------===//
//
// Reverse mode on straight-line code.  The body of a function is copied, and
// behind it its ops are walked from the last to the first: what is known of the
// gradients of an op's results becomes gradients of its operands.  A value with
// several uses adds up what comes from each.
//
// There are two rules: attn.forward has attn.backward, and each part of
// attn.merge has attn.merge_backward.  All other ops may stand beside them, but
// nothing that depends on an argument may pass through one on its way to a
// result.
//
//===----------------------------------------------------------------------===//

#include "attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether a type has gradients.
static bool isDifferentiable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

static bool isDifferentiable(Value value) {
  return isDifferentiable(value.getType());
}

static void appendDifferentiable(TypeRange types, SmallVectorImpl<Type> &to) {
  llvm::copy_if(types, std::back_inserter(to),
                [](Type type) { return isDifferentiable(type); });
}

namespace {

/// Gradients that are asked for of what clauses take.
struct ClauseGradients {
  SmallVector<int64_t> numbers;
  SmallVector<Type> types;
};

/// Writes the gradient function of one function.
class Differentiator {
public:
  Differentiator(func::FuncOp function, func::FuncOp result)
      : function(function), result(result),
        b(function.getLoc(), OpBuilder(function.getContext())) {}

  LogicalResult run();

private:
  void copyBody();
  /// Copies a forward op so that it also gives LSE in two words.  A destination
  /// is not taken over: its contents are never read.
  void copyForward(ForwardOp op);
  /// Copies a merge so that it also gives LSE.
  void copyMerge(MergeOp op);
  void findActive();
  LogicalResult reverse(Operation &op);
  LogicalResult reverseForward(ForwardOp op);
  ClauseGradients gradientsOfClauses(ForwardOp op);
  LogicalResult checkDerivatives(ForwardOp op, BackwardOp backward);
  Value inTypeOf(Value input, Value gradient);
  void reverseMerge(MergeOp op);
  void returnGradients();
  void eraseUnused();

  /// Adds to the gradient of a value of the copy.
  void add(Value value, Value gradient);
  /// The gradient, or zeros.
  Value gradientOf(Value value);
  Value zerosLike(Value value);

  func::FuncOp function, result;
  ImplicitLocOpBuilder b;
  IRMapping copies;
  llvm::DenseMap<Value, Value> gradients;
  /// Values of the copy that depend on an argument's numbers.
  llvm::DenseSet<Value> active;
};

} // namespace

//===----------------------------------------------------------------------===//
// The copy
//===----------------------------------------------------------------------===//

void Differentiator::copyBody() {
  Block &from = function.getBody().front();
  Block *to = result.addEntryBlock();
  b.setInsertionPointToStart(to);
  for (auto [old, copy] : llvm::zip(from.getArguments(), to->getArguments()))
    copies.map(old, copy);
  for (Operation &op : from.without_terminator()) {
    if (auto forward = dyn_cast<ForwardOp>(op))
      copyForward(forward);
    else if (auto merge = dyn_cast<MergeOp>(op))
      copyMerge(merge);
    else
      b.clone(op, copies);
  }
}

void Differentiator::copyForward(ForwardOp op) {
  auto attention = cast<AttentionOpInterface>(op.getOperation());
  SmallVector<StringLiteral> roles = attention.givenOutputs();
  bool keepsWeights = llvm::is_contained(roles, "weights");
  SmallVector<StringLiteral> more = op.rolesOfOutputs(keepsWeights ? 5 : 3);
  auto o = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> rows(o.getShape().drop_back());
  if (attention.isRagged()) // O is [rows, heads, e], LSE [heads, rows]
    std::swap(rows[0], rows[1]);
  Type lse = RankedTensorType::get(rows, b.getF32Type());
  SmallVector<Type> types;
  for (StringRef role : more) {
    Value given = attention.array(role);
    types.push_back(given ? given.getType() : lse);
  }
  SmallVector<Value> inputs;
  for (Value input : op.inputs())
    inputs.push_back(copies.lookup(input));
  Operation *copy = cloneWith(b, op, inputs, types, op->getAttrs());
  for (auto [role, value] : llvm::zip_equal(roles, op->getResults()))
    copies.map(value, copy->getResult(llvm::find(more, role) - more.begin()));
}

void Differentiator::copyMerge(MergeOp op) {
  auto mapped = [&](ValueRange values) {
    return llvm::map_to_vector(values,
                               [&](Value v) { return copies.lookup(v); });
  };
  auto o = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Type> types = {
      o, RankedTensorType::get(o.getShape().drop_back(), b.getF32Type())};
  if (op->getNumResults() == 2)
    types[1] = op->getResult(1).getType();
  b.setLoc(op.getLoc());
  MergeOp copy =
      MergeOp::create(b, types, mapped(op.getParts()), mapped(op.getPartLses()),
                      /*outs=*/ValueRange(), op.getAlignmentAttr());
  for (auto [from, to] : llvm::zip(op->getResults(), copy->getResults()))
    copies.map(from, to);
}

/// What an op reads: its operands, and what its regions take from outside; of a
/// forward op or a merge not its destinations.
static llvm::SetVector<Value> readBy(Operation &op) {
  llvm::SetVector<Value> values;
  if (auto forward = dyn_cast<ForwardOp>(op)) {
    values.insert_range(forward.inputs());
    return values;
  }
  if (auto merge = dyn_cast<MergeOp>(op)) {
    values.insert_range(merge.inputs());
    return values;
  }
  values.insert_range(op.getOperands());
  getUsedValuesDefinedAbove(op.getRegions(), values);
  return values;
}

void Differentiator::findActive() {
  Block &block = result.getBody().front();
  for (Value argument : block.getArguments())
    if (isDifferentiable(argument))
      active.insert(argument);
  for (Operation &op : block)
    if (llvm::any_of(readBy(op), [&](Value v) { return active.contains(v); }))
      for (Value value : op.getResults())
        if (isDifferentiable(value))
          active.insert(value);
}

//===----------------------------------------------------------------------===//
// The way back
//===----------------------------------------------------------------------===//

void Differentiator::add(Value value, Value gradient) {
  Value &sum = gradients[value];
  sum = sum ? arith::AddFOp::create(b, sum, gradient) : gradient;
}

Value Differentiator::zerosLike(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  TypedAttr zero = b.getZeroAttr(type.getElementType());
  if (type.hasStaticShape())
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, ArrayRef<Attribute>(zero)));
  SmallVector<Value> sizes;
  for (int64_t dimension = 0; dimension < type.getRank(); ++dimension)
    if (type.isDynamicDim(dimension))
      sizes.push_back(b.createOrFold<tensor::DimOp>(value, dimension));
  return tensor::SplatOp::create(b, arith::ConstantOp::create(b, zero), type,
                                 sizes);
}

Value Differentiator::gradientOf(Value value) {
  Value gradient = gradients.lookup(value);
  return gradient ? gradient : zerosLike(value);
}

LogicalResult Differentiator::reverseForward(ForwardOp op) {
  Problem problem = problemOf(op);
  problem.direction = Direction::backward;
  for (int64_t *size : {&problem.batch, &problem.queries, &problem.keys})
    *size = std::max<int64_t>(*size, 1); // nothing has gradients too
  if (std::optional<std::string> wrong = check(problem))
    return op->emitOpError(*wrong);

  b.setLoc(op.getLoc());
  // LSE is its high word, and what that lacks is no function of anything.
  Value o = op->getResult(0), lse = op->getResult(1), low = op->getResult(2);
  Value dlse = gradients.lookup(lse);
  ValueRange kept = op->getResults().drop_front(3);
  if (llvm::any_of(kept, [&](Value v) { return gradients.contains(v); }))
    return op->emitOpError(
        "expects gradients of O and LSE only, but got one of "
        "weights that are kept");
  ClauseGradients asked = gradientsOfClauses(op);
  SmallVector<Type> types = {op.getQ().getType(), op.getK().getType(),
                             op.getV().getType()};
  llvm::append_range(types, asked.types);
  BackwardOp backward = BackwardOp::create(
      b, types, gradientOf(o), op.getQ(), op.getK(), op.getV(), o, lse, low,
      dlse, kept, op.clauseInputs(), op.getMaskAttr(), op.getScaleAttr(),
      op.getPrecisionAttr(), op.getAlignmentAttr(), /*schedule=*/ScheduleAttr(),
      /*deterministic=*/UnitAttr(), op.getOperandClauseSizesAttr(),
      op.getBlocksAttr(),
      asked.numbers.empty() ? nullptr : b.getDenseI64ArrayAttr(asked.numbers),
      op.getLongestAttr(), op->getNumRegions());
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), backward->getRegions())) {
    IRMapping mapping;
    from.cloneInto(&to, mapping);
  }
  if (failed(checkDerivatives(op, backward)))
    return failure();
  SmallVector<Value> inputs = {op.getQ(), op.getK(), op.getV()};
  llvm::append_range(inputs, backward.gradientTargets());
  for (auto [input, gradient] : llvm::zip_equal(inputs, backward->getResults()))
    add(input, inTypeOf(input, gradient));
  return success();
}

/// Of captures and sinks that depend on an argument's numbers.
ClauseGradients Differentiator::gradientsOfClauses(ForwardOp op) {
  ClauseGradients asked;
  SmallVector<Value> all(op.captures());
  llvm::append_range(all, op.clauseOperands(ClauseGroup::sinks));
  for (auto [number, value] : llvm::enumerate(all)) {
    if (!active.contains(value))
      continue;
    asked.numbers.push_back(number);
    auto type = cast<RankedTensorType>(value.getType());
    asked.types.push_back(type.clone(b.getF32Type()));
  }
  return asked;
}

/// The verifier says so of the gradient's op, but of the other one it is known
/// where it was written.
LogicalResult Differentiator::checkDerivatives(ForwardOp op,
                                               BackwardOp backward) {
  Operation *wall = withoutDerivative(backward);
  if (!wall)
    return success();
  InFlightDiagnostic error =
      op->emitOpError("expects a score with a derivative, but got '")
      << wall->getName() << "', which has none";
  error.attachNote(wall->getLoc()) << "the op is here";
  return error;
}

/// Gradients of captures are f32, whatever these are.
Value Differentiator::inTypeOf(Value input, Value gradient) {
  if (input.getType() == gradient.getType())
    return gradient;
  return arith::TruncFOp::create(b, input.getType(), gradient);
}

void Differentiator::reverseMerge(MergeOp op) {
  b.setLoc(op.getLoc());
  Value o = op->getResult(0), lse = op->getResult(1);
  Value gradient = gradientOf(o), dlse = gradients.lookup(lse);
  for (auto [part, partLse] :
       llvm::zip_equal(op.getParts(), op.getPartLses())) {
    if (!active.contains(part) && !active.contains(partLse))
      continue;
    auto backward = MergeBackwardOp::create(
        b, TypeRange{part.getType(), partLse.getType()}, gradient, o, lse, part,
        partLse, dlse, /*outs=*/ValueRange(), op.getAlignmentAttr());
    add(part, backward->getResult(0));
    add(partLse, backward->getResult(1));
  }
}

LogicalResult Differentiator::reverse(Operation &op) {
  auto hasGradient = [&](Value v) {
    return active.contains(v) && gradients.contains(v);
  };
  if (llvm::none_of(op.getResults(), hasGradient))
    return success();
  if (auto forward = dyn_cast<ForwardOp>(op))
    return reverseForward(forward);
  if (auto merge = dyn_cast<MergeOp>(op)) {
    reverseMerge(merge);
    return success();
  }
  return op.emitError("expects only attn.forward and attn.merge between the "
                      "arguments of a function and its results, but got '")
         << op.getName() << "'";
}

void Differentiator::returnGradients() {
  b.setLoc(function.getLoc());
  SmallVector<Value> values;
  unsigned count = function.getNumArguments();
  for (Value argument : result.getArguments().take_front(count))
    if (isDifferentiable(argument))
      values.push_back(gradientOf(argument));
  func::ReturnOp::create(b, values);
}

void Differentiator::eraseUnused() {
  Block &block = result.getBody().front();
  SmallVector<Operation *> ops = llvm::map_to_vector(
      block.without_terminator(), [](Operation &op) { return &op; });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

LogicalResult Differentiator::run() {
  copyBody();
  findActive();
  Block &block = result.getBody().front();
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  Operation *end = function.getBody().front().getTerminator();
  unsigned cotangent = function.getNumArguments();
  for (Value value : end->getOperands())
    if (isDifferentiable(value))
      add(copies.lookup(value), result.getArgument(cotangent++));
  for (Operation *op : llvm::reverse(ops))
    if (failed(reverse(*op)))
      return failure();
  returnGradients();
  eraseUnused();
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether there is a rule for the op.
static bool isDifferentiated(Operation *op) {
  return isa<ForwardOp, MergeOp>(op);
}

/// The op that keeps a function from being differentiated here, in words.
static LogicalResult checkFunction(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expects a function without control flow to "
                                "differentiate, but got one of several blocks");
  WalkResult walked = function.walk([](Operation *op) {
    if (!isDifferentiated(op) ||
        isa<RankedTensorType>(op->getOperand(0).getType()))
      return WalkResult::advance();
    op->emitOpError("expects tensors to differentiate, but got ")
        << op->getOperand(0).getType();
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

/// Adds `@NAME_vjp` behind a function.
static LogicalResult addGradients(func::FuncOp function, SymbolTable &symbols) {
  if (failed(checkFunction(function)))
    return failure();
  std::string name = (function.getSymName() + "_vjp").str();
  if (symbols.lookup(name))
    return function.emitOpError("expects the name @")
           << name << " to be free for its gradients, but got a symbol of that "
           << "name";
  SmallVector<Type> inputs(function.getArgumentTypes()), results;
  appendDifferentiable(function.getResultTypes(), inputs);
  appendDifferentiable(function.getArgumentTypes(), results);
  func::FuncOp gradients = func::FuncOp::create(
      function.getLoc(), name,
      FunctionType::get(function.getContext(), inputs, results));
  gradients.setVisibility(function.getVisibility());
  symbols.insert(gradients, std::next(Block::iterator(function)));
  return Differentiator(function, gradients).run();
}

namespace {
struct DifferentiatePass
    : attn::impl::DifferentiatePassBase<DifferentiatePass> {
  using DifferentiatePassBase::DifferentiatePassBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      WalkResult found = function.walk([](Operation *op) {
        return isDifferentiated(op) ? WalkResult::interrupt()
                                    : WalkResult::advance();
      });
      if (found.wasInterrupted())
        functions.push_back(function);
    }
    for (func::FuncOp function : functions)
      if (failed(addGradients(function, symbols)))
        return signalPassFailure();
  }
};
} // namespace
