//===- ClauseInputs.cpp - Arrays that clauses take, drawn -----------------===//

#include "ClauseInputs.h"

#include "Pages.h"

#include "attn/Schedule/RaggedQueries.h"

using namespace attn;
using namespace attn::run;

/// Numbers of runs along the last dimension, of 8 rows or more on average.
static void drawRuns(HostBytes &array, uint64_t seed) {
  int64_t columns = array.shape.sizes.empty() ? 1 : array.shape.sizes.back();
  // What has place in a signed byte is small enough for every type.
  int64_t most = std::min<int64_t>(columns - 1, 100), run = 0;
  uint64_t per = std::max<int64_t>(8, columns / 6), counter = 0;
  forEachIndex(array.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
    bool isFirst = index.empty() || index.back() == 0;
    bool begins = mixed(seed ^ mixed(counter++)) % per == 0;
    run = isFirst ? 0 : std::min(most, run + begins);
    array.setWhole(index, run);
  });
}

namespace {

/// A list of blocks, as the arrays of its counts and indices.
struct List {
  HostBytes &counts, &indices;

  int64_t rows() const { return indices.shape.sizes[2]; }
  int64_t columns() const { return indices.shape.sizes[3]; }
  template <typename Body> void forEachRow(Body body) const {
    forEachIndex(counts.shape.sizes, body);
  }
  void append(llvm::ArrayRef<int64_t> row, int64_t number) {
    int64_t count = counts.getWhole(row);
    llvm::SmallVector<int64_t> place = llvm::to_vector(row);
    place.push_back(count);
    indices.setWhole(place, number);
    counts.setWhole(row, count + 1);
  }
};

} // namespace

/// Both lists have other blocks, whichever batch entries and heads they are
/// for: `kind` is 0 or 1 of two, and of one alone both.
static void drawList(List list, int64_t blocks, unsigned kind, bool isAlone,
                     uint64_t seed) {
  uint64_t line = 0;
  list.forEachRow([&](llvm::ArrayRef<int64_t> row) {
    list.counts.setWhole(row, 0);
    uint64_t own = mixed(seed + 2 * line++ + kind);
    int64_t count = std::min(blocks, list.columns()), taken = 0;
    for (int64_t step = 0; step < blocks && taken < count; ++step) {
      int64_t number = (step + int64_t(own % blocks)) % blocks;
      uint64_t shared = mixed(seed ^ mixed(row[2] * blocks + number));
      bool isOfKind = isAlone || (shared & 1) == kind;
      bool isDrawn = own % 5 == 1 || mixed(own + number) % 2 == 0;
      if (!isOfKind || !isDrawn || own % 5 == 0)
        continue;
      list.append(row, number);
      ++taken;
    }
  });
}

static void transpose(const List &from, List to) {
  to.forEachRow(
      [&](llvm::ArrayRef<int64_t> row) { to.counts.setWhole(row, 0); });
  from.forEachRow([&](llvm::ArrayRef<int64_t> row) {
    int64_t count = from.counts.getWhole(row);
    for (int64_t n = 0; n < count; ++n) {
      int64_t number = from.indices.getWhole({row[0], row[1], row[2], n});
      to.append({row[0], row[1], number}, row[2]);
    }
  });
}

void run::drawCapture(HostBytes &array, uint64_t seed) {
  if (llvm::isa<mlir::FloatType>(array.shape.elementType))
    fillRandom(array, seed, 1);
  else
    drawRuns(array, seed);
}

void run::drawBlocks(HostBytes &counts, HostBytes &indices, unsigned kind,
                     uint64_t seed) {
  List list = {counts, indices};
  drawList(list, list.columns(), kind, /*isAlone=*/false, seed);
}

namespace {

/// Draws group by group.
class Drawing {
public:
  Drawing(const Attention &attention, std::vector<HostBytes> &arrays,
          uint64_t seed)
      : attention(attention), op(attention.op), arrays(arrays), seed(seed) {}

