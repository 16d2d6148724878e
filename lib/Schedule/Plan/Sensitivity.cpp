//===- Sensitivity.cpp - What another machine would buy -------------------===//

#include "attn/Schedule/Sensitivity.h"
#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include <algorithm>
#include <cmath>

using namespace attn;

//===----------------------------------------------------------------------===//
// Resources
//===----------------------------------------------------------------------===//

static void scaleCount(int64_t &count, double factor) {
  count = std::llround(double(count) * factor);
}

const std::vector<Resource> &attn::resources() {
  static const std::vector<Resource> all = {
      {"shared_memory", "shared memory",
       [](Machine &m, double factor) {
         scaleCount(m.smemBytesPerBlock, factor);
         scaleCount(m.smemBytesPerSm, factor);
       }},
      {"registers", "registers",
       [](Machine &m, double factor) { scaleCount(m.registersPerSm, factor); }},
      {"l2_capacity", "L2",
       [](Machine &m, double factor) { scaleCount(m.l2Bytes, factor); }},
      {"hbm_rate", "memory rate",
       [](Machine &m, double factor) {
         m.hbmBytesPerSecond *= factor;
         m.measuredHbmBytesPerSecond *= factor;
       }},
      {"l2_rate", "L2 rate",
       [](Machine &m, double factor) {
         m.l2BytesPerSecond *= factor;
         m.measuredL2BytesPerSecond *= factor;
       }},
      {"smem_rate", "shared memory rate",
       [](Machine &m, double factor) { m.smemBytesPerClockPerSm *= factor; }},
      {"tensor_rate", "tensor rate",
       [](Machine &m, double factor) {
         m.tensor16FlopsPerClockPerSm *= factor;
         m.tensor8FlopsPerClockPerSm *= factor;
         m.mmaSyncFlopsPerClockPerSm *= factor;
       }},
      {"fp32_rate", "fp32 rate",
       [](Machine &m, double factor) { m.fp32FlopsPerClockPerSm *= factor; }},
      {"exp_rate", "exp rate",
       [](Machine &m, double factor) { m.expPerClockPerSm *= factor; }},
  };
  return all;
}

Machine attn::withMore(const Resource &resource, Machine machine,
                       double factor) {
  resource.scale(machine, factor);
  return machine;
}

std::vector<Gain> attn::gains(const PlanReport &report) {
  std::vector<Gain> all;
  const Plan *here = chosen(report);
  if (!here)
    return all;
  for (const Resource &resource : resources()) {
    PlanReport other =
        plans(report.problem, withMore(resource, report.machine, 2));
    if (const Plan *there = chosen(other))
      all.push_back({&resource, here->seconds / there->seconds});
  }
  return all;
}

const Gain *attn::limitOf(const std::vector<Gain> &gains) {
  constexpr double least = 1.01;
  auto most = std::max_element(
      gains.begin(), gains.end(),
      [](const Gain &a, const Gain &b) { return a.speedup < b.speedup; });
  return most == gains.end() || most->speedup < least ? nullptr : &*most;
}

//===----------------------------------------------------------------------===//
// Exponents
//===----------------------------------------------------------------------===//

/// So many that tiles at the end hardly count.
static constexpr int64_t kManyRows = int64_t(1) << 20;

double Exponent::savesByHalving() const { return std::exp2(1 + beta); }

static Problem longOne(Problem problem) {
  problem.batch = problem.heads = problem.kvHeads = 1;
  problem.queries = problem.keys = kManyRows;
  problem.mask = {};
  problem.pattern = {};
  problem.bands = {};
  problem.keepsWeights = false;
  return problem;
}

/// The form whose tiles are free: of warps that are all alike, and without
/// strips, which only say how much scratch memory there is.
static const Form *idealForm(const ScheduleKind &kind) {
  for (const Form &form : kind.forms)
    if (form.serves(TensorCoreFamily::mmaSync) && !form.keeps &&
        !form.has("strip"))
      return &form;
  return nullptr;
}

