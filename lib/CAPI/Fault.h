//===- Fault.h - What a function of the C interface reports -----*- C++ -*-===//

#ifndef ATTN_LIB_CAPI_FAULT_H
#define ATTN_LIB_CAPI_FAULT_H

#include "attn-c/Attn.h"

#include <optional>
#include <string>

namespace attn {

/// Why a call failed: the code of the C interface and a sentence.
struct Fault {
  attn_code code;
  std::string message;
};

/// Nothing, or why not.
using Outcome = std::optional<Fault>;

inline Fault invalid(const std::string &message) {
  return {ATTN_INVALID_ARGUMENT, message};
}

} // namespace attn

#endif
