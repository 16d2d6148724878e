//===- BandsTest.cpp - Unions of bands, and what tiles see of them --------===//
//
// Everything is compared with what the inequalities of the bands say of every
// pair, tile by tile.
//
//===----------------------------------------------------------------------===//

#include "../Seed.h"
#include "RandomProblem.h"
#include "VisitsChecks.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Plan.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

RowBound randomBound(Random &random, bool isDiagonal) {
  RowBound bound = {random.number(isDiagonal ? -40 : -5, 60)};
  if (random.number(0, 2) == 0) {
    bound.ofKeys = random.number(0, 1);
    bound.ofQueries = random.number(-1, bound.ofKeys ? 0 : 1);
  }
  return bound;
}

Bands randomBands(Random &random) {
  std::vector<Band> bands(size_t(random.number(1, int64_t(kMostBands))));
  for (Band &band : bands) {
    band.isWhole = random.number(0, 3) != 0;
    for (size_t side = 0; side < kBandSides; ++side)
      if (random.number(0, 2) == 0)
        band.sides[side] = randomBound(random, side < 2);
  }
  return Bands(std::move(bands));
}

Problem randomProblem(Random &random) {
  Problem p;
  p.queries = random.number(1, 70);
  p.keys = random.number(1, 70);
  p.headDim = p.headDimV = 16;
  p.heads = p.kvHeads = 2;
  p.bands = randomBands(random);
  return p;
}

/// What a band says of a pair.
bool shows(const Band &band, const Problem &p, int64_t i, int64_t j) {
  const int64_t values[kBandSides] = {j - i, j - i, j, j, i, i};
  for (size_t side = 0; side < kBandSides; ++side) {
    if (!band.sides[side])
      continue;
    int64_t end = band.sides[side]->at(p.queries, p.keys);
    bool isLast = side % 2 == 1;
    if (isLast ? values[side] > end : values[side] < end)
      return false;
  }
  return true;
}

bool shows(const Problem &p, int64_t i, int64_t j) {
  for (const Band &band : p.bands.all())
    if (shows(band, p, i, j))
      return true;
  return false;
}

/// Pairs of tiles, one by one.
struct Looker {
  const Problem &p;
  Axis outer;
  int64_t outerStep, innerStep;
  StripRange strip;

  Visits visits() const {
    Axis other = outer == Axis::Query ? Axis::Key : Axis::Query;
    Span all = rowsOf(outer), inner = rowsOf(other);
    int64_t tiles = ceilDiv(inner.size(), innerStep);
    std::vector<char> touched(static_cast<size_t>(tiles));
    Visits v;
    for (int64_t at = all.begin; at < all.end; at += outerStep) {
      Span rows = {at, std::min(at + outerStep, all.end)};
      int64_t pairs = 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        int64_t begin = inner.begin + tile * innerStep;
        Span columns = {begin, std::min(begin + innerStep, inner.end)};
        if (!seesAny(rows, columns))
          continue;
        ++pairs;
        touched[size_t(tile)] = 1;
        bool isRagged = columns.size() < innerStep;
        (isRagged ? v.raggedPairs : v.wholePairs) += 1;
        (isRagged ? v.raggedPairRows : v.wholePairRows) += rows.size();
      }
      v.outerTiles += 1;
      v.visitedTiles += pairs > 0;
      v.visitedRows += pairs > 0 ? rows.size() : 0;
      v.mostPairs = std::max(v.mostPairs, pairs);
    }
    for (int64_t tile = 0; tile < tiles; ++tile)
      if (touched[size_t(tile)])
        v.innerSpan += std::min(innerStep, inner.size() - tile * innerStep);
    return v;
  }

private:
  Span rowsOf(Axis axis) const {
    int64_t all = axis == Axis::Query ? p.queries : p.keys;
    if (axis != strip.axis)
      return {0, all};
    return {strip.first, std::min(strip.first + strip.rows, all)};
  }
  bool seesAny(Span rows, Span columns) const {
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = columns.begin; column < columns.end; ++column)
        if (outer == Axis::Query ? shows(p, row, column)
                                 : shows(p, column, row))
          return true;
    return false;
  }
};

} // namespace

