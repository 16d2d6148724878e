//===- KernelCache.h - Compiled kernels on disk -----------------*- C++ -*-===//
//
// Compiling a kernel takes a third of a second, most of it in LLVM and ptxas.
// What they are given is the kernel in tile IR, so that text is the key of an
// entry: it holds the class of the problem, the schedule and the machine.  To
// the key belong this library's build and the assembler's version too.
//
// An entry is a file: a checksum, its whole key, and what was made.  Its name
// is a hash of the key, but the key inside decides.  A file is written under
// another name and then renamed, so that processes never see half an entry; the
// least recently used are removed when the folder outgrows its bound.  An entry
// that is damaged, or of another kernel, or of another user, is made again.
//
// What is in the folder is run as this user: CacheFolder.h says whom it trusts.
// The cache is best effort: once it is open no call fails because of it.
//
//   KernelCache &cache = KernelCache::get();
//   cache.open("/home/me/.cache/attn", 512 << 20);
//   std::string key = KernelCache::key({text, "sm_90a", "ptxas 13.0.88"});
//   if (std::optional<CachedKernel> hit = cache.find(key)) ...
//   cache.store(key, {"ptxas 13.0.88", ptx, cubin});
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CAPI_KERNELCACHE_H
#define ATTN_CAPI_KERNELCACHE_H

#include "attn/Runtime/Status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace attn {

/// What is kept of a compiled kernel module.
struct CachedKernel {
  /// "ptxas 13.0.88", or empty: there is no cubin.
  std::string assembler;
  std::string ptx, cubin;
};

/// One per process; every member may be called from any thread.
class KernelCache {
public:
  static KernelCache &get();

  /// Uses a folder, which is made if need be, for this user alone.  Fails if
  /// files cannot be made in it, or if others may write it; `isForeign` tells
  /// that it is the latter.
  runtime::Status open(const std::string &folder, int64_t maxBytes,
                       bool *isForeign = nullptr);
  void close();

  /// All of the parts and this library's build, as one text.
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);

  /// The entry of that key, if it is there and whole.
  std::optional<CachedKernel> find(const std::string &key);
  /// Keeps an entry.  A folder that fails now costs time later, nothing else,
  /// so the failure is only noted.
  void store(const std::string &key, const CachedKernel &kernel);

  struct Statistics {
    /// Empty when no folder is open.
    std::string folder;
    int64_t maxBytes = 0;
    int64_t hits = 0, misses = 0, damaged = 0;
    /// Why an entry could not be kept or used, the last time that happened.
    std::string lastFailure;
  };
  Statistics statistics() const;

private:
  mutable std::mutex mutex;
  Statistics counts;
};

} // namespace attn

#endif
