//===- VisitsChecks.h - Two counts of the same visits -----------*- C++ -*-===//

#ifndef ATTN_TEST_VISITS_CHECKS_H
#define ATTN_TEST_VISITS_CHECKS_H

#include "attn/Schedule/Census.h"
#include "gtest/gtest.h"

namespace attn {

/// All sums are the same; the longest tile, which is no sum, is the caller's.
inline void expectSameSums(const Visits &v, const Visits &w) {
  EXPECT_EQ(v.outerTiles, w.outerTiles);
  EXPECT_EQ(v.visitedTiles, w.visitedTiles);
  EXPECT_EQ(v.visitedRows, w.visitedRows);
  EXPECT_EQ(v.wholePairs, w.wholePairs);
  EXPECT_EQ(v.raggedPairs, w.raggedPairs);
  EXPECT_EQ(v.wholePairRows, w.wholePairRows);
  EXPECT_EQ(v.raggedPairRows, w.raggedPairRows);
  EXPECT_EQ(v.innerSpan, w.innerSpan);
}

} // namespace attn

#endif // ATTN_TEST_VISITS_CHECKS_H
