//===- PatternFile.h - Lists of blocks from a file --------------*- C++ -*-===//
//
// Text shows a list as it looks, `#` for a visible block and `.` for a hidden
// one.  Lists of several heads stand one behind the other, an empty line
// between them; what follows `;` is a comment:
//
//   blocks 128x64     ; queries x keys
//   ##..
//   .##.
//
// JSON has the numbers of the visible blocks of keys for every block of
// queries, in any order:
//
//   {"blocks": [128, 64], "lists": [[[0, 1], [2, 1]]]}
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_PATTERNFILE_H
#define ATTN_REPORT_PATTERNFILE_H

#include "attn/Schedule/Problem.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace attn {

/// Reads what a file of that name holds, for a problem of legal sizes.  On
/// failure returns nothing and sets `error` to a sentence with its place.
std::optional<Pattern> readPattern(llvm::StringRef text, llvm::StringRef name,
                                   const Problem &problem, std::string &error);

} // namespace attn

#endif // ATTN_REPORT_PATTERNFILE_H
