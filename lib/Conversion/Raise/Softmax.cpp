//===- Softmax.cpp - softmax(Q K^T) V of linalg ops -----------------------===//
//
// What torch-mlir and the lowering of StableHLO make of attention, read from
// its end: a product whose one factor is a softmax of what another product
// gave,
//
//   S = Q K^T                     a contraction with f32 or other sums
//   X = scale * S + mask          in any order, also select(cond, S, -inf); the
//                                 scale may be on Q and K as well
//   P = exp(X - max X) / sum exp(X - max X), or linalg.softmax
//   O = P V                       a contraction over the keys
//
// Which linalg ops these are, what is fused, what is broadcast, collapsed or
// transposed in between is none of this file's business: numbers are followed
// to where they come from (Numbers.h).
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace attn::raise;
using namespace attn;
using namespace mlir;
using linalg::LinalgOp;

namespace {

/// A product of two tensors, summed over one loop.
struct Product {
  LinalgOp op;
  Index over;
  Number left, right;
};

class Reader {
public:
  explicit Reader(Form &form) : form(form), numbers(form.numbers) {}
  Reason read(LinalgOp op);

private:
  Reason readSecond(LinalgOp op);
  Reason readProduct(LinalgOp op, const Number &result, Product &product);
  Reason readSoftmax(Number weight, Number &score);
  Reason readDivision(const Maker &division, Number &score);
  Reason readMaximum(Number score, Number shift);
  Reason readReduction(Number reduced, StringRef what, Number &of);
  bool hasProduct(Number number);
  Reason readScale(const Maker &made, Number &of);
  Reason readSelect(const Maker &made, Number &of);
  Reason readScore(Number score, Number &product);
  Reason readFirst(const Number &score);
  Reason readFactor(const Number &factor, Number &of);
  Reason checkUses();
  Reason readResult();
  void addNotes();

