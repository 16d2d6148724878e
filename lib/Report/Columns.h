//===- Columns.h - Text in columns ------------------------------*- C++ -*-===//
//
// Rows of cells, all of them text, that become a table for a terminal or for
// Markdown.  A row may have a note: a line of its own below it, indented and
// broken where it would be too wide.  And text that is broken between words.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REPORT_COLUMNS_H
#define ATTN_LIB_REPORT_COLUMNS_H

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn {

/// What a row is, where there are colours.
enum class Emphasis { none, head, chosen, faint };

class Columns {
public:
  void row(std::vector<std::string> cells, Emphasis emphasis = Emphasis::none);
  /// Below the last row.
  void note(std::string text);

  /// Columns are as wide as their widest cell, with two spaces between them.
  void print(llvm::raw_ostream &out) const;
  /// A table of Markdown, whose first row is the head.
  void printMarkdown(llvm::raw_ostream &out) const;

private:
  struct Row {
    std::vector<std::string> cells;
    Emphasis emphasis;
    std::string note;
  };
  std::vector<Row> rows;
  std::vector<size_t> widths;

  std::string line(const Row &row) const;
};

/// The text in lines no wider than a terminal, if its words are not: the first
/// begins behind so many columns, the others are indented so far.
std::string wrapped(const std::string &text, size_t indent, size_t begin = 0);

/// A number by its printf format.
std::string numberText(const char *form, double value);

} // namespace attn

#endif // ATTN_LIB_REPORT_COLUMNS_H
