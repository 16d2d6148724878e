//===- KernelCacheTest.cpp - What is kept, damaged and thrown away --------===//

#include "attn/CAPI/KernelCache.h"

#include "../Runtime/BuiltCubin.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace attn;

namespace {
class KernelCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-cache", folder));
  }
  void TearDown() override {
    EXPECT_FALSE(llvm::sys::fs::remove_directories(folder));
  }

  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end;
         it != end && !code; it.increment(code))
      if (llvm::StringRef(it->path()).contains("kernel-"))
        paths.push_back(it->path());
    return paths;
  }

  llvm::SmallString<128> folder;
  KernelCache cache;
  CachedKernel kernel{"ptxas 13.0.88", "// PTX\n", builtCubin("flash", 168, 0)};
};

/// Files may have so many bytes, as if a disk were full.
class SmallFiles {
public:
  explicit SmallFiles(rlim_t bytes) {
    handler = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit now = {bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }

private:
  rlimit before;
  void (*handler)(int);
};
} // namespace

static size_t filesIn(llvm::StringRef folder) {
  size_t count = 0;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end;
       it != end && !code; it.increment(code))
    ++count;
  return count;
}

TEST_F(KernelCacheTest, WithoutAFolderNothingIsKept) {
  cache.store("key", kernel);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(cache.statistics().misses, 0);
}

TEST_F(KernelCacheTest, KeepsWhatItWasGiven) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  EXPECT_FALSE(cache.find("key"));
  cache.store("key", kernel);
  std::optional<CachedKernel> found = cache.find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->assembler, kernel.assembler);
  EXPECT_EQ(found->ptx, kernel.ptx);
  EXPECT_EQ(found->cubin, kernel.cubin);
  EXPECT_EQ(cache.statistics().hits, 1);
  EXPECT_EQ(cache.statistics().misses, 1);
}

TEST_F(KernelCacheTest, ADamagedEntryIsNoticedAndReplaced) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  cache.store("key", kernel);
  ASSERT_EQ(files().size(), 1u);
  std::string path = files()[0];
  for (const char *content : {"", "garbage", "0123456789abcdef"}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    EXPECT_FALSE(cache.find("key")) << content;
    cache.store("key", kernel);
    EXPECT_TRUE(cache.find("key")) << content;
  }
  // One flipped bit in the middle.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(80);
  file.put('X');
  file.close();
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(cache.statistics().damaged, 4);
}

TEST_F(KernelCacheTest, EntriesThatChangeNamesAreNotTakenForEachOther) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  CachedKernel other = kernel;
  other.cubin = builtCubin("other", 40, 0);
  cache.store("key", kernel);
  std::string place = files()[0];
  ASSERT_FALSE(llvm::sys::fs::remove(place));
  cache.store("other", other);
  ASSERT_EQ(files().size(), 1u);
  ASSERT_FALSE(llvm::sys::fs::rename(files()[0], place));
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(cache.statistics().damaged, 1);
  EXPECT_NE(cache.statistics().lastFailure.find("the entry of another kernel"),
            std::string::npos);
  cache.store("key", kernel);
  EXPECT_TRUE(cache.find("key"));
}

TEST_F(KernelCacheTest, AnEntryWithAPartOfACubinIsMadeAgain) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  for (size_t missing : {size_t(1), kernel.cubin.size() / 2}) {
    CachedKernel part = kernel;
    part.cubin.resize(kernel.cubin.size() - missing);
    cache.store("key", part);
    EXPECT_FALSE(cache.find("key"));
    cache.store("key", kernel);
    EXPECT_TRUE(cache.find("key"));
  }
  kernel.cubin.clear(); // a cubin there is with an assembler only
  cache.store("key", kernel);
  EXPECT_FALSE(cache.find("key"));
  kernel.assembler.clear();
  cache.store("key", kernel);
  EXPECT_TRUE(cache.find("key"));
}

TEST_F(KernelCacheTest, AFullDiskCostsOnlyTimeAndLeavesNothing) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  cache.store("before", kernel);
  kernel.ptx = std::string(100 << 10, 'x');
  {
    SmallFiles full(16 << 10);
    cache.store("key", kernel);
    EXPECT_FALSE(cache.find("key"));
    EXPECT_TRUE(cache.find("before"));
  }
  EXPECT_NE(cache.statistics().lastFailure.find("cannot write"),
            std::string::npos);
  EXPECT_EQ(filesIn(folder), 1u);
  cache.store("key", kernel);
  EXPECT_TRUE(cache.find("key"));
}

