//===- PatternWordsTest.cpp - Words of block lists, counted one by one ----===//
//
// Every schedule is executed tile by tile, looking at every pair, and moves its
// words one at a time.
//
//===----------------------------------------------------------------------===//

#include "RandomProblem.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {

/// Tile sizes, and of a grid over keys that keep theirs.
struct Sizes {
  int64_t query, key, ownKey, column, strip;
  /// Rows of what is contracted in gradients that are plain products.
  int64_t slice;
};

class Executor {
public:
  Executor(const Problem &p, const Sizes &s)
      : p(p), s(s), d(p.headDim), e(p.headDimV) {}

  int64_t words = 0;

  void flash() {
    forEachTile([&](int64_t head, Span rows) {
      if (seesAny(head, rows))
        move(rows, d);
      forEachKey(head, rows, [&](Span keys) { move(keys, d), move(keys, e); });
      result(rows);
    });
  }

  void streamedQuery() {
    forEachTile([&](int64_t head, Span rows) {
      forEachKey(head, rows, [&](Span keys) {
        move(rows, d), move(keys, d), move(keys, e);
      });
      result(rows);
    });
  }

  void outputSpill() {
    forEachTile([&](int64_t head, Span rows) {
      bool isFirst = true;
      forEachKey(head, rows, [&](Span keys) {
        if (!isFirst) // out behind the tile before, and back
          move(rows, e), move(rows, e);
        isFirst = false;
        move(rows, d), move(keys, d), move(keys, e);
      });
      result(rows);
    });
  }

  void scoreSpill() {
    forEachTile([&](int64_t head, Span rows) {
      bool isFirst = true;
      forEachSpan(p.keys, s.strip, [&](Span strip) {
        if (!sees(head, rows, strip))
          return;
        forEachKey(head, rows, strip, [&](Span keys) {
          move(rows, d), move(keys, d);
          move(rows, keys.size()), move(rows, 1); // P and its maxima
        });
        forEachSpan(e, s.column, [&](Span columns) {
          if (!isFirst)
            move(rows, columns.size()), move(rows, columns.size());
          forEachKey(head, rows, strip, [&](Span keys) {
            move(rows, 1), move(rows, keys.size());
            move(keys, columns.size());
          });
        });
        isFirst = false;
      });
      result(rows);
    });
  }

  void flashBackward(bool firstStores) {
    forEachTile([&](int64_t head, Span rows) {
      delta(rows);
      if (!firstStores)
        move(rows, d); // zeros
    });
    forEachTile(kStripRows, [&](int64_t head, Span rows) {
      if (!firstStores || seesAny(head, rows))
        move(rows, d); // sums back
      move(rows, d);
    });
    forEachKeyTile([&](int64_t keyHead, Span keys) {
      if (isSeen(keyHead, keys))
        move(keys, d), move(keys, e);
      forEachQuery(keyHead, keys, [&](Span rows) {
        move(rows, d), move(rows, e), statistics(rows);
        move(rows, d); // dQ added
      });
      move(keys, d), move(keys, e);
    });
  }

  void splitBackward() {
    forEachTile([&](int64_t head, Span rows) {
      if (seesAny(head, rows))
        move(rows, d), move(rows, e);
      move(rows, e), move(rows, e), lse(rows), dlse(rows), move(rows, 1);
      forEachKey(head, rows, [&](Span keys) { move(keys, d), move(keys, e); });
      move(rows, d);
    });
    forEachKeyTile([&](int64_t keyHead, Span keys) {
      if (isSeen(keyHead, keys))
        move(keys, d), move(keys, e);
      forEachQuery(keyHead, keys, [&](Span rows) {
        move(rows, d), move(rows, e), statistics(rows);
      });
      move(keys, d), move(keys, e);
    });
  }

  void spillBackward() {
    forEachTile([&](int64_t head, Span rows) {
      delta(rows);
      forEachKey(head, rows, [&](Span keys) { // scores
        move(rows, d), move(keys, d), move(rows, e), move(keys, e);
        statistics(rows);
        move(rows, keys.size()), move(rows, keys.size()); // P and dS
      });
      forEachSpan(d, s.column, [&](Span columns) { // dQ
        bool isFirst = true;
        forEachSpan(p.keys, s.strip, [&](Span strip) {
          if (!sees(head, rows, strip))
            return;
          if (!isFirst)
            move(rows, columns.size()), move(rows, columns.size());
          isFirst = false;
          forEachSpan(p.keys, s.slice, [&](Span keys) {
            if (strip.begin > keys.begin || keys.begin >= strip.end ||
                !sees(head, rows, keys))
              return;
            move(rows, keys.size()), move(keys, columns.size());
          });
        });
        move(rows, columns.size());
      });
    });
    forEachKeyTile([&](int64_t keyHead, Span keys) {
      for (int64_t width : {e, d}) // dV of P and dO, dK of dS and Q
        forEachSpan(width, s.column, [&](Span columns) {
          forEachQuery(keyHead, keys, s.slice, [&](Span rows) {
            move(rows, keys.size()), move(rows, columns.size());
          });
          move(keys, columns.size());
        });
    });
  }

private:
  const Problem &p;
  const Sizes &s;
  int64_t d, e;

  void move(Span rows, int64_t columns) {
    for (int64_t row = rows.begin; row < rows.end; ++row)
      for (int64_t column = 0; column < columns; ++column)
        ++words;
  }
  void lse(Span rows) { move(rows, 1 + p.lseLow); }
  void dlse(Span rows) { move(rows, p.dlse); }
  void statistics(Span rows) { lse(rows), move(rows, 1); }
  void result(Span rows) { move(rows, e), move(rows, p.lse + p.lseLow); }
  /// D, and what it is made of.
  void delta(Span rows) {
    move(rows, e), move(rows, e), lse(rows), dlse(rows), statistics(rows);
  }

