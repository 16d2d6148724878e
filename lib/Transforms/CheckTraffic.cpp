//===- CheckTraffic.cpp - Do kernels move the bytes they promise? ---------===//

#include "attn/Kernels/Merge.h"
#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/RaggedQueries.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/SharedTiles.h"
#include "attn/Transforms/Passes.h"

#include <algorithm>
#include <vector>

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_CHECKTRAFFICPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

static Launches launchesOf(ScheduleAttr schedule) {
  return attn::launchesOf(schedule.getName().getValue().str(),
                          schedule.tiles());
}

/// Counting visits every pair of tiles, so long problems are counted on fewer
/// rows with the same remainders.
static int64_t shorten(int64_t rows, int64_t tile, int64_t tiles) {
  return std::min(rows, tiles * tile + rows % tile);
}

/// The kernel's own problem, two whose rows are ragged and not square, and one
/// of several rounds if launches go in rounds.
static std::vector<Problem> samples(Problem problem, const Tiles &tiles,
                                    const Launches &launches) {
  problem = atLeastOne(problem);
  int64_t query = std::max(tiles.get("query", 1), tiles.get("query_block", 1));
  int64_t key = std::max(tiles.get("key", 1), tiles.get("key_block", 1));
  // Each head is counted by itself.
  constexpr int64_t mostTiles = 6;
  Problem own = problem;
  int64_t group = problem.heads / problem.kvHeads;
  own.batch = std::min<int64_t>(problem.batch, 2);
  own.kvHeads = std::min<int64_t>(problem.kvHeads, group > 1 ? 1 : 3);
  int64_t shared = headsOfTile(tiles);
  own.heads = own.kvHeads * (shared > 1 ? shared : std::min<int64_t>(group, 3));
  own.queries = shorten(problem.queries, query, mostTiles);
  own.keys = shorten(problem.keys, key, mostTiles);
  Problem fewQueries = own, fewKeys = own;
  fewQueries.batch = fewKeys.batch = 1;
  fewQueries.queries = query + 3;
  fewQueries.keys = 3 * key + 5;
  fewKeys.queries = 3 * query + 1;
  fewKeys.keys = key + 7;
  std::vector<Problem> all = {own, fewQueries, fewKeys};
  if (int64_t page = problem.place.pageRows)
    for (Problem &sample : all) // whole pages
      sample.keys = std::max<int64_t>(sample.keys / page, 1) * page;
  if (const Rounds &order = launches.rounds) {
    Problem &rounds = all.emplace_back(fewQueries);
    if (order.cutsQueries())
      rounds.queries = order.strip + query + 3;
    else
      rounds.keys = order.strip + key + 7;
    rounds.heads = rounds.kvHeads = std::min<int64_t>(order.heads + 1, 5);
  }
  return all;
}

/// Sequences whose rows are ragged, not square, few, none, and of several
/// tiles.
static std::vector<Problem> raggedSamples(const Problem &problem,
                                          const Tiles &tiles) {
  int64_t query = std::max(tiles.get("query", 1), tiles.get("query_block", 1));
  int64_t key = std::max(tiles.get("key", 1), tiles.get("key_block", 1));
  Problem own = problem;
  int64_t group = problem.heads / problem.kvHeads;
  own.kvHeads = std::min<int64_t>(problem.kvHeads, group > 1 ? 1 : 3);
  int64_t shared = headsOfTile(tiles);
  own.heads = own.kvHeads * (shared > 1 ? shared : std::min<int64_t>(group, 3));
  Ragged asked = *problem.ragged;
  std::vector<Problem> all;
  for (const std::vector<Lengths> &lengths :
       {std::vector<Lengths>{{query + 3, 3 * key + 5},
                             {0, key},
                             {1, 2 * key},
                             {2 * query, 0},
                             {3 * query + 1, key + 7}},
        std::vector<Lengths>{{5, 5}}}) {
    std::vector<Lengths> some = lengths;
    if (own.mask.kind == MaskKind::causal) // of one array of offsets only
      for (Lengths &each : some)
        each.keys = each.queries;
    if (!areKeysRagged(problem)) { // a plan counts all the keys that there are
      own.keys = 0;
      own.keys = raggedProblem(own, some).keys;
      for (Lengths &each : some)
        each.keys = own.keys;
    }
    all.push_back(raggedProblem(own, some));
    all.back().ragged->isWide = asked.isWide;
  }
  return all;
}

