//===- CacheFolder.h - Files that only this user writes ---------*- C++ -*-===//
//
// What lies in a folder of machine code is run, so whoever can write there can
// make this process run anything.  The folder and every file in it must
// therefore belong to the effective user, and nobody else may write them; what
// does not is not read.  Files are opened without following links and without
// waiting, so neither a link nor a pipe in place of one does harm.
//
// The folder is opened anew for each access: the descriptor of one that is kept
// may be closed, and given to another file, by a program that becomes a daemon.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_CACHEFOLDER_H
#define ATTN_LIB_CAPI_CACHEFOLDER_H

#include "attn/Runtime/Status.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

class CacheFolder {
public:
  /// Opens a folder that is there.  `isForeign` tells that it was refused since
  /// others may write it.
  static runtime::Expected<CacheFolder> open(const std::string &path,
                                             bool *isForeign = nullptr);
  CacheFolder(CacheFolder &&other);
  ~CacheFolder();

  /// The bytes of a file, which was used just now; nothing if there is none,
  /// and why not if it cannot be read, is not ours alone, or has more.
  runtime::Expected<std::optional<std::string>> read(const std::string &name,
                                                     uint64_t maxBytes) const;

  /// Writes a file under another name and renames it, so that nobody sees half
  /// of one.  If that fails nothing is left of it.
  runtime::Status write(const std::string &name, llvm::StringRef bytes) const;

  /// Whether files can be made; to know that for sure is to make one.
  runtime::Status tryWriting() const;

  runtime::Status remove(const std::string &name) const;

  /// Removes the least recently used of the files whose names begin with
  /// `prefix` until the rest has at most so many bytes, and what processes that
  /// were killed have left behind.
  void prune(llvm::StringRef prefix, uint64_t maxBytes) const;

private:
  explicit CacheFolder(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

} // namespace attn

#endif
