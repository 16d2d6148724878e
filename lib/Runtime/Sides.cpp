//===- Sides.cpp - Which half of L2 a multiprocessor is next to -----------===//

#include "Sides.h"

#include "State.h"

#include <cmath>

using namespace attn;
using namespace attn::runtime;

//===----------------------------------------------------------------------===//
// What the times tell
//===----------------------------------------------------------------------===//

namespace {

/// Times of multiprocessors, less what all have in common: what a word takes on
/// average, and a multiprocessor.
class Deviations {
public:
  Deviations(const std::vector<uint32_t> &times, size_t words)
      : words(words), all(times.begin(), times.end()) {
    for (size_t sm = 0; sm < times.size() / words; ++sm)
      if (times[sm * words] != 0)
        seen.push_back(sm);
    for (size_t word = 0; word < words && !seen.empty(); ++word) {
      double sum = 0;
      for (size_t sm : seen)
        sum += at(sm)[word];
      for (size_t sm : seen)
        at(sm)[word] -= sum / double(seen.size());
    }
    for (size_t sm : seen) {
      double sum = 0;
      for (size_t word = 0; word < words; ++word)
        sum += at(sm)[word];
      for (size_t word = 0; word < words; ++word)
        at(sm)[word] -= sum / double(words);
    }
  }

  /// How much one's are like those of a side: -1 to 1.
  double likeness(size_t sm, const std::vector<double> &side) {
    double product = 0, own = 0, others = 0;
    for (size_t word = 0; word < words; ++word) {
      product += at(sm)[word] * side[word];
      own += at(sm)[word] * at(sm)[word];
      others += side[word] * side[word];
    }
    return own > 0 && others > 0 ? product / std::sqrt(own * others) : 0;
  }

  double *at(size_t sm) { return all.data() + sm * words; }

  const size_t words;
  std::vector<size_t> seen; ///< multiprocessors that there are times of

private:
  std::vector<double> all;
};

} // namespace

