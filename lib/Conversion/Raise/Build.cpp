//===- Build.cpp - The attn.forward of a form -----------------------------===//
//
// Q, K, V and O are tensors with dimensions in any order, split and joined in
// any way.  By the atoms of their indices each is brought to
//
//   [batch][heads][rows][head dimension]
//
// Atoms that Q has and K lacks are groups: query heads that share keys.  Of the
// others, those of the last of Q's dimensions that is neither rows nor head
// dimension are heads, and the rest is batch.
//
//===----------------------------------------------------------------------===//

#include "Arrange.h"
#include "Form.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn::raise;
using namespace attn;
using namespace mlir;

void Form::setSizes(int64_t queries, int64_t keys, int64_t headDim,
                    int64_t headDimV) {
  i = numbers.loops.add(queries);
  j = numbers.loops.add(keys);
  d = numbers.loops.add(headDim);
  e = numbers.loops.add(headDimV);
  rows = {i, j, queries, keys};
}

namespace {

/// The loops of a problem, sorted by what they count.
struct Roles {
  Indices batch, heads, kvHeads;
};

class Composer {
public:
  explicit Composer(Form &form)
      : form(form), loops(form.numbers.loops), b(form.builder) {}

  Reason run(Built &built);

private:
  Reason readFactor(StringRef name, const Number &origin, Number &factor,
                    Dims &dims, ArrayRef<Index> required);
  Reason readDims(StringRef name, const Number &number, Dims &dims,
                  ArrayRef<Index> required);
  Indices headCandidates(ArrayRef<Index> others);
  Reason sortLoops();
  Reason checkResult();
  Reason nameMask();
  Value keysOf(Value tensor);
  Reason create(Value q, Value k, Value v, Operation *&op);
  Reason fit(Type type, Value &value);
  std::string summary(Operation *op);

  Indices atomsOf(Index loop) { return loops.atoms(loop).value_or(Indices()); }

  Form &form;
  Loops &loops;
  OpBuilder &b;
  Dims q, k, v, o;
  Roles roles;
  std::optional<NamedMask> mask;
};

} // namespace

static bool contains(ArrayRef<Index> list, Index atom) {
  return llvm::is_contained(list, atom);
}

static Indices flat(const Dims &dims) {
  Indices all;
  for (const Indices &dim : dims)
    llvm::append_range(all, dim);
  return all;
}

static bool sameSet(ArrayRef<Index> a, ArrayRef<Index> b) {
  return a.size() == b.size() &&
         llvm::all_of(a, [&](Index atom) { return contains(b, atom); });
}

/// The atoms of the dimensions of a tensor, among them the required ones.
Reason Composer::readDims(StringRef name, const Number &number, Dims &dims,
                          ArrayRef<Index> required) {
  if (!number.tensor())
    return (name + " is no ranked tensor").str();
  for (auto [dim, index] : llvm::enumerate(number.at)) {
    std::optional<Indices> atoms = loops.atoms(index);
    if (!atoms)
      return (name + " is not read row by row").str();
    int64_t expected = loops.size(*atoms),
            size = number.tensor().getDimSize(dim);
    if (expected != size && !ShapedType::isDynamic(expected) &&
        !ShapedType::isDynamic(size))
      return llvm::formatv("expects {0} of size {1} in dimension {2}, but got "
                           "{3}",
                           name, expected, dim, size)
          .str();
    dims.push_back(*atoms);
  }
  Indices all = flat(dims);
  for (auto [position, atom] : llvm::enumerate(all))
    if (contains(ArrayRef(all).take_front(position), atom))
      return (name + " is read along a diagonal").str();
  for (Index loop : required)
    for (Index atom : atomsOf(loop))
      if (!contains(all, atom))
        return (name + " lacks a dimension of rows or of a head").str();
  return std::nullopt;
}

/// The atoms of the dimension of Q that counts heads: one that counts rows or
/// columns too, or the last of those that count neither if there are several.
Indices Composer::headCandidates(ArrayRef<Index> others) {
  auto isOther = [&](Index atom) { return contains(others, atom); };
  Indices last;
  int64_t count = 0;
  for (auto [dim, size] : llvm::zip_equal(q, form.q.tensor().getShape())) {
    Indices here = llvm::to_vector<4>(llvm::make_filter_range(dim, isOther));
    if (!here.empty() && here.size() < dim.size())
      return here;
    // Rows and columns of size 1 come behind batch and heads.
    if (here.empty() && (size != 1 || count >= 2))
      continue;
    last = here;
    ++count;
  }
  return count >= 2 ? last : Indices();
}

