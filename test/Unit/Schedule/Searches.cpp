//===- Searches.cpp - What tools/bench/choice.py measured -----------------===//

#include "Searches.h"

#include "../Share.h"

#include "attn/Machine/MachineText.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

using namespace attn;
using llvm::StringRef;

namespace {

using Columns = llvm::SmallVector<StringRef, 16>;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> open(StringRef name) {
  std::string path = (ATTN_RESULTS "/" + name).str();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::createStringError(file.getError(), "%s", path.c_str());
  return std::move(*file);
}

llvm::Error wrong(const char *name, int64_t line, const char *words) {
  return llvm::createStringError("%s:%lld: expects %s", name,
                                 static_cast<long long>(line), words);
}

Columns cellsOf(StringRef line) {
  Columns columns;
  line.split(columns, '\t');
  return columns;
}

/// NUMBER:TIME[:FINAL[:DUEL]], in microseconds.
std::optional<TimedCandidate>
candidateOf(StringRef text, const std::vector<StringRef> &schedules) {
  llvm::SmallVector<StringRef, 4> parts;
  text.split(parts, ':');
  size_t number;
  double times[2];
  if (parts.size() < 2 || parts.size() > 4 || parts[0].getAsInteger(10, number))
    return std::nullopt;
  if (number >= schedules.size() || parts[1].getAsDouble(times[0]))
    return std::nullopt;
  TimedCandidate found{schedules[number].str(), times[0] * 1e-6, std::nullopt};
  if (parts.size() == 2)
    return found;
  if (parts[2].getAsDouble(times[1]))
    return std::nullopt;
  found.final = times[1] * 1e-6;
  return found;
}

std::optional<SearchedProblem>
problemOf(const Columns &columns, const std::vector<StringRef> &schedules) {
  if (columns.size() != 13)
    return std::nullopt;
  SearchedProblem found;
  Problem &p = found.problem;
  std::optional<DataType> dtype = parseDataType(columns[1].str());
  std::optional<Mask> mask = parseMask(columns[8].str());
  std::string error;
  std::optional<Machine> machine = parseMachine(columns[9].str(), error);
  if (!dtype || !mask || !machine)
    return std::nullopt;
  p.dtype = *dtype;
  p.mask = *mask;
  found.machine = *machine;
  if (columns[2].getAsInteger(10, p.batch) ||
      columns[3].getAsInteger(10, p.heads) ||
      columns[4].getAsInteger(10, p.kvHeads) ||
      columns[5].getAsInteger(10, p.queries) ||
      columns[6].getAsInteger(10, p.headDim) ||
      columns[7].getAsInteger(10, p.headDimV))
    return std::nullopt;
  p.keys = p.queries;
  for (StringRef column : llvm::ArrayRef(columns).slice(1, 9))
    found.text += (found.text.empty() ? "" : " ") + column.str();
  llvm::SmallVector<StringRef, 64> texts;
  columns[12].split(texts, ' ');
  for (StringRef text : texts) {
    std::optional<TimedCandidate> candidate = candidateOf(text, schedules);
    if (!candidate)
      return std::nullopt;
    found.candidates.push_back(*candidate);
  }
  return found;
}

std::optional<Replay> replayOf(const Columns &columns) {
  Replay found;
  if (columns.size() != 8 || columns[3].getAsInteger(10, found.judged) ||
      columns[4].getAsInteger(10, found.good) ||
      columns[5].getAsInteger(10, found.bad) ||
      columns[6].getAsDouble(found.meanLoss) ||
      columns[7].getAsDouble(found.error))
    return std::nullopt;
  found.search = columns[0].str();
  found.asked = columns[1].str();
  found.kernels = columns[2].str();
  return found;
}

} // namespace

llvm::Expected<std::vector<SearchedProblem>>
attn::readSearch(const std::string &name) {
  auto file = open("searches.tsv");
  if (!file)
    return file.takeError();
  std::vector<StringRef> schedules;
  std::vector<SearchedProblem> problems;
  bool isWanted = false;
  for (llvm::line_iterator line(**file); !line.is_at_end(); ++line) {
    auto [kind, rest] = line->split('\t');
    if (kind == "schedule")
      schedules.push_back(rest);
    else if (kind == "search")
      isWanted = rest.split('\t').first == name;
    else if (isWanted) {
      std::optional<SearchedProblem> found =
          problemOf(cellsOf(*line), schedules);
      if (!found)
        return wrong("searches.tsv", line.line_number(),
                     "a problem in 13 columns, and candidates of schedules "
                     "above it");
      problems.push_back(std::move(*found));
    }
  }
  if (problems.empty())
    return llvm::createStringError("searches.tsv: expects the search %s",
                                   name.c_str());
  return problems;
}

llvm::Expected<std::vector<Replay>> attn::readReplays() {
  auto file = open("replays.tsv");
  if (!file)
    return file.takeError();
  std::vector<Replay> found;
  for (llvm::line_iterator line(**file); !line.is_at_end(); ++line) {
    std::optional<Replay> replay = replayOf(cellsOf(*line));
    if (!replay)
      return wrong("replays.tsv", line.line_number(),
                   "eight columns, five of them numbers");
    found.push_back(*replay);
  }
  return found;
}

std::vector<Replay> attn::shareOfReplays(const std::string &asked) {
  auto failed = [&](llvm::Error error) -> std::vector<Replay> {
    return {{llvm::toString(std::move(error)), asked, "", 0, 0, 0, 0, 0}};
  };
  llvm::Expected<std::vector<Replay>> all = readReplays();
  if (!all)
    return failed(all.takeError());
  llvm::Expected<Share> mine = shareAsked();
  if (!mine)
    return failed(mine.takeError());
  std::vector<Replay> found;
  for (size_t at = 0; at < all->size(); ++at)
    if (mine->has(at) && (*all)[at].asked == asked)
      found.push_back((*all)[at]);
  return found;
}

void attn::record(const Replay &counted, const std::vector<Outcome> &outcomes) {
  testing::Test::RecordProperty("search", counted.search);
  testing::Test::RecordProperty("asked", counted.asked);
  testing::Test::RecordProperty("kernels", counted.kernels);
  testing::Test::RecordProperty("judged", std::to_string(counted.judged));
  testing::Test::RecordProperty("good", std::to_string(counted.good));
  testing::Test::RecordProperty("bad", std::to_string(counted.bad));
  testing::Test::RecordProperty("mean_loss", std::to_string(counted.meanLoss));
  testing::Test::RecordProperty("error", std::to_string(counted.error));
  std::string losses;
  for (const Outcome &one : outcomes)
    losses += (losses.empty() ? "" : " ") + std::to_string(one.loss) +
              (one.agrees ? "" : "*");
  testing::Test::RecordProperty("losses", losses);
}

double attn::medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::map<std::string, double> attn::predictedTimes(const Problem &problem,
                                                   const Machine &machine) {
  std::map<std::string, double> predicted;
  for (const Plan &plan : plans(problem, machine).plans)
    predicted[plan.schedule + ", " + plan.tiles.str()] = plan.seconds;
  return predicted;
}

std::string attn::testName(const Replay &replay) {
  std::string name = replay.search;
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name;
}

void attn::PrintTo(const Replay &replay, std::ostream *out) {
  *out << replay.search;
}