std::optional<Sides> runtime::sidesByTimes(const std::vector<uint32_t> &times,
                                           size_t words) {
  constexpr double leastLikeness = 0.7;
  Deviations deviations(times, words);
  const std::vector<size_t> &seen = deviations.seen;
  if (seen.size() < 2)
    return std::nullopt;
  // Those of the first one, then the mean of all, those of the other side
  // turned round.
  std::vector<double> side(deviations.at(seen[0]),
                           deviations.at(seen[0]) + words);
  std::vector<double> mean(words, 0.0);
  for (size_t sm : seen) {
    double sign = deviations.likeness(sm, side) < 0 ? -1 : 1;
    for (size_t word = 0; word < words; ++word)
      mean[word] += sign * deviations.at(sm)[word];
  }
  Sides sides;
  sides.fill(kUnknownSides);
  size_t others = 0;
  for (size_t sm : seen) {
    double likeness = deviations.likeness(sm, mean);
    if (std::abs(likeness) < leastLikeness)
      return std::nullopt;
    uint32_t bit = uint32_t(1) << sm % 32, &word = sides[sm / 32];
    word = likeness < 0 ? word | bit : word & ~bit;
    others += likeness < 0;
  }
  // Halves, but for multiprocessors that are switched off.
  bool areHalves = 4 * others >= seen.size() && 4 * others <= 3 * seen.size();
  return areHalves ? std::optional<Sides>(sides) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

namespace {

/// Words, and bytes from one to the next: in parts of L2 as they come.
constexpr unsigned kProbedWords = 32, kWordDistance = 4128;
constexpr unsigned kMostMultiprocessors = kSidesWords * 32;
constexpr char kProbe[] = "attn_probe_sides";

/// The least clocks of six times eight additions, for every word; of those
/// multiprocessors whose numbers are below `most`.
constexpr char kProbeText[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry attn_probe_sides(.param .u64 words, .param .u64 times,
                                 .param .u32 count, .param .u32 distance,
                                 .param .u32 most) {
  .reg .pred %p;
  .reg .b32 %m, %n, %w, %r, %a, %v, %first, %last, %least;
  .reg .b64 %word, %place, %at, %out, %step;
  mov.u32 %m, %smid;
  ld.param.u32 %n, [most];
  setp.ge.u32 %p, %m, %n;
  @%p bra DONE;
  ld.param.u64 %word, [words];
  ld.param.u64 %out, [times];
  ld.param.u32 %n, [distance];
  cvt.u64.u32 %step, %n;
  ld.param.u32 %n, [count];
  mul.lo.u32 %m, %m, %n;
  mul.wide.u32 %at, %m, 4;
  add.u64 %out, %out, %at;
  mov.u32 %w, 0;
NEXT_WORD:
  mov.u32 %least, 0xffffffff;
  mov.u32 %r, 0;
ROUND:
  mov.u64 %place, %word;
  mov.u32 %a, 0;
  mov.u32 %first, %clock;
ADD:
  atom.global.add.u32 %v, [%place], 0;
  cvt.u64.u32 %at, %v;
  add.u64 %place, %place, %at;
  add.u32 %a, %a, 1;
  setp.lt.u32 %p, %a, 8;
  @%p bra ADD;
  setp.ne.u32 %p, %v, 0;
  @%p bra DONE;
  mov.u32 %last, %clock;
  sub.u32 %last, %last, %first;
  min.u32 %least, %least, %last;
  add.u32 %r, %r, 1;
  setp.lt.u32 %p, %r, 6;
  @%p bra ROUND;
  st.global.u32 [%out], %least;
  add.u64 %out, %out, 4;
  add.u64 %word, %word, %step;
  add.u32 %w, %w, 1;
  setp.lt.u32 %p, %w, %n;
  @%p bra NEXT_WORD;
DONE:
  ret;
}
)";

/// What the probe needs, for as long as it runs.
class Probe {
public:
  explicit Probe(const GpuState &gpu) : gpu(gpu), driver(*gpu.driver) {}
  ~Probe() {
    if (memory)
      driver.free(memory);
    if (module)
      driver.moduleUnload(module);
  }
  Probe(const Probe &) = delete;
  Probe &operator=(const Probe &) = delete;

  /// The times, or none.
  std::vector<uint32_t> times() {
    std::vector<uint32_t> all(kTimeBytes / 4, 0);
    Result result = prepare();
    if (result == 0)
      result = onOwnStream(
          driver, [&](Stream stream) { return run(all.data(), stream); });
    return result == 0 ? all : std::vector<uint32_t>();
  }

private:
  Result prepare() {
    Result result = driver.moduleLoad(&module, kProbeText, 0, nullptr, nullptr);
    if (result == 0)
      result = driver.moduleFunction(&function, module, kProbe);
    if (result == 0)
      result = driver.setFunctionAttribute(
          function, FunctionAttribute::maxDynamicSmemBytes, int(smem()));
    if (result == 0)
      result = driver.allocate(&memory, kBytes);
    return result;
  }

  Result run(uint32_t *times, Stream stream) {
    DeviceAddress words = memory + kTimeBytes;
    unsigned count = kProbedWords, distance = kWordDistance,
             most = kMostMultiprocessors;
    void *arguments[] = {&words, &memory, &count, &distance, &most};
    Result result = driver.fill(memory, 0, kBytes, stream);
    if (result == 0)
      result =
          driver.launchKernel(function, unsigned(gpu.facts.multiprocessors), 1,
                              1, 1, 1, 1, smem(), stream, arguments, nullptr);
    if (result == 0)
      result = driver.copyToHost(times, memory, kTimeBytes, stream);
    return result;
  }

  /// All that there is, so that every multiprocessor has one block.
  unsigned smem() const { return unsigned(gpu.facts.smemBytesPerBlock); }

  static constexpr size_t kTimeBytes =
      size_t(kMostMultiprocessors) * kProbedWords * 4;
  static constexpr size_t kBytes =
      kTimeBytes + size_t(kProbedWords) * kWordDistance;
  const GpuState &gpu;
  const Driver &driver;
  void *module = nullptr, *function = nullptr;
  DeviceAddress memory = 0;
};

} // namespace

std::optional<Sides> KnownSides::of(const GpuState &gpu) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!isKnown)
    sides = sidesByTimes(Probe(gpu).times(), kProbedWords);
  isKnown = true;
  return sides;
}

Status runtime::tellSides(GpuState &gpu, void *module) {
  const Driver &driver = *gpu.driver;
  DeviceAddress table = 0;
  size_t bytes = 0;
  Status status =
      driver.check(driver.moduleGlobal(&table, &bytes, module, kSidesSymbol),
                   "finding the table of sides");
  std::optional<Sides> sides;
  if (!status.ok() || bytes != sizeof(*sides) || !(sides = gpu.sides.of(gpu)))
    return status;
  Result result = onOwnStream(driver, [&](Stream stream) {
    return driver.copyToDevice(table, sides->data(), bytes, stream);
  });
  return driver.check(result, "telling a kernel the sides of L2");
}
