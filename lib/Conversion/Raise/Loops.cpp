//===- Loops.cpp - Index variables that split and join --------------------===//

#include "Loops.h"

#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace attn::raise;
using namespace mlir;

static bool isZero(Index index) {
  auto constant = dyn_cast<AffineConstantExpr>(index);
  return constant && constant.getValue() == 0;
}

static bool isDynamic(int64_t size) { return ShapedType::isDynamic(size); }

Index Loops::add(int64_t size) {
  if (size == 1)
    return zero();
  sizes.push_back(size);
  return getAffineDimExpr(sizes.size() - 1, context);
}

std::optional<Indices> Loops::split(Index loop, ArrayRef<int64_t> into) {
  SmallVector<int64_t> real =
      llvm::filter_to_vector(into, [](int64_t size) { return size != 1; });
  Indices found;
  if (real.size() == 1) {
    found = {loop};
  } else if (!real.empty() && isZero(loop)) {
    found.assign(real.size(), zero());
  } else if (auto known = parts.find(loop); known != parts.end()) {
    found = known->second;
    if (found.size() != real.size())
      return std::nullopt;
    for (auto [part, size] : llvm::zip_equal(found, real))
      if (this->size(*atoms(part)) != size)
        return std::nullopt;
  } else if (!real.empty()) {
    if (!isa<AffineDimExpr>(loop))
      return std::nullopt;
    for (int64_t size : real)
      found.push_back(add(size));
    parts[loop] = found;
  }
  Indices all;
  auto *next = found.begin();
  for (int64_t size : into)
    all.push_back(size == 1 ? zero() : *next++);
  return all;
}

Index Loops::join(ArrayRef<Index> loops, ArrayRef<int64_t> from) {
  Indices real;
  int64_t size = 1;
  for (auto [loop, each] : llvm::zip_equal(loops, from)) {
    if (each == 1)
      continue;
    real.push_back(loop);
    size =
        isDynamic(size) || isDynamic(each) ? ShapedType::kDynamic : size * each;
  }
  if (real.empty())
    return zero();
  if (real.size() == 1)
    return real.front();
  for (const auto &[loop, known] : parts)
    if (known == real)
      return loop;
  Index loop = add(size);
  if (llvm::all_of(real, [](Index each) { return isa<AffineDimExpr>(each); }))
    parts[loop] = real;
  return loop;
}

std::optional<Indices> Loops::atoms(Index loop) const {
  if (isZero(loop))
    return Indices();
  if (!isa<AffineDimExpr>(loop))
    return std::nullopt;
  auto known = parts.find(loop);
  if (known == parts.end())
    return Indices{loop};
  Indices all;
  for (Index part : known->second)
    llvm::append_range(all, *atoms(part));
  return all;
}

int64_t Loops::size(Index atom) const {
  return sizes[cast<AffineDimExpr>(atom).getPosition()];
}

int64_t Loops::size(ArrayRef<Index> atoms) const {
  int64_t product = 1;
  for (Index atom : atoms) {
    if (isDynamic(size(atom)))
      return ShapedType::kDynamic;
    product *= size(atom);
  }
  return product;
}
