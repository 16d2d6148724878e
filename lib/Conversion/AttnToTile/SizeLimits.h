//===- SizeLimits.h - Sizes that turn out at run time -----------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_SIZELIMITS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_SIZELIMITS_H

#include "attn/Schedule/Limits.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// Asserts, of sizes that are not known yet, what `check` says of the others.
void assertLimits(mlir::ImplicitLocOpBuilder &b,
                  llvm::function_ref<mlir::Value(Size)> valueOf);

} // namespace attn

#endif
