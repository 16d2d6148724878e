//===- Tiles.h - The parameters of a schedule -------------------*- C++ -*-===//
///
/// The tile sizes of a schedule, as an ordered list of names and values that
/// prints as a sentence and reads back: `query = 128, key = 64, stages = 2`.
/// The order is that of the schedule's parameters.  Equal lists are equal
/// decisions.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_TILES_H
#define ATTN_SCHEDULE_TILES_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attn {

class Tiles {
public:
  using Item = std::pair<std::string, int64_t>;

  Tiles() = default;
  Tiles(std::initializer_list<Item> items) : items(items) {}

  /// The value of that name, or `otherwise` if there is none.
  int64_t get(std::string_view name, int64_t otherwise = 0) const;
  bool has(std::string_view name) const;
  void set(std::string_view name, int64_t value);

  std::vector<Item>::const_iterator begin() const { return items.begin(); }
  std::vector<Item>::const_iterator end() const { return items.end(); }
  bool empty() const { return items.empty(); }
  size_t size() const { return items.size(); }

  bool operator==(const Tiles &other) const { return items == other.items; }
  bool operator!=(const Tiles &other) const { return items != other.items; }

  /// `query = 128, key = 64`.
  std::string str() const;

private:
  std::vector<Item> items;
};

/// Reads what `str` prints.  On failure returns nothing and sets `error` to a
/// sentence.
std::optional<Tiles> parseTiles(std::string_view text, std::string &error);

} // namespace attn

#endif // ATTN_SCHEDULE_TILES_H
