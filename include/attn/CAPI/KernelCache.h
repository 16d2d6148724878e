//===- KernelCache.h - Compiled kernels on disk -----------------*- C++ -*-===//
//
// Compiling a kernel takes a third of a second, most of it in LLVM and ptxas.
// What they are given is the kernel in tile IR, so an entry's name is a hash of
// that text: it holds the class of the problem, the schedule and the machine.
// With it are hashed this library's build and the assembler's version.
//
// Files are LLVM's: its local cache writes a file under another name and then
// renames it, so that processes never see half an entry, and its pruning
// removes the least recently used when the folder outgrows its bound.  Every
// entry carries a checksum; one that is damaged is made again.
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

  /// Uses a folder, which is made if need be; fails if files cannot be made in
  /// it.
  runtime::Status open(const std::string &folder, int64_t maxBytes);
  void close();

  /// A hash of the parts and of this library's build.
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
    /// Why an entry could not be kept, the last time that happened.
    std::string lastFailure;
  };
  Statistics statistics() const;

private:
  mutable std::mutex mutex;
  Statistics counts;
};

} // namespace attn

#endif