/// The offsets that a kernel reads there, and the keys of a cache.
static tile::ReadNumber offsetsOf(const Problem &problem,
                                  ArrayRef<ArgumentRole> roles) {
  SmallVector<int64_t> queries = {0}, keys = {0};
  for (const Lengths &each : problem.ragged->lengths) {
    queries.push_back(queries.back() + each.queries);
    keys.push_back(keys.back() + each.keys);
  }
  SmallVector<Role> arrays;
  for (const ArgumentRole &role : roles)
    arrays.push_back(role.role);
  int64_t used = problem.keys;
  return [=](unsigned argument, int64_t place) -> std::optional<int64_t> {
    if (arrays[argument] == Role::usedKeys)
      return used;
    const SmallVector<int64_t> *offsets =
        arrays[argument] == Role::offsetsQ   ? &queries
        : arrays[argument] == Role::offsetsK ? &keys
                                             : nullptr;
    if (!offsets || place < 0 || place >= int64_t(offsets->size()))
      return std::nullopt;
    return (*offsets)[place];
  };
}

/// The value of an argument, for offsets that lie side by side.
static int64_t argumentOf(tile::KernelOp kernel, unsigned number,
                          const ArgumentRole &role, const Problem &problem,
                          const Round &round) {
  bool isOfOffsets = role.role == Role::offsetsQ || role.role == Role::offsetsK;
  if (isOfOffsets && role.facet == Facet::strideBatch)
    return 1;
  if (!isOfSequences(role.role, problem))
    return roleValue(role, problem, round);
  if (auto map =
          dyn_cast<tile::TensorMapType>(kernel.getArgumentTypes()[number]))
    return map.getBoxRows(); // those of a window (RaggedArrays.h)
  return roleValue(role, problem, round);
}

static LogicalResult compare(tile::KernelOp kernel, const Problem &problem,
                             StringRef level, int64_t counted,
                             int64_t promised) {
  if (counted == promised)
    return success();
  return kernel.emitOpError("expects the ")
         << promised << " bytes at level " << level
         << " of its plan, but moves " << counted << " (" << problem.queries
         << " queries, " << problem.keys << " keys)";
}

/// What the kernel's IR moves for a problem, in all rounds.
static FailureOr<tile::Traffic> count(tile::KernelOp kernel,
                                      const Machine &machine,
                                      ScheduleAttr schedule,
                                      const Problem &problem) {
  Launches launches = ::launchesOf(schedule);
  int64_t launch = launchOf(kernel);
  std::array<int64_t, 3> grid =
      gridOf(launches, problem, {machine.sms}, launch);
  RoundOrder rounds(launches, problem);
  bool isInRounds = launches.shapes[size_t(launch)].isInRounds;
  FailureOr<SmallVector<ArgumentRole>> roles = rolesOf(kernel);
  if (failed(roles))
    return failure();
  tile::Traffic total;
  for (int64_t n = 0; n < (isInRounds ? rounds.count() : 1); ++n) {
    SmallVector<int64_t> arguments;
    for (auto [number, role] : llvm::enumerate(*roles))
      arguments.push_back(
          argumentOf(kernel, number, role, problem, rounds.at(n)));
    // A plan counts all the keys that there are.
    tile::ReadNumber read = [&](unsigned argument,
                                int64_t) -> std::optional<int64_t> {
      if ((*roles)[argument] == ArgumentRole(Role::usedKeys))
        return problem.keys;
      return std::nullopt;
    };
    if (problem.ragged)
      read = offsetsOf(problem, *roles);
    FailureOr<tile::Traffic> counted =
        tile::countTraffic(kernel, grid, arguments, read);
    if (failed(counted))
      return failure();
    total += *counted;
  }
  return total;
}

static LogicalResult check(tile::KernelOp kernel, const Machine &machine,
                           ScheduleAttr schedule, const Problem &problem) {
  std::string error;
  std::optional<Decision> decided =
      decide(problem, withAnyMemory(machine),
             schedule.getName().getValue().str(), schedule.tiles(), error);
  if (!decided)
    return kernel.emitOpError() << error;
  FailureOr<tile::Traffic> counted = count(kernel, machine, schedule, problem);
  if (failed(counted))
    return failure();
  Bytes promised =
      promisedBytes(*decided, problem, machine)[size_t(launchOf(kernel))];
  if (failed(compare(kernel, problem, "l2", counted->global, promised.l2)))
    return failure();
  return compare(kernel, problem, "smem", counted->smem, promised.smem);
}