/// Parameters of an ideal form that are sides of tiles.
static std::vector<std::string> sidesOf(const Form &form) {
  std::vector<std::string> sides;
  for (const Parameter &parameter : form.sizes)
    if (parameter.unit > 1 && parameter.name != "slice" &&
        parameter.name != "piece")
      sides.push_back(parameter.name);
  return sides;
}

/// The longest side that fits, by halving; 0 if not even 1 does.
template <typename Fits> static int64_t longest(Fits &&fits) {
  int64_t low = 0, high = kManyRows;
  while (low < high) {
    int64_t middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

namespace {

/// Ideal tiles of a form in fast memory of some words.
class IdealTiles {
public:
  IdealTiles(const Form &form, const Problem &problem, double cacheWords)
      : form(form), problem(problem), cacheWords(cacheWords),
        sides(sidesOf(form)) {}

  /// Of all choices of sides that stream and of numbers of column tiles.
  std::optional<double> leastWords() {
    std::optional<double> least;
    for (unsigned streamed = 0; streamed < 1u << sides.size(); ++streamed)
      for (int64_t columnTiles : columnTileCounts())
        if (auto words = wordsOf(streamed, columnTiles))
          least = std::min(*words, least.value_or(*words));
    return least;
  }

private:
  const Form &form;
  const Problem &problem;
  double cacheWords;
  std::vector<std::string> sides;

  /// As many as there are squares of fast memory's size in the head dimension,
  /// rounded up and down.
  std::vector<int64_t> columnTileCounts() const {
    if (std::find(sides.begin(), sides.end(), "column") == sides.end())
      return {1};
    double squares = double(problem.headDimV) / std::sqrt(cacheWords);
    int64_t fewer = std::max<int64_t>(1, int64_t(squares));
    return {fewer, fewer + 1};
  }

  bool fits(const Tiles &tiles) const {
    return double(peakWords(form.build(tiles), problem)) <= cacheWords;
  }

  /// All sides that do not stream as long as fits, the same length first and
  /// then each for itself.
  std::optional<double> wordsOf(unsigned streamed, int64_t columnTiles) const {
    Tiles tiles;
    std::vector<std::string> free;
    for (size_t side = 0; side < sides.size(); ++side) {
      tiles.set(sides[side], 1);
      if (sides[side] == "column")
        tiles.set("column", ceilDiv(problem.headDimV, columnTiles));
      else if ((streamed >> side & 1) == 0)
        free.push_back(sides[side]);
    }
    tiles.set("slice", 1);
    auto with = [&](const std::vector<std::string> &names, int64_t length) {
      Tiles longer = tiles;
      for (const std::string &name : names)
        longer.set(name, length);
      return longer;
    };
    auto grow = [&](const std::vector<std::string> &names) {
      int64_t length =
          longest([&](int64_t length) { return fits(with(names, length)); });
      if (length > 0)
        tiles = with(names, length);
      return length > 0;
    };
    if (!grow(free))
      return std::nullopt;
    for (const std::string &name : free)
      grow({name});
    return double(trafficWords(form.build(tiles), problem));
  }
};

} // namespace

std::optional<double> attn::idealWords(std::string_view schedule,
                                       const Problem &problem,
                                       double cacheWords) {
  const ScheduleKind *kind = findScheduleKind(schedule);
  const Form *form = kind ? idealForm(*kind) : nullptr;
  if (!form)
    return std::nullopt;
  Problem asked = longOne(problem);
  return IdealTiles(*form, asked, cacheWords).leastWords();
}

/// The schedule of the least words; empty if none fits.
static std::string bestSchedule(const Problem &problem, double cacheWords) {
  std::string best;
  double least = HUGE_VAL;
  for (const std::string &name : scheduleNames(problem.direction))
    if (auto words = idealWords(name, problem, cacheWords))
      if (*words < least)
        best = name, least = *words;
  return best;
}

std::optional<Exponent> attn::exponentOf(const Problem &problem,
                                         double cacheWords) {
  std::string best = bestSchedule(problem, cacheWords);
  auto half = idealWords(best, problem, cacheWords / 2);
  auto twice = idealWords(best, problem, cacheWords * 2);
  if (!half || !twice)
    return std::nullopt;
  return Exponent{best, std::log2(*half / *twice) / 2};
}
