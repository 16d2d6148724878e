//===- PackedArrays.h - An op's arrays as its kernels see them --*- C++ -*-===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_PACKEDARRAYS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_PACKEDARRAYS_H

#include "attn/IR/Packing.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// The arrays of an op on memrefs in the shapes of `packing.problem`, which are
/// views of the same memory: its own where nothing is packed.
///
///   q  [batch, heads, queries, d]  ->  [batch, kvHeads, group * queries, d]
///   k  [batch, kvHeads, keys, d]   ->  of these the keys that are seen
llvm::SmallVector<AttentionArray> packedArrays(mlir::ImplicitLocOpBuilder &b,
                                               AttentionOpInterface op,
                                               const Packing &packing);

} // namespace attn

#endif
