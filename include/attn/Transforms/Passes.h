//===- Passes.h - Decide and check ------------------------------*- C++ -*-===//

#ifndef ATTN_TRANSFORMS_PASSES_H
#define ATTN_TRANSFORMS_PASSES_H

#include "attn/IR/Attn.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

/// On a gpu.module: its kernels are ours, so our passes lower and serialize it.
inline constexpr llvm::StringLiteral kernelsAttrName = "tile.kernels";

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Transforms/Passes.h.inc"

} // namespace attn

#endif
