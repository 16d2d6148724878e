//===- Constraints.h - What all ops of the attn dialect demand --*- C++ -*-===//

#ifndef ATTN_LIB_IR_CONSTRAINTS_H
#define ATTN_LIB_IR_CONSTRAINTS_H

#include "attn/IR/Attn.h"

namespace attn {

/// A size for people: `?` where it is dynamic.
struct SizeForPeople {
  int64_t value;
};
mlir::Diagnostic &operator<<(mlir::Diagnostic &diagnostic, SizeForPeople size);
/// `1x2x?x64`.
void printShape(mlir::InFlightDiagnostic &error, llvm::ArrayRef<int64_t> shape);

/// Sizes that may be equal at run time.
bool compatible(int64_t a, int64_t b);

/// Operands are all tensors without encoding, or all memrefs.
llvm::LogicalResult verifyForm(mlir::Operation *op);
/// Destinations are absent or of the types of the results, and there are no
/// results on memrefs.
llvm::LogicalResult verifyDestinations(mlir::Operation *op,
                                       mlir::TypeRange outs,
                                       mlir::TypeRange outputs);
/// Memrefs have layouts that kernels can address.
llvm::LogicalResult verifyLayouts(mlir::Operation *op,
                                  llvm::ArrayRef<AttentionArray> arrays);
/// Memrefs are in global memory.
llvm::LogicalResult verifySpaces(mlir::Operation *op,
                                 llvm::ArrayRef<AttentionArray> arrays);
/// A function of numbers, on captures of these types.
llvm::LogicalResult verifyRegion(mlir::Operation *op, mlir::Region &region,
                                 mlir::TypeRange captures);
/// Captures have elements that regions read.
llvm::LogicalResult verifyCaptures(mlir::Operation *op,
                                   mlir::OperandRange captures);
/// Arrays of short forms have an element for each of what they are read by.
llvm::LogicalResult verifyCaptureShapes(AttentionOpInterface op);
/// The same of lists of blocks; sizes may be dynamic.
struct ListedSizes {
  int64_t batch, heads, queries, keys;
};
llvm::LogicalResult verifyCaptureShapes(mlir::Operation *op,
                                        mlir::TypeRange captures,
                                        mlir::Region &sees,
                                        const ListedSizes &listed);
/// The sizes of the groups of operands are those of the operands.
llvm::LogicalResult verifyClauseSizes(AttentionOpInterface op);
/// What clauses demand of an op whose arrays are right, but of its regions.
llvm::LogicalResult verifyClauses(AttentionOpInterface op);
/// Every output memref is a value of its own.
llvm::LogicalResult verifyAliases(mlir::Operation *op,
                                  llvm::ArrayRef<AttentionArray> arrays);

} // namespace attn

#endif
