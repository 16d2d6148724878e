//===- Decision.h - What was decided, without its price ---------*- C++ -*-===//
///
/// A schedule with all its tiles, as `#attn.schedule<...>` carries it, is a
/// full decision.  Whoever builds a kernel or checks one reads from it what it
/// means: the builder, the launches, what a block of each occupies.  Nothing is
/// priced again.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_DECISION_H
#define ATTN_SCHEDULE_DECISION_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Schedule.h"
#include "attn/Schedule/Traffic.h"

#include <optional>
#include <string>

namespace attn {

struct Decision {
  std::string schedule;
  Tiles tiles; ///< all of them
  TensorCoreFamily family = TensorCoreFamily::none;
  /// The kernel builder, `flash_mma_sync`; empty when none exists.
  std::string kernel;
  Launches launches;
  Schedule built;                    ///< as a tree of verbs
  std::vector<Footprint> footprints; ///< of each launch
};

/// What a schedule and its tiles mean for a problem here; one that has a kernel
/// comes first.  Tiles left out are planned.  If that is not possible returns
/// nothing and sets `error` to a sentence.
std::optional<Decision> decide(const Problem &problem, const Machine &machine,
                               std::string_view schedule, const Tiles &tiles,
                               std::string &error);

/// The bytes that each launch moves for a problem.
std::vector<Bytes> promisedBytes(const Decision &decided,
                                 const Problem &problem,
                                 const Machine &machine);

} // namespace attn

#endif // ATTN_SCHEDULE_DECISION_H
