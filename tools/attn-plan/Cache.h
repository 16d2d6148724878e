//===- Cache.h - Where keys of a cache lie, as options ----------*- C++ -*-===//
//
// `--lengths` plans a cache of which each batch entry uses some keys, as many
// as the device says, and `--page N` one whose keys lie in pages of so many.
// Both are planned with all the keys that there is room for.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_PLAN_CACHE_H
#define ATTN_TOOLS_PLAN_CACHE_H

#include "attn/Schedule/Problem.h"
#include "llvm/Support/CommandLine.h"
#include <optional>
#include <string>

namespace attn {

struct CacheOptions {
  explicit CacheOptions(llvm::cl::OptionCategory &category);

  llvm::cl::opt<int64_t> page;
  llvm::cl::opt<bool> lengths;
  llvm::cl::opt<std::string> kvDtype;

  /// A sentence when the type of K and V is none.
  std::optional<std::string> checkTypes() const;
  /// The problem with Q of that type, and K and V of it or of their own.
  Problem typed(Problem problem, DataType type) const;
  /// Says of a problem where its keys lie; or a sentence.
  std::optional<std::string> read(Problem &problem) const;
};

} // namespace attn

#endif // ATTN_TOOLS_PLAN_CACHE_H
