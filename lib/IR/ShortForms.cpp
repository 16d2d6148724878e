//===- ShortForms.cpp - Regions that have a short form --------------------===//
//
// A short form is a region that one function writes.  To find the forms of a
// region, what they could be is guessed from its ops, written again and
// compared: what computes the same values from the same ops is the same, in
// whatever order the ops stand.
//
//===----------------------------------------------------------------------===//

#include "attn/IR/CaptureShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;

static constexpr StringLiteral kKeywords[] = {"document", "softcap", "alibi",
                                              "bias"};

StringRef attn::keywordOf(ShortForm::Kind kind) { return kKeywords[kind]; }

std::optional<ShortForm::Kind> attn::shortFormOf(StringRef keyword) {
  const auto *found = llvm::find(kKeywords, keyword);
  if (found == std::end(kKeywords))
    return std::nullopt;
  return ShortForm::Kind(found - std::begin(kKeywords));
}

/// Positions by which a form reads an array of some rank; none if it reads no
/// such array.  `i` stands for the row, which is j too in `document`.
static ArrayRef<StringRef> positionsOf(ShortForm::Kind kind, int64_t rank) {
  static constexpr StringRef ofIds[] = {"b", "i"}, ofSlopes[] = {"b", "h"},
                             ofBias[] = {"b", "h", "i", "j"};
  ArrayRef<StringRef> all;
  int64_t least = 1;
  switch (kind) {
  case ShortForm::document:
    all = ofIds;
    break;
  case ShortForm::alibi:
    all = ofSlopes;
    break;
  case ShortForm::bias:
    all = ofBias;
    least = 2;
    break;
  case ShortForm::softcap:
    return {};
  }
  if (rank < least || rank > int64_t(all.size()))
    return {};
  return all.take_back(rank);
}

std::optional<std::string> attn::wrongCapture(ShortForm::Kind kind,
                                              ShapedType type) {
  bool isOfFloats = kind != ShortForm::document;
  bool hasElements = isOfFloats ? isa<FloatType>(type.getElementType())
                                : isa<IntegerType>(type.getElementType());
  if (hasElements && !positionsOf(kind, type.getRank()).empty())
    return std::nullopt;
  switch (kind) {
  case ShortForm::document:
    return "integers for each row, or for each batch entry and row";
  case ShortForm::alibi:
    return "floats for each head, or for each batch entry and head";
  case ShortForm::bias:
    return "floats for each query and key, and in front of these for heads, or "
           "for batch entries and heads";
  case ShortForm::softcap:
    break;
  }
  return "no array";
}

/// What a position counts; `document` reads ids of queries and of keys.
static SmallVector<Extent, 2> extentsOf(ShortForm::Kind kind, StringRef name) {
  if (name == "b")
    return {Extent::batch};
  if (name == "h")
    return {Extent::heads};
  if (name == "j")
    return {Extent::keys};
  if (kind == ShortForm::document)
    return {Extent::queries, Extent::keys};
  return {Extent::queries};
}

SmallVector<ReadDimension> attn::dimensionsRead(Region &region) {
  SmallVector<ReadDimension> all;
  for (const ShortForm &form : shortFormsOf(region)) {
    if (form.kind == ShortForm::softcap)
      continue;
    auto type = cast<ShapedType>(capturesIn(region)[form.capture].getType());
    for (auto [dim, name] :
         llvm::enumerate(positionsOf(form.kind, type.getRank())))
      if (type.getDimSize(dim) != 1)
        all.push_back({form.kind, form.capture, unsigned(dim),
                       extentsOf(form.kind, name)});
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

class Writer {
public:
  Writer(Region &region, Location loc, bool isScore, TypeRange captures)
      : region(region), b(loc, OpBuilder(loc.getContext())), isScore(isScore) {
    SmallVector<Type> types =
        argumentTypes(loc.getContext(), isScore, captures);
    b.createBlock(&region, region.end(), types,
                  SmallVector<Location>(types.size(), loc));
    if (isScore)
      score = region.getArgument(0);
  }

  void add(const ShortForm &form) {
    switch (form.kind) {
    case ShortForm::document:
      return addDocument(form);
    case ShortForm::softcap:
      return addSoftcap(form);
    case ShortForm::alibi:
      return addAlibi(form);
    case ShortForm::bias:
      score = arith::AddFOp::create(b, score, wide(read(form)));
      return;
    }
  }

  void finish() { YieldOp::create(b, isScore ? score : seen); }

private:
  Value position(StringRef name) {
    const auto *found = llvm::find(kPositions, name);
    return region.getArgument(isScore + (found - std::begin(kPositions)));
  }

  /// The element of a form's array; `row` takes the place of i.
  Value read(const ShortForm &form, StringRef row = "i") {
    Value array = capturesIn(region)[form.capture];
    auto type = cast<ShapedType>(array.getType());
    SmallVector<Value> indices;
    for (auto [size, name] : llvm::zip_equal(
             type.getShape(), positionsOf(form.kind, type.getRank()))) {
      bool isForAll = size == 1;
      indices.push_back(isForAll ? arith::ConstantIndexOp::create(b, 0)
                                 : position(name == "i" ? row : name));
    }
    return ReadOp::create(b, type.getElementType(), array, indices);
  }

  Value wide(Value number) {
    if (number.getType().isF32())
      return number;
    return arith::ExtFOp::create(b, b.getF32Type(), number);
  }

  void addDocument(const ShortForm &form) {
    Value ofQuery = read(form, "i"), ofKey = read(form, "j");
    seen = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, ofQuery, ofKey);
  }

  void addSoftcap(const ShortForm &form) {
    Value cap = arith::ConstantOp::create(
        b, b.getF32FloatAttr(static_cast<float>(form.cap)));
    Value share = arith::DivFOp::create(b, score, cap);
    score = arith::MulFOp::create(b, math::TanhOp::create(b, share), cap);
  }

  void addAlibi(const ShortForm &form) {
    Value slope = wide(read(form));
    Value apart = arith::SubIOp::create(b, position("j"), position("i"));
    Value whole = arith::IndexCastOp::create(b, b.getI32Type(), apart);
    Value number = arith::SIToFPOp::create(b, b.getF32Type(), whole);
    Value more = arith::MulFOp::create(b, slope, number);
    score = arith::AddFOp::create(b, score, more);
  }

  Region &region;
  ImplicitLocOpBuilder b;
  bool isScore;
  Value score, seen;
};

} // namespace

