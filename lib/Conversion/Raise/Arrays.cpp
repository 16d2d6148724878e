//===- Arrays.cpp - What readers of named ops share -----------------------===//

#include "Arrays.h"

using namespace attn::raise;
using namespace mlir;

Reason attn::raise::expectSame(StringRef a, Value first, StringRef b,
                               Value second, int64_t dim) {
  int64_t left = sizeOf(first, dim), right = sizeOf(second, dim);
  if (ShapedType::isDynamic(left) || ShapedType::isDynamic(right) ||
      left == right)
    return std::nullopt;
  return because("expects {0} and {1} of the same size in dimension {2}, but "
                 "got {3} and {4}",
                 a, b, dim, left, right);
}

Reason attn::raise::readHeads(Form &form, int64_t heads, int64_t kvHeads,
                              HeadLoops &loops) {
  Loops &all = form.numbers.loops;
  loops.ofQ = loops.ofK = all.add(heads);
  if (heads == kvHeads)
    return std::nullopt;
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads))
    return because("expects head counts that are static");
  if (kvHeads == 0 || heads % kvHeads != 0)
    return because("expects the head count of q to be a multiple of that of k, "
                   "but got {0} and {1}",
                   heads, kvHeads);
  loops.ofK = all.split(loops.ofQ, {kvHeads, heads / kvHeads})->front();
  return std::nullopt;
}

Reason attn::raise::readMask(Form &form, const Number &mask) {
  for (auto [dim, index] : llvm::enumerate(mask.at)) {
    std::optional<Indices> atoms = form.numbers.loops.atoms(index);
    if (!atoms)
      continue;
    int64_t expected = form.numbers.loops.size(*atoms),
            size = mask.tensor().getDimSize(dim);
    if (expected != size && !ShapedType::isDynamic(expected) &&
        !ShapedType::isDynamic(size))
      return because("expects a mask of size {0} in dimension {1}, but got {2}",
                     expected, dim, size);
  }
  MaskReader reader(form.numbers, form.rows);
  if (mask.type().isInteger(1))
    return reader.readCondition(mask, /*wanted=*/true, form.visible);
  if (isa<FloatType>(mask.type()))
    return reader.readAddend(mask, form.visible);
  return because("expects a mask of booleans or of floating-point numbers, but "
                 "got {0}",
                 mask.type());
}
