//===- CacheFolder.cpp - Owners, modes and names --------------------------===//

#include "CacheFolder.h"

#include "llvm/ADT/STLExtras.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace attn;
using namespace llvm;
using runtime::Status;

/// Files that are being written; after so long nobody writes one any more.
static constexpr StringLiteral kPartPrefix = "part-";
static constexpr time_t kPartSeconds = 3600;

static Status cannot(const std::string &what) {
  return Status::failure("cannot " + what + ": " + std::strerror(errno));
}

/// Why others may have written it; nothing if they cannot have.
static std::optional<std::string> whyForeign(const struct stat &file) {
  if (file.st_uid != geteuid())
    return "belongs to user " + std::to_string(file.st_uid) +
           " and not to user " + std::to_string(geteuid());
  if (file.st_mode & (S_IWGRP | S_IWOTH))
    return std::string("may be written by ") +
           (file.st_mode & S_IWOTH ? "everybody" : "its group") +
           ", which chmod go-w changes";
  return std::nullopt;
}

runtime::Expected<CacheFolder> CacheFolder::open(const std::string &path,
                                                 bool *isForeign) {
  int number = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (number < 0)
    return cannot("open '" + path + "'");
  CacheFolder folder(number);
  struct stat found;
  if (fstat(number, &found) != 0)
    return cannot("look at '" + path + "'");
  std::optional<std::string> why = whyForeign(found);
  if (isForeign)
    *isForeign = why.has_value();
  if (why)
    return Status::failure("expects a folder that only this user can write, "
                           "but '" +
                           path + "' " + *why);
  return folder;
}

CacheFolder::CacheFolder(CacheFolder &&other) : descriptor(other.descriptor) {
  other.descriptor = -1;
}

CacheFolder::~CacheFolder() {
  if (descriptor >= 0)
    close(descriptor);
}

/// Reads a whole file.
static runtime::Expected<std::optional<std::string>>
readAll(int file, const std::string &name, uint64_t maxBytes) {
  struct stat found;
  if (fstat(file, &found) != 0)
    return cannot("look at '" + name + "'");
  if (!S_ISREG(found.st_mode))
    return Status::failure("expects a file, but '" + name + "' is none");
  if (std::optional<std::string> why = whyForeign(found))
    return Status::failure("expects a file that only this user can write, but "
                           "'" +
                           name + "' " + *why);
  if (uint64_t(found.st_size) > maxBytes)
    return Status::failure("expects at most " + std::to_string(maxBytes) +
                           " bytes, but '" + name + "' has " +
                           std::to_string(found.st_size));
  std::string bytes(found.st_size, '\0');
  for (size_t at = 0; at < bytes.size();) {
    ssize_t count = pread(file, &bytes[at], bytes.size() - at, off_t(at));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return cannot("read '" + name + "'");
    if (count == 0)
      return Status::failure("'" + name + "' ended early");
    at += count;
  }
  // By this time of its last use it is pruned; where that cannot be kept it
  // goes earlier.
  const timespec now[] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  (void)futimens(file, now);
  return std::optional(std::move(bytes));
}

runtime::Expected<std::optional<std::string>>
CacheFolder::read(const std::string &name, uint64_t maxBytes) const {
  int file = openat(descriptor, name.c_str(),
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT)
    return std::optional<std::string>();
  if (file < 0)
    return cannot("open '" + name + "'");
  auto result = readAll(file, name, maxBytes);
  close(file);
  return result;
}

/// Writes all bytes and closes the file, which may only then say that there is
/// no room.
static Status writeAll(int file, const std::string &name, StringRef bytes) {
  Status status = Status::success();
  while (status.ok() && !bytes.empty()) {
    ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      status = cannot("write '" + name + "'");
    else
      bytes = bytes.drop_front(count);
  }
  if (close(file) != 0 && status.ok())
    status = cannot("write '" + name + "'");
  return status;
}

/// Makes a file with these bytes, under a name that nobody else has.
static Status writePart(int folder, StringRef bytes, std::string &part) {
  static std::atomic<uint64_t> number = 0;
  part = kPartPrefix.str() + std::to_string(getpid()) + "-" +
         std::to_string(++number);
  // One of that name is of a process of that number that was killed.
  unlinkat(folder, part.c_str(), 0);
  int file = openat(folder, part.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return file < 0 ? cannot("make '" + part + "'") : writeAll(file, part, bytes);
}

Status CacheFolder::tryWriting() const {
  std::string part;
  Status status = writePart(descriptor, "", part);
  return status.ok() ? remove(part) : status;
}

Status CacheFolder::write(const std::string &name, StringRef bytes) const {
  std::string part;
  Status status = writePart(descriptor, bytes, part);
  if (status.ok() &&
      renameat(descriptor, part.c_str(), descriptor, name.c_str()) != 0)
    status = cannot("rename '" + part + "'");
  if (!status.ok())
    unlinkat(descriptor, part.c_str(), 0);
  return status;
}

Status CacheFolder::remove(const std::string &name) const {
  if (unlinkat(descriptor, name.c_str(), 0) != 0)
    return cannot("remove '" + name + "'");
  return Status::success();
}

void CacheFolder::prune(StringRef prefix, uint64_t maxBytes) const {
  int copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = copy < 0 ? nullptr : fdopendir(copy);
  if (!folder) {
    if (copy >= 0)
      close(copy);
    return;
  }
  struct Used {
    timespec when;
    uint64_t bytes;
    std::string name;
  };
  std::vector<Used> files;
  uint64_t total = 0;
  while (const dirent *entry = readdir(folder)) {
    StringRef name = entry->d_name;
    struct stat found;
    if ((!name.starts_with(prefix) && !name.starts_with(kPartPrefix)) ||
        fstatat(descriptor, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(found.st_mode))
      continue;
    if (name.starts_with(kPartPrefix) &&
        found.st_mtim.tv_sec + kPartSeconds < time(nullptr)) {
      unlinkat(descriptor, entry->d_name, 0);
      continue;
    }
    total += found.st_size;
    if (name.starts_with(prefix))
      files.push_back({found.st_atim, uint64_t(found.st_size), name.str()});
  }
  closedir(folder);
  llvm::sort(files, [](const Used &a, const Used &b) {
    return std::pair(a.when.tv_sec, a.when.tv_nsec) <
           std::pair(b.when.tv_sec, b.when.tv_nsec);
  });
  for (const Used &file : files) {
    if (total <= maxBytes)
      return;
    if (unlinkat(descriptor, file.name.c_str(), 0) == 0)
      total -= file.bytes;
  }
}