void attn::buildRegion(Region &region, Location loc, ArrayRef<ShortForm> forms,
                       TypeRange captures) {
  bool isScore = forms.front().kind != ShortForm::document;
  Writer writer(region, loc, isScore, captures);
  for (const ShortForm &form : forms)
    writer.add(form);
  writer.finish();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Whether two values of two regions are computed alike.
static bool sameValue(Value a, Value b) {
  auto x = dyn_cast<BlockArgument>(a), y = dyn_cast<BlockArgument>(b);
  if (x || y)
    return x && y && x.getArgNumber() == y.getArgNumber() &&
           x.getType() == y.getType();
  Operation *of = a.getDefiningOp(), *other = b.getDefiningOp();
  return of->getName() == other->getName() &&
         of->getRawDictionaryAttrs() == other->getRawDictionaryAttrs() &&
         of->getPropertiesAsAttribute() == other->getPropertiesAsAttribute() &&
         of->getResultTypes() == other->getResultTypes() &&
         of->getNumOperands() == other->getNumOperands() &&
         cast<OpResult>(a).getResultNumber() ==
             cast<OpResult>(b).getResultNumber() &&
         llvm::all_of(llvm::zip(of->getOperands(), other->getOperands()),
                      [](auto pair) {
                        return sameValue(std::get<0>(pair), std::get<1>(pair));
                      });
}

/// The captured array that is read for a number, perhaps of fewer bits.
static std::optional<unsigned> captureReadFor(Value value) {
  if (auto wide = value.getDefiningOp<arith::ExtFOp>())
    value = wide.getIn();
  auto read = value.getDefiningOp<ReadOp>();
  auto array = read ? dyn_cast<BlockArgument>(read.getArray()) : nullptr;
  if (!array)
    return std::nullopt;
  ArrayRef<BlockArgument> captures = capturesIn(*array.getParentRegion());
  const auto *found = llvm::find(captures, array);
  if (found == captures.end())
    return std::nullopt;
  return found - captures.begin();
}

/// Takes the last form off a score: what it could be, if it is one.
static std::optional<ShortForm> takeLast(Value &score) {
  if (auto product = score.getDefiningOp<arith::MulFOp>()) {
    auto tanh = product.getLhs().getDefiningOp<math::TanhOp>();
    auto share =
        tanh ? tanh.getOperand().getDefiningOp<arith::DivFOp>() : nullptr;
    auto cap = product.getRhs().getDefiningOp<arith::ConstantOp>();
    auto number = cap ? dyn_cast<FloatAttr>(cap.getValue()) : FloatAttr();
    if (!share || !number)
      return std::nullopt;
    score = share.getLhs();
    return ShortForm{ShortForm::softcap, 0, number.getValueAsDouble()};
  }
  auto sum = score.getDefiningOp<arith::AddFOp>();
  if (!sum)
    return std::nullopt;
  score = sum.getLhs();
  if (std::optional<unsigned> capture = captureReadFor(sum.getRhs()))
    return ShortForm{ShortForm::bias, *capture};
  auto product = sum.getRhs().getDefiningOp<arith::MulFOp>();
  std::optional<unsigned> slopes;
  if (product)
    slopes = captureReadFor(product.getLhs());
  if (!slopes)
    return std::nullopt;
  return ShortForm{ShortForm::alibi, *slopes};
}

static SmallVector<ShortForm> guess(Region &region, Value result) {
  SmallVector<ShortForm> forms;
  if (!isScore(region)) {
    auto same = result.getDefiningOp<arith::CmpIOp>();
    if (same)
      if (std::optional<unsigned> ids = captureReadFor(same.getLhs()))
        forms.push_back({ShortForm::document, *ids});
    return forms;
  }
  while (result != region.getArgument(0)) {
    std::optional<ShortForm> form = takeLast(result);
    auto isSame = [&](const ShortForm &other) {
      return other.kind == form->kind;
    };
    if (!form || llvm::any_of(forms, isSame))
      return {};
    forms.insert(forms.begin(), *form);
  }
  return forms;
}

SmallVector<ShortForm> attn::shortFormsOf(Region &region) {
  if (!region.hasOneBlock() || region.front().empty())
    return {};
  auto end = dyn_cast<YieldOp>(region.front().back());
  if (!end)
    return {};
  SmallVector<ShortForm> forms = guess(region, end.getResult());
  SmallVector<Type> types;
  for (BlockArgument capture : capturesIn(region))
    types.push_back(capture.getType());
  for (const ShortForm &form : forms)
    if (form.kind != ShortForm::softcap &&
        wrongCapture(form.kind, cast<ShapedType>(types[form.capture])))
      return {};
  if (forms.empty())
    return {};
  Region written;
  buildRegion(written, region.getLoc(), forms, types);
  auto again = cast<YieldOp>(written.front().back());
  if (!sameValue(end.getResult(), again.getResult()))
    return {};
  return forms;
}