/// Says which loops are batch, heads and groups.
Reason Composer::sortLoops() {
  auto others = [&](const Dims &dims, Index rows, Index columns) {
    Indices rest = flat(dims), known = atomsOf(rows);
    llvm::append_range(known, atomsOf(columns));
    llvm::erase_if(rest, [&](Index atom) { return contains(known, atom); });
    return rest;
  };
  Indices ofQ = others(q, form.i, form.d), ofK = others(k, form.j, form.d),
          ofV = others(v, form.j, form.e);
  if (!sameSet(ofK, ofV))
    return std::string("keys and values have different heads or batch sizes");
  for (Index atom : ofK)
    if (!contains(ofQ, atom))
      return std::string("keys have heads or batch entries that queries lack");

  auto isShared = [&](Index atom) { return contains(ofK, atom); };
  Indices shared = llvm::to_vector<4>(llvm::make_filter_range(ofQ, isShared));
  Indices candidates = headCandidates(ofQ);
  // Groups in a dimension of their own belong to the heads before them.
  if (shared.size() >= 2 && shared.size() < ofQ.size() &&
      llvm::none_of(candidates, isShared))
    candidates = {shared.back()};
  for (Index atom : shared) {
    bool isHead =
        contains(candidates, atom) && !ShapedType::isDynamic(loops.size(atom));
    (isHead ? roles.kvHeads : roles.batch).push_back(atom);
  }
  roles.heads = roles.kvHeads;
  llvm::copy_if(ofQ, std::back_inserter(roles.heads),
                [&](Index atom) { return !isShared(atom); });
  return std::nullopt;
}

/// Whether the result has exactly the loops of the attention's.
Reason Composer::checkResult() {
  Indices expected = roles.batch;
  llvm::append_range(expected, roles.heads);
  llvm::append_range(expected, atomsOf(form.i));
  llvm::append_range(expected, atomsOf(form.e));
  if (!sameSet(expected, flat(o)))
    return std::string("the result has other dimensions than batch, heads, "
                       "queries and the head dimension of v");
  for (const Dims *dims : {&q, &k, &v, &o})
    for (const Indices &dim : *dims)
      if (llvm::count_if(dim, [&](Index atom) {
            return ShapedType::isDynamic(loops.size(atom));
          }) > 1)
        return std::string("a dimension joins two whose sizes are not static");
  for (const Indices *list : {&roles.batch, &roles.heads})
    if (llvm::count_if(*list, [&](Index atom) {
          return ShapedType::isDynamic(loops.size(atom));
        }) > 1)
      return std::string("several batch sizes are not static");
  return std::nullopt;
}

Reason Composer::nameMask() {
  if (form.named) {
    mask =
        NamedMask{MaskAttr::get(b.getContext(), *form.named), form.rows.keys};
    return std::nullopt;
  }
  if (!form.visible.isExact && mayHideAll(form.visible.band, form.rows))
    return std::string("the mask may hide every key of a query by finite "
                       "numbers, whose softmax is not 0");
  std::string reason;
  Rows rows = form.rows;
  rows.keys = form.seenKeys.value_or(rows.keys);
  mask = attn::raise::nameMask(b.getContext(), form.visible.band, rows, reason);
  if (!mask)
    return reason;
  if (!form.visible.isExact)
    form.notes.push_back("the mask's finite numbers count as -inf");
  if (mayHideAll(form.visible.band, form.rows))
    form.notes.push_back("a query that sees no key gives 0");
  return std::nullopt;
}

/// The keys that the mask needs, of K or V as [batch, heads, rows, columns].
Value Composer::keysOf(Value tensor) {
  if (mask->keys == form.rows.keys)
    return tensor;
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, form.op->getLoc(), tensor);
  sizes[2] = b.getIndexAttr(mask->keys);
  SmallVector<OpFoldResult> zeros(4, b.getIndexAttr(0)),
      ones(4, b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, form.op->getLoc(), tensor, zeros,
                                        sizes, ones);
}

