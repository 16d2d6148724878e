//===- Composite.cpp - stablehlo.composite and custom_call ----------------===//
//
// StableHLO has no attention; frontends wrap it under a name:
//
//   "stablehlo.composite"(%q, %k, %v) <{name = "attn.forward",
//       composite_attributes = {mask = "causal", scale = 0.125 : f32},
//       decomposition = @f}>
//
// and a custom_call of the same target has the attributes in `backend_config`.
// Arrays are [batch, heads, rows, columns], or [batch, rows, columns]; grouped
// heads follow from head counts.  The names:
//
//   attn.forward    ours: `mask` as in attn.forward, `scale`; a second result
//                   is the log-sum-exp
//   tenstorrent.scaled_dot_product_attention
//                   `is_causal`, `scale`; a fourth operand is added to scores.
//                   As a custom_call it has `tt.composite_attributes`.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"

using namespace attn::raise;
using namespace attn;
using namespace mlir;

static constexpr StringLiteral ours = "attn.forward";
static constexpr StringLiteral theirs =
    "tenstorrent.scaled_dot_product_attention";

/// Q, K, V and the results, of rank 3 or 4.
static Reason readArrays(Form &form, bool hasMask) {
  Operation *op = form.op;
  if (op->getNumOperands() < 3 || op->getNumOperands() > (hasMask ? 4u : 3u))
    return because("expects q, k and v{0}, but got {1} operands",
                   hasMask ? ", perhaps a mask" : "", op->getNumOperands());
  Value q = op->getOperand(0), k = op->getOperand(1), v = op->getOperand(2);
  auto type = dyn_cast<RankedTensorType>(q.getType());
  if (!type || (type.getRank() != 3 && type.getRank() != 4))
    return because("expects q of rank 3 or 4, but got {0}", q.getType());
  int64_t rank = type.getRank();
  for (Value value : {k, v, Value(op->getResult(0))})
    if (!isTensor(value, rank))
      return because("expects q, k, v and the result of rank {0}, but "
                     "got {1}",
                     rank, value.getType());
  for (auto [name, value] : {std::pair<StringRef, Value>("k", k), {"v", v}})
    if (Reason reason = expectSame("q", q, name, value, 0))
      return reason;
  form.setSizes(sizeOf(q, rank - 2), sizeOf(k, rank - 2), sizeOf(q, rank - 1),
                sizeOf(v, rank - 1));
  Numbers &numbers = form.numbers;
  Indices ofQ = {numbers.loops.add(sizeOf(q, 0))}, ofK = ofQ;
  if (rank == 4) {
    HeadLoops heads;
    if (Reason reason = readHeads(form, sizeOf(q, 1), sizeOf(k, 1), heads))
      return reason;
    ofQ.push_back(heads.ofQ);
    ofK.push_back(heads.ofK);
  }
  auto at = [](Indices outer, Index row, Index column) {
    outer.push_back(row);
    outer.push_back(column);
    return outer;
  };
  form.q = numbers.element(q, at(ofQ, form.i, form.d));
  form.k = numbers.element(k, at(ofK, form.j, form.d));
  form.v = numbers.element(v, at(ofK, form.j, form.e));
  form.o = op->getResult(0);
  form.oAt = numbers.element(form.o, at(ofQ, form.i, form.e)).at;
  if (op->getNumOperands() == 3)
    return std::nullopt;
  Value mask = op->getOperand(3);
  if (!isTensor(mask, rank))
    return because("expects a mask of rank {0}, but got {1}", rank,
                   mask.getType());
  return readMask(form, numbers.element(mask, at(ofQ, form.i, form.j)));
}

/// A number that may be absent.
static Reason readScale(Form &form, DictionaryAttr attributes) {
  Attribute scale = attributes.get("scale");
  if (!scale)
    return std::nullopt;
  form.scale = numberIn(scale);
  if (!form.scale)
    return because("expects a scale that is a number");
  return std::nullopt;
}

static Reason checkNames(DictionaryAttr attributes, ArrayRef<StringRef> known) {
  for (NamedAttribute attribute : attributes)
    if (!llvm::is_contained(known, attribute.getName().getValue()))
      return because("expects the attributes {0}, but got {1}",
                     llvm::join(known, ", "), attribute.getName());
  return std::nullopt;
}

static Reason readOurs(Form &form, DictionaryAttr attributes) {
  Operation *op = form.op;
  if (Reason reason = checkNames(attributes, {"mask", "scale"}))
    return reason;
  if (op->getNumResults() < 1 || op->getNumResults() > 2)
    return because("expects one result, or the log-sum-exp as a second");
  if (Reason reason = readArrays(form, /*hasMask=*/false))
    return reason;
  if (op->getNumResults() == 2)
    form.lse = op->getResult(1);
  if (Reason reason = readScale(form, attributes))
    return reason;
  Attribute given = attributes.get("mask");
  if (!given)
    return std::nullopt;
  if (auto text = dyn_cast<StringAttr>(given))
    form.named = parseMask(std::string_view(text.getValue()));
  if (form.named)
    return std::nullopt;
  SmallVector<StringRef> words;
  for (std::string_view word : maskKeywords())
    words.push_back(StringRef(word.data(), word.size()));
  return because("expects a mask of {0}, but got {1}", llvm::join(words, ", "),
                 given);
}

static Reason readTheirs(Form &form, DictionaryAttr attributes) {
  if (Reason reason = checkNames(attributes, {"is_causal", "scale"}))
    return reason;
  if (form.op->getNumResults() != 1)
    return because("expects one result");
  std::optional<double> causal = numberIn(attributes.get("is_causal"));
  if (!causal)
    return because("expects is_causal");
  if (Reason reason = readArrays(form, /*hasMask=*/true))
    return reason;
  if (*causal != 0)
    form.visible.narrow(-kUnbounded, 0);
  return readScale(form, attributes);
}

static Reason readNamed(Form &form, StringRef name, Attribute given) {
  auto attributes = dyn_cast_or_null<DictionaryAttr>(given);
  if (given && !attributes)
    return because("expects a dictionary of attributes");
  if (!attributes)
    attributes = DictionaryAttr::get(form.op->getContext());
  if (name == ours)
    return readOurs(form, attributes);
  if (name == theirs)
    return readTheirs(form, attributes);
  return because("expects the name {0} or {1}, but got {2}", ours, theirs,
                 name);
}

/// Whether somebody who wrote that name meant one of ours.
static bool isMeant(StringRef name) {
  constexpr unsigned mostEdits = 2;
  return name.starts_with("attn.") ||
         llvm::any_of(ArrayRef{ours, theirs}, [&](StringRef known) {
           return name.edit_distance(known, /*AllowReplacements=*/true,
                                     mostEdits) <= mostEdits;
         });
}

/// The name of the attention that an op wraps, right or nearly; empty if it is
/// another.
StringRef attn::raise::wrappedName(Operation *op) {
  Attribute attribute =
      attributeOf(op, op->getName().getStringRef() == "stablehlo.composite"
                          ? "name"
                          : "call_target_name");
  auto name = dyn_cast_or_null<StringAttr>(attribute);
  if (name && isMeant(name.getValue()))
    return name.getValue();
  return {};
}

Reason attn::raise::readComposite(Form &form) {
  return readNamed(form, wrappedName(form.op),
                   attributeOf(form.op, "composite_attributes"));
}

Reason attn::raise::readCustomCall(Form &form) {
  StringRef name = wrappedName(form.op);
  return readNamed(form, name,
                   attributeOf(form.op, name == ours
                                            ? "backend_config"
                                            : "tt.composite_attributes"));
}