  template <typename Visit>
  void forEachSpan(int64_t rows, int64_t step, Visit visit) {
    for (int64_t first = 0; first < rows; first += step)
      visit(Span{first, std::min(first + step, rows)});
  }
  template <typename Visit> void forEachTile(int64_t step, Visit visit) {
    for (int64_t entry = 0; entry < p.batch; ++entry)
      for (int64_t head = 0; head < p.heads; ++head)
        forEachSpan(p.queries, step, [&](Span rows) { visit(head, rows); });
  }
  template <typename Visit> void forEachTile(Visit visit) {
    forEachTile(s.query, visit);
  }
  template <typename Visit> void forEachKeyTile(Visit visit) {
    for (int64_t entry = 0; entry < p.batch; ++entry)
      for (int64_t head = 0; head < p.kvHeads; ++head)
        forEachSpan(p.keys, s.ownKey, [&](Span keys) { visit(head, keys); });
  }
  template <typename Visit>
  void forEachKey(int64_t head, Span rows, Span strip, Visit visit) {
    forEachSpan(p.keys, s.key, [&](Span keys) {
      bool isInside = strip.begin <= keys.begin && keys.end <= strip.end;
      if (isInside && sees(head, rows, keys))
        visit(keys);
    });
  }
  template <typename Visit>
  void forEachKey(int64_t head, Span rows, Visit visit) {
    forEachKey(head, rows, {0, p.keys}, visit);
  }
  /// Of all heads of queries of a key head.
  template <typename Visit>
  void forEachQuery(int64_t keyHead, Span keys, int64_t step, Visit visit) {
    int64_t group = p.heads / p.kvHeads;
    for (int64_t i = 0; i < group; ++i)
      forEachSpan(p.queries, step, [&](Span rows) {
        if (sees(keyHead * group + i, rows, keys))
          visit(rows);
      });
  }
  template <typename Visit>
  void forEachQuery(int64_t keyHead, Span keys, Visit visit) {
    forEachQuery(keyHead, keys, s.query, visit);
  }
  bool isSeen(int64_t keyHead, Span keys) {
    bool isSeen = false;
    forEachQuery(keyHead, keys, [&](Span) { isSeen = true; });
    return isSeen;
  }
  bool seesAny(int64_t head, Span rows) {
    return sees(head, rows, {0, p.keys});
  }
  bool sees(int64_t head, Span rows, Span keys) {
    for (int64_t i = rows.begin; i < rows.end; ++i)
      for (int64_t j = keys.begin; j < keys.end; ++j)
        if (isVisible(p, head, i, j))
          return true;
    return false;
  }
};

int64_t predicted(const char *kind, const Tiles &tiles, const Problem &p) {
  return trafficWords(findScheduleKind(kind)->build(tiles), p);
}

template <typename Run>
int64_t counted(const Problem &p, const Sizes &s, Run run) {
  Executor machine(p, s);
  (machine.*run)();
  return machine.words;
}

void expectForward(const Problem &p, const Sizes &s) {
  Tiles tiles = {{"query", s.query}, {"key", s.key}, {"slice", 1}};
  EXPECT_EQ(predicted("flash", tiles, p), counted(p, s, &Executor::flash));
  EXPECT_EQ(predicted("streamed_query", tiles, p),
            counted(p, s, &Executor::streamedQuery));
  tiles.set("column", s.column);
  EXPECT_EQ(predicted("output_spill", tiles, p),
            counted(p, s, &Executor::outputSpill));
  tiles.set("strip", s.strip);
  EXPECT_EQ(predicted("score_spill", tiles, p),
            counted(p, s, &Executor::scoreSpill));
}

void expectBackward(const Problem &p, const Sizes &s) {
  Tiles flash = {{"key", s.ownKey}, {"query_block", s.query}};
  for (bool firstStores : {false, true}) {
    flash.set("first_stores", firstStores);
    Executor machine(p, s);
    machine.flashBackward(firstStores);
    EXPECT_EQ(predicted("flash_backward", flash, p), machine.words);
  }
  Tiles split = {{"query", s.query},
                 {"key_block", s.key},
                 {"key", s.ownKey},
                 {"query_block", s.query}};
  EXPECT_EQ(predicted("split_backward", split, p),
            counted(p, s, &Executor::splitBackward));
  split.set("column", s.column);
  split.set("strip", s.strip);
  split.set("slice", s.slice);
  EXPECT_EQ(predicted("spill_backward", split, p),
            counted(p, s, &Executor::spillBackward));
}

TEST(PatternWords, AreCountedOneByOne) {
  Random random(31);
  for (int round = 0; round < 300; ++round) {
    Problem p = random.problem(40);
    p.headDim = random.number(1, 5), p.headDimV = random.number(1, 5);
    p.pattern = random.pattern(p, 12);
    Sizes s = {random.number(1, 12), 0, random.number(1, 12),
               random.number(1, 5),  0, random.number(1, 4)};
    s.key = s.slice * random.number(1, 4);
    s.strip = s.key * random.number(1, 5);
    SCOPED_TRACE(testing::Message()
                 << p << " tiles " << s.query << "x" << s.key << " own "
                 << s.ownKey << " column " << s.column << " strip " << s.strip);
    expectForward(p, s);
    p.direction = Direction::backward;
    p.dlse = random.number(0, 1);
    expectBackward(p, s);
  }
}

} // namespace
