//===- Function.cpp - Inputs, outputs and sizes of a function -------------===//

#include "FunctionReader.h"

#include "attn/Schedule/RaggedQueries.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
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

SmallVector<int64_t> Attention::sizesOf(StringRef role) const {
  auto sizeOf = [&](Extent extent) { return valueOf(extent, problem); };
  return llvm::map_to_vector<4>(
      shapeOf(role, problem.ragged.has_value(), problem.place), sizeOf);
}

const ArraySource &Attention::clauseInput(ClauseGroup group,
                                          unsigned number) const {
  AttentionOpInterface op = this->op;
  for (unsigned before = 0; before < unsigned(group); ++before)
    number += op.clauseOperands(ClauseGroup(before)).size();
  return clauseInputs[number].second;
}

SmallVector<int64_t> Merging::sizesOf(StringRef role) const {
  SmallVector<int64_t> sizes = {merge.batch, merge.heads, merge.queries};
  if (!isStatisticOfMerge(role))
    sizes.push_back(merge.headDim);
  return sizes;
}

FailureOr<Function> FunctionReader::read() {
  if (failed(readArguments()))
    return failure();
  for (Operation &op : function.getBody().front()) {
    LogicalResult read = success();
    if (auto attention = dyn_cast<AttentionOpInterface>(op))
      read = readAttention(attention);
    else if (auto merge = dyn_cast<MergeOpInterface>(op))
      read = readMerge(merge);
    else if (auto lists = dyn_cast<BlockListsOp>(op))
      read = readListing(lists, lists.getCaptures(), lists.getOuts());
    else if (auto lists = dyn_cast<TransposeBlocksOp>(op))
      read = readListing(lists, lists.inputs(), lists.getOuts());
    else if (auto end = dyn_cast<func::ReturnOp>(op))
      read = readReturn(end);
    else if (op.getName().getStringRef() != "tensor.empty" &&
             op.getName().getStringRef() != "tensor.dim" &&
             op.getName().getStringRef() != "memref.dim" &&
             op.getName().getStringRef() != "arith.constant")
      return op.emitError("expects attn.forward, attn.backward or merges on "
                          "arguments of the function, for which there is a "
                          "reference, but got '")
             << op.getName() << "'";
    if (failed(read))
      return failure();
  }
  if (result.attentions.empty() && result.merges.empty() &&
      result.listings.empty())
    return function.emitError("expects an attn.forward or attn.backward in the "
                              "function, but got none");
  if (failed(checkOptions()))
    return failure();
  for (Attention &attention : result.attentions) {
    std::map<std::string, unsigned> inputs = attention.inputs;
    for (const auto &[name, source] : attention.clauseInputs)
      if (!source.listing)
        inputs[name] = source.position;
    if (failed(checkUnwritten(attention.op, inputs)))
      return failure();
  }
  for (Listing &listing : result.listings)
    for (const ArraySource &source : listing.inputs)
      if (!source.listing &&
          failed(checkUnwritten(listing.op, {{"", source.position}})))
        return failure();
  for (Merging &merging : result.merges)
    if (failed(checkUnwritten(merging.op, merging.inputs)))
      return failure();
  return std::move(result);
}

LogicalResult
FunctionReader::checkUnwritten(Operation *op,
                               const std::map<std::string, unsigned> &inputs) {
  for (const auto &[role, input] : inputs)
    if (written.test(input))
      return op->emitError("expects inputs that nothing writes, but got "
                           "argument ")
             << input << ", which is also an output";
  return success();
}

LogicalResult FunctionReader::readArguments() {
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

FailureOr<unsigned> FunctionReader::argumentOf(Operation *op, Value value,
                                               StringRef operand) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &function.getBody().front())
    return argument.getArgNumber();
  return op->emitError("expects ")
         << operand << " to be an argument of the function, so that there is "
         << "a reference";
}

FunctionReader::SizeOption *FunctionReader::optionOf(Extent extent) {
  auto *found = llvm::find_if(
      sizeOptions, [&](SizeOption &each) { return each.extent == extent; });
  return found == std::end(sizeOptions) ? nullptr : found;
}

