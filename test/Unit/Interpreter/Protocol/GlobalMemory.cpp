//===- GlobalMemory.cpp - Does device memory notice mistakes? -------------===//

#include "attn/Interpreter/GlobalMemory.h"

#include <gtest/gtest.h>

using namespace attn;

TEST(GlobalMemory, GivesBackWhatWasWritten) {
  GlobalMemory memory;
  uint64_t address = memory.allocate(8);
  int32_t in = 42, out = 0;
  EXPECT_FALSE(memory.write(address + 4, &in, 4));
  EXPECT_FALSE(memory.read(address + 4, &out, 4));
  EXPECT_EQ(out, 42);
  EXPECT_EQ(memory.allocatedBytes(), 8);
}

TEST(GlobalMemory, RefusesBytesBehindAnArray) {
  GlobalMemory memory;
  uint64_t address = memory.allocate(8);
  memory.allocate(1000);
  int32_t word = 0;
  EXPECT_EQ(memory.write(address + 5, &word, 4).value_or(""),
            "expects bytes of an allocation of 8 bytes, but got 4 bytes at "
            "offset 5");
  EXPECT_EQ(memory.write(address + (1 << 30), &word, 4).value_or(""),
            "expects bytes of an allocation of 8 bytes, but got 4 bytes at "
            "offset 1073741824");
}

TEST(GlobalMemory, RefusesBytesBeforeAnArray) {
  GlobalMemory memory;
  memory.allocate(1000);
  uint64_t address = memory.allocate(8);
  int32_t word = 0;
  EXPECT_EQ(memory.write(address - 2, &word, 4).value_or(""),
            "expects bytes of an allocation of 8 bytes, but got 4 bytes at "
            "offset -2");
}

TEST(GlobalMemory, RefusesNothingButAnAllocation) {
  GlobalMemory memory;
  int32_t word = 0;
  EXPECT_EQ(memory.read(16, &word, 4).value_or(""),
            "expects an address inside an allocation, but got 16");
}

TEST(GlobalMemory, RefusesReadsOfUnwrittenBytes) {
  GlobalMemory memory;
  uint64_t address = memory.allocate(8);
  int32_t word = 1;
  EXPECT_FALSE(memory.write(address, &word, 4));
  int64_t wide = 0;
  EXPECT_EQ(memory.read(address, &wide, 8).value_or(""),
            "expects bytes that were written, but got an uninitialised byte "
            "at offset 4");
}

TEST(GlobalMemory, FreesOnce) {
  GlobalMemory memory;
  uint64_t address = memory.allocate(8);
  EXPECT_FALSE(memory.free(address + 4));
  EXPECT_TRUE(memory.free(address));
  EXPECT_FALSE(memory.free(address));
  EXPECT_EQ(memory.allocatedBytes(), 0);
  int32_t word = 0;
  EXPECT_TRUE(memory.write(address, &word, 4).has_value());
}

TEST(GlobalMemory, EmptyArraysHaveAddresses) {
  GlobalMemory memory;
  uint64_t a = memory.allocate(0), b = memory.allocate(0);
  EXPECT_NE(a, b);
  EXPECT_FALSE(memory.read(a, nullptr, 0));
}
