//===- HostBlocks.cpp - Lists of blocks, made on the host -----------------===//

#include "attn/IR/HostBlocks.h"

#include "attn/IR/RegionClasses.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

static HostBlocks emptyLists(int64_t batch, int64_t heads, int64_t rows,
                             int64_t columns) {
  HostBlockList none;
  none.counts.assign(batch * heads * rows, 0);
  none.indices.assign(batch * heads * rows * columns, 0);
  return {batch, heads, rows, columns, none, none};
}

static void append(HostBlockList &list, int64_t line, int64_t columns,
                   int64_t column) {
  list.indices[line * columns + list.counts[line]++] = int32_t(column);
}

/// The class of pairs, which are asked one by one where arithmetic cannot tell.
static TileClass classByPairs(Region &sees, const RegionEvaluator &evaluator,
                              const std::vector<CapturedArray> &captures,
                              const PairsOfRows &pairs) {
  TileClass found = classify(sees, pairs);
  if (found != TileClass::cut)
    return found;
  bool sawSome = false, missedSome = false;
  for (int64_t i = pairs.query.first; i <= pairs.query.last; ++i)
    for (int64_t j = pairs.key.first; j <= pairs.key.last; ++j) {
      bool isSeen = evaluator.sees({pairs.batch.first, pairs.head.first, i, j,
                                    pairs.queries, pairs.keys},
                                   captures);
      (isSeen ? sawSome : missedSome) = true;
      if (sawSome && missedSome)
        return TileClass::cut;
    }
  return sawSome ? TileClass::open : TileClass::hidden;
}

HostBlocks attn::blockListsOf(Region &sees,
                              const std::vector<CapturedArray> &captures,
                              int64_t batch, int64_t heads, int64_t queries,
                              int64_t keys, BlockSize size) {
  RegionEvaluator evaluator(sees);
  int64_t rows = (queries + size.queries - 1) / size.queries,
          columns = (keys + size.keys - 1) / size.keys;
  HostBlocks lists = emptyLists(batch, heads, rows, columns);
  auto part = [](int64_t number, int64_t size, int64_t all) {
    return Interval{number * size, std::min((number + 1) * size, all) - 1};
  };
  for (int64_t line = 0; line < batch * heads * rows; ++line)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t b = line / rows / heads, h = line / rows % heads;
      TileClass found = classByPairs(sees, evaluator, captures,
                                     {{b, b},
                                      {h, h},
                                      part(line % rows, size.queries, queries),
                                      part(column, size.keys, keys),
                                      queries,
                                      keys});
      if (found != TileClass::hidden)
        append(found == TileClass::open ? lists.full : lists.partial, line,
               columns, column);
    }
  lists.outsideRead = evaluator.outsideRead();
  return lists;
}

static void transpose(const HostBlocks &lists, const HostBlockList &from,
                      HostBlockList &to) {
  for (int64_t head = 0; head < lists.batch * lists.heads; ++head)
    for (int64_t row = 0; row < lists.rows; ++row) {
      int64_t line = head * lists.rows + row;
      for (int32_t n = 0; n < from.counts[line]; ++n) {
        int64_t column = from.indices[line * lists.columns + n];
        append(to, head * lists.columns + column, lists.rows, row);
      }
    }
}

HostBlocks attn::transposed(const HostBlocks &lists) {
  HostBlocks result =
      emptyLists(lists.batch, lists.heads, lists.columns, lists.rows);
  transpose(lists, lists.partial, result.partial);
  transpose(lists, lists.full, result.full);
  return result;
}
