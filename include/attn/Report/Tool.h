//===- Tool.h - What the command lines have in common -----------*- C++ -*-===//

#ifndef ATTN_REPORT_TOOL_H
#define ATTN_REPORT_TOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>

namespace attn {

/// "attn 0.1.0" and "LLVM 22.1.8", a line each.
void printVersion(llvm::raw_ostream &out);

/// To be called before LLVM reads the command line: `--version` prints ours.
/// LLVM takes every option that begins with an h and that it does not know for
/// `-h`; of such a one this gives a sentence, with the nearest that is known.
std::optional<std::string> prepareTool(int argc, char **argv);

/// Writes a file as a whole or not at all: what was there stays until all is
/// written.  A device or a pipe is written as it is, and what a link names is
/// replaced, not the link.  A sentence, without its subject, if it fails.
std::optional<std::string>
writeFile(const std::string &file,
          llvm::function_ref<void(llvm::raw_ostream &)> print);

} // namespace attn

#endif // ATTN_REPORT_TOOL_H
