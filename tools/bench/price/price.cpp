//===- price.cpp - Many kernels under many constants ----------------------===//
//
// tools/bench/fit.py asks what the model says of kernels that somebody timed,
// for one set of constants of time after the other.  What a kernel does depends
// on no constant (Time/Work.h), so it is worked out once.
//
// Standard input has lines whose columns are parted by tabs:
//
//   problem  DIRECTION  DTYPE  BATCH  HEADS  KV_HEADS  ROWS  HEAD_DIM
//            HEAD_DIM_V  MASK  MACHINE
//   kernel   SCHEDULE, TILES          of the problem above
//   go
//
// Then standard output has the number of all kernels that are priced, and a
// line for each kernel: its own number, and those of its *rivals*, which differ
// in nothing but the room that they take, so that the fastest of them stands
// for all; or "-" if it is no plan.
//
// Each further line of input has constants, NAME VALUE NAME VALUE ...; the rest
// are the machine's.  It is answered by the seconds of all kernels, as doubles
// in the order of their numbers.
//
//===----------------------------------------------------------------------===//

#include "Time/Launch.h"
#include "attn/Machine/MachineText.h"
#include "attn/Schedule/Plan.h"
#include "attn/Schedule/Registry.h"
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

using namespace attn;

namespace {

/// A kernel that is priced.
struct Priced {
  std::vector<LaunchWork> launches;
};

struct TimedProblem {
  Problem problem;
  Machine machine;
  std::vector<std::string> kernels;
  std::vector<std::vector<size_t>> numbers; ///< of each and its rivals, here
  std::vector<Priced> priced;
};

struct Choice {
  std::string schedule;
  Tiles tiles;
};

} // namespace

static std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::istringstream words(text);
  for (std::string part; std::getline(words, part, at);)
    parts.push_back(part);
  return parts;
}

static std::optional<TimedProblem>
problemOf(const std::vector<std::string> &columns) {
  constexpr size_t count = 11;
  if (columns.size() != count)
    return std::nullopt;
  std::optional<DataType> dtype = parseDataType(columns[2]);
  std::optional<Mask> mask = parseMask(columns[9]);
  std::string error;
  std::optional<Machine> machine = parseMachine(columns[10], error);
  if (!dtype || !mask || !machine)
    return std::nullopt;
  TimedProblem found;
  Problem &p = found.problem;
  p.direction =
      columns[1] == "backward" ? Direction::backward : Direction::forward;
  p.dtype = *dtype, p.mask = *mask, found.machine = *machine;
  int64_t *const extents[] = {&p.batch,   &p.heads,   &p.kvHeads,
                              &p.queries, &p.headDim, &p.headDimV};
  for (size_t i = 0; i < std::size(extents); ++i)
    *extents[i] = std::atoll(columns[3 + i].c_str());
  p.keys = p.queries;
  return found;
}

/// SCHEDULE, NAME = VALUE, ...
static Choice choiceOf(const std::string &text) {
  std::vector<std::string> parts = split(text, ',');
  Choice choice{parts.front(), {}};
  for (size_t i = 1; i < parts.size(); ++i) {
    std::istringstream words(parts[i]);
    std::string name, equals;
    int64_t value = 0;
    words >> name >> equals >> value;
    choice.tiles.set(name, value);
  }
  return choice;
}

static const Form *formOf(const Choice &choice, const Problem &problem) {
  const ScheduleKind *kind = findScheduleKind(choice.schedule);
  if (!kind)
    return nullptr;
  for (const Form &form : kind->forms)
    if (form.hasAll(choice.tiles) && form.keeps == problem.keepsWeights &&
        (!form.takes || form.takes(problem)))
      return &form;
  return nullptr;
}

/// Whether plans try all these values; of gradients some were timed that they
/// do not.
static bool isTried(const Form &form, const Tiles &tiles) {
  auto has = [&](const Parameter &one) {
    return std::find(one.values.begin(), one.values.end(),
                     tiles.get(one.name)) != one.values.end();
  };
  std::vector<Parameter> all = form.parameters();
  return std::all_of(all.begin(), all.end(), has);
}

