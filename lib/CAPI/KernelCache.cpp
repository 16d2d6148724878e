//===- KernelCache.cpp - Entries, and what is wrong with some ------------===//

#include "attn/CAPI/KernelCache.h"

#include "CacheFolder.h"

#include "attn/Runtime/Cubin.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/DataExtractor.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SHA256.h"

#include <dlfcn.h>

using namespace attn;
using namespace llvm;
using runtime::Status;

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
  std::string key;
  raw_string_ostream stream(key);
  stream << build;
  for (StringRef part : parts)
    stream << '\n' << part.size() << ':' << part;
  return key;
}

//===----------------------------------------------------------------------===//
// Entries: a checksum, then the key and the strings, each with its length
//===----------------------------------------------------------------------===//

static constexpr size_t kChecksumDigits = 64;
static constexpr StringLiteral kPrefix = "kernel-";

static std::string nameOf(const std::string &key) {
  return kPrefix.str() + hashOf(key);
}

static std::string encode(const std::string &key, const CachedKernel &kernel) {
  std::string body;
  raw_string_ostream stream(body);
  support::endian::Writer writer(stream, endianness::little);
  for (const std::string *text :
       {&key, &kernel.assembler, &kernel.ptx, &kernel.cubin}) {
    writer.write<uint64_t>(text->size());
    stream << *text;
  }
  return hashOf(body) + body;
}

/// The kernel of an entry, or what is wrong with the entry.
static runtime::Expected<CachedKernel> decode(const std::string &key,
                                              StringRef bytes) {
  StringRef checksum = bytes.take_front(kChecksumDigits);
  StringRef body = bytes.drop_front(checksum.size());
  if (checksum != hashOf(body))
    return Status::failure("has another checksum than its content");
  CachedKernel kernel;
  std::string itsKey;
  DataExtractor data(body, /*IsLittleEndian=*/true, /*AddressSize=*/8);
  DataExtractor::Cursor cursor(0);
  for (std::string *text :
       {&itsKey, &kernel.assembler, &kernel.ptx, &kernel.cubin})
    *text = data.getBytes(cursor, data.getU64(cursor)).str();
  bool isWhole = cursor && cursor.tell() == body.size();
  consumeError(cursor.takeError());
  if (!isWhole)
    return Status::failure("is not of the form of an entry");
  if (itsKey != key)
    return Status::failure("is the entry of another kernel");
  if (kernel.cubin.empty() != kernel.assembler.empty())
    return Status::failure("has a cubin without an assembler, or none with "
                           "one");
  if (kernel.cubin.empty())
    return kernel;
  if (runtime::Expected<std::vector<runtime::CubinKernel>> inside =
          runtime::readCubin(kernel.cubin);
      !inside)
    return inside.status();
  return kernel;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

KernelCache &KernelCache::get() {
  static KernelCache *cache = new KernelCache(); // threads may outlive statics
  return *cache;
}

Status KernelCache::open(const std::string &folder, int64_t maxBytes,
                         bool *isForeign) {
  auto cannot = [&](const std::string &why) {
    return Status::failure("cannot keep kernels in '" + folder + "': " + why);
  };
  if (maxBytes <= 0)
    return Status::failure("expects a bound of more than 0 bytes, but got " +
                           std::to_string(maxBytes));
  SmallString<128> path(folder);
  if (std::error_code code = sys::fs::make_absolute(path))
    return cannot(code.message());
  if (std::error_code code = sys::fs::create_directories(
          path, /*IgnoreExisting=*/true, sys::fs::owner_all))
    return cannot(code.message());
  runtime::Expected<CacheFolder> opened =
      CacheFolder::open(path.str().str(), isForeign);
  if (!opened)
    return cannot(opened.message());
  if (Status made = opened->tryWriting(); !made.ok())
    return cannot(made.message());
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

/// Reads an entry; nothing if there is none.  One that cannot be used is
/// removed, and `wrong` says why.
static std::optional<CachedKernel> load(const CacheFolder &folder,
                                        const std::string &key,
                                        int64_t maxBytes, std::string &wrong) {
  std::string name = nameOf(key);
  runtime::Expected<std::optional<std::string>> bytes =
      folder.read(name, static_cast<uint64_t>(maxBytes));
  if (bytes && !*bytes)
    return std::nullopt;
  if (!bytes) {
    wrong = bytes.message();
  } else {
    runtime::Expected<CachedKernel> kernel = decode(key, **bytes);
    if (kernel)
      return std::move(*kernel);
    wrong = "'" + name + "' " + kernel.message();
  }
  if (Status removed = folder.remove(name); !removed.ok())
    wrong += "; " + removed.message();
  return std::nullopt;
}

std::optional<CachedKernel> KernelCache::find(const std::string &key) {
  Statistics now = statistics();
  if (now.folder.empty())
    return std::nullopt;
  std::optional<CachedKernel> found;
  std::string wrong, failure;
  runtime::Expected<CacheFolder> folder = CacheFolder::open(now.folder);
  if (folder)
    found = load(*folder, key, now.maxBytes, wrong);
  else
    failure = folder.message();
  std::lock_guard<std::mutex> lock(mutex);
  ++(found ? counts.hits : counts.misses);
  if (!wrong.empty())
    ++counts.damaged;
  if (!wrong.empty() || !failure.empty())
    counts.lastFailure = wrong + failure;
  return found;
}

void KernelCache::store(const std::string &key, const CachedKernel &kernel) {
  Statistics now = statistics();
  if (now.folder.empty())
    return;
  std::string entry = encode(key, kernel);
  // Pruning would make room for it by removing all others, and then it.
  if (entry.size() > static_cast<uint64_t>(now.maxBytes))
    return;
  runtime::Expected<CacheFolder> folder = CacheFolder::open(now.folder);
  Status stored = folder ? folder->write(nameOf(key), entry) : folder.status();
  if (!stored.ok()) {
    std::lock_guard<std::mutex> lock(mutex);
    counts.lastFailure = stored.message();
    return;
  }
  folder->prune(kPrefix, static_cast<uint64_t>(now.maxBytes));
}
