//===- Registry.cpp - Kernel builders by name -----------------------------===//

#include "attn/Kernels/Kernels.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define ATTN_KERNEL(name)                                                      \
  tile::KernelOp name(OpBuilder &, Location, const KernelRequest &);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
} // namespace attn

KernelBuilder attn::findKernelBuilder(StringRef name) {
  llvm::StringSwitch<KernelBuilder> found(name);
#define ATTN_KERNEL(kernel) found.Case(#kernel, &kernel);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
  return found.Default(nullptr);
}

int64_t attn::launchOf(tile::KernelOp kernel) {
  auto launch = kernel->getAttrOfType<IntegerAttr>(kLaunchAttr);
  return launch ? launch.getInt() : 0;
}
