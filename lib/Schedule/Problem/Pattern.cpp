//===- Pattern.cpp - Which blocks see which -------------------------------===//

#include "attn/Schedule/Pattern.h"
#include "Problem/PatternData.h"
#include <algorithm>
#include <charconv>

using namespace attn;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

bool BlockSize::operator==(const BlockSize &other) const {
  return queries == other.queries && keys == other.keys;
}

std::string attn::str(const BlockSize &size) {
  return std::to_string(size.queries) + "x" + std::to_string(size.keys);
}

std::optional<BlockSize> attn::parseBlockSize(std::string_view text) {
  auto number = [&](std::string_view digits, int64_t &value) {
    auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    return error == std::errc() && end == digits.end();
  };
  BlockSize size;
  size_t by = text.find('x');
  bool isPair = by != std::string_view::npos;
  if (!number(text.substr(0, by), size.queries))
    return std::nullopt;
  size.keys = size.queries;
  if (isPair && !number(text.substr(by + 1), size.keys))
    return std::nullopt;
  return size;
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

bool BlockRows::sees(int64_t row, int64_t block) const {
  return std::binary_search(begin(row), end(row), block);
}

void BlockRows::add(const std::vector<int32_t> &row) {
  blocks.insert(blocks.end(), row.begin(), row.end());
  begins.push_back(visible());
}

BlockRows BlockRows::transposed() const {
  BlockRows result;
  result.columns = rows();
  result.begins.assign(size_t(columns) + 1, 0);
  auto exists = [&](int32_t block) { return block >= 0 && block < columns; };
  for (int32_t block : blocks)
    if (exists(block))
      ++result.begins[size_t(block) + 1];
  for (size_t i = 0; i < size_t(columns); ++i)
    result.begins[i + 1] += result.begins[i];
  result.blocks.resize(size_t(result.begins.back()));
  std::vector<int64_t> next(result.begins.begin(), result.begins.end() - 1);
  size_t row = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    while (row + 2 < begins.size() && int64_t(i) >= begins[row + 1])
      ++row;
    if (exists(blocks[i]))
      result.blocks[size_t(next[size_t(blocks[i])]++)] = int32_t(row);
  }
  return result;
}

