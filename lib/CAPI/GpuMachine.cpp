//===- GpuMachine.cpp - Which row of the table a GPU is -------------------===//

#include "attn/CAPI/GpuMachine.h"

#include <cmath>

using namespace attn;

const Machine *attn::machineOf(const runtime::GpuFacts &facts) {
  const Machine *best = nullptr;
  auto distance = [&](const Machine &machine) {
    return std::abs(std::log(double(machine.hbmBytes) / facts.memoryBytes));
  };
  for (const Machine &machine : machines())
    if (machine.computeCapability == facts.computeCapability &&
        machine.sms == facts.multiprocessors &&
        (!best || distance(machine) < distance(*best)))
      best = &machine;
  return best;
}

std::string attn::unknownGpu(const runtime::GpuFacts &facts) {
  return "the GPU is a " + facts.name + " (sm_" +
         std::to_string(facts.computeCapability) + ", " +
         std::to_string(facts.multiprocessors) +
         " multiprocessors), which is not in the table of machines; name the "
         "one to compile for: " +
         machineNames();
}
