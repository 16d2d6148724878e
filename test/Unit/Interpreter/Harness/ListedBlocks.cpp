//===- ListedBlocks.cpp - Lists of blocks as a caller has them ------------===//

#include "Harness/ListedBlocks.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace attn;

/// Elements in front of an array, and what stands there and behind counts.
static constexpr int64_t kUnusedBefore = 3;
static constexpr int32_t kNonsense = std::numeric_limits<int32_t>::max();

ListedBlocks::ListedBlocks(const Problem &problem, const Owners &owners,
                           const Shares &shares, uint64_t seed)
    : problem(problem), size(problem.pattern->size()), owners(owners),
      batches(owners.ofBatch ? problem.batch : 1),
      heads(owners.ofHeads ? problem.heads : 1),
      rows(int64_t(llvm::divideCeil(problem.queries, size.queries))),
      columns(int64_t(llvm::divideCeil(problem.keys, size.keys))) {
  Draws draw(seed);
  for (int64_t row = 0; row < batches * heads * rows; ++row) {
    bool isEmpty = draw(1, 8) == 1;
    for (int64_t column = 0; column < columns; ++column) {
      int64_t share = draw(1, 100);
      kinds.push_back(isEmpty || share > shares.partial + shares.full
                          ? Kind::none
                      : share > shares.full ? Kind::partial
                                            : Kind::full);
    }
  }
  fill("partial", Kind::partial, /*isTransposed=*/false, draw);
  fill("full", Kind::full, /*isTransposed=*/false, draw);
  fill("transposed_partial", Kind::partial, /*isTransposed=*/true, draw);
  fill("transposed_full", Kind::full, /*isTransposed=*/true, draw);
}

ListedBlocks::Array &ListedBlocks::add(const std::string &name, int64_t rows,
                                       int64_t ofRow) {
  Array &array = arrays[name];
  array.elements.assign(size_t(kUnusedBefore + batches * heads * rows * ofRow),
                        kNonsense);
  array.strideRow = ofRow;
  array.strideHead = owners.ofHeads ? rows * ofRow : 0;
  array.strideBatch = owners.ofBatch ? heads * rows * ofRow : 0;
  return array;
}

void ListedBlocks::fill(llvm::StringRef name, Kind kind, bool isTransposed,
                        Draws &draw) {
  int64_t lists = isTransposed ? columns : rows,
          most = isTransposed ? rows : columns;
  Array &counts = add((name + "_counts").str(), lists, 1),
        &numbers = add((name + "_blocks").str(), lists, most);
  for (int64_t line = 0; line < batches * heads * lists; ++line) {
    int64_t owner = line / lists, list = line % lists;
    std::vector<int32_t> listed;
    for (int64_t other = 0; other < most; ++other) {
      int64_t row = isTransposed ? other : list,
              column = isTransposed ? list : other;
      if (kinds[size_t((owner * rows + row) * columns + column)] == kind)
        listed.insert(listed.begin() + draw(0, int64_t(listed.size())),
                      int32_t(other));
    }
    counts.elements[size_t(kUnusedBefore + line)] = int32_t(listed.size());
    llvm::copy(listed, numbers.elements.begin() + kUnusedBefore + line * most);
  }
}

oracle::BlockLists ListedBlocks::forOracle() const {
  auto list = [&](llvm::StringRef name) -> oracle::BlockLists::List {
    auto at = [&](const char *array) {
      return arrays.find((name + array).str())->second.elements.data() +
             kUnusedBefore;
    };
    return {at("_counts"), at("_blocks"), batches, heads, columns};
  };
  return {list("partial"), list("full"), size.queries, size.keys};
}

attn::Pattern ListedBlocks::pattern() const {
  std::vector<BlockRows> lists;
  for (int64_t head = 0; head < heads; ++head) {
    BlockRows &list = lists.emplace_back();
    list.columns = columns;
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int32_t> seen;
      for (int64_t column = 0; column < columns; ++column)
        if (kindOf(/*batch=*/0, head, row * size.queries, column * size.keys) !=
            Kind::none)
          seen.push_back(int32_t(column));
      list.add(seen);
    }
  }
  return {size, std::move(lists)};
}

ListedBlocks::Block ListedBlocks::leaveOutOfTransposed() {
  std::vector<int32_t> &counts = arrays["transposed_full_counts"].elements,
                       &blocks = arrays["transposed_full_blocks"].elements;
  auto count = std::find_if(counts.begin() + kUnusedBefore, counts.end(),
                            [](int32_t listed) { return listed > 0; });
  assert(count != counts.end() && "there is no full block");
  int64_t line = count - counts.begin() - kUnusedBefore, owner = line / columns;
  --*count;
  int64_t row = blocks[size_t(kUnusedBefore + line * rows + *count)];
  return {owner / heads, owner % heads, row * size.queries,
          line % columns * size.keys};
}

ListedBlocks::Kind ListedBlocks::kindOf(int64_t batch, int64_t head,
                                        int64_t query, int64_t key) const {
  int64_t list =
      (owners.ofBatch ? batch * heads : 0) + (owners.ofHeads ? head : 0);
  int64_t row = list * rows + query / size.queries;
  return kinds[size_t(row * columns + key / size.keys)];
}

int64_t ListedBlocks::keysListed(int64_t batch, int64_t head,
                                 int64_t query) const {
  int64_t sum = 0;
  for (int64_t key = 0; key < problem.keys; key += size.keys)
    if (kindOf(batch, head, query, key) != Kind::none)
      sum += std::min(size.keys, problem.keys - key);
  return sum;
}

void ListedBlocks::upload(GlobalMemory &memory,
                          llvm::StringMap<uint64_t> &addresses) const {
  for (const auto &entry : arrays) {
    const std::vector<int32_t> &elements = entry.second.elements;
    int64_t bytes = int64_t(elements.size() * sizeof(int32_t));
    uint64_t address = memory.allocate(bytes);
    memory.write(address, elements.data(), bytes);
    addresses[entry.first()] = address;
  }
}

std::optional<int64_t> ListedBlocks::integerOf(llvm::StringRef role) const {
  for (const auto &entry : arrays) {
    llvm::StringRef facet = role;
    if (!facet.consume_front(entry.first()))
      continue;
    if (facet == "_offset")
      return kUnusedBefore;
    if (facet == "_stride_batch")
      return entry.second.strideBatch;
    if (facet == "_stride_head")
      return entry.second.strideHead;
    if (facet == "_stride_row")
      return entry.second.strideRow;
  }
  return std::nullopt;
}

std::optional<int64_t> ListedBlocks::numberAt(llvm::StringRef role,
                                              int64_t offset) const {
  auto found = arrays.find(role);
  if (found == arrays.end() || offset < 0 ||
      offset >= int64_t(found->second.elements.size()))
    return std::nullopt;
  return found->second.elements[size_t(offset)];
}