bool BlockRows::operator==(const BlockRows &other) const {
  return columns == other.columns && begins == other.begins &&
         blocks == other.blocks;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Of all blocks of all lists.
static double shareOfVisible(const std::vector<BlockRows> &lists) {
  double visible = 0, all = 0;
  for (const BlockRows &list : lists) {
    visible += double(list.visible());
    all += double(list.rows()) * double(list.columns);
  }
  return all > 0 ? visible / all : 0;
}

Pattern::Pattern(BlockSize size, std::vector<BlockRows> lists) {
  auto made = std::make_shared<PatternData>();
  made->size = size;
  made->density = shareOfVisible(lists);
  made->isShared = lists.size() <= 1;
  for (const BlockRows &list : lists)
    made->byKeys.push_back(list.transposed());
  made->byQueries = std::move(lists);
  data = std::move(made);
}

Pattern::Pattern(BlockSize size, double density, bool isShared) {
  auto made = std::make_shared<PatternData>();
  made->size = size;
  made->density = density;
  made->isShared = isShared;
  data = std::move(made);
}

BlockSize Pattern::size() const { return data->size; }
int64_t Pattern::lists() const { return int64_t(data->byQueries.size()); }
bool Pattern::isShared() const { return data->isShared; }
double Pattern::density() const { return data->density; }

int64_t Pattern::listOf(int64_t head, int64_t heads) const {
  return head * lists() / heads;
}

const BlockRows &Pattern::byQueries(int64_t list) const {
  return data->byQueries[size_t(list)];
}
const BlockRows &Pattern::byKeys(int64_t list) const {
  return data->byKeys[size_t(list)];
}

bool Pattern::operator==(const Pattern &other) const {
  return data == other.data || (data->size == other.data->size &&
                                data->byQueries == other.data->byQueries &&
                                data->density == other.data->density &&
                                data->isShared == other.data->isShared);
}

std::string attn::str(const Pattern &pattern) {
  std::string text = "blocks " + str(pattern.size());
  if (!pattern.hasLists()) {
    std::string share = std::to_string(pattern.density());
    share.erase(share.find_last_not_of('0') + 1);
    if (share.back() == '.')
      share.pop_back();
    text += ", density " + share;
    return text + (pattern.isShared() ? "" : ", each head its own");
  }
  int64_t visible = 0, all = 0;
  for (int64_t i = 0; i < pattern.lists(); ++i) {
    const BlockRows &list = pattern.byQueries(i);
    visible += list.visible();
    all += list.rows() * list.columns;
  }
  text += ", " + std::to_string(visible) + " of " + std::to_string(all) +
          " visible";
  if (pattern.lists() == 1)
    return text;
  return text + ", in " + std::to_string(pattern.lists()) + " lists";
}

//===----------------------------------------------------------------------===//
// What is checked
//===----------------------------------------------------------------------===//

static std::string text(int64_t number) { return std::to_string(number); }

/// A sentence when rows do not lie one behind the other.
static std::optional<std::string> checkBegins(const BlockRows &list) {
  const std::vector<int64_t> &begins = list.begins;
  if (begins.front() != 0 || begins.back() != list.visible())
    return "expects rows of blocks from 0 to the end of the list, " +
           text(list.visible()) + ", but got " + text(begins.front()) +
           " and " + text(begins.back());
  for (size_t row = 0; row + 1 < begins.size(); ++row)
    if (begins[row] > begins[row + 1])
      return "expects row " + text(int64_t(row)) +
             " of blocks to begin before it ends, but got " +
             text(begins[row]) + " and " + text(begins[row + 1]);
  return std::nullopt;
}

/// A sentence when the blocks of a row are not some of so many, in order.
static std::optional<std::string> checkRow(const BlockRows &list, int64_t row) {
  int64_t least = 0;
  for (const int32_t *at = list.begin(row); at != list.end(row); ++at) {
    if (*at < 0 || *at >= list.columns)
      return "expects blocks of keys from 0 to " + text(list.columns - 1) +
             " in row " + text(row) + ", but got " + text(*at);
    if (*at < least)
      return "expects the blocks of row " + text(row) + " to rise, but got " +
             text(*at) + " behind " + text(least - 1);
    least = int64_t(*at) + 1;
  }
  return std::nullopt;
}

/// A sentence when a list is not one of so many rows of so many blocks.
static std::optional<std::string> checkList(const BlockRows &list, int64_t rows,
                                            int64_t columns) {
  if (list.rows() != rows)
    return "expects " + text(rows) + " rows of blocks, but got " +
           text(list.rows());
  if (list.columns != columns)
    return "expects " + text(columns) + " blocks of keys, but got " +
           text(list.columns);
  if (auto sentence = checkBegins(list))
    return sentence;
  for (int64_t row = 0; row < rows; ++row)
    if (auto sentence = checkRow(list, row))
      return sentence;
  return std::nullopt;
}

static std::optional<std::string> checkLists(const Pattern &pattern,
                                             const Problem &p) {
  int64_t count = pattern.lists();
  if (count != 1 && count != p.kvHeads && count != p.heads)
    return "expects one list of blocks, one for each of " + text(p.kvHeads) +
           " kv heads or one for each of " + text(p.heads) +
           " heads, but got " + text(count);
  int64_t rows = ceilDiv(p.queries, pattern.size().queries);
  int64_t columns = ceilDiv(p.keys, pattern.size().keys);
  for (int64_t i = 0; i < count; ++i)
    if (auto sentence = checkList(pattern.byQueries(i), rows, columns))
      return count == 1 ? *sentence : *sentence + " in list " + text(i);
  return std::nullopt;
}

std::optional<std::string> attn::check(const Pattern &pattern,
                                       const Problem &problem) {
  for (int64_t rows : {pattern.size().queries, pattern.size().keys})
    if (rows < 1 || rows > kMaxRows)
      return "expects blocks of 1 to " + text(kMaxRows) +
             " queries and keys, but got " + str(pattern.size());
  if (pattern.hasLists())
    return checkLists(pattern, problem);
  if (pattern.density() >= 0 && pattern.density() <= 1)
    return std::nullopt;
  return "expects a density of blocks between 0 and 1, but got " +
         std::to_string(pattern.density());
}
