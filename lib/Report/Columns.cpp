//===- Columns.cpp - Text in columns --------------------------------------===//

#include "Columns.h"
#include "attn/Report/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/WithColor.h"

using namespace attn;
using llvm::StringRef;

static constexpr size_t kNoteIndent = 2;

std::string attn::numberText(const char *form, double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(form, value);
  return text;
}

std::string attn::wrapped(const std::string &text, size_t indent,
                          size_t begin) {
  llvm::SmallVector<StringRef> words;
  StringRef(text).split(words, ' ', -1, /*KeepEmpty=*/false);
  std::string lines;
  size_t column = begin;
  for (StringRef word : words) {
    bool isFirst = lines.empty();
    if (!isFirst && column + 1 + word.size() > kTableColumns) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!isFirst) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

void Columns::row(std::vector<std::string> cells, Emphasis emphasis) {
  widths.resize(std::max(widths.size(), cells.size()));
  for (auto [width, cell] : llvm::zip(widths, cells))
    width = std::max(width, cell.size());
  rows.push_back({std::move(cells), emphasis, ""});
}

void Columns::note(std::string text) { rows.back().note = std::move(text); }

std::string Columns::line(const Row &row) const {
  std::string text;
  for (auto [cell, width] : llvm::zip(row.cells, widths))
    text += cell + std::string(width - cell.size() + 2, ' ');
  return StringRef(text).rtrim().str();
}

static void print(llvm::raw_ostream &out, const std::string &text,
                  Emphasis emphasis) {
  using Stream = llvm::raw_ostream;
  switch (emphasis) {
  case Emphasis::none:
    out << text;
    break;
  case Emphasis::head:
    llvm::WithColor(out, Stream::SAVEDCOLOR, /*Bold=*/true) << text;
    break;
  case Emphasis::chosen:
    llvm::WithColor(out, Stream::GREEN, /*Bold=*/true) << text;
    break;
  case Emphasis::faint:
    llvm::WithColor(out, Stream::BRIGHT_BLACK) << text;
    break;
  }
  out << '\n';
}

void Columns::print(llvm::raw_ostream &out) const {
  std::string indent(kNoteIndent, ' ');
  for (const Row &row : rows) {
    ::print(out, line(row), row.emphasis);
    if (!row.note.empty())
      out << indent << wrapped(row.note, kNoteIndent, kNoteIndent) << '\n';
  }
}

/// A cell of Markdown: what would end it is escaped.
static std::string markdownCell(StringRef cell) {
  std::string text;
  for (char c : cell) {
    if (c == '|' || c == '_' || c == '<')
      text += '\\';
    text += c;
  }
  return text;
}

void Columns::printMarkdown(llvm::raw_ostream &out) const {
  for (const Row &row : rows) {
    out << '|';
    for (const std::string &cell : row.cells)
      out << ' ' << markdownCell(cell) << " |";
    out << '\n';
    if (&row != &rows.front())
      continue;
    for (size_t i = 0; i < row.cells.size(); ++i)
      out << (i == 0 ? "|---|" : "---|");
    out << '\n';
  }
}
