//===- Elements.h - Elements of matrices: bytes, floats ---------*- C++ -*-===//

#ifndef ATTN_LIB_INTERPRETER_MEMORY_ELEMENTS_H
#define ATTN_LIB_INTERPRETER_MEMORY_ELEMENTS_H

#include "Memory/Values.h"

namespace attn::interpreter {

/// Makes numbers the nearest values of an element type (bf16, f16, f8E4M3FN,
/// tf32 or f32).
void roundTo(mlir::Type type, llvm::MutableArrayRef<float> values);

/// Reads as many elements as `values` has, one behind the other.
void decode(mlir::Type type, const uint8_t *bytes,
            llvm::MutableArrayRef<float> values);
/// Rounds the values and writes them one behind the other.
void encode(mlir::Type type, llvm::ArrayRef<float> values, uint8_t *bytes);

/// acc += lhs * rhs, in f32 as the tensor cores accumulate.
void multiply(const Matrix &lhs, const Matrix &rhs, Matrix &acc);

/// The same for factors of tf32.  Terms of one instruction are added up exactly
/// and with the accumulator cut off to f32, towards zero.
void multiplyTf32(const Matrix &lhs, const Matrix &rhs, Matrix &acc);

} // namespace attn::interpreter

#endif
