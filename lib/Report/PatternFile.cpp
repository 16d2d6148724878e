//===- PatternFile.cpp - Lists of blocks from a file ----------------------===//

#include "attn/Report/PatternFile.h"
#include "attn/Schedule/Census.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <algorithm>

using namespace attn;
using llvm::StringRef;

static std::string number(int64_t value) { return std::to_string(value); }

namespace {

/// A list as it looks.
class TextReader {
public:
  TextReader(StringRef text, StringRef name, const Problem &problem)
      : text(text), name(name), problem(problem) {}

  std::optional<Pattern> read() {
    while (!text.empty() && error.empty()) {
      auto [first, rest] = text.split('\n');
      text = rest;
      ++lineNumber;
      line(first.split(';').first.rtrim());
    }
    if (error.empty())
      endList();
    if (error.empty() && !size)
      wrong(0, "expects a line 'blocks 128x128', but got none");
    else if (error.empty() && lists.empty())
      wrong(0, "expects rows of blocks, but got none");
    if (!error.empty())
      return std::nullopt;
    return Pattern(*size, std::move(lists));
  }
  std::string error;

private:
  StringRef text;
  const StringRef name;
  const Problem &problem;
  std::optional<BlockSize> size;
  std::vector<BlockRows> lists;
  BlockRows list;
  int64_t lineNumber = 0;

  void wrong(size_t column, const std::string &sentence) {
    error = name.str() + ":" + number(std::max<int64_t>(lineNumber, 1)) + ":" +
            number(int64_t(column) + 1) + ": " + sentence;
  }

  void line(StringRef one) {
    if (one.empty())
      endList();
    else if (one.starts_with("blocks"))
      readSize(one);
    else if (!size)
      wrong(0, "expects a line 'blocks 128x128' before rows of blocks, but "
               "got '" +
                   one.take_front(20).str() + "'");
    else
      readRow(one);
  }

  void readSize(StringRef one) {
    StringRef given = one.drop_front(StringRef("blocks").size()).trim();
    if (size)
      return wrong(0, "expects one line with the size of blocks, but got two");
    size = parseBlockSize(given);
    if (!size || size->queries < 1 || size->keys < 1 ||
        size->queries > kMaxRows || size->keys > kMaxRows)
      wrong(one.size() - given.size(),
            "expects blocks of 1 to " + number(kMaxRows) +
                " queries and keys, as 128x64, but got '" + given.str() + "'");
  }

  void readRow(StringRef one) {
    std::vector<int32_t> row;
    for (size_t i = 0; i < one.size(); ++i) {
      if (one[i] == '#')
        row.push_back(int32_t(i));
      else if (one[i] != '.')
        return wrong(i, std::string("expects '#' or '.', but got '") + one[i] +
                            "'");
    }
    int64_t columns = ceilDiv(problem.keys, size->keys);
    int64_t rows = ceilDiv(problem.queries, size->queries);
    if (int64_t(one.size()) != columns)
      return wrong(std::min<size_t>(one.size(), size_t(columns)),
                   "expects " + number(columns) + " blocks of " +
                       number(size->keys) + " keys, but got " +
                       number(int64_t(one.size())));
    if (list.rows() == rows)
      return wrong(0, "expects " + number(rows) + " rows of " +
                          number(size->queries) +
                          " queries, and an empty line between lists, but "
                          "got more");
    list.columns = columns;
    list.add(row);
  }

  void endList() {
    if (list.rows() == 0)
      return;
    int64_t rows = ceilDiv(problem.queries, size->queries);
    if (list.rows() != rows)
      return wrong(0, "expects " + number(rows) + " rows of " +
                          number(size->queries) + " queries, but got " +
                          number(list.rows()));
    lists.push_back(std::move(list));
    list = {};
  }
};

/// Numbers, by their place in the file: `lists[1][3][0]`.
class JsonReader {
public:
  JsonReader(StringRef name, const Problem &problem)
      : name(name), problem(problem) {}