TEST_F(KernelCacheTest, WhatIsNoFileIsReplacedAndNotWaitedFor) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  cache.store("key", kernel);
  std::string place = files()[0];
  llvm::SmallString<128> mine(folder);
  llvm::sys::path::append(mine, "thesis.tex");
  std::ofstream(mine.c_str()) << "a link leads here";

  ASSERT_FALSE(llvm::sys::fs::remove(place));
  ASSERT_EQ(mkfifo(place.c_str(), 0600), 0);
  EXPECT_FALSE(cache.find("key"));
  ASSERT_EQ(symlink(mine.c_str(), place.c_str()), 0);
  EXPECT_FALSE(cache.find("key"));
  ASSERT_EQ(symlink(mine.c_str(), place.c_str()), 0);
  cache.store("key", kernel);
  EXPECT_TRUE(cache.find("key"));
  EXPECT_EQ(cache.statistics().damaged, 2);
  uint64_t size = 0;
  ASSERT_FALSE(llvm::sys::fs::file_size(mine, size));
  EXPECT_EQ(size, 17u);

  // A folder in its place cannot be replaced: that is noted.
  ASSERT_FALSE(llvm::sys::fs::remove(place));
  ASSERT_FALSE(llvm::sys::fs::create_directory(place));
  EXPECT_FALSE(cache.find("key"));
  cache.store("key", kernel);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_NE(cache.statistics().lastFailure.find("cannot remove"),
            std::string::npos);
}

TEST_F(KernelCacheTest, AFolderThatOthersCanWriteIsNotUsed) {
  for (mode_t mode : {0770, 0707, 0777, 01777}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    bool isForeign = false;
    runtime::Status status =
        cache.open(folder.str().str(), 1 << 20, &isForeign);
    ASSERT_FALSE(status.ok()) << mode;
    EXPECT_TRUE(isForeign);
    EXPECT_NE(status.message().find("expects a folder that only this user can "
                                    "write"),
              std::string::npos);
    EXPECT_EQ(cache.statistics().folder, "");
  }
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  bool isForeign = true;
  EXPECT_TRUE(cache.open(folder.str().str(), 1 << 20, &isForeign).ok());
  EXPECT_FALSE(isForeign);
  cache.store("key", kernel);
  // Nor one that others could write later.
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  EXPECT_FALSE(cache.find("key"));
  cache.store("more", kernel);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  EXPECT_TRUE(cache.find("key"));
  EXPECT_FALSE(cache.find("more"));
}

TEST_F(KernelCacheTest, AFolderOfItsOwnIsOnlyForThisUser) {
  llvm::SmallString<128> made(folder);
  llvm::sys::path::append(made, "made");
  mode_t before = umask(0);
  EXPECT_TRUE(cache.open(made.str().str(), 1 << 20).ok());
  cache.store("key", kernel);
  umask(before);
  EXPECT_TRUE(cache.find("key"));
  struct stat found;
  ASSERT_EQ(stat(made.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

TEST_F(KernelCacheTest, AnEntryThatOthersCanWriteIsMadeAgain) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  cache.store("key", kernel);
  std::string place = files()[0];
  ASSERT_EQ(chmod(place.c_str(), 0620), 0);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_NE(cache.statistics().lastFailure.find("may be written by its group"),
            std::string::npos);
  EXPECT_EQ(filesIn(folder), 0u);
}

TEST_F(KernelCacheTest, WhatBelongsToOthersIsNotUsed) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can give files away";
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  cache.store("key", kernel);
  ASSERT_EQ(chown(files()[0].c_str(), 1, gid_t(-1)), 0);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_EQ(cache.statistics().damaged, 1);
  ASSERT_EQ(chown(folder.c_str(), 1, gid_t(-1)), 0);
  bool isForeign = false;
  runtime::Status status = cache.open(folder.str().str(), 1 << 20, &isForeign);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(isForeign);
  EXPECT_NE(status.message().find("belongs to user 1 and not to user 0"),
            std::string::npos);
}

TEST_F(KernelCacheTest, PartsOfKilledProcessesGo) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  const timespec old[] = {{1, 0}, {1, 0}};
  for (const char *name : {"part-1-1", "part-2-1", "other"}) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    std::ofstream(path.c_str()) << "half";
    if (name != llvm::StringRef("part-2-1"))
      ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), old, 0), 0);
  }
  cache.store("key", kernel);
  EXPECT_EQ(filesIn(folder), 3u); // the new part, the other, the entry
}

