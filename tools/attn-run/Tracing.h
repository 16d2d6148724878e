//===- Tracing.h - The order of events, with a machine's rates --*- C++ -*-===//

#ifndef ATTN_TOOLS_RUN_TRACING_H
#define ATTN_TOOLS_RUN_TRACING_H

#include "attn/Interpreter/Trace.h"

#include <optional>

namespace attn::run {

/// Writes a trace whole or not at all, with the rates of a machine (a name,
/// which facts may follow); a sentence if that is not possible.
std::optional<std::string> writeTraceFile(llvm::StringRef file,
                                          const Trace &trace,
                                          llvm::StringRef machine);

} // namespace attn::run

#endif
