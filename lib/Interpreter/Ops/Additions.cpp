//===- Additions.cpp - Sums of what elements have -------------------------===//

#include "Run/Handlers.h"

#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runTotal(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0);
  Number sum;
  sum.real = std::accumulate(values.reals.begin(), values.reals.end(), 0.0F);
  return warp.set(in, sum);
}
