//===- RegionConstraints.cpp - What clauses of attention demand -----------===//
//
// The constraints of what clauses take, in the numbers of the ops'
// descriptions: C22 to C28, C33 to C36, C38, C39, and of gradients C29 to C31.
// C37 is in CaptureShapes.cpp.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

#include "attn/IR/ScalarOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static StringRef clauseOf(Region &region) {
  return isScore(region) ? "score" : "sees";
}

static LogicalResult verifyArguments(Operation *op, Region &region,
                                     TypeRange captures) {
  SmallVector<Type> wanted =
      argumentTypes(op->getContext(), isScore(region), captures);
  if (llvm::equal(region.getArgumentTypes(), wanted))
    return success();
  InFlightDiagnostic error = op->emitOpError("expects ")
                             << clauseOf(region) << " with arguments of "
                             << wanted << ", but got ";
  if (region.getNumArguments() == 0)
    return error << "none";
  return error << region.getArgumentTypes();
}

/// An op that stands in a region and may not, in words.
static LogicalResult verifyScalarOp(Operation &op, StringRef keyword) {
  if (!scalarKindOf(&op)) {
    InFlightDiagnostic error = op.emitError("expects an op of numbers in ")
                               << keyword << ", but got '" << op.getName()
                               << "'";
    error.attachNote() << "ops: " << scalarOpNames();
    return error;
  }
  SmallVector<Type> types(op.getResultTypes());
  for (Value operand : op.getOperands())
    if (!isa<ReadOp>(op) || operand != op.getOperand(0))
      types.push_back(operand.getType());
  for (Type type : types)
    if (!isScalar(type)) {
      InFlightDiagnostic error = op.emitError("expects numbers in ")
                                 << keyword << ", but got " << type;
      error.attachNote() << "numbers: index, integers of up to 64 bits, bf16, "
                            "f16, f32";
      return error;
    }
  return success();
}

LogicalResult attn::verifyRegion(Operation *op, Region &region,
                                 TypeRange captures) {
  StringRef keyword = clauseOf(region);
  if (!region.hasOneBlock())
    return op->emitOpError("expects ")
           << keyword << " of one block, but got " << region.getBlocks().size();
  if (failed(verifyArguments(op, region, captures)))
    return failure();
  for (Operation &each : region.front())
    if (failed(verifyScalarOp(each, keyword)))
      return failure();
  auto end = dyn_cast<YieldOp>(region.front().back());
  if (!end)
    return op->emitOpError("expects ")
           << keyword << " to end in attn.yield, but got '"
           << region.front().back().getName() << "'";
  Builder b(op->getContext());
  Type wanted = isScore(region) ? Type(b.getF32Type()) : Type(b.getI1Type());
  if (end.getResult().getType() == wanted)
    return success();
  return end.emitOpError("expects ")
         << wanted << " of " << keyword << ", but got "
         << end.getResult().getType();
}

