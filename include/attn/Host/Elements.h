//===- Elements.h - Elements of arrays as scalars ---------------*- C++ -*-===//
//
// What the host's loops read and write, where memory is the host's.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_ELEMENTS_H
#define ATTN_HOST_ELEMENTS_H

#include "attn/Host/Host.h"

namespace attn {

/// Whether the host computes with elements of that type: integers of 1 to 64
/// bits, of which i1 has a byte, bf16, f16 and f32.
bool isElement(mlir::Type type);
int64_t bytesOfElement(mlir::Type type);

/// Of an element, in the low bytes.
HostScalar fromBits(mlir::Type type, uint64_t bits);
uint64_t toBits(mlir::Type type, const HostScalar &value);

} // namespace attn

#endif
