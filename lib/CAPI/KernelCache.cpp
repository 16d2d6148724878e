//===- KernelCache.cpp - Entries, their checksum and their folder ---------===//

#include "attn/CAPI/KernelCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Caching.h"
#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <dlfcn.h>

using namespace attn;
using namespace llvm;
using runtime::Status;

/// The prefix by which LLVM's pruning knows the files that it may remove.
static constexpr StringLiteral kFilePrefix = "llvmcache-";

static std::string hashOf(StringRef text) {
  return toHex(SHA256::hash(arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// A name for this build of the library: its linker's build id, or where there
/// is none, path, size and time of the file.
static std::string buildName() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&buildName), &info) || !info.dli_fname)
    return ATTN_VERSION;
  if (auto file = object::ObjectFile::createObjectFile(info.dli_fname)) {
    object::BuildIDRef id = object::getBuildID(file->getBinary());
    if (!id.empty())
      return toHex(id);
  } else {
    consumeError(file.takeError());
  }
  sys::fs::file_status status;
  if (sys::fs::status(info.dli_fname, status))
    return ATTN_VERSION;
  auto time = status.getLastModificationTime().time_since_epoch().count();
  return std::string(info.dli_fname) + ":" + std::to_string(status.getSize()) +
         ":" + std::to_string(time);
}

std::string KernelCache::key(ArrayRef<StringRef> parts) {
  static const std::string build = buildName();
  std::string text = build;
  for (StringRef part : parts) {
    text += '\0';
    text += part;
  }
  return hashOf(text);
}

//===----------------------------------------------------------------------===//
// Entries: a checksum, then the strings with their lengths
//===----------------------------------------------------------------------===//

static constexpr size_t kChecksumDigits = 64;

static std::string encode(const CachedKernel &kernel) {
  std::string body;
  raw_string_ostream stream(body);
  support::endian::Writer writer(stream, endianness::little);
  for (const std::string *text :
       {&kernel.assembler, &kernel.ptx, &kernel.cubin}) {
    writer.write<uint64_t>(text->size());
    stream << *text;
  }
  return hashOf(body) + body;
}

static std::optional<CachedKernel> decode(StringRef bytes) {
  StringRef checksum = bytes.take_front(kChecksumDigits);
  StringRef body = bytes.drop_front(checksum.size());
  if (checksum != hashOf(body))
    return std::nullopt;
  CachedKernel kernel;
  DataExtractor data(body, /*IsLittleEndian=*/true, /*AddressSize=*/8);
  DataExtractor::Cursor cursor(0);
  for (std::string *text : {&kernel.assembler, &kernel.ptx, &kernel.cubin})
    *text = data.getBytes(cursor, data.getU64(cursor)).str();
  if (!cursor) {
    consumeError(cursor.takeError());
    return std::nullopt;
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

KernelCache &KernelCache::get() {
  static KernelCache *cache = new KernelCache(); // threads may outlive statics
  return *cache;
}

Status KernelCache::open(const std::string &folder, int64_t maxBytes) {
  auto cannot = [&](std::error_code code) {
    return Status::failure("cannot keep kernels in '" + folder +
                           "': " + code.message());
  };
  if (maxBytes <= 0)
    return Status::failure("expects a bound of more than 0 bytes, but got " +
                           std::to_string(maxBytes));
  SmallString<128> path(folder);
  if (std::error_code code = sys::fs::make_absolute(path))
    return cannot(code);
  if (std::error_code code = sys::fs::create_directories(path))
    return cannot(code);
  // The only sure way to know that files can be made is to make one.
  SmallString<128> trial(path);
  sys::path::append(trial, "attn-trial-%%%%%%");
  Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(trial);
  if (!file)
    return cannot(errorToErrorCode(file.takeError()));
  if (Error error = file->discard())
    return cannot(errorToErrorCode(std::move(error)));
  std::lock_guard<std::mutex> lock(mutex);
  counts.folder = path.str().str();
  counts.maxBytes = maxBytes;
  return Status::success();
}

void KernelCache::close() {
  std::lock_guard<std::mutex> lock(mutex);
  counts.folder.clear();
  counts.maxBytes = 0;
}

KernelCache::Statistics KernelCache::statistics() const {
  std::lock_guard<std::mutex> lock(mutex);
  return counts;
}

std::optional<CachedKernel> KernelCache::find(const std::string &key) {
  std::string folder = statistics().folder;
  if (folder.empty())
    return std::nullopt;
  std::optional<CachedKernel> found;
  bool exists = false;
  Expected<FileCache> cache =
      localCache("attn", "attn", folder,
                 [&](unsigned, const Twine &, std::unique_ptr<MemoryBuffer> m) {
                   exists = true;
                   found = decode(m->getBuffer());
                 });
  Error failure = cache.takeError();
  if (!failure) {
    Expected<AddStreamFn> missing = (*cache)(0, key, "");
    failure = missing.takeError();
  }
  std::lock_guard<std::mutex> lock(mutex);
  if (failure)
    counts.lastFailure = toString(std::move(failure));
  ++(found ? counts.hits : counts.misses);
  if (exists && !found) {
    ++counts.damaged;
    // The name must be free, or the next store would not replace it.
    SmallString<128> path(folder);
    sys::path::append(path, kFilePrefix + key);
    if (std::error_code code = sys::fs::remove(path))
      counts.lastFailure = code.message();
  }
  return found;
}

/// Writes an entry under another name and renames it.
static Error write(const std::string &folder, const std::string &key,
                   const std::string &entry) {
  Expected<FileCache> cache = localCache("attn", "attn", folder);
  if (!cache)
    return cache.takeError();
  Expected<AddStreamFn> add = (*cache)(0, key, "");
  if (!add)
    return add.takeError();
  if (!*add) // another process was quicker
    return Error::success();
  Expected<std::unique_ptr<CachedFileStream>> stream = (*add)(0, "");
  if (!stream)
    return stream.takeError();
  *(*stream)->OS << entry;
  return (*stream)->commit();
}

void KernelCache::store(const std::string &key, const CachedKernel &kernel) {
  Statistics now = statistics();
  if (now.folder.empty())
    return;
  std::string entry = encode(kernel);
  // Pruning would make room for it by removing all others, and then it.
  if (entry.size() > static_cast<uint64_t>(now.maxBytes))
    return;
  if (Error failure = write(now.folder, key, entry)) {
    std::lock_guard<std::mutex> lock(mutex);
    counts.lastFailure = toString(std::move(failure));
    return;
  }
  CachePruningPolicy policy;
  policy.Interval = std::chrono::seconds(0);
  policy.Expiration = std::chrono::seconds(0);
  policy.MaxSizePercentageOfAvailableSpace = 0;
  policy.MaxSizeBytes = static_cast<uint64_t>(now.maxBytes);
  pruneCache(now.folder, policy);
}
