//===- Registry.h - Which schedules and kernels exist -----------*- C++ -*-===//
///
/// A schedule is one file in lib/Schedule/Schedules that defines one function
/// named as the file, returning a `ScheduleKind`.  A kernel builder is one file
/// `<schedule>_<family>.cpp` in lib/Kernels.  The build lists both folders; no
/// other list is kept.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_REGISTRY_H
#define ATTN_SCHEDULE_REGISTRY_H

#include "attn/Schedule/Schedule.h"
#include "attn/Schedule/Tiles.h"

namespace attn {

/// A tile parameter and the values worth trying.
struct Parameter {
  std::string name;
  std::vector<int64_t> values;
};

struct ScheduleKind {
  std::string name;
  std::string summary; ///< one sentence
  std::vector<Parameter> parameters;
  Schedule (*build)(const Tiles &tiles);
  /// A sentence when these tiles make no sense for the problem on any machine.
  std::optional<std::string> (*check)(const Tiles &tiles,
                                      const Problem &problem);
};

/// All schedules, by name.
const std::vector<ScheduleKind> &scheduleKinds();
const ScheduleKind *findScheduleKind(std::string_view name);

} // namespace attn

#endif // ATTN_SCHEDULE_REGISTRY_H