  Form &form;
  Numbers &numbers;
  Product first, second;
  double scale = 1;
  bool hasMaximum = false, isScaledBefore = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Products and sums
//===----------------------------------------------------------------------===//

/// Whether a contraction begins at 0.
static bool beginsAtZero(Numbers &numbers, LinalgOp op) {
  OpOperand *init = op.getDpsInitOperand(0);
  Indices zeros(op.getRank(init), numbers.loops.zero());
  return numbers.constant({init->get(), zeros}) == 0.0;
}

/// A contraction whose result has these indices.
Reason Reader::readProduct(LinalgOp op, const Number &result,
                           Product &product) {
  product.op = op;
  std::optional<Indices> loops = numbers.loopsOf(op, result);
  if (!loops)
    return because("a product's result is not indexed by its loops");
  product.over = numbers.loops.zero();
  for (auto [loop, size] : llvm::zip_equal(*loops, op.getStaticLoopRanges())) {
    if (loop)
      continue;
    loop = numbers.loops.add(size);
    if (size == 1)
      continue;
    if (product.over != numbers.loops.zero())
      return because("a product sums over several dimensions");
    product.over = loop;
  }
  if (!beginsAtZero(numbers, op))
    return because("a product adds to something that is not 0");
  product.left = numbers.operand(op, 0, *loops);
  product.right = numbers.operand(op, 1, *loops);
  return std::nullopt;
}

static LinalgOp contraction(Value value) {
  auto op = value.getDefiningOp<LinalgOp>();
  if (op && op.getNumDpsInputs() == 2 && op.hasPureTensorSemantics() &&
      linalg::isaContractionOpInterface(op))
    return op;
  return nullptr;
}

/// The combination of a reduction for one of its results, such as
/// arith.maximumf.
static StringRef combination(LinalgOp op, unsigned number) {
  Value yielded = op.getBlock()->getTerminator()->getOperand(number);
  Operation *made = yielded.getDefiningOp();
  if (!made)
    return {};
  // torch-mlir's maximum with its position: select(x > m, x, m).
  if (auto select = dyn_cast<arith::SelectOp>(made)) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    bool isMaximum = compare && compare.getLhs() == select.getTrueValue() &&
                     compare.getRhs() == select.getFalseValue() &&
                     llvm::is_contained(
                         {arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE,
                          arith::CmpFPredicate::UGT, arith::CmpFPredicate::UGE},
                         compare.getPredicate());
    return isMaximum ? arith::MaximumFOp::getOperationName() : StringRef();
  }
  return made->getName().getStringRef();
}

/// What a reduction over the keys reads, at the row of a query.
Reason Reader::readReduction(Number reduced, StringRef what, Number &of) {
  reduced = numbers.uncast(reduced);
  auto op = reduced.value.getDefiningOp<LinalgOp>();
  if (!op || op.getNumReductionLoops() != 1)
    return because("the {0} of the softmax is no reduction of one dimension",
                   what);
  unsigned number = cast<OpResult>(reduced.value).getResultNumber();
  StringRef combined = combination(op, number);
  bool fits = what == "sum"
                  ? combined == "arith.addf"
                  : combined == "arith.maximumf" || combined == "arith.maxnumf";
  if (!fits)
    return because("the {0} of the softmax is a reduction by '{1}'", what,
                   combined);
  std::optional<Indices> loops = numbers.loopsOf(op, reduced);
  if (!loops)
    return because("the {0} of the softmax is not indexed by its loops", what);
  for (Index &loop : *loops)
    if (!loop)
      loop = form.j;
  of = numbers.operand(op, 0, *loops);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The softmax
//===----------------------------------------------------------------------===//

/// Whether a number is a weight of some softmax.
static bool isSoftmax(Numbers &numbers, Number weight) {
  weight = numbers.uncast(weight);
  if (weight.value.getDefiningOp<linalg::SoftmaxOp>())
    return true;
  Maker made = numbers.maker(weight);
  if (!made.isAny("arith.divf", "arith.mulf"))
    return false;
  for (const Number &operand : made.operands)
    if (numbers.maker(numbers.uncast(operand)).is("math.exp"))
      return true;
  return false;
}

/// Whether what is subtracted from scores is their maximum.
Reason Reader::readMaximum(Number score, Number shift) {
  // max(-inf, x) is x.
  while (true) {
    Maker made = numbers.maker(numbers.uncast(shift));
    if (!made.isAny("arith.maximumf", "arith.maxnumf"))
      break;
    std::optional<double> least[] = {numbers.constant(made.operands[0]),
                                     numbers.constant(made.operands[1])};
    if (least[0] == -std::numeric_limits<double>::infinity())
      shift = made.operands[1];
    else if (least[1] == -std::numeric_limits<double>::infinity())
      shift = made.operands[0];
    else
      break;
  }
  Number of;
  if (Reason reason = readReduction(shift, "maximum", of))
    return reason;
  of = numbers.uncast(of);
  score = numbers.uncast(score);
  if (of.value == score.value && of.at != score.at)
    return because("the softmax is over another dimension than the keys");
  if (!numbers.same(of, score))
    return because("the maximum of the softmax is not of the scores");
  hasMaximum = true;
  return std::nullopt;
}

Reason Reader::readDivision(const Maker &division, Number &score) {
  Number numerator = division.operands[0], sum = division.operands[1];
  if (division.is("arith.mulf")) {
    // exp(x) * (1 / sum)
    if (!numbers.maker(numbers.uncast(numerator)).is("math.exp"))
      std::swap(numerator, sum);
    Maker inverse = numbers.maker(numbers.uncast(sum));
    if (!inverse.is("arith.divf") ||
        numbers.constant(inverse.operands[0]) != 1.0)
      return because("the weights are not divided by their sum");
    sum = inverse.operands[1];
  }
  Number of;
  if (Reason reason = readReduction(sum, "sum", of))
    return reason;
  numerator = numbers.uncast(numerator);
  of = numbers.uncast(of);
  if (of.value == numerator.value && of.at != numerator.at)
    return because("the softmax is over another dimension than the keys");
  if (!numbers.same(of, numerator))
    return because("the sum of the softmax is not of its exponentials");
  Number exponent = numbers.maker(numerator).operands[0];
  Maker difference = numbers.maker(numbers.uncast(exponent));
  score = exponent;
  if (!difference.is("arith.subf"))
    return std::nullopt;
  score = difference.operands[0];
  return readMaximum(score, difference.operands[1]);
}

Reason Reader::readSoftmax(Number weight, Number &score) {
  weight = numbers.uncast(weight);
  auto softmax = weight.value.getDefiningOp<linalg::SoftmaxOp>();
  if (!softmax)
    return readDivision(numbers.maker(weight), score);
  if (weight.at[softmax.getDimension()] != form.j)
    return because("the softmax is over another dimension than the keys");
  hasMaximum = true;
  score = numbers.element(softmax.getInput(), weight.at);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// Whether a product is behind a number, through what changes scores.
bool Reader::hasProduct(Number number) {
  number = numbers.uncast(number);
  if (contraction(number.value))
    return true;
  Maker made = numbers.maker(number);
  return made.isAny("arith.mulf", "arith.divf", "arith.addf", "arith.select") &&
         llvm::any_of(made.operands, [&](const Number &operand) {
           return isa<FloatType>(operand.type()) && hasProduct(operand);
         });
}

/// x of x * c, c * x or x / c, whose factor becomes part of the scale.
Reason Reader::readScale(const Maker &made, Number &of) {
  std::optional<double> right = numbers.constant(made.operands[1]), left;
  if (made.is("arith.mulf"))
    left = numbers.constant(made.operands[0]);
  if (!left && !right)
    return because("the scale is not a constant");
  of = made.operands[right ? 0 : 1];
  scale *= !right ? *left : made.is("arith.divf") ? 1 / *right : *right;
  return std::nullopt;
}

/// x of select(condition, x, -inf) or of select(condition, -inf, x).
Reason Reader::readSelect(const Maker &made, Number &of) {
  unsigned which = hasProduct(made.operands[1]) ? 1 : 2;
  std::optional<double> other = numbers.constant(made.operands[3 - which]);
  of = made.operands[which];
  if (!other || !MaskReader::hides(*other, of.type(), form.visible))
    return because("a mask puts something else than -inf in the place of "
                   "scores");
  return MaskReader(numbers, form.rows)
      .readCondition(made.operands[0], which == 1, form.visible);
}

/// The product behind scale and masks.
Reason Reader::readScore(Number score, Number &product) {
  bool hasMask = false;
  while (true) {
    score = numbers.uncast(score);
    if (contraction(score.value))
      break;
    Maker made = numbers.maker(score);
    Reason reason;
    if (made.isAny("arith.mulf", "arith.divf")) {
      reason = readScale(made, score);
    } else if (made.is("arith.addf")) {
      // The scores are the one of the two that has a product behind it.
      unsigned which = hasProduct(made.operands[0]) ? 0 : 1;
      reason = MaskReader(numbers, form.rows)
                   .readAddend(made.operands[1 - which], form.visible);
      score = made.operands[which];
      hasMask = true;
    } else if (made.is("arith.select")) {
      reason = readSelect(made, score);
      hasMask = true;
    } else if (made.op && !made.operands.empty()) {
      reason = because("'{0}' changes the scores", made.op->getName());
    } else {
      reason = because("the scores are no product");
    }
    if (reason)
      return reason;
  }
  if (hasMask && scale <= 0)
    return because("a scale that is not above 0 turns the mask around");
  product = score;
  return std::nullopt;
}

/// A factor of the first product, without a constant that multiplies it.
Reason Reader::readFactor(const Number &factor, Number &of) {
  of = numbers.source(factor);
  Maker made = numbers.maker(of);
  while (made.isAny("arith.mulf", "arith.divf") &&
         (numbers.constant(made.operands[0]) ||
          numbers.constant(made.operands[1]))) {
    // A constant divided by a number is no scale.
    if (made.is("arith.divf") && !numbers.constant(made.operands[1]))
      break;
    if (Reason reason = readScale(made, of))
      return reason;
    of = numbers.source(of);
    made = numbers.maker(of);
    isScaledBefore = true;
  }
  return std::nullopt;
}

Reason Reader::readFirst(const Number &score) {
  if (Reason reason = readProduct(contraction(score.value), score, first))
    return reason;
  form.d = first.over;
  auto hasKeys = [&](const Number &factor) {
    return llvm::is_contained(factor.at, form.j);
  };
  Number q = first.left, k = first.right;
  if (hasKeys(q) && !hasKeys(k))
    std::swap(q, k);
  if (Reason reason = readFactor(q, form.q))
    return reason;
  if (Reason reason = readFactor(k, form.k))
    return reason;
  form.v = numbers.source(second.right);
  form.scale = scale;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What is around
//===----------------------------------------------------------------------===//

/// Whether only the second product sees what is between it and the first.
Reason Reader::checkUses() {
  // What leads from the first product to the second.
  llvm::DenseMap<Operation *, bool> between = {{first.op, true}};
  std::function<bool(Operation *)> leads = [&](Operation *op) {
    if (!op || op->isBeforeInBlock(first.op))
      return false;
    auto [known, isNew] = between.try_emplace(op, false);
    if (!isNew)
      return known->second;
    bool found = false;
    for (Value operand : op->getOperands())
      found |= operand.getDefiningOp() &&
               operand.getDefiningOp()->getBlock() == op->getBlock() &&
               leads(operand.getDefiningOp());
    return between[op] = found;
  };
  if (first.op->getBlock() != second.op->getBlock())
    return because("the two products are in different blocks");
  leads(second.op);
  for (auto [op, isBetween] : between) {
    if (!isBetween || op == second.op)
      continue;
    for (Operation *user : op->getUsers())
      if (!between.lookup(user))
        return because("the scores or weights are also used by '{0}'",
                       user->getName());
  }
  return std::nullopt;
}

/// The result, or what a conversion to the type of Q makes of it.
Reason Reader::readResult() {
  Type wanted = form.q.type();
  if (getElementTypeOrSelf(form.o) == wanted)
    return std::nullopt;
  if (form.o.hasOneUse()) {
    Operation *user = *form.o.user_begin();
    if (user->getNumResults() == 1 &&
        getElementTypeOrSelf(user->getResult(0)) == wanted) {
      auto type = dyn_cast<RankedTensorType>(user->getResult(0).getType());
      if (type && type.getRank() == int64_t(form.oAt.size())) {
        Maker made = numbers.maker({user->getResult(0), form.oAt});
        if (made.is("arith.truncf")) {
          Number of = numbers.source(made.operands[0]);
          if (of.value == form.o && of.at == form.oAt) {
            form.o = user->getResult(0);
            return std::nullopt;
          }
        }
      }
    }
  }
  return because("the result is {0}, but attn.forward gives that of q, {1}",
                 getElementTypeOrSelf(form.o), wanted);
}

/// How the numbers of attn.forward differ.
void Reader::addNotes() {
  Type score = getElementTypeOrSelf(first.op->getResult(0));
  if (!score.isF32())
    form.notes.push_back(llvm::formatv("scores are f32, not {0}", score).str());
  if (!form.v.type().isF32() && getElementTypeOrSelf(second.left.value).isF32())
    form.notes.push_back(
        llvm::formatv("weights are rounded to {0}", form.v.type()).str());
  if (!hasMaximum)
    form.notes.push_back("the softmax subtracts the maximum");
  if (isScaledBefore)
    form.notes.push_back("the scale comes behind the first product");
}

/// Enters the second product's loops.
Reason Reader::readSecond(LinalgOp op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  Indices at;
  for (int64_t size : type.getShape())
    at.push_back(numbers.loops.add(size));
  form.o = op->getResult(0);
  form.oAt = at;
  if (Reason reason = readProduct(op, {form.o, at}, second))
    return reason;
  if (!isSoftmax(numbers, second.left))
    std::swap(second.left, second.right);
  form.i = form.e = numbers.loops.zero();
  form.j = second.over;
  auto isIn = [](const Number &factor, Index loop) {
    return llvm::is_contained(factor.at, loop);
  };
  // Of several loops that only weights have, rows come last in these; others
  // are groups.
  for (Index loop : second.left.at)
    if (llvm::is_contained(at, loop) && !isIn(second.right, loop))
      form.i = loop;
  for (Index loop : second.right.at)
    if (llvm::is_contained(at, loop) && !isIn(second.left, loop))
      form.e = loop;
  auto sizeOf = [&](Index loop) {
    return numbers.loops.size(*numbers.loops.atoms(loop));
  };
  form.rows = {form.i, form.j, sizeOf(form.i), sizeOf(form.j)};
  return std::nullopt;
}

Reason Reader::read(LinalgOp op) {
  if (Reason reason = readSecond(op))
    return reason;
  Number score, product;
  if (Reason reason = readSoftmax(second.left, score))
    return reason;
  if (Reason reason = readScore(score, product))
    return reason;
  if (Reason reason = readFirst(product))
    return reason;
  if (Reason reason = readResult())
    return reason;
  if (Reason reason = checkUses())
    return reason;
  addNotes();
  return std::nullopt;
}

/// Whether one factor of a product is a softmax.
static bool hasWeights(Numbers &numbers, LinalgOp op) {
  Indices loops;
  for (int64_t size : op.getStaticLoopRanges())
    loops.push_back(numbers.loops.add(size));
  return llvm::any_of(ArrayRef<unsigned>{0, 1}, [&](unsigned which) {
    return isSoftmax(numbers, numbers.operand(op, which, loops));
  });
}

std::optional<Reason> attn::raise::readSoftmax(Form &form) {
  auto op = dyn_cast<LinalgOp>(form.op);
  if (!op || op->getNumResults() != 1 || !contraction(op->getResult(0)) ||
      !hasWeights(form.numbers, op))
    return std::nullopt;
  return Reader(form).read(op);
}