LogicalResult ReadOp::verify() {
  int64_t rank = cast<ShapedType>(getArray().getType()).getRank();
  if (int64_t(getIndices().size()) != rank)
    return emitOpError("expects an index for each of ")
           << rank << " dimensions, but got " << getIndices().size();
  if (!isa<BlockArgument>(getArray()))
    return emitOpError("expects an array that the region captures");
  auto type = cast<ShapedType>(getArray().getType());
  for (auto [dim, index] : llvm::enumerate(getIndices())) {
    std::optional<int64_t> known = getConstantIntValue(index);
    int64_t size = type.getDimSize(dim);
    if (!known ||
        (*known >= 0 && (ShapedType::isDynamic(size) || *known < size)))
      continue;
    InFlightDiagnostic error = emitOpError("expects an index of 0 or more");
    if (!ShapedType::isDynamic(size))
      error << " and below " << size;
    return error << " in dimension " << dim << ", but got " << *known << " of "
                 << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

LogicalResult attn::verifyCaptures(Operation *op, OperandRange captures) {
  for (auto [number, capture] : llvm::enumerate(captures)) {
    Type element = cast<ShapedType>(capture.getType()).getElementType();
    auto integer = dyn_cast<IntegerType>(element);
    static constexpr unsigned widths[] = {1, 8, 16, 32, 64};
    bool hasWidth = integer && integer.isSignless() &&
                    llvm::is_contained(widths, integer.getWidth());
    if (hasWidth || element.isBF16() || element.isF16() || element.isF32())
      continue;
    InFlightDiagnostic error =
        op->emitOpError("expects capture ")
        << number << " to have elements that regions read, but got " << element;
    error.attachNote()
        << "element types: i1, i8, i16, i32, i64, bf16, f16, f32";
    return error;
  }
  return success();
}

namespace {

class ClauseVerifier {
public:
  explicit ClauseVerifier(AttentionOpInterface op) : op(op) {}

  LogicalResult verify() {
    return success(
        succeeded(verifyCaptures(op, op.captures())) && succeeded(blocks()) &&
        succeeded(sinks()) && succeeded(offsets()) && succeeded(diagonal()) &&
        succeeded(kept()) && succeeded(lengths()) && succeeded(pages()) &&
        succeeded(scales()) && succeeded(values()) && succeeded(gradients()));
  }
  LogicalResult verifyRegions() {
    return success(succeeded(regions()) && succeeded(verifyCaptureShapes(op)) &&
                   succeeded(derivatives()));
  }

private:
  LogicalResult regions(); // C23, C24
  LogicalResult blocks();  // C25, C26, C31
  LogicalResult sinks();   // C27
  LogicalResult kept();    // C28
  LogicalResult offsets(); // C33
  LogicalResult offsetsOnCache();
  LogicalResult diagonal();    // C34
  LogicalResult lengths();     // C35
  LogicalResult pages();       // C36
  LogicalResult scales();      // C38
  LogicalResult values();      // C39
  LogicalResult gradients();   // C29
  LogicalResult derivatives(); // C30

  LogicalResult list(ClauseGroup group, StringRef name, StringRef rows,
                     StringRef columns, BlockSize size);
  LogicalResult array(Value value, Twine name, ArrayRef<int64_t> most,
                      bool isIndices);
  int64_t entries();
  /// A size of the op, which may be dynamic.
  int64_t sizeOf(StringRef role, unsigned dimension) {
    return cast<ShapedType>(op.array(role).getType()).getDimSize(dimension);
  }

  AttentionOpInterface op;
};

} // namespace

LogicalResult ClauseVerifier::regions() {
  unsigned scores = llvm::count_if(op->getRegions(), isScore);
  if (op->getNumRegions() > 2 || scores > 1 || op->getNumRegions() - scores > 1)
    return op->emitOpError("expects at most one region of sees and one of "
                           "score, but got ")
           << op->getNumRegions() - scores << " and " << scores;
  for (Region &region : op->getRegions())
    if (failed(verifyRegion(op, region, op.captures().getTypes())))
      return failure();
  if (scores == 1 && op.sees() == &op->getRegion(op->getNumRegions() - 1))
    return op->emitOpError("expects sees in front of score, but got it behind");
  return success();
}

static int64_t blocksOf(int64_t rows, int64_t size) {
  if (ShapedType::isDynamic(rows))
    return rows;
  return (rows + size - 1) / size;
}

/// Batch entries and heads may be 1, which then stands for all; indices may
/// have fewer columns than there are blocks.
LogicalResult ClauseVerifier::array(Value value, Twine name,
                                    ArrayRef<int64_t> most, bool isIndices) {
  auto type = cast<ShapedType>(value.getType());
  bool isRight = type.getElementType().isInteger(32) &&
                 type.getRank() == int64_t(most.size());
  for (unsigned dim = 0; isRight && dim < most.size(); ++dim) {
    int64_t size = type.getDimSize(dim);
    bool isFewer = isIndices && dim == 3 && !ShapedType::isDynamic(size) &&
                   !ShapedType::isDynamic(most[dim]) && size <= most[dim];
    bool isForAll = dim < 2 && size == 1;
    isRight = isFewer || isForAll || compatible(size, most[dim]);
  }
  if (isRight)
    return success();
  InFlightDiagnostic error = op->emitOpError("expects ");
  error << name.str() << " of i32 and shape ";
  printShape(error, most);
  error << ", with 1 or all batch entries and heads"
        << (isIndices ? ", and so many columns or fewer" : "") << ", but got "
        << type;
  return error;
}

LogicalResult ClauseVerifier::list(ClauseGroup group, StringRef name,
                                   StringRef rows, StringRef columns,
                                   BlockSize size) {
  OperandRange operands = op.clauseOperands(group);
  if (operands.empty())
    return success();
  if (operands.size() != 2)
    return op->emitOpError("expects counts and indices of ")
           << name << " blocks, but got " << operands.size() << " arrays";
  int64_t rowsOfBlock = rows == "q" ? size.queries : size.keys;
  int64_t columnsOfBlock = rows == "q" ? size.keys : size.queries;
  SmallVector<int64_t> most = {sizeOf("q", 0), sizeOf("q", 1),
                               blocksOf(sizeOf(rows, 2), rowsOfBlock),
                               blocksOf(sizeOf(columns, 2), columnsOfBlock)};
  if (failed(array(operands[0], "counts of " + name + " blocks",
                   ArrayRef(most).drop_back(), /*isIndices=*/false)))
    return failure();
  for (unsigned dim : {0, 1}) {
    int64_t ofCounts = cast<ShapedType>(operands[0].getType()).getDimSize(dim),
            ofIndices = cast<ShapedType>(operands[1].getType()).getDimSize(dim);
    if (compatible(ofCounts, ofIndices))
      continue;
    return op->emitOpError("expects counts and indices of ")
           << name << " blocks for as many "
           << (dim == 0 ? "batch entries" : "heads") << ", but got "
           << SizeForPeople{ofCounts} << " and " << SizeForPeople{ofIndices};
  }
  return array(operands[1], "indices of " + name + " blocks", most,
               /*isIndices=*/true);
}

LogicalResult ClauseVerifier::blocks() {
  using Group = ClauseGroup;
  auto has = [&](Group group) { return !op.clauseOperands(group).empty(); };
  bool hasLists = has(Group::partial) || has(Group::full);
  bool isTransposed =
      has(Group::transposedPartial) || has(Group::transposedFull);
  std::optional<BlockSize> size = op.blockSize();
  if (hasLists != size.has_value())
    return op->emitOpError("expects lists of blocks together with their size, "
                           "but got one without the other");
  if (isTransposed && op.direction() == Direction::forward)
    return op->emitOpError("expects transposed lists for gradients only");
  if (isTransposed && (has(Group::partial) != has(Group::transposedPartial) ||
                       has(Group::full) != has(Group::transposedFull)))
    return op->emitOpError("expects a transposed list for each list of blocks, "
                           "partial and full, but got others");
  if (!size)
    return success();
  if (op.isRagged())
    return op->emitOpError("expects no lists of blocks of ragged sequences, "
                           "which would have to be ragged too, but got both");
  if (!op.clauseOperands(Group::pageTable).empty())
    return op->emitOpError(
        "expects no lists of blocks beside pages(..), but got some");
  for (int64_t each : {size->queries, size->keys})
    if (each <= 0 || each % kBlockMultiple)
      return op->emitOpError("expects blocks of multiples of ")
             << kBlockMultiple << ", but got " << size->queries << " x "
             << size->keys;
  return success(succeeded(list(Group::partial, "partial", "q", "k", *size)) &&
                 succeeded(list(Group::full, "full", "q", "k", *size)) &&
                 succeeded(list(Group::transposedPartial, "transposed partial",
                                "k", "q", *size)) &&
                 succeeded(list(Group::transposedFull, "transposed full", "k",
                                "q", *size)));
}

LogicalResult ClauseVerifier::sinks() {
  OperandRange sinks = op.clauseOperands(ClauseGroup::sinks);
  if (sinks.empty())
    return success();
  if (sinks.size() != 1)
    return op->emitOpError("expects one array of sinks, but got ")
           << sinks.size();
  auto type = cast<ShapedType>(sinks.front().getType());
  if (type.getElementType().isF32() && type.getRank() == 1 &&
      compatible(type.getDimSize(0), sizeOf("q", 1)))
    return success();
  return op->emitOpError("expects a sink of f32 for each of ")
         << sizeOf("q", 1) << " heads, but got " << type;
}

LogicalResult ClauseVerifier::lengths() {
  OperandRange used = op.clauseOperands(ClauseGroup::usedKeys);
  if (used.empty())
    return success();
  if (used.size() != 1)
    return op->emitOpError("expects one array of used keys, but got ")
           << used.size();
  auto type = cast<ShapedType>(used.front().getType());
  bool isWhole = type.getElementType().isSignlessInteger(32) ||
                 type.getElementType().isSignlessInteger(64);
  if (!isWhole || type.getRank() != 1 ||
      !compatible(type.getDimSize(0), entries()))
    return op->emitOpError("expects used keys of i32 or i64 for each of ")
           << SizeForPeople{entries()} << " batch entries, but got " << type;
  if (op.isRagged()) // and its mask, which has a rule of its own
    return success();
  int64_t queries = sizeOf("q", 2), keys = sizeOf("k", 2);
  if (!op.clauseOperands(ClauseGroup::pageTable).empty())
    keys = ShapedType::kDynamic; // as many as pages hold
  bool isSquare = !ShapedType::isDynamic(queries) && queries == keys;
  if (op.maskOrNone().kind != MaskKind::causal || isSquare)
    return success();
  return op->emitOpError(
             "expects mask(causal_bottom_right) beside lengths(..), since "
             "causal counts from the first key, but got mask(causal) for ")
         << SizeForPeople{queries} << " queries and " << SizeForPeople{keys}
         << " keys";
}

LogicalResult ClauseVerifier::pages() {
  OperandRange tables = op.clauseOperands(ClauseGroup::pageTable);
  if (tables.empty())
    return success();
  if (tables.size() != 1)
    return op->emitOpError("expects one table of pages, but got ")
           << tables.size();
  if (op.clauseOperands(ClauseGroup::usedKeys).empty())
    return op->emitOpError(
        "expects lengths(k ..) beside pages(..), but got none");
  auto type = cast<ShapedType>(tables.front().getType());
  if (!type.getElementType().isSignlessInteger(32) || type.getRank() != 2 ||
      !compatible(type.getDimSize(0), entries()))
    return op->emitOpError("expects a table of i32 and shape ")
           << SizeForPeople{entries()} << " x pages, but got " << type;
  int64_t rows = sizeOf("k", 2);
  if (ShapedType::isDynamic(rows) || rows <= 0 || rows % kPageMultiple)
    return op->emitOpError("expects pages of a static multiple of ")
           << kPageMultiple << " keys, but got " << SizeForPeople{rows};
  return success();
}

LogicalResult ClauseVerifier::scales() {
  for (ClauseGroup group : kScaleGroups) {
    OperandRange scales = op.clauseOperands(group);
    if (scales.empty())
      continue;
    if (op.direction() == Direction::backward)
      return op->emitOpError(
          "expects no scales(..) for gradients, but got some");
    if (scales.size() != 1)
      return op->emitOpError("expects one array of scales, but got ")
             << scales.size();
    auto type = cast<ShapedType>(scales.front().getType());
    int64_t batch = entries(), heads = sizeOf("k", 1);
    auto isFor = [&](int64_t size, int64_t all) {
      return size == 1 || compatible(size, all);
    };
    if (!type.getElementType().isF32() || type.getRank() != 2 ||
        !isFor(type.getDimSize(0), batch) || !isFor(type.getDimSize(1), heads))
      return op->emitOpError("expects scales of f32, [1 or batch, 1 or key "
                             "heads], here ")
             << SizeForPeople{batch} << " x " << SizeForPeople{heads}
             << ", but got " << type;
  }
  return success();
}

LogicalResult ClauseVerifier::kept() {
  if (!op.array("weights") || !op.hasClauses())
    return success();
  return op->emitOpError(
      "expects no weights to be kept of attention with "
      "captures, sees, score, blocks, sinks, ragged, lengths, pages, scales or "
      "values, but got both");
}

LogicalResult ClauseVerifier::values() {
  if (!op->hasAttr(kValuesAttr))
    return success();
  if (op.array("v") != op.array("k"))
    return op->emitOpError(
        "expects V to be K beside values(keys, ..), but got two values");
  int64_t columns = valueColumns(op), all = sizeOf("k", op.isRagged() ? 2 : 3);
  if (columns >= 1 && columns <= all)
    return success();
  return op->emitOpError("expects values to be the first 1 to ")
         << all << " columns of K, but got " << columns;
}

LogicalResult ClauseVerifier::offsets() {
  OperandRange offsets = op.clauseOperands(ClauseGroup::offsets);
  auto longest = op->getAttrOfType<DenseI64ArrayAttr>(kLongestAttr);
  if (offsets.empty() && !longest)
    return success();
  if (placeOf(op).any())
    return offsetsOnCache();
  if (offsets.size() != 2 || !longest || longest.size() != 2)
    return op->emitOpError("expects offsets of queries and of keys, and the "
                           "longest that a sequence has of either, but got ")
           << offsets.size() << " and " << (longest ? longest.size() : 0);
  auto q = cast<ShapedType>(offsets[0].getType()),
       k = cast<ShapedType>(offsets[1].getType());
  Type element = q.getElementType();
  bool isRight = (element.isInteger(32) || element.isInteger(64)) &&
                 k.getElementType() == element && q.getRank() == 1 &&
                 k.getRank() == 1 &&
                 compatible(q.getDimSize(0), k.getDimSize(0)) &&
                 q.getDimSize(0) != 0 && k.getDimSize(0) != 0;
  if (isRight)
    return success();
  return op->emitOpError("expects offsets of i32 or of i64, and of one shape, "
                         "[sequences + 1], but got ")
         << q << " and " << k;
}

/// The sequences, or batch entries.
int64_t ClauseVerifier::entries() {
  if (!op.isRagged())
    return sizeOf("q", 0);
  Value offsets = op.clauseOperands(ClauseGroup::offsets).front();
  auto type = cast<ShapedType>(offsets.getType());
  if (type.getRank() != 1 || type.isDynamicDim(0)) // has a rule of its own
    return ShapedType::kDynamic;
  return type.getDimSize(0) - 1;
}

/// Of queries only: keys are those that each entry of the cache uses.
LogicalResult ClauseVerifier::offsetsOnCache() {
  OperandRange offsets = op.clauseOperands(ClauseGroup::offsets);
  auto longest = op->getAttrOfType<DenseI64ArrayAttr>(kLongestAttr);
  if (offsets.size() != 1 || !longest || longest.size() != 1)
    return op->emitOpError("expects offsets and the longest of queries only "
                           "beside lengths(k ..), which tells where keys of a "
                           "sequence end, but got ")
           << offsets.size() << " and " << (longest ? longest.size() : 0);
  auto type = cast<ShapedType>(offsets[0].getType());
  bool isWhole = type.getElementType().isInteger(32) ||
                 type.getElementType().isInteger(64);
  if (!isWhole || type.getRank() != 1 || type.getDimSize(0) == 0)
    return op->emitOpError("expects offsets of i32 or of i64, [sequences + 1], "
                           "but got ")
           << type;
  bool isPaged = !op.clauseOperands(ClauseGroup::pageTable).empty();
  if (!isPaged && !compatible(sizeOf("k", 0), entries()))
    return op->emitOpError("expects k with an entry for each of ")
           << SizeForPeople{entries()} << " sequences, but got "
           << SizeForPeople{sizeOf("k", 0)};
  return success();
}

LogicalResult ClauseVerifier::diagonal() {
  if (!op.isRagged() || op.maskOrNone().kind != MaskKind::causal)
    return success();
  if (placeOf(op).any())
    return op->emitOpError("expects mask(causal_bottom_right) of ragged "
                           "queries beside lengths(..), since causal counts "
                           "from the first key, but got mask(causal)");
  OperandRange offsets = op.clauseOperands(ClauseGroup::offsets);
  if (offsets[0] == offsets[1])
    return success();
  InFlightDiagnostic error =
      op->emitOpError("expects mask(causal) of ragged sequences only where "
                      "queries and keys have the same offsets, but got two "
                      "values");
  error.attachNote() << "mask(causal_bottom_right) says that the last query of "
                        "a sequence sees its last key";
  return error;
}

LogicalResult ClauseVerifier::gradients() {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(kGradientsAttr);
  if (!numbers)
    return success();
  if (op.isRagged() && !numbers.empty()) // C34
    return op->emitOpError("expects no gradients of captures and sinks of "
                           "ragged sequences, but got some");
  OperandRange captures = op.captures();
  int64_t count =
      captures.size() + op.clauseOperands(ClauseGroup::sinks).size();
  ArrayRef<int64_t> all = numbers.asArrayRef();
  for (auto [place, number] : llvm::enumerate(all)) {
    if (number < 0 || number >= count)
      return op->emitOpError(
                 "expects gradients of captures and sinks, which are "
                 "0 to ")
             << count - 1 << ", but got " << number;
    if (llvm::is_contained(all.take_front(place), number))
      return op->emitOpError("expects one gradient of each, but got two of ")
             << number;
  }
  SmallVector<Value> targets = op.gradientTargets();
  for (auto [target, output] :
       llvm::zip_equal(targets, op.outputs().take_back(targets.size()))) {
    auto type = cast<ShapedType>(target.getType());
    auto actual = cast<ShapedType>(output.getType());
    if (!isa<FloatType>(type.getElementType()))
      return op->emitOpError("expects gradients of floats, but got one of ")
             << type;
    bool isLike =
        actual.getElementType().isF32() && actual.getRank() == type.getRank() &&
        llvm::all_of(llvm::zip(type.getShape(), actual.getShape()),
                     [](auto pair) {
                       return compatible(std::get<0>(pair), std::get<1>(pair));
                     });
    if (!isLike)
      return op->emitOpError("expects a gradient of f32 and of the shape of ")
             << type << ", but got " << actual;
  }
  return success();
}

Operation *attn::withoutDerivative(AttentionOpInterface op) {
  Region *score = op.score();
  if (!score || op.direction() == Direction::forward)
    return nullptr;
  SmallVector<Value> sources = {score->getArgument(0)};
  SmallVector<Value> targets = op.gradientTargets();
  for (auto [capture, argument] :
       llvm::zip_equal(op.captures(), capturesIn(*score)))
    if (llvm::is_contained(targets, capture))
      sources.push_back(argument);
  return withoutDerivative(*score, sources);
}

LogicalResult ClauseVerifier::derivatives() {
  Operation *wall = withoutDerivative(op);
  if (!wall)
    return success();
  return wall->emitError(
             "expects ops with derivatives between a score, or what "
             "has a gradient, and the result of score, but got '")
         << wall->getName() << "'";
}

LogicalResult attn::verifyClauseSizes(AttentionOpInterface op) {
  auto sizes = op->getAttrOfType<DenseI32ArrayAttr>(kClauseSizesAttr);
  if (!sizes)
    return success();
  int64_t plain = op->getNumOperands() - op.getOuts().size();
  int64_t sum = std::accumulate(sizes.asArrayRef().begin(),
                                sizes.asArrayRef().end(), int64_t(0));
  bool isRight =
      sizes.size() == kClauseGroups &&
      llvm::none_of(sizes.asArrayRef(), [](int32_t n) { return n < 0; }) &&
      sum + int64_t(op.givenInputs().size()) == plain;
  if (isRight)
    return success();
  return op->emitOpError("expects ")
         << kClauseSizesAttr << " of " << kClauseGroups
         << " numbers whose sum are the operands of clauses, but got " << sizes;
}

LogicalResult attn::verifyClauses(AttentionOpInterface op) {
  return ClauseVerifier(op).verify();
}

LogicalResult attn::verifyRegions(AttentionOpInterface op) {
  return ClauseVerifier(op).verifyRegions();
}
