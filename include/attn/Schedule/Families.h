//===- Families.h - Which tensor cores can do it ----------------*- C++ -*-===//
///
/// A problem runs on every family of tensor-core instructions that the machine
/// has and whose demands the problem meets.  H100, bf16, head dimension 128:
/// wgmma and mma_sync.  Rows that are aligned to 8 bytes only: mma_sync,
/// because wgmma reads what the tensor copy engine brought, and that moves 16
/// bytes at a time.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_FAMILIES_H
#define ATTN_SCHEDULE_FAMILIES_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Problem.h"

namespace attn {

/// Columns of the widest instruction of wgmma.
inline constexpr int64_t kMostWgmmaColumns = 256;

/// What who asks makes of wgmma: for head dimensions up to `mostHeadDim`; of
/// f32, if its factors are split; rows of any length and at any address, if
/// the copy engine sees none of them (`rewrites`); and K and V of another type
/// than Q, if they become of one (`widens`).
struct WgmmaUse {
  int64_t mostHeadDim = kMostWgmmaColumns;
  bool splits = false, rewrites = false, widens = false;
};

/// A sentence when a family cannot be used for this problem on this machine.
std::optional<std::string> checkFamily(TensorCoreFamily family,
                                       const Problem &problem,
                                       const Machine &machine,
                                       const WgmmaUse &use = WgmmaUse());

} // namespace attn

#endif // ATTN_SCHEDULE_FAMILIES_H
