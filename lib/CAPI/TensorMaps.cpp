//===- TensorMaps.cpp - attn-c/Attn.h: encoding tensor maps ---------------===//

#include "Boundary.h"
#include "EncodeTensorMap.h"

using namespace attn;

int32_t attn_encode_tensor_map(void *map, int32_t element, uint64_t address,
                               const int64_t *sizes, const int64_t *strides,
                               int32_t boxRows, attn_status *status) {
  return guarded(status, [&] {
    return encodeTensorMap(map, element, address, sizes, strides, boxRows);
  });
}
