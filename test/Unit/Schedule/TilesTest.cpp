//===- TilesTest.cpp - Names and values, printed and read -----------------===//

#include "attn/Schedule/Tiles.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

TEST(Tiles, RoundTrip) {
  Tiles tiles{{"query", 128}, {"key", 64}, {"stages", 2}};
  EXPECT_EQ(tiles.str(), "query = 128, key = 64, stages = 2");
  std::string error;
  EXPECT_EQ(parseTiles(tiles.str(), error), tiles);
  EXPECT_EQ(parseTiles(" query=128 ,key= 64,  stages =2 ", error), tiles);
  EXPECT_EQ(parseTiles("", error), Tiles());
  EXPECT_EQ(tiles.get("key"), 64);
  EXPECT_EQ(tiles.get("warps", 4), 4);
}

TEST(Tiles, RefusesWithTheText) {
  std::string error;
  for (const char *text : {"query", "query = ", "= 3", "query = x",
                           "query = 3 4", "query = 99999999999999999999"}) {
    EXPECT_FALSE(parseTiles(text, error)) << text;
    EXPECT_EQ(error.find("expects tiles as 'name = value, ...'"), 0u) << error;
  }
  EXPECT_FALSE(parseTiles("key = 1, key = 2", error));
  EXPECT_EQ(error, "expects every tile once, but got 'key' twice");
}

} // namespace
