//===- KernelModule.h - Where kernels of a module go ------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELMODULE_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELMODULE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/StringMap.h"

namespace attn {

/// The `gpu.module` of our kernels, which is there once somebody asks.
class KernelModule {
public:
  explicit KernelModule(mlir::ModuleOp module) : module(module) {}

  /// That of kernels which are not lowered yet, or else a new one: under
  /// another name where this one is taken, by a symbol of the user's or by what
  /// kernels have become.
  mlir::gpu::GPUModuleOp at(mlir::Location loc);

  /// A free name for a kernel, near to that one.
  std::string uniqueName(const std::string &name);

  /// The name by which launches know a kernel.
  mlir::SymbolRefAttr symbolOf(mlir::Operation *kernel);

private:
  mlir::ModuleOp module;
  mlir::gpu::GPUModuleOp kernels;
};

/// An error unless the op, which becomes launches, stands in a function of the
/// host in that module.
llvm::LogicalResult checkPlace(mlir::Operation *op, mlir::ModuleOp module);

/// What a kernel wants to know of an array, by role.
void addArray(mlir::ImplicitLocOpBuilder &b, llvm::StringMap<mlir::Value> &to,
              llvm::StringRef name, mlir::Value memref);

} // namespace attn

#endif
