//===- Lists.h - Several machines, several types ----------------*- C++ -*-===//
//
// `--machine` and `--dtype` take one name, several, or `all`.  A machine may
// have facts of its own behind it:
//
//   h100_sxm, smem_bytes_per_block = 49152, l4
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_LISTS_H
#define ATTN_TOOLS_PLAN_LISTS_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace attn {

/// A sentence, and what there is to choose from.
struct Complaint {
  std::string sentence, note;
};

/// The machines of a text, all with the facts of `--set`.
std::optional<Complaint> readMachines(const std::string &text,
                                      llvm::ArrayRef<std::string> overrides,
                                      std::vector<Machine> &machines);

std::optional<Complaint> readTypes(const std::string &text,
                                   std::vector<DataType> &types);

} // namespace attn

#endif // ATTN_TOOLS_PLAN_LISTS_H
