//===- KernelModule.h - Where kernels of a module go ------------*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELMODULE_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELMODULE_H

#include "attn/Kernels/Kernels.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <map>
#include <memory>

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

/// A copy of a region, null of none: what an op has goes with the op, and a
/// kernel is known by it after that.
std::unique_ptr<mlir::Region> copyOf(mlir::Region *region);
/// Whether two regions compute the same, or both are none.
bool sameRegion(mlir::Region *a, mlir::Region *b);

/// An error unless the op, which becomes launches, stands in a function of the
/// host in that module.
llvm::LogicalResult checkPlace(mlir::Operation *op, mlir::ModuleOp module);

/// The values of a launch's arguments, by role.
class ArgumentValues {
public:
  void set(const ArgumentRole &role, mlir::Value value) {
    values[role] = value;
  }
  /// All facets of an array.
  void setArray(mlir::ImplicitLocOpBuilder &b, const ArgumentRole &array,
                mlir::Value memref);
  /// The same of what may be one for all batch entries, or heads: there a
  /// stride is 0.
  void setShared(mlir::ImplicitLocOpBuilder &b, const ArgumentRole &array,
                 mlir::Value memref);
  /// The same of what a region reads, or of its gradient, of any shape.
  void setCapture(mlir::ImplicitLocOpBuilder &b, const ArgumentRole &capture,
                  mlir::Value memref);
  bool has(const ArgumentRole &role) const { return values.count(role) != 0; }
  /// Null if there is none.
  mlir::Value lookup(const ArgumentRole &role) const;

private:
  std::map<ArgumentRole, mlir::Value> values;
};

/// Launches the kernel with these operands; a located error if nothing says
/// what one of them is.
llvm::LogicalResult launch(mlir::ImplicitLocOpBuilder &b,
                           mlir::SymbolRefAttr symbol, tile::KernelOp kernel,
                           std::array<mlir::Value, 3> grid,
                           llvm::ArrayRef<mlir::Value> operands);
/// The same with the value that each argument's role has.
llvm::LogicalResult launch(mlir::ImplicitLocOpBuilder &b,
                           mlir::SymbolRefAttr symbol, tile::KernelOp kernel,
                           std::array<mlir::Value, 3> grid,
                           const ArgumentValues &values);

/// The role of an op's array; a located error if it is none of a kernel.
llvm::FailureOr<ArgumentRole> roleOfArray(mlir::Operation *op,
                                          llvm::StringRef name);

} // namespace attn

#endif
