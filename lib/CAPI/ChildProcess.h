//===- ChildProcess.h - Running another program -----------------*- C++ -*-===//
//
// A program is given bytes and gives bytes.  Both lie in memory that has a file
// descriptor and no name (memfd), so that nothing is left in a folder whatever
// happens to this process, and a full disk does not matter.  The program sees
// them as /proc/self/fd/N, by `kInput` and `kOutput` among its arguments.
//
//   Expected<ProgramOutput> done = runProgram(
//       "/usr/bin/ptxas", {"-arch=sm_90a", kInput, "-o", kOutput}, ptx, limit);
//   done->bytes    what it wrote to kOutput
//   done->text     what it printed, at most a mebibyte
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_CHILDPROCESS_H
#define ATTN_LIB_CAPI_CHILDPROCESS_H

#include "attn/Runtime/Status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <chrono>
#include <string>

namespace attn {

/// Where a program finds its input and puts its output.
inline constexpr llvm::StringLiteral kInput = "/proc/self/fd/3";
inline constexpr llvm::StringLiteral kOutput = "/proc/self/fd/4";

struct ProgramOutput {
  std::string text, bytes;
};

/// How long a program may take, and what sets that, for messages.
struct TimeLimit {
  std::chrono::milliseconds time;
  std::string setBy;
};

/// Runs a program, given by its path, and waits for it.  Fails if it ends with
/// another status than 0 or by a signal, and if it takes longer than `limit`,
/// with the command in the message; then it and its children are killed.
runtime::Expected<ProgramOutput> runProgram(const std::string &path,
                                            llvm::ArrayRef<std::string> args,
                                            llvm::StringRef input,
                                            const TimeLimit &limit);

} // namespace attn

#endif
