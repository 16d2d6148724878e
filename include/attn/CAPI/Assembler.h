//===- Assembler.h - From PTX to a cubin ------------------------*- C++ -*-===//
//
// ptxas is NVIDIA's assembler, a program of its own.  It need not be there:
// the driver assembles PTX too, when a kernel is loaded, only then nobody knows
// beforehand how many registers the kernel takes.
//
// Which one: the one that was set; else $ATTN_PTXAS; else the first that is
// new enough of those in PATH, $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.  One
// that somebody named, by a path or by a name in PATH, and that cannot be used
// is an error, not a reason to look on.
//
// A run may take $ATTN_PTXAS_SECONDS, 120 unless said; then it is killed, and
// that is an error.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_ASSEMBLER_H
#define ATTN_CAPI_ASSEMBLER_H

#include "attn/Runtime/Status.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace attn {

struct Assembler {
  std::string path;
  /// "ptxas 13.0.88".
  std::string version;

  /// The whole cubin of a PTX text for a chip, "sm_90a"; or ptxas' own words.
  runtime::Expected<std::string> assemble(llvm::StringRef ptx,
                                          llvm::StringRef chip) const;
};

/// The assembler of this process; nothing where there is none.
runtime::Expected<std::optional<Assembler>> findAssembler();

/// Names the assembler of this process: a path or a name in PATH; "" for none;
/// nothing to look for one.  Fails, and changes nothing, if it cannot be used.
runtime::Status setAssembler(std::optional<std::string> name);

} // namespace attn

#endif
