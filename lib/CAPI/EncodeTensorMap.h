//===- EncodeTensorMap.h - attn_encode_tensor_map's work --------*- C++ -*-===//
//
// Without LLVM: libattn has it, and libattn_runtime, which programs that the
// compiler made load without the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_ENCODETENSORMAP_H
#define ATTN_LIB_CAPI_ENCODETENSORMAP_H

#include "Fault.h"

#include <cstdint>

namespace attn {

Outcome encodeTensorMap(void *map, int32_t element, uint64_t address,
                        const int64_t *sizes, const int64_t *strides,
                        int32_t boxRows);

} // namespace attn

#endif
