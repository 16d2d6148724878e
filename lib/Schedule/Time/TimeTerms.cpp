//===- TimeTerms.cpp - Rates, contention, and what binds ------------------===//

#include "Time/TimeTerms.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

using namespace attn;

double attn::clockOf(const Machine &machine) {
  return machine.measuredClockHz > 0 ? machine.measuredClockHz
                                     : machine.clockHz;
}

double attn::l2RateOf(const Machine &machine) {
  return machine.measuredL2BytesPerSecond > 0 ? machine.measuredL2BytesPerSecond
                                              : machine.l2BytesPerSecond;
}

double attn::hbmRateOf(const Machine &machine, const Calibration &c) {
  return machine.measuredHbmBytesPerSecond > 0
             ? machine.measuredHbmBytesPerSecond
             : machine.hbmBytesPerSecond * c.hbmEfficiency;
}

/// Share of the rate that products of parts reach: sums leave the tensor cores
/// 64 columns at a time, and little is queued meanwhile.  With it times of 48
/// f32 kernels on an H100 are met to 15 % (rms; d = 64 to 256, 4096 and 16384
/// rows), those of d = 192 and 256 being put up to 32 % too fast.
static constexpr double kPartsShare = 0.68;

double attn::productRate(const Machine &machine, const Problem &problem,
                         TensorCoreFamily family) {
  bool is8Bit = problem.dtype == DataType::f8e4m3;
  switch (family) {
  case TensorCoreFamily::none:
    return machine.fp32FlopsPerClockPerSm;
  case TensorCoreFamily::mmaSync:
    // On every part that has tf32 it runs at half the rate of 16 bits.
    if (problem.dtype == DataType::f32)
      return machine.mmaSyncFlopsPerClockPerSm / 2 /
             double(productsPerProduct(problem));
    return machine.mmaSyncFlopsPerClockPerSm * (is8Bit ? 2 : 1);
  case TensorCoreFamily::wgmma:
  case TensorCoreFamily::tcgen05:
    if (needsSplit(problem))
      return machine.tensor16FlopsPerClockPerSm / double(kPartProducts) *
             kPartsShare;
    return is8Bit ? machine.tensor8FlopsPerClockPerSm
                  : machine.tensor16FlopsPerClockPerSm;
  }
  return 0;
}

double attn::powerMean(std::initializer_list<double> values, double power) {
  double longest = std::max(values), sum = 0;
  if (longest <= 0)
    return 0;
  for (double one : values)
    sum += std::pow(one / longest, power);
  return longest * std::pow(sum, 1 / power);
}

double attn::makespan(const TileClocks &tile, double tiles, double sms,
                      double tailShare) {
  double ideal = tile.average * tiles / sms;
  double equal = std::ceil(tiles / sms) * tile.average;
  if (tile.areEqual)
    return std::max(tile.longest, equal);
  return std::max(tile.longest,
                  std::min(equal, ideal + tailShare * tile.least));
}

namespace {

/// Multiprocessors that each take the next tile when they have done one.
class Multiprocessors {
public:
  explicit Multiprocessors(int64_t count) : count(count) {}

  void take(double clocks) {
    if (int64_t(ends.size()) == count) {
      clocks += ends.top();
      ends.pop();
    }
    ends.push(clocks);
    last = std::max(last, clocks);
  }
  double end() const { return last; }

private:
  int64_t count;
  double last = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
};

} // namespace

double attn::makespan(std::vector<double> tiles, int64_t heads, int64_t sms) {
  std::sort(tiles.begin(), tiles.end(), std::greater<>());
  Multiprocessors all(sms);
  for (double clocks : tiles)
    for (int64_t head = 0; head < heads; ++head)
      all.take(clocks);
  return all.end();
}

double attn::makespanInOrder(const std::vector<double> &tiles, int64_t heads,
                             int64_t sms) {
  Multiprocessors all(sms);
  for (int64_t head = 0; head < heads; ++head)
    for (double clocks : tiles)
      all.take(clocks);
  return all.end();
}

double attn::cutScores(int64_t rows, int64_t keys) {
  return double(keys + rows - std::gcd(keys, rows)) * double(rows);
}

int64_t attn::bytesOfRow(const Use &use, const Problem &problem) {
  Tensor tensor = use.node->tensor;
  return extent(problem, *shapeOf(tensor).cols) *
         bytesPerElement(tensor, problem);
}

double attn::rowsOfBoxes(const Use &use, const Problem &problem) {
  int64_t columns = extent(problem, *shapeOf(use.node->tensor).cols);
  return double(use.elements) / double(columns) *
         double(ceilDiv(bytesOfRow(use, problem), kPanelBytes));
}

