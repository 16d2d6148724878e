//===- Packing.h - How an op's heads become rows ----------------*- C++ -*-===//

#ifndef ATTN_IR_PACKING_H
#define ATTN_IR_PACKING_H

#include "attn/IR/Attn.h"
#include "attn/Schedule/Packing.h"

namespace attn {

/// Whether the array has the rows of all query heads, in dimensions 1 and 2.
bool hasRowsOfQueries(llvm::StringRef role);

/// How the problem of an op is planned.  Of one query it must be static that it
/// is one.  Of several, strides must compose by their types: those of a memref
/// without a layout do, and those that a type leaves open do not.  Tensors are
/// taken to become such memrefs; one that does not is launched unpacked.
Packing packingOf(AttentionOpInterface op, DynamicSizes assumed = {});

} // namespace attn

#endif // ATTN_IR_PACKING_H
