//===- Time.cpp - How long, and what binds --------------------------------===//

#include "attn/Schedule/Time.h"
#include "Time/Launch.h"
#include <algorithm>

using namespace attn;

std::vector<Time>
attn::launchTimes(const Census &counted, const Schedule &schedule,
                  const Problem &problem, const Machine &machine,
                  TensorCoreFamily family, const Calibration &calibration) {
  std::vector<Time> times;
  for (const LaunchWork &launch :
       launchWork(counted, schedule, problem, machine, family))
    times.push_back(launchTime(launch, machine, calibration));
  return times;
}

Time attn::inOrder(const std::vector<Time> &launches) {
  Time total;
  for (const Time &one : launches)
    for (double Time::*term :
         {&Time::hbm, &Time::l2, &Time::smem, &Time::tensor, &Time::exp,
          &Time::issue, &Time::exposed, &Time::tail, &Time::contention,
          &Time::overhead, &Time::seconds})
      total.*term += one.*term;
  return total;
}

Time attn::time(const Schedule &schedule, const Problem &problem,
                const Machine &machine, TensorCoreFamily family) {
  return inOrder(launchTimes(census(schedule, problem), schedule, problem,
                             machine, family, calibrationOf(machine)));
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