bool attn::hasWholeLines(const Use &use, const Problem &problem) {
  return bytesOfRow(use, problem) % kPanelBytes == 0;
}

double attn::clocksToCopy(const Use &use, const Problem &problem,
                          const Calibration &c) {
  bool crosses = bytesOfRow(use, problem) % kSectorBytes != 0;
  return rowsOfBoxes(use, problem) * (crosses ? c.crossingClocks : c.boxClocks);
}

double attn::clocksToCopyLines(const Use &use, const Problem &problem,
                               const Calibration &c) {
  int64_t apart = std::gcd(bytesOfRow(use, problem), kPanelBytes);
  double reaching = 1 - double(apart) / double(kPanelBytes);
  return clocksToCopy(use, problem, c) +
         rowsOfBoxes(use, problem) * reaching * c.groupLineClocks;
}

double attn::paddedArea(const Use &use, const Problem &problem) {
  return double(use.count) * use.tile.rows *
         padded(use.node->tensor, use.tile.cols, problem);
}

void GradientWork::add(const Use &use, const Problem &problem,
                       const Calibration &c) {
  const Node &node = *use.node;
  double area = paddedArea(use, problem);
  smemBytes += attn::smemBytes(use, problem);
  if (node.verb == Verb::multiply)
    flops +=
        2 * area * use.shareOfKeys() * padded(node.a, use.tile.depth, problem);
  if (node.verb == Verb::weigh) {
    scores += area;
    slots += area / 32 * c.weighSlots;
  }
  if (node.verb == Verb::softmax) {
    scores += area;
    slots += area / 32 * c.softmaxSlots;
  }
  if (node.verb == Verb::rescale && node.tensor == Tensor::P) // in pairs
    slots += area / 64;
  if (node.verb == Verb::differentiate)
    slots += area / 32 * c.differentiateSlots;
}

void GradientWork::addCopy(const Use &use, const Problem &problem,
                           const Calibration &c) {
  slots += double(use.moved) * bytesMoved(*use.node, problem) /
           c.bytesPerWarpInstruction * c.copySlots;
}

UnitTimes attn::unitTimes(const BusyClocks &work, double whole, double ideal,
                          double clock, const Machine &machine,
                          const Calibration &c) {
  double used = whole > 0 ? work.products / clockOf(machine) / whole : 0;
  if (machine.measuredClockHz > 0) {
    double faster = 1 + c.spareClock * std::max(0.0, 1 - used);
    clock *= faster, whole /= faster, ideal /= faster;
  }
  double busiest = work.busiest / clock;
  whole = std::max(whole, busiest);
  ideal = std::clamp(ideal, busiest, whole);
  Time t;
  t.tensor = work.tensor / clock;
  t.exp = work.exp / clock;
  t.issue = work.issue / clock;
  t.smem = work.smem / clock;
  t.exposed = ideal - busiest;
  t.tail = whole - ideal;
  return {t, whole};
}

void attn::addContention(Time &t, double whole, double l2Power,
                         const Calibration &c) {
  double longest = std::max({whole, t.l2, t.hbm});
  double smAndL2 = powerMean({whole, t.l2}, l2Power);
  t.contention =
      std::max(0.0, powerMean({smAndL2, t.hbm}, c.contentionPower) - longest);
  t.seconds = longest + t.contention + t.overhead;
}

std::array<TimeTerm, 10> attn::timeTerms(TensorCoreFamily family) {
  const char *products = family == TensorCoreFamily::none ? "fma" : "tensor";
  return {{{"hbm", "hbm", "device memory traffic", &Time::hbm, true},
           {"l2", "l2", "L2 traffic", &Time::l2, true},
           {"smem", "smem", "shared memory traffic", &Time::smem, true},
           {products, products, "matrix arithmetic", &Time::tensor, true},
           {"exp", "exp", "the exp unit", &Time::exp, true},
           {"issue", "issue", "instruction issue", &Time::issue, true},
           {"exposed", "exposed", "exposed latency", &Time::exposed, false},
           {"contention", "contention", "contention between memory levels",
            &Time::contention, false},
           {"tail", "last wave", "a short last wave", &Time::tail, false},
           {"overhead", "overhead", "launch and first load", &Time::overhead,
            false}}};
}

TimeTerm attn::binding(const Time &t, TensorCoreFamily family) {
  std::array<TimeTerm, 10> terms = timeTerms(family);
  return *std::max_element(terms.begin(), terms.end(),
                           [&](const TimeTerm &a, const TimeTerm &b) {
                             return t.*a.seconds < t.*b.seconds;
                           });
}
