//===- Sweep.h - Which values a size goes through ---------------*- C++ -*-===//
//
//   --sweep head-dim=64..2048    four values an octave, and both ends
//   --sweep keys=100,1000,4096   these values
//
// The field is the name of an option for a size of the problem, or that of a
// fact of the machine.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_SWEEP_H
#define ATTN_TOOLS_PLAN_SWEEP_H

#include "Lists.h"

namespace attn {

struct Swept {
  std::string field;
  std::vector<int64_t> values; ///< rising

  bool isOfMachine() const;
};

/// `sizes` are the fields of a problem.
std::optional<Complaint> readSweep(llvm::StringRef text,
                                   llvm::ArrayRef<llvm::StringRef> sizes,
                                   Swept &swept);

} // namespace attn

#endif // ATTN_TOOLS_PLAN_SWEEP_H
