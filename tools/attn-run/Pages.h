//===- Pages.h - Keys in pages, drawn and read in order ---------*- C++ -*-===//
//
// A table gives each entry pages of the pool, in any order; where the pool has
// too few, entries share some.  Behind an entry's last page it holds numbers of
// no page, and all rows of the pool that no entry uses are NaN: a kernel that
// reads either cannot be right.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_RUN_PAGES_H
#define ATTN_TOOLS_RUN_PAGES_H

#include "Arrays.h"
#include "Function.h"

namespace attn::run {

/// Fills the table of an attention whose lengths and pool are drawn, and puts
/// NaN into what is not used of the pool.
void drawPages(const Attention &attention, std::vector<HostBytes> &arrays,
               uint64_t seed);

/// The first `keys` keys, or values, of some entries of a cache in their order,
/// as [entries, heads, keys, columns].  Of pages, rows that an entry does not
/// use are poison.
HostBytes keysInOrder(const Attention &attention,
                      const std::vector<HostBytes> &arrays,
                      llvm::StringRef role, int64_t firstEntry, int64_t entries,
                      int64_t keys);

} // namespace attn::run

#endif
