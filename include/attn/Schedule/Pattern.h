//===- Pattern.h - Which blocks of queries see which blocks of keys *- C++
//-*-=//
///
/// A pattern cuts the scores of a head into blocks of so many queries x so many
/// keys and says which of them are visible.  What it hides nobody sees; of what
/// it shows a mask may hide more.  Heads may have patterns of their own, or
/// share them.
///
/// A pattern either has *lists*, which blocks each row of blocks sees, and all
/// counts are exact; or only a *density*, the share of blocks that are visible,
/// and counts are those expected if each block is drawn by itself.  A plan
/// needs no more than the latter.  With blocks of 4 x 4, 12 queries and 8 keys:
///
///   # .      row 0 sees key block 0      begins = 0 1 3 3
///   # #      row 1 sees both             blocks = 0 0 1
///   . .      row 2 sees nothing          density = 3 / 6
///
/// It is a value: copies share what never changes.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PATTERN_H
#define ATTN_SCHEDULE_PATTERN_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

struct Problem;
struct PatternData;

/// Rows of a block: queries, and keys.
struct BlockSize {
  int64_t queries = 0, keys = 0;

  BlockSize transposed() const { return {keys, queries}; }
  bool operator==(const BlockSize &other) const;
};
/// `128x64`.
std::string str(const BlockSize &size);
/// Reads what `str` prints; one number is that of both.
std::optional<BlockSize> parseBlockSize(std::string_view text);

/// Visible blocks of one list, by rows of `columns` blocks: those of row i are
/// `blocks[begins[i] .. begins[i + 1] - 1]`, each once and rising.
struct BlockRows {
  int64_t columns = 0;
  std::vector<int64_t> begins = {0};
  std::vector<int32_t> blocks;

  int64_t rows() const { return int64_t(begins.size()) - 1; }
  int64_t visible() const { return int64_t(blocks.size()); }
  const int32_t *begin(int64_t row) const {
    return blocks.data() + begins[size_t(row)];
  }
  const int32_t *end(int64_t row) const {
    return blocks.data() + begins[size_t(row) + 1];
  }
  bool sees(int64_t row, int64_t block) const;
  /// Puts a row behind the others.
  void add(const std::vector<int32_t> &row);
  /// What columns of blocks are seen by.
  BlockRows transposed() const;
  bool operator==(const BlockRows &other) const;
};

class Pattern {
public:
  /// One list for all heads, or several (`listOf`).
  Pattern(BlockSize size, std::vector<BlockRows> lists);
  /// Of heads with lists of their own, or of one that all share.
  Pattern(BlockSize size, double density, bool isShared = true);

  BlockSize size() const;
  bool hasLists() const { return lists() > 0; }
  /// How many there are: one, one for every key head or one for every query
  /// head; 0: there is a density only.
  int64_t lists() const;
  /// Whether all heads see the same.
  bool isShared() const;
  /// Number of the list of a query head, of so many.
  int64_t listOf(int64_t head, int64_t heads) const;
  /// Which blocks of keys a row of blocks of queries sees, and the other way.
  const BlockRows &byQueries(int64_t list) const;
  const BlockRows &byKeys(int64_t list) const;
  /// The visible blocks over all blocks.
  double density() const;

  bool operator==(const Pattern &other) const;

  /// What all copies share.
  const PatternData &shared() const { return *data; }

private:
  std::shared_ptr<const PatternData> data;
};

/// A sentence when the pattern does not fit the sizes of the problem, nothing
/// when it does.
std::optional<std::string> check(const Pattern &pattern,
                                 const Problem &problem);

/// `blocks 128x128, density 0.125`, `blocks 64x64, 96 of 256, one list for each
/// head`.
std::string str(const Pattern &pattern);

} // namespace attn

#endif // ATTN_SCHEDULE_PATTERN_H
