//===- Fit.cpp - Why a footprint does not fit -----------------------------===//

#include "Folds/PipelineFootprint.h"
#include "attn/Schedule/Footprint.h"
#include <algorithm>

using namespace attn;

namespace {

/// Needs and limits of a machine, in sentences.
class Limits {
public:
  explicit Limits(const Machine &machine) : machine(machine) {}

  static std::string exceeds(const std::string &what, int64_t needed,
                             const std::string &whose, int64_t limit) {
    return "needs " + std::to_string(needed) + " " + what + ", but " + whose +
           " has " + std::to_string(limit);
  }

  /// Of a grid whose warpgroups share registers as the launch says.
  std::optional<std::string> checkPipeline(const Grid &grid,
                                           const RegisterBudget &budget,
                                           const Problem &problem) const {
    int64_t cluster = grid.sharing.cluster, together = grid.sharing.blocks();
    if (cluster > machine.maxClusterSize)
      return exceeds("blocks in a cluster", cluster, machine.name,
                     machine.maxClusterSize);
    if (together > machine.sms)
      return exceeds("blocks at once", together, machine.name, machine.sms);
    int64_t needed = gridFootprint(grid, problem, machine).registersPerThread;
    if (needed > budget.consumer)
      return exceeds(
          "registers per thread", needed,
          "each of " +
              std::to_string(grid.workers.pairs * grid.workers.warpgroups) +
              " warpgroups",
          budget.consumer);
    return checkRegisters(registersOfBlock(grid, budget));
  }

  /// Of one block.
  std::optional<std::string> checkRegisters(int64_t needed) const {
    if (needed <= machine.registersPerSm)
      return std::nullopt;
    return exceeds("registers per block", needed, multiprocessor(),
                   machine.registersPerSm);
  }

  std::string block() const { return "a block on " + machine.name; }
  std::string multiprocessor() const {
    return "a multiprocessor of " + machine.name;
  }

private:
  const Machine &machine;
};

} // namespace

std::optional<std::string> attn::checkFootprint(const Footprint &space,
                                                const Schedule &schedule,
                                                const Problem &problem,
                                                const Machine &machine) {
  Limits limits(machine);
  if (space.smemBytes > machine.smemBytesPerBlock)
    return Limits::exceeds("bytes of shared memory", space.smemBytes,
                           limits.block(), machine.smemBytesPerBlock);
  if (space.registersPerThread > kMaxRegistersPerThread)
    return Limits::exceeds("registers per thread", space.registersPerThread,
                           "a thread", kMaxRegistersPerThread);
  for (const Schedule::Launch &launch : schedule.launches)
    for (const Grid *grid : launch.grids())
      if (grid->isPipeline())
        if (auto sentence =
                limits.checkPipeline(*grid, budgetOf(launch, problem), problem))
          return sentence;
  if (space.threads > kMostThreads)
    return Limits::exceeds("threads", space.threads, "a block", kMostThreads);
  if (space.threads > machine.maxThreadsPerSm)
    return Limits::exceeds("threads", space.threads, limits.multiprocessor(),
                           machine.maxThreadsPerSm);
  if (space.blocksPerSm < 1)
    return "needs " + std::to_string(space.threads / 32) + " warps of " +
           std::to_string(space.registersPerThread) +
           " registers per thread, but " + limits.multiprocessor() +
           " has room for " +
           std::to_string(warpsPerSm(space.registersPerThread, machine));
  if (space.scratchBytes > machine.hbmBytes)
    return Limits::exceeds("bytes of scratch memory", space.scratchBytes,
                           machine.name, machine.hbmBytes);
  return std::nullopt;
}
