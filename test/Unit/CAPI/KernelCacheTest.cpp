//===- KernelCacheTest.cpp - What is kept, damaged and thrown away --------===//

#include "attn/CAPI/KernelCache.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fstream>
#include <gtest/gtest.h>
#include <thread>

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
      if (llvm::StringRef(it->path()).contains("llvmcache-"))
        paths.push_back(it->path());
    return paths;
  }

  llvm::SmallString<128> folder;
  KernelCache cache;
  CachedKernel kernel{"ptxas 13.0.88", "// PTX\n", std::string("\x7f\0ELF", 5)};
};
} // namespace

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
  EXPECT_EQ(KernelCache::key({"a", "b"}), KernelCache::key({"a", "b"}));
}