  void run() {
    for (unsigned n = 0; n < op.captures().size(); ++n)
      drawCapture(array(ClauseGroup::captures, n), seed + n);
    if (has(ClauseGroup::sinks))
      fillRandom(array(ClauseGroup::sinks, 0), ~seed, 1);
    if (has(ClauseGroup::usedKeys))
      drawLengths(array(ClauseGroup::usedKeys, 0));
    if (has(ClauseGroup::pageTable))
      drawPages(attention, arrays, seed);
    for (ClauseGroup scale : kScaleGroups)
      if (has(scale))
        drawScales(array(scale, 0), unsigned(scale));
    drawLists(ClauseGroup::partial, ClauseGroup::transposedPartial, 0);
    drawLists(ClauseGroup::full, ClauseGroup::transposedFull, 1);
    if (!has(ClauseGroup::offsets))
      return;
    const Problem &p = attention.problem;
    drawOffsets(0, p.queries, p.ragged->longest.queries);
    if (areKeysRagged(p))
      drawOffsets(1, p.keys, p.ragged->longest.keys);
  }

private:
  bool has(ClauseGroup group) { return !op.clauseOperands(group).empty(); }
  HostBytes &array(ClauseGroup group, unsigned number) {
    return arrays[attention.clauseInput(group, number).position];
  }
  List list(ClauseGroup group) { return {array(group, 0), array(group, 1)}; }

  /// Of some keys, all or none.
  void drawLengths(HostBytes &lengths) {
    int64_t keys = attention.problem.keys;
    forEachIndex(lengths.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
      uint64_t drawn = mixed(seed ^ mixed(uint64_t(index[0])));
      int64_t some = int64_t(mixed(drawn) % uint64_t(keys + 1));
      lengths.setWhole(index, drawn % 8 == 0   ? 0
                              : drawn % 8 == 1 ? keys
                                               : some);
    });
  }

  /// From 1/4 to 1, so that scores are no larger than without.
  void drawScales(HostBytes &scales, uint64_t number) {
    uint64_t counter = mixed(seed + number);
    forEachIndex(scales.shape.sizes, [&](llvm::ArrayRef<int64_t> index) {
      scales.set(index, double(1 + mixed(counter++) % 4) / 4);
    });
  }

  void drawLists(ClauseGroup group, ClauseGroup turned, unsigned kind) {
    // Lists that the function makes are none to draw.
    if (!has(group) || attention.clauseInput(group, 0).listing)
      return;
    int64_t perBlock = op.blockSize()->keys;
    int64_t blocks = (attention.problem.keys + perBlock - 1) / perBlock;
    bool isAlone = has(ClauseGroup::partial) != has(ClauseGroup::full);
    drawList(list(group), blocks, kind, isAlone, seed);
    if (has(turned) && !attention.clauseInput(turned, 0).listing)
      transpose(list(group), list(turned));
  }

  /// Lengths up to the longest, of which some are 0, that add up to the rows as
  /// far as sequences of that length can.
  void drawOffsets(unsigned number, int64_t rows, int64_t longest) {
    HostBytes &offsets = array(ClauseGroup::offsets, number);
    int64_t count = attention.problem.batch, first = 0;
    offsets.setWhole({0}, 0);
    for (int64_t n = 0; n < count; ++n) {
      int64_t left = rows - first, behind = count - n - 1;
      int64_t most = std::min(longest, left),
              least = std::min(most, left > behind * longest
                                         ? left - behind * longest
                                         : int64_t(0));
      uint64_t drawn = mixed(seed + 2 * uint64_t(n) + number);
      bool isNone = drawn % 5 == 0;
      // What is left is shared by those behind.
      int64_t room = std::min(most - least, 2 * left / (behind + 1));
      int64_t length =
          least + (isNone ? 0 : int64_t(drawn / 5 % uint64_t(room + 1)));
      first += length;
      offsets.setWhole({n + 1}, first);
    }
  }

  const Attention &attention;
  AttentionOpInterface op;
  std::vector<HostBytes> &arrays;
  uint64_t seed;
};

} // namespace

void run::drawClauseInputs(const Attention &attention,
                           std::vector<HostBytes> &arrays, uint64_t seed) {
  constexpr uint64_t ofClauses = 0x636c6175736573; // far from other seeds
  Drawing(attention, arrays, mixed(seed ^ ofClauses)).run();
}