TEST(Bands, ShowWhatTheyBound) {
  Seed seed;
  Random random(seed);
  int64_t shown = 0, hidden = 0;
  for (int n = 0; n < 60; ++n) {
    Problem p = randomProblem(random);
    int64_t pairs = 0;
    for (int64_t i = 0; i < p.queries; ++i)
      for (int64_t j = 0; j < p.keys; ++j) {
        ASSERT_EQ(sees(p, i, j), shows(p, i, j)) << p << i << ", " << j;
        pairs += shows(p, i, j);
      }
    EXPECT_EQ(visiblePairs(p), pairs) << p;
    shown += pairs, hidden += p.queries * p.keys - pairs;
  }
  EXPECT_GT(shown, 1000);
  EXPECT_GT(hidden, 1000);
}

TEST(Bands, VisitsAreThoseOfEveryTile) {
  Seed seed;
  Random random(seed);
  int64_t looked = 0;
  for (int n = 0; n < 150; ++n) {
    Problem p = randomProblem(random);
    for (Axis outer : {Axis::Query, Axis::Key}) {
      int64_t outerStep = random.number(1, 24),
              innerStep = random.number(1, 24);
      StripRange strip = {Axis::Key, 0, p.keys};
      if (random.number(0, 1)) {
        Axis axis = random.number(0, 1) ? Axis::Query : Axis::Key;
        int64_t all = axis == Axis::Query ? p.queries : p.keys;
        int64_t first = random.number(0, all - 1);
        strip = {axis, first, random.number(1, all - first)};
      }
      auto rowsOf = [&](Axis axis) {
        return axis == strip.axis    ? strip.rows
               : axis == Axis::Query ? p.queries
                                     : p.keys;
      };
      Axis inner = outer == Axis::Query ? Axis::Key : Axis::Query;
      Looker looker = {p, outer, std::min(outerStep, rowsOf(outer)),
                       std::min(innerStep, rowsOf(inner)), strip};
      Visits found = visitsOfStrip(p, outer, outerStep, innerStep, strip);
      Visits wanted = looker.visits();
      SCOPED_TRACE(testing::Message() << p << " " << outerStep << " x "
                                      << innerStep << ", round " << n);
      expectSameSums(found, wanted);
      ASSERT_EQ(found.mostPairs, wanted.mostPairs);
      looked += wanted.wholePairs + wanted.raggedPairs;
    }
  }
  EXPECT_GT(looked, 1000);
}

TEST(Bands, OpenTilesAreOfOneWholeBand) {
  Seed seed;
  Random random(seed);
  int64_t allOpen = 0, allCut = 0;
  for (int n = 0; n < 60; ++n) {
    Problem p = randomProblem(random);
    int64_t query = random.number(1, 20), key = random.number(1, 20);
    int64_t visited = 0, cut = 0;
    for (int64_t i = 0; i < p.queries; i += query)
      for (int64_t j = 0; j < p.keys; j += key) {
        int64_t rows = std::min(query, p.queries - i);
        int64_t shown = 0;
        bool isOpen = false;
        for (const Band &band : p.bands.all()) {
          int64_t pairs = 0;
          for (int64_t row = i; row < i + rows; ++row)
            for (int64_t k = j; k < std::min(j + key, p.keys); ++k)
              pairs += shows(band, p, row, k);
          shown += pairs;
          isOpen |= band.isWhole && pairs == rows * key;
        }
        visited += shown > 0;
        cut += shown > 0 && !isOpen;
      }
    double share = visited ? double(cut) / double(visited) : 0;
    EXPECT_NEAR(cutShareOfBands(p, query, key), share, 1e-12) << p;
    allOpen += visited - cut, allCut += cut;
  }
  EXPECT_GT(allOpen, 20);
  EXPECT_GT(allCut, 100);
}

TEST(Bands, NumbersReadBack) {
  Seed seed;
  Random random(seed);
  for (int n = 0; n < 60; ++n) {
    Bands bands = randomBands(random);
    std::optional<Bands> read = bandsOf(numbersOf(bands));
    ASSERT_TRUE(read);
    EXPECT_TRUE(*read == bands);
  }
  EXPECT_TRUE(bandsOf({})->isEmpty());
  EXPECT_FALSE(bandsOf({1, 2, 3}));
  EXPECT_FALSE(bandsOf(numbersOf(Bands(std::vector<Band>(kMostBands + 1)))));
}

