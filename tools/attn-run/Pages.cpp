//===- Pages.cpp - Keys in pages, drawn and read in order -----------------===//

#include "Pages.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

using namespace attn;
using namespace attn::run;

namespace {

/// Where the keys of entries lie in the pool.
class Table {
public:
  Table(const Attention &attention, const std::vector<HostBytes> &arrays)
      : pages(
            arrays[attention.clauseInput(ClauseGroup::pageTable, 0).position]),
        lengths(
            arrays[attention.clauseInput(ClauseGroup::usedKeys, 0).position]),
        keys(attention.problem.keys), rows(attention.problem.place.pageRows) {}

  int64_t used(int64_t entry) const {
    return std::clamp<int64_t>(lengths.getWhole({entry}), 0, keys);
  }
  int64_t page(int64_t entry, int64_t key) const {
    return pages.getWhole({entry, key / rows});
  }

private:
  const HostBytes &pages, &lengths;
  int64_t keys, rows;
};

} // namespace

/// All pages of a pool in an order that depends on the seed alone.
static std::vector<int64_t> shuffled(int64_t pages, uint64_t seed) {
  std::vector<int64_t> order(pages);
  std::iota(order.begin(), order.end(), int64_t(0));
  for (int64_t last = pages; last-- > 1;)
    std::swap(order[last],
              order[mixed(seed + uint64_t(last)) % uint64_t(last + 1)]);
  return order;
}

/// NaN in the rows of a pool that are not used, a bit for each.
static void spoil(HostBytes &pool, const llvm::SmallBitVector &used) {
  int64_t rows = pool.shape.sizes[2];
  forEachIndex(pool.shape.sizes, [&](llvm::ArrayRef<int64_t> at) {
    if (!used[at[0] * rows + at[2]])
      pool.set(at, std::numeric_limits<double>::quiet_NaN());
  });
}

void run::drawPages(const Attention &attention, std::vector<HostBytes> &arrays,
                    uint64_t seed) {
  const Problem &p = attention.problem;
  int64_t rows = p.place.pageRows;
  HostBytes &pages =
      arrays[attention.clauseInput(ClauseGroup::pageTable, 0).position];
  HostBytes &k = arrays[attention.input("k")];
  int64_t count = k.shape.sizes[0];
  std::vector<int64_t> order = shuffled(count, seed);
  llvm::SmallBitVector used(count * rows);
  Table table(attention, arrays);
  size_t next = 0;
  for (int64_t entry = 0; entry < p.batch; ++entry)
    for (int64_t first = 0; first < p.keys; first += rows) {
      int64_t left = table.used(entry) - first;
      if (left <= 0) {
        bool isLarge = first / rows % 2;
        pages.setWhole({entry, first / rows},
                       isLarge ? std::numeric_limits<int32_t>::max() : -1);
        continue;
      }
      int64_t page = order[next++ % order.size()];
      pages.setWhole({entry, first / rows}, page);
      used.set(page * rows, page * rows + std::min(left, rows));
    }
  spoil(k, used);
  if (!p.valuesOfKeys)
    spoil(arrays[attention.input("v")], used);
}

HostBytes run::keysInOrder(const Attention &attention,
                           const std::vector<HostBytes> &arrays,
                           llvm::StringRef role, int64_t firstEntry,
                           int64_t entries, int64_t keys) {
  const HostBytes &cache = arrays[attention.input(role)];
  int64_t rows = attention.problem.place.pageRows;
  llvm::ArrayRef<int64_t> sizes = cache.shape.sizes;
  llvm::SmallVector<int64_t> own = {entries, sizes[1], keys, sizes[3]};
  HostBytes result(HostArray::contiguous(0, own, cache.shape.elementType),
                   /*guardBytes=*/0);
  std::optional<Table> table;
  if (rows)
    table.emplace(attention, arrays);
  forEachIndex(own, [&](llvm::ArrayRef<int64_t> at) {
    int64_t entry = firstEntry + at[0], key = at[2];
    if (!table)
      result.set(at, cache.get({entry, at[1], key, at[3]}));
    else if (key < table->used(entry))
      result.set(
          at, cache.get({table->page(entry, key), at[1], key % rows, at[3]}));
  });
  return result;
}