static void report(tile::KernelOp kernel, const tile::Traffic &counted) {
  emitRemark(kernel.getLoc(), "moves ")
      << counted.global << " bytes at level l2 and " << counted.smem
      << " at level smem";
}

/// The same for the kernel's own problem, all rows of it, in a remark.
static LogicalResult reportOwn(tile::KernelOp kernel, const Machine &machine,
                               ScheduleAttr schedule, const Problem &problem) {
  FailureOr<tile::Traffic> counted = count(kernel, machine, schedule, problem);
  if (failed(counted))
    return failure();
  ::report(kernel, *counted);
  return success();
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

/// What the kernel's IR moves for a merge.
static FailureOr<tile::Traffic> count(tile::KernelOp kernel,
                                      const Merge &merge) {
  FailureOr<SmallVector<ArgumentRole>> roles = rolesOf(kernel);
  if (failed(roles))
    return failure();
  SmallVector<int64_t> arguments;
  for (const ArgumentRole &role : *roles)
    arguments.push_back(roleValue(role, limitsOf(merge)));
  return tile::countTraffic(kernel, {blocksOf(merge), 1, 1}, arguments);
}

/// The bytes of a merge have a closed form.
static LogicalResult check(tile::KernelOp kernel, const Merge &merge) {
  FailureOr<tile::Traffic> counted = count(kernel, merge);
  if (failed(counted))
    return failure();
  const std::tuple<StringRef, int64_t, int64_t> levels[] = {
      {"l2", counted->global, bytesOf(merge)}, {"smem", counted->smem, 0}};
  for (auto [level, moved, promised] : levels)
    if (moved != promised)
      return kernel.emitOpError("expects the ")
             << promised << " bytes at level " << level
             << " of its merge, but moves " << moved << " (" << merge.queries
             << " queries)";
  return success();
}

/// The same for the merge that the kernel was built for, cut short, and for one
/// whose rows are ragged.
static LogicalResult checkMerge(tile::KernelOp kernel, DictionaryAttr attribute,
                                bool isReported) {
  std::optional<Merge> merge = mergeFromAttr(attribute);
  if (!merge)
    return kernel.emitOpError("expects a legal merge, but got ") << attribute;
  Merge own = *merge, ragged = *merge;
  own.batch = std::min<int64_t>(own.batch, 2);
  own.heads = std::min<int64_t>(own.heads, 3);
  own.queries = shorten(own.queries, kMergeRows, /*tiles=*/2);
  ragged.batch = 2;
  ragged.heads = 3;
  ragged.queries = kMergeRows + 19;
  for (const Merge &sample : {own, ragged})
    if (failed(check(kernel, sample)))
      return failure();
  if (!isReported)
    return success();
  FailureOr<tile::Traffic> counted = count(kernel, *merge);
  if (succeeded(counted))
    ::report(kernel, *counted);
  return success(succeeded(counted));
}

namespace {

struct CheckTrafficPass : attn::impl::CheckTrafficPassBase<CheckTrafficPass> {
  using CheckTrafficPassBase::CheckTrafficPassBase;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](tile::KernelOp kernel) {
      if (auto merge = kernel->getAttrOfType<DictionaryAttr>(kMergeAttr))
        return succeeded(checkMerge(kernel, merge, report))
                   ? WalkResult::advance()
                   : WalkResult::interrupt();
      auto machine = kernel->getAttrOfType<MachineAttr>("machine");
      auto schedule = kernel->getAttrOfType<ScheduleAttr>("schedule");
      auto attribute = kernel->getAttrOfType<DictionaryAttr>(kProblemAttr);
      if (!machine || !schedule || !attribute)
        return WalkResult::advance(); // written by hand: there is no promise
      std::optional<Problem> problem = problemFromAttr(attribute);
      if (!problem) {
        kernel.emitOpError("expects a legal problem, but got ") << attribute;
        return WalkResult::interrupt();
      }
      if (problem->pattern) // lists say what moves, on the device
        return WalkResult::advance();
      for (const Problem &sample :
           problem->ragged
               ? raggedSamples(*problem, schedule.tiles())
               : samples(*problem, schedule.tiles(), ::launchesOf(schedule)))
        if (failed(check(kernel, machine.resolve(), schedule, sample)))
          return WalkResult::interrupt();
      if (report && !problem->ragged &&
          failed(reportOwn(kernel, machine.resolve(), schedule, *problem)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
