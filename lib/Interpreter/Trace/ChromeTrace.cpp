//===- ChromeTrace.cpp - A recorded order with durations ------------------===//

#include "attn/Interpreter/Trace.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <deque>
#include <map>

using namespace attn;
using llvm::Twine;

/// A scheduler issues for every fourth warp, and has a quarter of the tensor
/// cores.
static constexpr unsigned kQuarters = 4;

namespace {

/// The clocks of one block.  Events come in an order in which every wait is
/// behind what it waits for, so one pass is enough.
class Clockwork {
public:
  Clockwork(const KernelTrace &trace, const TraceRates &rates, size_t process,
            llvm::json::OStream &json)
      : trace(trace), rates(rates), process(int64_t(process)), json(json),
        warps(trace.warps.size()) {}

  void run() {
    nameThreads();
    for (const TraceEvent &event : trace.events)
      add(event);
  }

private:
  struct Warp {
    double now = 0;
    std::deque<double> products, stores, groups; ///< ends of those in flight
    double openGroup = 0;
  };

  const KernelTrace &trace;
  const TraceRates &rates;
  const int64_t process;
  llvm::json::OStream &json;
  std::vector<Warp> warps;
  double copyEngine = 0, tensor[kQuarters] = {0, 0, 0, 0},
         issue[kQuarters] = {0, 0, 0, 0};
  /// When a phase of a channel has all that has arrived so far.
  std::map<std::pair<unsigned, int64_t>, double> arrived;

  /// Half as wide factors take half as long.
  double flopsOfQuarter() const {
    constexpr double usual = 2;
    return rates.flopsPerClock / kQuarters * usual /
           double(std::max<int64_t>(1, trace.factorBytes));
  }

  int64_t engineThread() const { return int64_t(warps.size()); }
  int64_t tensorThread(unsigned quarter) const {
    return engineThread() + 1 + quarter;
  }

  void name(int64_t thread, const Twine &text) {
    json.object([&] {
      json.attribute("name", "thread_name");
      json.attribute("ph", "M");
      json.attribute("pid", process);
      json.attribute("tid", thread);
      json.attributeObject("args", [&] { json.attribute("name", text.str()); });
    });
  }

  void nameThreads() {
    json.object([&] {
      json.attribute("name", "process_name");
      json.attribute("ph", "M");
      json.attribute("pid", process);
      json.attributeObject("args", [&] {
        json.attribute("name", trace.kernel + ", block 0, 0, 0");
      });
    });
    for (auto [number, role] : llvm::enumerate(trace.warps))
      name(int64_t(number),
           "warp " + Twine(number) + (role.empty() ? "" : " (" + role + ")"));
    name(engineThread(), "copy engine");
    for (unsigned quarter = 0; quarter < kQuarters; ++quarter)
      name(tensorThread(quarter), "tensor cores, quarter " + Twine(quarter));
  }

  void write(int64_t thread, const Twine &what, double begin, double end,
             const TraceEvent &event) {
    double scale = 1e6 / rates.clockHz;
    json.object([&] {
      json.attribute("name", what.str());
      json.attribute("cat", "model");
      json.attribute("ph", "X");
      json.attribute("pid", process);
      json.attribute("tid", thread);
      json.attribute("ts", begin * scale);
      json.attribute("dur", (end - begin) * scale);
      json.attributeObject("args", [&] {
        json.attribute("duration", "model");
        json.attribute("clocks", end - begin);
        arguments(event);
      });
    });
  }

  static const char *nameOf(TraceKind kind) {
    switch (kind) {
    case TraceKind::copy:
      return "copy";
    case TraceKind::groupCopy:
      return "group copy";
    case TraceKind::commit:
      return "commit";
    case TraceKind::groupWait:
      return "group wait";
    case TraceKind::transfer:
      return "transfer";
    case TraceKind::arrive:
      return "arrive";
    case TraceKind::wait:
      return "wait";
    case TraceKind::product:
      return "product";
    case TraceKind::productWait:
      return "product wait";
    case TraceKind::store:
      return "store";
    case TraceKind::storeWait:
      return "store wait";
    case TraceKind::work:
      return "work";
    }
    llvm_unreachable("all kinds are above");
  }

