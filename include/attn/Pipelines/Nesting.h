//===- Nesting.h - Text that a recursive parser survives --------*- C++ -*-===//
//
// MLIR's parser recurses once per bracket, so a file of 100000 open brackets
// overflows the stack before anyone can say what is wrong with it.  Tools ask
// here before they parse.  Real modules nest some ten levels deep.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_NESTING_H
#define ATTN_PIPELINES_NESTING_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <optional>

namespace attn {

/// Brackets of one kind that may be open at once.
constexpr unsigned maximalNesting = 256;

/// The offset of the first bracket that is nested too deeply, if there is one.
/// Brackets in strings and comments do not count, nor do arrows.
std::optional<size_t> findDeepNesting(llvm::StringRef text);

/// Fails, with an error at the bracket, if the text is nested too deeply.
mlir::LogicalResult checkNesting(llvm::MemoryBufferRef text,
                                 llvm::raw_ostream &errors);

} // namespace attn

#endif // ATTN_PIPELINES_NESTING_H