/// Makes the op, whose constraints its verifier knows.
Reason Composer::create(Value q, Value k, Value v, Operation *&op) {
  auto type = cast<RankedTensorType>(q.getType());
  SmallVector<int64_t> sizes(type.getShape());
  sizes.back() = cast<RankedTensorType>(v.getType()).getShape().back();
  Type element = getElementTypeOrSelf(form.o);
  SmallVector<Type> results = {RankedTensorType::get(sizes, element)};
  if (form.lse)
    results.push_back(
        RankedTensorType::get(ArrayRef(sizes).drop_back(), b.getF32Type()));
  SmallVector<NamedAttribute> attributes;
  if (!mask->mask.getValue().isOpen())
    attributes.push_back(b.getNamedAttr("mask", mask->mask));
  if (form.scale)
    attributes.push_back(
        b.getNamedAttr("scale", b.getF32FloatAttr(float(*form.scale))));
  OperationState state(form.op->getLoc(), ForwardOp::getOperationName(),
                       ValueRange{q, k, v}, results, attributes);
  addClauses(form, state);
  op = b.create(state);
  std::string message;
  ScopedDiagnosticHandler handler(b.getContext(), [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  if (succeeded(verify(op, /*verifyRecursively=*/true)))
    return std::nullopt;
  // "'attn.forward' op expects ..."
  StringRef sentence = message;
  sentence.consume_front("'attn.forward' op ");
  return "attn.forward " + sentence.str();
}

/// Brings a value to the type of the result whose place it takes.
Reason Composer::fit(Type type, Value &value) {
  if (value.getType() == type)
    return std::nullopt;
  if (!tensor::CastOp::areCastCompatible(value.getType(), type))
    return llvm::formatv("expects a result of {0}, but got {1}",
                         value.getType(), type)
        .str();
  value = tensor::CastOp::create(b, form.op->getLoc(), type, value);
  return std::nullopt;
}

std::string Composer::summary(Operation *op) {
  auto attention = cast<AttentionOpInterface>(op);
  auto count = [&](StringRef role) {
    return cast<ShapedType>(attention.array(role).getType()).getDimSize(1);
  };
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "mask " << str(attention.maskOrNone())
         << llvm::format(", scale %g", attention.scaleOrDefault());
  stream << ", heads " << count("q") << " over " << count("k");
  if (getElementTypeOrSelf(op->getResult(0)).isF32())
    stream << ", products in " << name(attention.precisionOrDefault());
  for (const std::string &note : form.notes)
    stream << "; " << note;
  return text;
}

/// Reads the dimensions of the tensor from which a factor comes, behind what
/// only moves its numbers, or else of the tensor that is multiplied.
Reason Composer::readFactor(StringRef name, const Number &origin,
                            Number &factor, Dims &dims,
                            ArrayRef<Index> required) {
  if (!readDims(name, origin, dims, required)) {
    factor = origin;
    return std::nullopt;
  }
  dims.clear();
  return readDims(name, factor, dims, required);
}

Reason Composer::run(Built &built) {
  // All are followed before any is read, since that may split loops.
  Number ofQ = form.numbers.source(form.q), ofK = form.numbers.source(form.k),
         ofV = form.numbers.source(form.v);
  if (Reason reason = readFactor("q", ofQ, form.q, q, {form.i, form.d}))
    return reason;
  if (Reason reason = readFactor("k", ofK, form.k, k, {form.j, form.d}))
    return reason;
  if (Reason reason = readFactor("v", ofV, form.v, v, {form.j, form.e}))
    return reason;
  Number result{form.o, form.oAt};
  if (Reason reason = readDims("the result", result, o, {form.i, form.e}))
    return reason;
  if (Reason reason = sortLoops())
    return reason;
  if (Reason reason = checkResult())
    return reason;
  if (Reason reason = nameMask())
    return reason;

  Arranger arranger(b, form.op->getLoc(), loops);
  auto dims = [&](ArrayRef<Index> heads, Index rows, Index columns) {
    return Dims{roles.batch, Indices(heads), atomsOf(rows), atomsOf(columns)};
  };
  auto arrange = [&](StringRef name, Value tensor, const Dims &from,
                     const Dims &to) {
    Value arranged = arranger.arrange(tensor, from, to);
    if (arranger.hasMoved())
      form.notes.push_back((name + " is transposed, which moves it").str());
    return arranged;
  };
  Value four[3] = {
      arrange("q", form.q.value, q, dims(roles.heads, form.i, form.d)),
      arrange("k", form.k.value, k, dims(roles.kvHeads, form.j, form.d)),
      arrange("v", form.v.value, v, dims(roles.kvHeads, form.j, form.e))};
  Operation *op = nullptr;
  if (Reason reason = create(four[0], keysOf(four[1]), keysOf(four[2]), op))
    return reason;
  built.replacements = {
      {form.o, arrange("the result", op->getResult(0),
                       dims(roles.heads, form.i, form.e), o)}};
  if (form.lse)
    built.replacements.push_back({form.lse, op->getResult(1)});
  if (form.scores) {
    built.replacements.push_back(
        {form.scores->result, buildScores(form, four[0], four[1])});
    form.notes.push_back("scores are multiplied once more, in memory for every "
                         "query and key");
  }
  llvm::append_range(built.replacements, form.others);
  for (auto &[result, value] : built.replacements)
    if (Reason reason = fit(result.getType(), value))
      return reason;
  built.summary = summary(op);
  return std::nullopt;
}

Value attn::raise::arrange(Form &form, const Number &number,
                           ArrayRef<Index> dims) {
  Loops &loops = form.numbers.loops;
  auto atomsOf = [&](ArrayRef<Index> indices) {
    return llvm::map_to_vector<4>(
        indices, [&](Index index) { return *loops.atoms(index); });
  };
  return Arranger(form.builder, form.op->getLoc(), loops)
      .arrange(number.value, atomsOf(number.at), atomsOf(dims));
}

Reason attn::raise::build(Form &form, Built &built) {
  return Composer(form).run(built);
}