namespace {

/// 64 first keys and a window of 512 of 16384 keys; and that window, and all
/// that is before a query.
struct FirstAndNear {
  Problem runs, window, causal;

  explicit FirstAndNear(Direction direction) {
    Problem p;
    p.direction = direction;
    p.queries = p.keys = 16384;
    p.heads = p.kvHeads = 16;
    p.headDim = p.headDimV = 128;
    runs = window = causal = p;
    causal.mask.kind = MaskKind::causal;
    window.mask = {MaskKind::window, 512, 0};
    Band first, near;
    first.at(BandSide::lastKey) = RowBound{63};
    near.at(BandSide::firstDiagonal) = RowBound{-512};
    near.at(BandSide::lastDiagonal) = RowBound{0};
    runs.bands = Bands({first, near});
    runs.clauses.sees = true;
    runs.clauses.seesCost = {5, 0, 0, 0, 0};
  }
};

} // namespace

// Bytes are near those of the window, and far below those of all.
TEST(Bands, PlansMoveWhatRunsShow) {
  FirstAndNear of(Direction::forward);
  const Machine &machine = *findMachine("h100_sxm");
  auto best = [&](const Problem &problem) {
    return *plans(problem, machine).best();
  };
  Plan runs = best(of.runs), all = best(of.causal), band = best(of.window);
  EXPECT_EQ(runs.kernel, "flash_wgmma");
  EXPECT_LT(double(runs.bytes.l2), 1.3 * double(band.bytes.l2));
  EXPECT_LT(double(runs.bytes.l2), 0.25 * double(all.bytes.l2));
  EXPECT_LT(runs.seconds, 0.3 * all.seconds);
  EXPECT_GE(runs.bytes.l2, plans(of.runs, machine).lowerBoundBytes);
}

// Of the same tiles: first keys are one that all queries stream past.
TEST(Bands, GradientsMoveWhatRunsShow) {
  FirstAndNear of(Direction::backward);
  const Machine &machine = *findMachine("h100_sxm");
  EXPECT_EQ(plans(of.runs, machine).best()->kernel, "flash_backward_wgmma");
  auto bytes = [&](const Problem &problem) {
    std::string error;
    std::optional<Plan> plan = planFor(
        problem, machine, "flash_backward",
        {{"key", 128}, {"query_block", 64}, {"first_stores", 0}}, error);
    EXPECT_TRUE(plan) << error;
    return plan ? double(plan->bytes.l2) : 0;
  };
  double runs = bytes(of.runs);
  EXPECT_GT(runs, bytes(of.window));
  EXPECT_LT(runs, 1.2 * bytes(of.window));
  EXPECT_LT(runs, 0.25 * bytes(of.causal));
  EXPECT_GE(runs, double(plans(of.runs, machine).lowerBoundBytes));
}

TEST(Bands, WhatTakesNoneSaysSo) {
  Problem p;
  p.queries = 4, p.keys = 8192;
  p.headDim = p.headDimV = 64;
  p.bands = Bands(std::vector<Band>(2));
  std::string error;
  EXPECT_FALSE(
      planFor(p, *findMachine("h100_sxm"), "flash", {{"parts", 4}}, error));
  EXPECT_NE(error.find("runs of 2 bands"), std::string::npos) << error;
  p.pattern.emplace(BlockSize{64, 64}, /*density=*/0.5);
  EXPECT_NE(check(p)->find("without lists of blocks"), std::string::npos);
  p.pattern.reset();
  p.queries = 8192;
  p.direction = Direction::backward;
  p.deterministic = true;
  PlanReport gradients = plans(p, *findMachine("h100_sxm"));
  EXPECT_EQ(gradients.best()->schedule, "split_backward");
  EXPECT_FALSE(planFor(p, *findMachine("h100_sxm"), "flash_backward",
                       {{"ordered", 1}, {"first_stores", 0}}, error));
  EXPECT_NE(error.find("no runs of bands for sums of dQ in order"),
            std::string::npos)
      << error;
}
