//===- PatternFileTest.cpp - Lists of blocks, read and refused ------------===//

#include "attn/Report/PatternFile.h"
#include "PatternText.h"
#include "RandomProblem.h"
#include "attn/Schedule/Census.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// 7 queries and 12 keys, four heads on two.
Problem sized() {
  Problem p;
  p.queries = 7, p.keys = 12;
  p.headDim = p.headDimV = 16;
  p.heads = 4, p.kvHeads = 2;
  return p;
}

std::string errorOf(const char *text) {
  std::string error;
  EXPECT_EQ(readPattern(text, "f", sized(), error), std::nullopt);
  return error;
}

TEST(PatternFile, BothFormsSayTheSame) {
  std::string error;
  Pattern expected({4, 4}, {blockRowsOf("##./..#"), blockRowsOf("..#/...")});
  for (const char *text :
       {"; two lists\nblocks 4x4\n##.\n..#\n\n..#  ; of the second\n...\n",
        "blocks 4\n\n##.\n..#\n\n\n..#\n...",
        R"({"blocks": [4, 4], "lists": [[[1, 0], [2]], [[2], []]]})"}) {
    std::optional<Pattern> read = readPattern(text, "f", sized(), error);
    ASSERT_TRUE(read) << error;
    EXPECT_TRUE(*read == expected) << text;
  }
}

/// Any lists, written as text and read again.
TEST(PatternFile, ReadsWhatLooksLikeIt) {
  Random random(51);
  for (int round = 0; round < 200; ++round) {
    Problem p = random.problem(60);
    Pattern pattern = random.pattern(p, 12);
    std::string text = "blocks " + str(pattern.size()) + "\n", error;
    for (int64_t i = 0; i < pattern.lists(); ++i, text += "\n") {
      const BlockRows &list = pattern.byQueries(i);
      for (int64_t row = 0; row < list.rows(); ++row, text += "\n")
        for (int64_t block = 0; block < list.columns; ++block)
          text += list.sees(row, block) ? '#' : '.';
    }
    std::optional<Pattern> read = readPattern(text, "f", p, error);
    ASSERT_TRUE(read) << error << "\n" << text;
    EXPECT_TRUE(*read == pattern);
  }
}

TEST(PatternFile, WrongTextIsLocated) {
  EXPECT_EQ(errorOf(""),
            "f:1:1: expects a line 'blocks 128x128', but got none");
  EXPECT_EQ(errorOf("##.\n"), "f:1:1: expects a line 'blocks 128x128' before "
                              "rows of blocks, but got '##.'");
  EXPECT_EQ(errorOf("blocks 4x0\n"),
            "f:1:8: expects blocks of 1 to 1073741823 queries and keys, as "
            "128x64, but got '4x0'");
  EXPECT_EQ(errorOf("blocks 4x4\nblocks 4x4\n"),
            "f:2:1: expects one line with the size of blocks, but got two");
  EXPECT_EQ(errorOf("blocks 4x4\n#x.\n"),
            "f:2:2: expects '#' or '.', but got 'x'");
  EXPECT_EQ(errorOf("blocks 4x4\n##\n"),
            "f:2:3: expects 3 blocks of 4 keys, but got 2");
  EXPECT_EQ(errorOf("blocks 4x4\n####\n"),
            "f:2:4: expects 3 blocks of 4 keys, but got 4");
  EXPECT_EQ(errorOf("blocks 4x4\n##.\n"),
            "f:2:1: expects 2 rows of 4 queries, but got 1");
  EXPECT_EQ(errorOf("blocks 4x4\n##.\n...\n...\n"),
            "f:4:1: expects 2 rows of 4 queries, and an empty line between "
            "lists, but got more");
  EXPECT_EQ(errorOf("blocks 4x4\n...\n...\n\n...\n...\n\n...\n...\n"),
            "f: expects one list of blocks, one for each of 2 kv heads or one "
            "for each of 4 heads, but got 3");
  EXPECT_EQ(errorOf("blocks 4x4\n"),
            "f:1:1: expects rows of blocks, but got none");
}

TEST(PatternFile, WrongJsonIsLocated) {
  EXPECT_EQ(errorOf("{\"blocks\": [4,, 4]}"),
            "f:1:15: expects JSON, but got: Invalid JSON value");
  EXPECT_EQ(errorOf("{}"), "f: expects an object with 'blocks' and 'lists'");
  EXPECT_EQ(errorOf(R"({"blocks": [4], "lists": []})"),
            "f: blocks: expects queries and keys of a block, two numbers from "
            "1 to 1073741823");
  EXPECT_EQ(errorOf(R"({"blocks": [4, 4], "lists": []})"),
            "f: lists: expects a list of blocks or more, but got none");
  EXPECT_EQ(errorOf(R"({"blocks": [4, 4], "lists": [[[0]]]})"),
            "f: lists[0]: expects 2 rows of 4 queries, but got 1");
  EXPECT_EQ(errorOf(R"({"blocks": [4, 4], "lists": [[[0], 1]]})"),
            "f: lists[0][1]: expects numbers of blocks of keys");
  EXPECT_EQ(errorOf(R"({"blocks": [4, 4], "lists": [[[0], [1, 3]]]})"),
            "f: lists[0][1][1]: expects a block of 4 keys from 0 to 2, but got "
            "3");
  EXPECT_EQ(errorOf(R"({"blocks": [4, 4], "lists": [[[0], [1, 0, 1]]]})"),
            "f: lists[0][1]: expects every block once, but got 1 twice");
}

} // namespace
