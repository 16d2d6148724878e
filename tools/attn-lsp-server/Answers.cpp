//===- Answers.cpp - What ops are, in the server's answers ----------------===//

#include "Answers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <optional>
#include <unistd.h>

using namespace attn;
using llvm::StringRef;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// What an op is, "attn.forward"; empty if it is none of ours.
static StringRef summaryOf(StringRef op) {
  static constexpr struct {
    StringRef name, summary;
  } ops[] = {
#include "OpSummaries.inc"
  };
  for (const auto &[name, summary] : ops)
    if (name == op)
      return summary;
  return "";
}

/// Behind the first line, which is the op's name in quotes.
static void explainHover(json::Object &contents) {
  std::optional<StringRef> value = contents.getString("value");
  if (!value || !value->starts_with("\""))
    return;
  auto [head, tail] = value->split('\n');
  StringRef summary = summaryOf(
      head.drop_front().take_until([](char letter) { return letter == '"'; }));
  if (!summary.empty())
    contents["value"] = (head + "\n\n" + summary + "\n" + tail).str();
}

/// Ops are offered behind the name of their dialect and a dot, so all items of
/// a list are of one dialect.
static void explainItems(json::Array &items) {
  auto summaryIn = [](StringRef dialect, const json::Value &item) {
    const json::Object *object = item.getAsObject();
    std::optional<StringRef> label =
        object ? object->getString("label") : std::nullopt;
    return label ? summaryOf((dialect + "." + *label).str()) : StringRef();
  };
  for (StringRef dialect : {"attn", "tile"}) {
    if (items.empty() || llvm::any_of(items, [&](const json::Value &item) {
          return summaryIn(dialect, item).empty();
        }))
      continue;
    for (json::Value &item : items)
      (*item.getAsObject())["documentation"] = summaryIn(dialect, item);
  }
}

std::string attn::explain(StringRef message) {
  llvm::Expected<json::Value> parsed = json::parse(message);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return message.str();
  }
  json::Object *object = parsed->getAsObject();
  json::Object *result = object ? object->getObject("result") : nullptr;
  if (!result)
    return message.str();
  if (json::Object *contents = result->getObject("contents"))
    explainHover(*contents);
  if (json::Array *items = result->getArray("items"))
    explainItems(*items);
  std::string text;
  llvm::raw_string_ostream(text) << *parsed;
  return text;
}

//===----------------------------------------------------------------------===//
// The standard output
//===----------------------------------------------------------------------===//

static constexpr StringRef kLength = "Content-Length: ", kEnd = "\r\n\r\n";

/// Takes a whole message from the front of the text; nothing while there is
/// none.
static std::optional<std::string> takeMessage(std::string &text) {
  size_t headEnd = StringRef(text).find(kEnd);
  if (headEnd == StringRef::npos)
    return std::nullopt;
  size_t length = 0, begin = headEnd + kEnd.size();
  StringRef digits = StringRef(text).take_front(headEnd).split(kLength).second;
  digits.consumeInteger(10, length);
  if (text.size() - begin < length)
    return std::nullopt;
  std::string message = text.substr(begin, length);
  text.erase(0, begin + length);
  return message;
}

static void copyMessages(int from, int to) {
  llvm::raw_fd_ostream out(to, /*shouldClose=*/false);
  std::string text;
  char part[4096];
  while (ssize_t count = read(from, part, sizeof part)) {
    if (count < 0)
      break;
    text.append(part, size_t(count));
    while (std::optional<std::string> message = takeMessage(text)) {
      std::string explained = explain(*message);
      out << kLength << explained.size() << kEnd << explained;
      out.flush();
    }
  }
  out << text; // no message: what --help and --version print
  close(from);
}

ExplainedOutput::ExplainedOutput() {
  int ends[2];
  if (pipe(ends) != 0)
    return;
  output = dup(STDOUT_FILENO);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[1]);
  reader = std::thread(copyMessages, ends[0], output);
}

ExplainedOutput::~ExplainedOutput() {
  if (!reader.joinable())
    return;
  std::fflush(stdout);
  // Closes the pipe, whose end ends the thread.
  dup2(output, STDOUT_FILENO);
  reader.join();
  close(output);
}
