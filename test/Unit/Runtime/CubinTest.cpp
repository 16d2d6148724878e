//===- CubinTest.cpp - Cubins, and what is left of some -------------------===//

#include "../Seed.h"
#include "BuiltCubin.h"

#include "attn/Runtime/Cubin.h"

#include <gtest/gtest.h>
#include <random>

using namespace attn;
using runtime::readCubin;

TEST(Cubin, TellsWhatAKernelTakes) {
  auto kernels = readCubin(builtCubin("flash", 168, 16));
  ASSERT_TRUE(kernels) << kernels.message();
  ASSERT_EQ(kernels->size(), 1u);
  EXPECT_EQ(kernels->front().name, "flash");
  EXPECT_EQ(kernels->front().registersPerThread, 168);
  EXPECT_EQ(kernels->front().stackBytesPerThread, 16);
}

// Of an assembler that dies: no part of a cubin passes for one.
TEST(Cubin, NoPartIsTakenForTheWhole) {
  std::string whole = builtCubin("flash", 168, 0);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(readCubin(std::string_view(whole).substr(0, size))) << size;
}

TEST(Cubin, SaysWhereItIsCut) {
  std::string whole = builtCubin("flash", 168, 0);
  auto messageOf = [](const std::string &image) {
    auto kernels = readCubin(image);
    return kernels ? "" : kernels.message();
  };
  EXPECT_EQ(messageOf("{}"), "expects a cubin, but got 2 bytes that are no ELF "
                             "file for CUDA");
  EXPECT_EQ(messageOf(whole.substr(0, whole.size() - 1)),
            "the cubin ends, at " + std::to_string(whole.size() - 1) +
                " bytes, before its table of segments does");
  EXPECT_EQ(messageOf(whole.substr(0, 100)),
            "the cubin ends, at 100 bytes, before its table of sections does");
  // What is behind the end does not matter.
  EXPECT_EQ(messageOf(whole + "more"), "");
}

TEST(Cubin, HasKernels) {
  std::string none = builtCubin("flash", 168, 0);
  // The symbol becomes that of an object.
  size_t symbol = none.find('\x12');
  ASSERT_NE(symbol, std::string::npos);
  none[symbol] = '\x11';
  auto kernels = readCubin(none);
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.message(),
            "expects a cubin with kernels, but got one without");
}

// Whatever stands in its headers, reading stays inside of the file.
TEST(Cubin, AnyBytesCanBeRead) {
  Seed seed;
  std::mt19937 random(seed);
  std::string whole = builtCubin("flash", 168, 0);
  for (int i = 0; i < 20000; ++i) {
    // On the heap, of exactly this size: a sanitizer sees what is behind.
    std::string image =
        whole.substr(0, random() % 8 ? whole.size() : random() % whole.size());
    for (int change = random() % 6; change >= 0 && !image.empty(); --change)
      image[random() % image.size()] =
          random() % 2 ? char(random()) : (random() % 2 ? '\xff' : '\0');
    (void)bool(readCubin(image));
  }
}