/// The tiles, and all that differ from them in the room they take.
static std::vector<Tiles> withRivals(const Form &form, const Tiles &tiles) {
  std::vector<Tiles> all = {tiles};
  for (const Parameter &parameter : form.room) {
    std::vector<Tiles> more;
    for (const Tiles &one : all)
      for (int64_t value : parameter.values) {
        more.push_back(one);
        more.back().set(parameter.name, value);
      }
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

static std::optional<Priced> pricedOf(const TimedProblem &of,
                                      const Choice &choice) {
  std::string error;
  std::optional<Plan> plan =
      planFor(of.problem, of.machine, choice.schedule, choice.tiles, error);
  const Form *form = formOf(choice, of.problem);
  if (!plan || !form || plan->tiles.str() != choice.tiles.str())
    return std::nullopt;
  Schedule schedule = form->build(choice.tiles);
  Census counted = census(schedule, of.problem);
  return Priced{
      launchWork(counted, schedule, of.problem, of.machine, plan->family)};
}

static void workOut(TimedProblem &of) {
  std::map<std::string, std::optional<size_t>> known;
  auto numberOf = [&](const Choice &choice) {
    auto [at, isNew] =
        known.try_emplace(decision(choice.schedule, choice.tiles));
    if (!isNew)
      return at->second;
    if (std::optional<Priced> priced = pricedOf(of, choice)) {
      at->second = of.priced.size();
      of.priced.push_back(std::move(*priced));
    }
    return at->second;
  };
  bool isForward = of.problem.direction == Direction::forward;
  for (const std::string &text : of.kernels) {
    std::vector<size_t> &numbers = of.numbers.emplace_back();
    Choice choice = choiceOf(text);
    const Form *form = formOf(choice, of.problem);
    if (!form || (isForward && !isTried(*form, choice.tiles)))
      continue;
    std::optional<size_t> own = numberOf(choice);
    if (!own)
      continue;
    numbers.push_back(*own);
    if (isForward)
      for (const Tiles &tiles : withRivals(*form, choice.tiles))
        if (auto rival = numberOf({choice.schedule, tiles});
            rival && *rival != *own)
          numbers.push_back(*rival);
  }
}

/// Every problem, by as many threads as the processor has.
template <typename Body>
static void forEach(std::deque<TimedProblem> &problems, Body body) {
  std::atomic<size_t> next{0};
  auto run = [&] {
    for (size_t i; (i = next++) < problems.size();)
      body(problems[i], i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread &thread : threads)
    thread.join();
}

static double secondsOf(const Priced &kernel, const Machine &machine,
                        const Calibration &c) {
  double seconds = 0;
  for (const LaunchWork &launch : kernel.launches)
    seconds += launchTime(launch, machine, c).seconds;
  return seconds;
}

/// Of one line of constants; false: one has no such name.
static bool answer(const std::string &line, std::deque<TimedProblem> &problems,
                   const std::vector<size_t> &first) {
  std::vector<std::pair<std::string, double>> values;
  std::istringstream words(line);
  std::string name;
  for (double value; words >> name >> value;)
    values.emplace_back(name, value);
  Calibration unused;
  for (const auto &[name, value] : values)
    if (!setTime(unused, name, value))
      return false;
  std::vector<double> seconds(first.back());
  forEach(problems, [&](TimedProblem &of, size_t number) {
    Calibration c = calibrationOf(of.machine);
    for (const auto &[name, value] : values)
      setTime(c, name, value);
    for (size_t i = 0; i < of.priced.size(); ++i)
      seconds[first[number] + i] = secondsOf(of.priced[i], of.machine, c);
  });
  std::fwrite(seconds.data(), sizeof(double), seconds.size(), stdout);
  std::fflush(stdout);
  return true;
}

static int fail(const std::string &words, const std::string &line) {
  std::fprintf(stderr, "attn-price: expects %s, but got '%s'\n", words.c_str(),
               line.c_str());
  return 1;
}

int main() {
  std::deque<TimedProblem> problems;
  std::string line;
  while (std::getline(std::cin, line) && line != "go") {
    std::vector<std::string> columns = split(line, '\t');
    if (columns.size() == 2 && columns[0] == "kernel" && !problems.empty()) {
      problems.back().kernels.push_back(columns[1]);
      continue;
    }
    std::optional<TimedProblem> found = problemOf(columns);
    if (!found || columns[0] != "problem")
      return fail("a problem of 11 columns, a kernel below one, or go", line);
    problems.push_back(std::move(*found));
  }
  forEach(problems, [](TimedProblem &of, size_t) { workOut(of); });
  std::vector<size_t> first = {0};
  for (const TimedProblem &of : problems)
    first.push_back(first.back() + of.priced.size());
  std::printf("%zu\n", first.back());
  for (size_t i = 0; i < problems.size(); ++i)
    for (const std::vector<size_t> &numbers : problems[i].numbers) {
      std::string text = numbers.empty() ? "-" : "";
      for (size_t number : numbers)
        text += (text.empty() ? "" : " ") + std::to_string(first[i] + number);
      std::printf("%s\n", text.c_str());
    }
  std::fflush(stdout);
  while (std::getline(std::cin, line))
    if (!answer(line, problems, first))
      return fail("NAME VALUE of constants of time", line);
  return 0;
}