LogicalResult FunctionReader::checkOptions() {
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

LogicalResult FunctionReader::setSizes(unsigned argument, StringRef role,
                                       Operation *op) {
  // Open key counts follow the queries unless they are given.
  std::optional<int64_t> keys = extents.keys ? extents.keys : extents.queries;
  auto attention = dyn_cast<AttentionOpInterface>(op);
  bool isRagged = attention && attention.isRagged();
  Placement place = attention ? placeOf(attention) : Placement();
  for (auto [dim, extent] : llvm::enumerate(shapeOf(role, isRagged, place))) {
    if (extent == Extent::pages) // which follow from other sizes
      continue;
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

bool FunctionReader::isGiven(Value value, StringRef role) {
  return llvm::any_of(result.attentions, [&](Attention &attention) {
    return !attention.isBackward() && attention.op.array(role) == value;
  });
}

LogicalResult FunctionReader::readInputs(Attention &attention) {
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
LogicalResult FunctionReader::readSizes(Attention &attention) {
  Problem &problem = attention.problem;
  problem = problemOf(attention.op);
  auto sizesOf = [&](StringRef role) -> ArrayRef<int64_t> {
    return result.argumentSizes[attention.input(role)];
  };
  if (problem.ragged) {
    if (failed(readSequences(attention)))
      return failure();
    problem.queries = sizesOf("q")[0];
    problem.keys = sizesOf("k")[areKeysRagged(problem) ? 0 : 2];
  } else {
    problem.batch = sizesOf("q")[0];
    problem.queries = sizesOf("q")[2];
    problem.keys = sizesOf("k")[2];
  }
  if (problem.place.isPaged() && failed(readPool(attention)))
    return failure();
  for (const auto &[role, position] : attention.inputs) {
    bool isK = role == "v" && problem.valuesOfKeys;
    SmallVector<int64_t> expected = attention.sizesOf(role);
    if (problem.place.isPaged() && shapeOf(role)[2] == Extent::keys)
      expected[0] = sizesOf("k")[0];
    if (!isK &&
        failed(checkSizes(attention.op, role, position, expected, "q and k")))
      return failure();
  }
  if (std::optional<std::string> wrong = check(problem))
    return attention.op->emitError(*wrong);
  return success();
}

/// As many keys as the pages of an entry hold, by the type of the table or
/// --keys; and pages for all of them where types leave their number open.
LogicalResult FunctionReader::readPool(Attention &attention) {
  AttentionOpInterface op = attention.op;
  Problem &p = attention.problem;
  Value table = op.clauseOperands(ClauseGroup::pageTable).front();
  int64_t pages = cast<ShapedType>(table.getType()).getDimSize(1);
  if (ShapedType::isDynamic(pages)) {
    optionOf(Extent::keys)->isUsed = true;
    if (!extents.keys)
      return op->emitError("expects the number of pages of an entry, which is "
                           "dynamic: give --keys");
    pages = llvm::divideCeil(*extents.keys, p.place.pageRows);
  }
  p.keys = pages * p.place.pageRows;
  for (StringRef role : {"k", "v"}) {
    int64_t &size = result.argumentSizes[attention.input(role)][0];
    if (ShapedType::isDynamic(size))
      size = p.batch * pages;
    if (size == 0 && p.batch * pages > 0)
      return op->emitError("expects at least 1 page of ")
             << role << ", but got none";
  }
  return success();
}

/// How many there are, by the type of offsets or --batch.
LogicalResult FunctionReader::readSequences(Attention &attention) {
  AttentionOpInterface op = attention.op;
  Value offsets = op.clauseOperands(ClauseGroup::offsets).front();
  int64_t size = cast<ShapedType>(offsets.getType()).getDimSize(0);
  SizeOption *option = optionOf(Extent::batch);
  if (!ShapedType::isDynamic(size)) {
    attention.problem.batch = size - 1;
    option->known.insert(size - 1);
    return success();
  }
  option->isUsed = true;
  if (!extents.batch)
    return op->emitError("expects the number of sequences, which is dynamic: "
                         "give --batch");
  attention.problem.batch = *extents.batch;
  return success();
}

/// Whether random numbers can be drawn for it.
static bool isDrawable(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  if (integer)
    return llvm::is_contained({8, 16, 32, 64}, integer.getWidth());
  return element.isF32() || element.isF16() || element.isBF16();
}

LogicalResult FunctionReader::readClauses(Attention &attention) {
  AttentionOpInterface op = attention.op;
  SmallVector<AttentionArray> arrays = op.clauseArrays();
  size_t next = 0;
  for (unsigned group = 0; group < kClauseGroups; ++group)
    for (unsigned number = 0,
                  count = op.clauseOperands(ClauseGroup(group)).size();
         number < count; ++number) {
      const AttentionArray &array = arrays[next++];
      FailureOr<ArraySource> source = sourceOf(op, array.value, array.role);
      if (failed(source) ||
          (!source->listing &&
           failed(setClauseSizes(attention, ClauseGroup(group), number,
                                 source->position))))
        return failure();
      attention.clauseInputs.emplace_back(array.role.str(), *source);
      Type element = array.type().getElementType();
      if (!isDrawable(element))
        return op->emitError("expects ")
               << array.role << " of bf16, f16, f32 or integers of 8, 16, 32 "
               << "or 64 bits, of which random numbers can be drawn, but got "
               << element;
    }
  return success();
}

/// The sizes of an array of a clause, by dimension: of lists and sinks all that
/// there are.  An open size of a capture has place for every position.
static SmallVector<int64_t> largestSizes(const Attention &attention,
                                         ClauseGroup group, unsigned number,
                                         size_t rank) {
  const Problem &p = attention.problem;
  if (group == ClauseGroup::sinks)
    return {p.heads};
  if (group == ClauseGroup::usedKeys)
    return {p.batch};
  if (group == ClauseGroup::pageTable)
    return {p.batch, p.keys / p.place.pageRows};
  if (group == ClauseGroup::offsets)
    return {p.batch + 1};
  if (llvm::is_contained(kScaleGroups, group))
    return {p.batch, p.kvHeads};
  if (group == ClauseGroup::captures)
    return SmallVector<int64_t>(
        rank, std::max({p.batch, p.heads, p.queries, p.keys}));
  AttentionOpInterface op = attention.op;
  BlockSize size = *op.blockSize();
  int64_t rows = llvm::divideCeil(p.queries, size.queries),
          columns = llvm::divideCeil(p.keys, size.keys);
  if (group == ClauseGroup::transposedPartial ||
      group == ClauseGroup::transposedFull)
    std::swap(rows, columns);
  SmallVector<int64_t> sizes = {p.batch, p.heads, rows};
  if (number == 1)
    sizes.push_back(columns);
  return sizes;
}

LogicalResult FunctionReader::setClauseSizes(const Attention &attention,
                                             ClauseGroup group, unsigned number,
                                             unsigned position) {
  SmallVector<int64_t> &sizes = result.argumentSizes[position];
  SmallVector<int64_t> expected =
      largestSizes(attention, group, number, sizes.size());
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    bool isForAll = dim < 2 && size == 1;
    bool isFewer = dim == 3 && size < expected[dim];
    if (ShapedType::isDynamic(size))
      size = expected[dim];
    else if (group == ClauseGroup::captures || isForAll || isFewer)
      expected[dim] = size;
  }
  AttentionOpInterface op = attention.op;
  return checkSizes(op, op.clauseArrays()[attention.clauseInputs.size()].role,
                    position, expected, "q and k");
}

LogicalResult FunctionReader::checkSizes(Operation *op, StringRef role,
                                         unsigned argument,
                                         ArrayRef<int64_t> expected,
                                         StringRef from) {
  ArrayRef<int64_t> actual = result.argumentSizes[argument];
  if (actual == expected)
    return success();
  InFlightDiagnostic error = op->emitError("expects ");
  error << role << " of sizes ";
  llvm::interleave(expected, error, "x");
  error << ", which follow from " << from << ", but got ";
  llvm::interleave(actual, error, "x");
  return error;
}

LogicalResult FunctionReader::readOut(Operation *op, Value target,
                                      Output output) {
  FailureOr<unsigned> position = argumentOf(op, target, "an output");
  if (failed(position))
    return failure();
  if (written.test(*position))
    return op->emitError("expects each output in its own argument, but "
                         "argument ")
           << *position << " is written twice";
  written.set(*position);
  result.argumentSizes[*position] = output.sizes;
  addOutput(std::move(output), *position, target.getType());
  return success();
}

LogicalResult FunctionReader::readAttention(AttentionOpInterface op) {
  if (!op.gradientTargets().empty())
    return op->emitError(
        "expects gradients of q, k and v, for which there is a "
        "reference, but got gradients(..) of captures");
  if (problemOf(op).keepsWeights)
    return op->emitError("expects attention that keeps no weights, for which "
                         "there is a reference");
  Attention attention;
  attention.op = op;
  attention.scale = op.scaleOrDefault();
  if (failed(readInputs(attention)) || failed(readSizes(attention)) ||
      failed(readClauses(attention)))
    return failure();
  result.onTensors = op.isOnTensors();
  result.attentions.push_back(attention);
  for (auto [role, target] : llvm::zip(op.givenOutputs(), op.getOuts()))
    if (!result.onTensors &&
        failed(readOut(op, target,
                       outputOf(result.attentions.size() - 1,
                                Output::Of::attention, role))))
      return failure();
  return success();
}

/// Sizes that types leave open are those of the first array.
LogicalResult FunctionReader::readMerge(MergeOpInterface op) {
  Merging merging;
  merging.op = op;
  merging.merge = mergeOf(op);
  StringRef first;
  for (const AttentionArray &array : op.arrays()) {
    if (array.isOutput)
      continue;
    FailureOr<unsigned> position = argumentOf(op, array.value, array.role);
    StringRef like = isStatisticOfMerge(array.role) ? "lse" : "o";
    if (failed(position) || failed(setSizes(*position, like, op)))
      return failure();
    merging.inputs[array.role.str()] = *position;
    if (first.empty()) {
      first = array.role;
      merging.merge.batch = result.argumentSizes[*position][0];
      merging.merge.queries = result.argumentSizes[*position][2];
    }
    if (failed(checkSizes(op, array.role, *position,
                          merging.sizesOf(array.role), first)))
      return failure();
  }
  if (std::optional<std::string> wrong = check(limitsOf(merging.merge)))
    return op->emitError(*wrong);
  result.onTensors = op.isOnTensors();
  result.merges.push_back(merging);
  for (auto [role, target] : llvm::zip(op.outputRoles(), op.getOuts()))
    if (!result.onTensors && failed(readOut(op, target,
                                            outputOf(result.merges.size() - 1,
                                                     Output::Of::merge, role))))
      return failure();
  return success();
}

Output FunctionReader::outputOf(size_t number, Output::Of of, StringRef role) {
  Output output;
  output.attention = number;
  output.of = of;
  output.role = role.str();
  output.sizes = of == Output::Of::merge
                     ? result.merges[number].sizesOf(role)
                     : result.attentions[number].sizesOf(role);
  return output;
}

void FunctionReader::addOutput(Output output, unsigned position, Type type) {
  output.position = position;
  output.elementType = cast<ShapedType>(type).getElementType();
  result.outputs.push_back(std::move(output));
}

LogicalResult FunctionReader::readReturn(func::ReturnOp op) {
  for (auto [position, value] : llvm::enumerate(op.getOperands())) {
    Operation *source = value.getDefiningOp();
    auto isSource = [&](auto &each) {
      return each.op.getOperation() == source;
    };
    auto attention = llvm::find_if(result.attentions, isSource);
    auto merge = llvm::find_if(result.merges, isSource);
    auto listing = llvm::find_if(result.listings, [&](const Listing &each) {
      return each.op == source;
    });
    bool isOfMerge = merge != result.merges.end(),
         isOfListing = listing != result.listings.end();
    if (attention == result.attentions.end() && !isOfMerge && !isOfListing)
      return op.emitError("expects to return results of attn.forward, "
                          "attn.backward, merges or lists of blocks, but "
                          "operand ")
             << position << " is something else";
    unsigned number = cast<OpResult>(value).getResultNumber();
    Output output =
        isOfListing ? outputOfListing(listing - result.listings.begin(), number)
        : isOfMerge ? outputOf(merge - result.merges.begin(), Output::Of::merge,
                               merge->op.outputRoles()[number])
                    : outputOf(attention - result.attentions.begin(),
                               Output::Of::attention,
                               attention->op.givenOutputs()[number]);
    addOutput(std::move(output), position, value.getType());
  }
  return success();
}

FailureOr<Function> run::readFunction(func::FuncOp function,
                                      const Extents &extents) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("expects a function without control flow");
  return FunctionReader(function, extents).read();
}
