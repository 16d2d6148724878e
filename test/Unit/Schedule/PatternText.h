//===- PatternText.h - Lists of blocks as they look -------------*- C++ -*-===//

#ifndef ATTN_TEST_PATTERN_TEXT_H
#define ATTN_TEST_PATTERN_TEXT_H

#include "attn/Schedule/Pattern.h"
#include <algorithm>

namespace attn {

/// `##./..#`: rows of blocks, visible or not.
inline BlockRows blockRowsOf(std::string_view text) {
  BlockRows list;
  list.columns = int64_t(std::min(text.find('/'), text.size()));
  std::vector<int32_t> row;
  int32_t block = 0;
  for (char c : text) {
    if (c == '/') {
      list.add(row);
      row.clear(), block = 0;
      continue;
    }
    if (c == '#')
      row.push_back(block);
    ++block;
  }
  list.add(row);
  return list;
}

} // namespace attn

#endif // ATTN_TEST_PATTERN_TEXT_H
