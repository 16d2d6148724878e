//===- Boundary.h - What crosses the C interface, and what not --*- C++ -*-===//
//
// A status and strings cross it.  An exception does not, and neither does the
// exit of LLVM's fatal errors: inside `guarded` both end up as a status.  Code
// without handlers lies in between (LLVM's), so what it held is lost; that is
// the price of going on after a fault of the library.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_BOUNDARY_H
#define ATTN_LIB_CAPI_BOUNDARY_H

#include "Fault.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace attn {

/// Fills the status, if there is one, and gives its code.
int32_t finish(attn_status *status, const Outcome &outcome);

/// Does the work of a function of the interface and reports how it went.  A
/// fork waits for it (ForkGate.h).
int32_t guarded(attn_status *status, llvm::function_ref<Outcome()> work);

/// The same for a launch, which is short and holds nothing up.
int32_t guardedLaunch(attn_status *status, llvm::function_ref<Outcome()> work);

/// Hands a string to the caller.
Outcome give(llvm::StringRef text, char **place);

inline llvm::StringRef orEmpty(const char *text) { return text ? text : ""; }

} // namespace attn

#endif
