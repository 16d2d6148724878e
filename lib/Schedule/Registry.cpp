//===- Registry.cpp - Which schedules and kernels exist -------------------===//

#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Plan.h"

namespace attn::schedules {
#define ATTN_SCHEDULE(NAME) ScheduleKind NAME();
#define ATTN_KERNEL(NAME)
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
} // namespace attn::schedules

using namespace attn;

const std::vector<ScheduleKind> &attn::scheduleKinds() {
  static const std::vector<ScheduleKind> kinds = {
#define ATTN_SCHEDULE(NAME) schedules::NAME(),
#define ATTN_KERNEL(NAME)
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
  };
  return kinds;
}

std::vector<std::string> attn::kernelNames() {
  return {
#define ATTN_SCHEDULE(NAME)
#define ATTN_KERNEL(NAME) #NAME,
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
  };
}

const ScheduleKind *attn::findScheduleKind(std::string_view name) {
  for (const ScheduleKind &kind : scheduleKinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}

std::vector<std::string> attn::scheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind &kind : scheduleKinds())
    names.push_back(kind.name);
  return names;
}

std::vector<std::string> attn::tileNames(std::string_view schedule) {
  std::vector<std::string> names;
  if (const ScheduleKind *kind = findScheduleKind(schedule))
    for (const Parameter &parameter : kind->parameters)
      names.push_back(parameter.name);
  return names;
}

std::string attn::summary(std::string_view schedule) {
  const ScheduleKind *kind = findScheduleKind(schedule);
  return kind ? kind->summary : "";
}
