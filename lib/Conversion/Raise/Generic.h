//===- Generic.h - Ops of dialects that are not registered ------*- C++ -*-===//
//
// Ops of StableHLO, torch-mlir, onnx-mlir and IREE are read in generic form, as
// --allow-unregistered-dialect parses them: by name, without a build of their
// dialects.  What they call properties (<{...}>) is one attribute here.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_RAISE_GENERIC_H
#define ATTN_LIB_CONVERSION_RAISE_GENERIC_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace attn::raise {

/// An attribute or a property of an op; null if there is none.
mlir::Attribute attributeOf(mlir::Operation *op, llvm::StringRef name);

/// Numbers and booleans, also those written as other kinds of number.
std::optional<double> numberIn(mlir::Attribute attribute);

/// The sizes of groups of operands ("operandSegmentSizes"), if the op has them
/// and they add up.
std::optional<llvm::SmallVector<int64_t>> segmentsOf(mlir::Operation *op);

/// "a tensor of rank 4", or what else it is.
bool isTensor(mlir::Value value, int64_t rank);

/// The size of a dimension of a ranked tensor.
int64_t sizeOf(mlir::Value tensor, int64_t dim);

} // namespace attn::raise

#endif
