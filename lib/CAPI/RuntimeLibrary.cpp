//===- RuntimeLibrary.cpp - What host code calls at run time --------------===//
//
// libattn_runtime: the one function of attn-c/Attn.h that host code of
// -attn-to-binary calls.  It holds no LLVM and needs no CUDA library to load.
//
//===----------------------------------------------------------------------===//

#include "EncodeTensorMap.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace attn;

/// A copy that `free` may free; null when there is no memory for it.
static char *copyText(const std::string &text) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (copy)
    std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

/// Host code asks for no status, and only stops: so the reason is told here.
static int32_t report(attn_status *status, const Outcome &outcome) {
  attn_code code = outcome ? outcome->code : ATTN_OK;
  if (status) {
    status->code = code;
    status->message = outcome ? copyText(outcome->message) : nullptr;
  } else if (outcome) {
    std::fprintf(stderr, "attn_encode_tensor_map: %s\n",
                 outcome->message.c_str());
  }
  return code;
}

int32_t attn_encode_tensor_map(void *map, int32_t element, uint64_t address,
                               const int64_t *sizes, const int64_t *strides,
                               int32_t boxRows, attn_status *status) {
  return report(
      status, encodeTensorMap(map, element, address, sizes, strides, boxRows));
}