TEST_F(KernelCacheTest, TheLeastRecentlyUsedGoFirst) {
  CachedKernel large = kernel;
  large.ptx = std::string(10 << 10, 'x');
  ASSERT_TRUE(cache.open(folder.str().str(), 40 << 10).ok());
  for (int i = 0; i < 3; ++i) {
    cache.store("key" + std::to_string(i), large);
    usleep(10000); // times of files are that coarse
  }
  EXPECT_TRUE(cache.find("key0"));
  usleep(10000);
  cache.store("key3", large);
  EXPECT_TRUE(cache.find("key0"));
  EXPECT_FALSE(cache.find("key1"));
}

TEST_F(KernelCacheTest, StaysWithinItsBound) {
  ASSERT_TRUE(cache.open(folder.str().str(), 64 << 10).ok());
  kernel.ptx = std::string(10 << 10, 'x');
  for (int i = 0; i < 40; ++i)
    cache.store("key" + std::to_string(i), kernel);
  uint64_t total = 0;
  for (const std::string &path : files()) {
    uint64_t size = 0;
    ASSERT_FALSE(llvm::sys::fs::file_size(path, size));
    total += size;
  }
  EXPECT_GT(total, 0u);
  EXPECT_LE(total, 64u << 10);
}

TEST_F(KernelCacheTest, WhatIsTooLargeForItThrowsNothingOut) {
  ASSERT_TRUE(cache.open(folder.str().str(), 64 << 10).ok());
  cache.store("small", kernel);
  kernel.ptx = std::string(100 << 10, 'x');
  cache.store("large", kernel);
  EXPECT_TRUE(cache.find("small"));
  EXPECT_FALSE(cache.find("large"));
}

TEST_F(KernelCacheTest, OtherFilesOfTheFolderStay) {
  llvm::SmallString<128> mine(folder);
  llvm::sys::path::append(mine, "thesis.tex");
  std::ofstream(mine.c_str()) << std::string(1 << 20, 'x');
  ASSERT_TRUE(cache.open(folder.str().str(), 16 << 10).ok());
  kernel.ptx = std::string(10 << 10, 'x');
  for (int i = 0; i < 4; ++i)
    cache.store("key" + std::to_string(i), kernel);
  EXPECT_TRUE(llvm::sys::fs::exists(mine));
}

TEST_F(KernelCacheTest, AFolderThatCannotBeUsedIsRefused) {
  llvm::SmallString<128> file(folder);
  llvm::sys::path::append(file, "file");
  std::ofstream(file.c_str()) << "x";
  runtime::Status status = cache.open((file + "/inside").str(), 1 << 20);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("cannot keep kernels in"), std::string::npos);
  EXPECT_FALSE(cache.open(folder.str().str(), 0).ok());
  EXPECT_EQ(cache.statistics().folder, "");
}

TEST_F(KernelCacheTest, AFolderThatGoesAwayCostsOnlyTime) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  ASSERT_FALSE(llvm::sys::fs::remove_directories(folder));
  std::ofstream(folder.c_str()) << "a file in its place";
  cache.store("key", kernel);
  EXPECT_FALSE(cache.find("key"));
  EXPECT_NE(cache.statistics().lastFailure, "");
  ASSERT_FALSE(llvm::sys::fs::remove(folder));
}

TEST_F(KernelCacheTest, ThreadsShareIt) {
  ASSERT_TRUE(cache.open(folder.str().str(), 1 << 20).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        std::string key = "key" + std::to_string(i % 5);
        if (std::optional<CachedKernel> found = cache.find(key))
          EXPECT_EQ(found->cubin, kernel.cubin);
        else
          cache.store(key, kernel);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(cache.statistics().damaged, 0);
  EXPECT_EQ(files().size(), 5u);
}

TEST(KernelCacheKey, TellsPartsApart) {
  EXPECT_NE(KernelCache::key({"a", "b"}), KernelCache::key({"ab", ""}));
  EXPECT_NE(KernelCache::key({"a", "b"}), KernelCache::key({"a\n1:b"}));
  EXPECT_EQ(KernelCache::key({"a", "b"}), KernelCache::key({"a", "b"}));
}