  std::optional<Pattern> read(const llvm::json::Value &file) {
    const llvm::json::Object *object = file.getAsObject();
    const llvm::json::Array *all = object ? object->getArray("lists") : nullptr;
    if (!all)
      return wrong("", "expects an object with 'blocks' and 'lists'");
    if (!readSize(object->get("blocks")))
      return std::nullopt;
    std::vector<BlockRows> lists;
    for (size_t i = 0; i < all->size(); ++i) {
      std::optional<BlockRows> list =
          readList((*all)[i], "lists[" + number(int64_t(i)) + "]");
      if (!list)
        return std::nullopt;
      lists.push_back(std::move(*list));
    }
    if (lists.empty())
      return wrong("lists", "expects a list of blocks or more, but got none");
    return Pattern(size, std::move(lists));
  }
  std::string error;

private:
  const StringRef name;
  const Problem &problem;
  BlockSize size;

  std::nullopt_t wrong(const std::string &place, const std::string &sentence) {
    error = name.str() + (place.empty() ? "" : ": " + place) + ": " + sentence;
    return std::nullopt;
  }

  bool readSize(const llvm::json::Value *given) {
    const llvm::json::Array *pair = given ? given->getAsArray() : nullptr;
    if (pair && pair->size() == 2) {
      auto queries = (*pair)[0].getAsInteger(),
           keys = (*pair)[1].getAsInteger();
      auto isSize = [](std::optional<int64_t> rows) {
        return rows && *rows >= 1 && *rows <= kMaxRows;
      };
      if (isSize(queries) && isSize(keys)) {
        size = {*queries, *keys};
        return true;
      }
    }
    wrong("blocks", "expects queries and keys of a block, two numbers from 1 "
                    "to " +
                        number(kMaxRows));
    return false;
  }

  std::optional<BlockRows> readList(const llvm::json::Value &value,
                                    const std::string &place) {
    const llvm::json::Array *rows = value.getAsArray();
    int64_t count = ceilDiv(problem.queries, size.queries);
    int64_t got = rows ? int64_t(rows->size()) : 0;
    if (got != count)
      return wrong(place, "expects " + number(count) + " rows of " +
                              number(size.queries) + " queries, but got " +
                              number(got));
    BlockRows list;
    list.columns = ceilDiv(problem.keys, size.keys);
    for (int64_t i = 0; i < count; ++i)
      if (!readRow((*rows)[size_t(i)], place + "[" + number(i) + "]", list))
        return std::nullopt;
    return list;
  }

  bool readRow(const llvm::json::Value &value, const std::string &place,
               BlockRows &list) {
    const llvm::json::Array *blocks = value.getAsArray();
    if (!blocks) {
      wrong(place, "expects numbers of blocks of keys");
      return false;
    }
    std::vector<int32_t> row;
    for (size_t i = 0; i < blocks->size(); ++i) {
      std::optional<int64_t> block = (*blocks)[i].getAsInteger();
      if (!block || *block < 0 || *block >= list.columns) {
        wrong(place + "[" + number(int64_t(i)) + "]",
              "expects a block of " + number(size.keys) + " keys from 0 to " +
                  number(list.columns - 1) +
                  (block ? ", but got " + number(*block) : ""));
        return false;
      }
      row.push_back(int32_t(*block));
    }
    std::sort(row.begin(), row.end());
    auto twice = std::adjacent_find(row.begin(), row.end());
    if (twice != row.end()) {
      wrong(place,
            "expects every block once, but got " + number(*twice) + " twice");
      return false;
    }
    list.add(row);
    return true;
  }
};

} // namespace

/// `file:2:7: sentence`, of LLVM's `[2:7, byte=12]: sentence`.
static std::string located(StringRef name, llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  StringRef message = text;
  auto [place, sentence] = message.split("]: ");
  StringRef at = place.ltrim('[').split(',').first;
  if (sentence.empty())
    return name.str() + ": " + text;
  return name.str() + ":" + at.str() +
         ": expects JSON, but got: " + sentence.str();
}

std::optional<Pattern> attn::readPattern(StringRef text, StringRef name,
                                         const Problem &problem,
                                         std::string &error) {
  std::optional<Pattern> pattern;
  if (text.ltrim().starts_with("{")) {
    llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
    if (!parsed) {
      error = located(name, parsed.takeError());
      return std::nullopt;
    }
    JsonReader reader(name, problem);
    pattern = reader.read(*parsed);
    error = reader.error;
  } else {
    TextReader reader(text, name, problem);
    pattern = reader.read();
    error = reader.error;
  }
  if (pattern)
    if (auto sentence = check(*pattern, problem)) {
      error = name.str() + ": " + *sentence;
      return std::nullopt;
    }
  return pattern;
}
