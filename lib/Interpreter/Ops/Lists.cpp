//===- Lists.cpp - What makes lists of blocks -----------------------------===//

#include "Run/Handlers.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

Step attn::interpreter::runAny(Warp &warp, const Instruction &in) {
  const Matrix &values = *warp.matrix(in, 0);
  bool isAny =
      llvm::any_of(values.reals, [](float value) { return value > 0; });
  return warp.set(in, Number{isAny});
}

Step attn::interpreter::runStoreNumber(Warp &warp, const Instruction &in) {
  int32_t number = int32_t(warp.integer(in, 0));
  uint64_t address = uint64_t(warp.integer(in, 1)) +
                     uint64_t(warp.integer(in, 2)) * sizeof number;
  if (std::optional<std::string> error =
          writeGlobal(warp, in, address, &number, sizeof number))
    return warp.stop(in, "number", *error);
  return Step::next;
}