  void arguments(const TraceEvent &event) {
    json.attribute("event", nameOf(event.kind));
    switch (event.kind) {
    case TraceKind::copy:
      json.attribute("bytes", event.amount);
      [[fallthrough]];
    case TraceKind::arrive:
    case TraceKind::wait:
      json.attribute("barrier", trace.channels[event.channel]);
      json.attribute("phase", event.phase);
      break;
    case TraceKind::product:
      json.attribute("flops", event.amount);
      break;
    case TraceKind::store:
    case TraceKind::groupCopy:
    case TraceKind::transfer:
      json.attribute("bytes", event.amount);
      break;
    case TraceKind::commit:
      break;
    case TraceKind::work:
      json.attribute("instructions", event.amount);
      break;
    case TraceKind::productWait:
    case TraceKind::groupWait:
    case TraceKind::storeWait:
      json.attribute("in_flight", event.amount);
      break;
    }
  }

  /// Something of the warp, from now on.
  void take(Warp &warp, const TraceEvent &event, double until) {
    write(event.warp, event.what, warp.now, until, event);
    warp.now = until;
  }

  /// The engine's next copy; when it has left it.
  double engine(const Warp &warp, const TraceEvent &event, const Twine &what,
                double latency) {
    double begin = std::max(warp.now, copyEngine);
    copyEngine = begin + double(event.amount) / rates.copyBytesPerClock;
    write(engineThread(), what, begin, copyEngine + latency, event);
    return copyEngine + latency;
  }

  static void drain(std::deque<double> &inFlight, int64_t allowed,
                    double &until) {
    for (; int64_t(inFlight.size()) > allowed; inFlight.pop_front())
      until = std::max(until, inFlight.front());
  }

  void add(const TraceEvent &event) {
    Warp &warp = warps[event.warp];
    unsigned quarter = event.warp % kQuarters;
    double until = warp.now;
    double &there = arrived[{event.channel, event.phase}];
    switch (event.kind) {
    case TraceKind::copy: {
      double end =
          engine(warp, event, "copy " + Twine(event.what), rates.copyLatency);
      there = std::max(there, end);
      write(event.warp, ("copy " + event.what).str(), warp.now, warp.now,
            event);
      break;
    }
    case TraceKind::arrive:
      there = std::max(there, warp.now);
      take(warp, event, warp.now);
      break;
    case TraceKind::wait:
      take(warp, event, std::max(warp.now, there));
      break;
    case TraceKind::product: {
      double begin = std::max(warp.now, tensor[quarter]);
      tensor[quarter] = begin + double(event.amount) / flopsOfQuarter();
      write(tensorThread(quarter), event.what, begin, tensor[quarter], event);
      take(warp, event, warp.now);
      warp.products.push_back(tensor[quarter]);
      break;
    }
    case TraceKind::productWait:
      drain(warp.products, event.amount, until);
      take(warp, event, until);
      break;
    case TraceKind::groupCopy:
      warp.openGroup = std::max(
          warp.openGroup, engine(warp, event, event.what, rates.copyLatency));
      take(warp, event, warp.now);
      break;
    case TraceKind::commit:
      warp.groups.push_back(std::exchange(warp.openGroup, 0));
      take(warp, event, warp.now);
      break;
    case TraceKind::groupWait:
      drain(warp.groups, event.amount, until);
      take(warp, event, until);
      break;
    case TraceKind::transfer:
      engine(warp, event, event.what, 0);
      take(warp, event, warp.now);
      break;
    case TraceKind::store:
      warp.stores.push_back(engine(warp, event, event.what, 0));
      take(warp, event, warp.now);
      break;
    case TraceKind::storeWait:
      drain(warp.stores, event.amount, until);
      take(warp, event, until);
      break;
    case TraceKind::work: {
      double begin = std::max(warp.now, issue[quarter]);
      issue[quarter] = begin + double(event.amount);
      warp.now = begin;
      take(warp, event, issue[quarter]);
      break;
    }
    }
  }
};

} // namespace

void attn::writeTrace(llvm::raw_ostream &out, const Trace &trace,
                      const TraceRates &rates) {
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeObject("otherData", [&] {
      json.attribute("order", "the kernel's, as the interpreter ran it");
      json.attribute("durations", "model: the rates of " + rates.machine);
    });
    json.attributeArray("traceEvents", [&] {
      for (auto [process, kernel] : llvm::enumerate(trace))
        Clockwork(kernel, rates, process, json).run();
    });
  });
  out << '\n';
}
