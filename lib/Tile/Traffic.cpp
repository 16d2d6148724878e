//===- Traffic.cpp - Counts a kernel's bytes from its IR ------------------===//
//
// An abstract execution of the kernel's scalars.  A value is known (a number)
// or not in the environment; what depends on the warp is worked out on demand,
// once per warp, where an op asks for it.  Only ops that the counts need are
// executed: the slice is computed once per block of IR.
//
// Roles are executed one after the other, each once per warp, so their control
// flow may depend on the warp.  A queue keeps its messages for every reader; so
// who pushes must come before who pops.  Draws go to the blocks in turn: any
// block may draw any number, and the sum is the same.
//
//===----------------------------------------------------------------------===//

#include "attn/Tile/Traffic.h"

#include "TrafficSlice.h"

#include "attn/Tile/Ranks.h"
#include "attn/Tile/Scalars.h"
#include "attn/Tile/Tile.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <set>

using namespace mlir;
using namespace attn::tile;

namespace {

/// Steps of loops, of all blocks, that are gone through: far more than the
/// kernels have on the problems that they are checked with.
constexpr int64_t kMostSteps = int64_t(1) << 28;

class Counter {
public:
  Counter(KernelOp kernel, int64_t gridX, ArrayRef<int64_t> arguments,
          const ReadNumber &read)
      : kernel(kernel), slice(kernel), read(read), gridX(gridX) {
    for (auto [argument, value] :
         llvm::zip(kernel.getBody().getArguments(), arguments))
      if (!isa<PtrType>(argument.getType()))
        known[argument] = value;
    // Kept ops per block, in order: the loops below run over these only.
    kernel.getBody().walk([&](Operation *op) {
      if (slice.contains(op))
        kept[op->getBlock()].push_back(op);
    });
    for (auto &[block, ops] : kept)
      llvm::sort(ops, [](Operation *a, Operation *b) {
        return a->isBeforeInBlock(b);
      });
  }

  FailureOr<Traffic> block(int64_t x) {
    programX = x;
    total = {};
    messages.clear();
    if (failed(run(kernel.getBody().front())))
      return failure();
    return total;
  }

private:
  /// What a traffic op may read, for one warp.
  struct View final : TrafficScalars {
    View(Counter &counter, int64_t warp) : counter(counter), warp(warp) {}
    int64_t scalar(Value value) const override {
      return *counter.evaluate(value, warp);
    }
    int64_t rows(Value array) const override {
      // A map is an argument, known by the rows of its array.
      auto view = array.getDefiningOp<ViewOp>();
      int64_t value = scalar(view ? view.getRows() : array);
      return isOfAnyColumns(array) ? value % kColumnsOfMap : value;
    }
    int64_t columns(Value map) const override {
      return isOfAnyColumns(map)
                 ? scalar(map) / kColumnsOfMap
                 : cast<TensorMapType>(map.getType()).getColumns();
    }
    static bool isOfAnyColumns(Value array) {
      auto map = dyn_cast<TensorMapType>(array.getType());
      return map && map.hasAnyColumns();
    }
    Counter &counter;
    int64_t warp;
  };

  /// The value for one warp (-1: that of the role, or any), or nothing when it
  /// depends on the data or on dimensions 1 and 2 of the grid.
  std::optional<int64_t> evaluate(Value value, int64_t warp) {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() != 0)
      return std::nullopt;
    if (warp < 0)
      warp = roleWarp;
    if (isa<WarpIdOp>(op))
      return warp < 0 ? std::nullopt : std::optional<int64_t>(warp);
    if (auto size = dyn_cast<GridSizeOp>(op))
      return size.getDim() == 0 ? std::optional<int64_t>(gridX) : std::nullopt;
    if (isa<PopOp, DrawOp, GetDrawOp, AwaitOp>(op))
      return std::nullopt; // known once executed
    if (auto load = dyn_cast<LoadNumberOp>(op))
      return numberOf(load, warp);
    if (auto number = dyn_cast<GetNumberOp>(op))
      return numberOf(number, warp);
    if (auto id = dyn_cast<ProgramIdOp>(op))
      return id.getDim() == 0 ? std::optional<int64_t>(programX) : std::nullopt;
    if (isa<ClusterRankOp>(op))
      return programX % kernel.getCluster();
    if (isa<SideOp>(op)) // any will do
      return programX % 2;
    SmallVector<int64_t, 3> operands;
    for (Value operand : op->getOperands()) {
      std::optional<int64_t> v = evaluate(operand, warp);
      if (!v)
        return std::nullopt;
      operands.push_back(*v);
    }
    return evaluateScalar(op, operands);
  }

  /// What an array has that is passed to the kernel.
  std::optional<int64_t> numberOf(LoadNumberOp load, int64_t warp) {
    auto array = dyn_cast<BlockArgument>(load.getBase());
    bool isPassed =
        array && array.getOwner() == &kernel.getBody().front() && read;
    std::optional<int64_t> index;
    if (isPassed)
      index = evaluate(load.getIndex(), warp);
    return index ? read(array.getArgNumber(), *index) : std::nullopt;
  }

  /// What the block has ranked.
  std::optional<int64_t> numberOf(GetNumberOp number, int64_t warp) {
    std::optional<int64_t> index = evaluate(number.getIndex(), warp);
    auto found = ranked.find(number.getBuffer());
    if (!index || found == ranked.end() || *index < 0 ||
        *index / 2 >= int64_t(found->second.size()))
      return std::nullopt;
    const Rank &rank = found->second[*index / 2];
    return *index % 2 ? rank.sequence : rank.firstSlot;
  }

  void rankSequences(RankOp op) {
    std::array<Value, 5> scalars = {op.getAt(), op.getStride(),
                                    op.getLengthsAt(), op.getLengthsStride(),
                                    op.getCount()};
    std::array<std::optional<int64_t>, 5> all;
    for (auto [number, value] : llvm::zip(all, scalars))
      if (!(number = evaluate(value, -1)))
        return;
    auto readOne = [&](bool isLength,
                       int64_t element) -> std::optional<int64_t> {
      auto array =
          dyn_cast<BlockArgument>(isLength ? op.getLengths() : op.getOffsets());
      return array && read ? read(array.getArgNumber(), element) : std::nullopt;
    };
    if (auto ranks =
            runRank(op, {*all[0], *all[1], *all[2], *all[3], *all[4]}, readOne))
      ranked[op.getTable()] = std::move(*ranks);
  }

  LogicalResult run(Block &block) {
    // Found, not made: blocks around this one are being gone through.
    auto found = kept.find(&block);
    if (found == kept.end())
      return success();
    for (Operation *op : found->second) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        if (failed(runLoop(loop)))
          return failure();
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (failed(runBranch(branch)))
          return failure();
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        if (failed(runWhile(loop)))
          return failure();
      } else if (auto role = dyn_cast<RoleOp>(op)) {
        if (failed(runRole(role)))
          return failure();
      } else if (auto roles = dyn_cast<RolesOp>(op)) {
        if (failed(run(roles.getBody().front())))
          return failure();
      } else if (auto push = dyn_cast<PushOp>(op)) {
        if (failed(send(push)))
          return failure();
      } else if (auto pop = dyn_cast<PopOp>(op)) {
        if (failed(receive(pop)))
          return failure();
      } else if (auto draw = dyn_cast<DrawOp>(op)) {
        if (failed(runDraw(draw)))
          return failure();
      } else if (auto draw = dyn_cast<PutDrawOp>(op)) {
        if (failed(runPutDraw(draw)))
          return failure();
      } else if (auto drawn = dyn_cast<GetDrawOp>(op)) {
        if (failed(runGetDraw(drawn)))
          return failure();
      } else if (auto rank = dyn_cast<RankOp>(op)) {
        rankSequences(rank);
      } else if (auto publish = dyn_cast<PublishOp>(op)) {
        set(publish);
      } else if (auto await = dyn_cast<AwaitOp>(op)) {
        if (failed(see(await)))
          return failure();
      } else if (auto traffic = dyn_cast<TrafficInterface>(op)) {
        if (failed(count(traffic)))
          return failure();
      } else if (op->getNumResults() == 1) {
        // Drop the value of the last iteration before working out this one.
        known.erase(op->getResult(0));
        if (std::optional<int64_t> v = evaluate(op->getResult(0), -1))
          known[op->getResult(0)] = *v;
      }
    }
    return success();
  }

  LogicalResult unknown(Operation *op, StringRef what) {
    return op->emitOpError("expects ")
           << what
           << " to follow from the sizes and the first grid dimension, so "
              "that traffic can be counted";
  }

  LogicalResult runRole(RoleOp role) {
    int64_t first = role.firstWarp();
    int64_t count = role.getSingleLane() ? 1 : role.getWarps();
    for (roleWarp = first; roleWarp < first + count; ++roleWarp) {
      received.clear();
      if (failed(run(role.getBody().front())))
        return failure();
    }
    roleWarp = -1;
    return success();
  }

  /// A queue, and its number among those that share its slots.
  using QueueKey = std::pair<const void *, int64_t>;

  /// Of the queues that share slots the one that has this one.
  std::optional<QueueKey> queueOf(Value queue, Value slot) {
    auto op = queue.getDefiningOp<QueueOp>();
    std::optional<int64_t> number = evaluate(slot, -1);
    if (!op || !number)
      return std::nullopt;
    return QueueKey(queue.getAsOpaquePointer(), *number / op.slotsOfRing());
  }

  LogicalResult send(PushOp push) {
    std::optional<QueueKey> queue = queueOf(push.getQueue(), push.getSlot());
    if (!queue)
      return unknown(push, "its slot");
    SmallVector<std::optional<int64_t>> &message =
        messages[*queue].emplace_back();
    for (Value value : push.getValues())
      message.push_back(evaluate(value, -1));
    return success();
  }

  LogicalResult receive(PopOp pop) {
    std::optional<QueueKey> queue = queueOf(pop.getQueue(), pop.getSlot());
    if (!queue)
      return unknown(pop, "its slot");
    const auto &sent = messages[*queue];
    size_t number = received[*queue]++;
    if (number >= sent.size())
      return unknown(pop, "a message that was pushed by an earlier role");
    for (auto [result, value] : llvm::zip(pop.getValues(), sent[number])) {
      known.erase(result);
      if (value)
        known[result] = *value;
    }
    return success();
  }

  void set(PublishOp publish) {
    std::optional<int64_t> index = evaluate(publish.getIndex(), -1),
                           value = evaluate(publish.getValue(), -1);
    if (index && value)
      published[{publish.getFlags().getAsOpaquePointer(), *index}].insert(
          *value);
  }

  /// The first value that suffices: a flag grows, and who sets it is counted
  /// before who waits for it.
  LogicalResult see(AwaitOp await) {
    std::optional<int64_t> index = evaluate(await.getIndex(), -1),
                           least = evaluate(await.getValue(), -1);
    if (!index || !least)
      return unknown(await, "what it waits for");
    const std::set<int64_t> &values =
        published[{await.getFlags().getAsOpaquePointer(), *index}];
    auto found = values.lower_bound(*least);
    known.erase(await.getResult());
    if (found == values.end())
      return unknown(await, "a value that was published earlier");
    known[await.getResult()] = *found;
    return success();
  }

  LogicalResult runDraw(DrawOp draw) {
    std::optional<int64_t> index = 0;
    if (draw.getIndex())
      index = evaluate(draw.getIndex(), -1);
    if (!index)
      return unknown(draw, "which counter it is");
    FailureOr<int64_t> number = next(draw, *index);
    if (succeeded(number))
      known[draw.getResult()] = *number;
    return number;
  }

  /// The number for a block lies where its buffer begins.
  LogicalResult runPutDraw(PutDrawOp draw) {
    FailureOr<int64_t> number = next(draw, /*index=*/0);
    if (succeeded(number))
      ofBlock[draw.getBuffer()] = *number;
    return number;
  }

  LogicalResult runGetDraw(GetDrawOp draw) {
    auto found = ofBlock.find(draw.getBuffer());
    if (found == ofBlock.end())
      return unknown(draw, "what was drawn");
    known[draw.getResult()] = found->second;
    return success();
  }

  /// What either op draws from the counter with that index.
  template <typename AnyDraw>
  FailureOr<int64_t> next(AnyDraw draw, int64_t index) {
    std::optional<int64_t> below = evaluate(draw.getBelow(), -1);
    if (!below || *below < 1)
      return unknown(draw, "its limit");
    return drawn[{draw.getCounter().getAsOpaquePointer(), index}]++ % *below;
  }

  /// Takes a loop's steps from those that are left.
  LogicalResult spend(Operation *loop, uint64_t steps) {
    if (steps <= uint64_t(stepsLeft)) {
      stepsLeft -= int64_t(steps);
      return success();
    }
    return loop->emitOpError("expects at most ")
           << kMostSteps
           << " steps of all loops and blocks, so that traffic can be counted, "
              "but got "
           << uint64_t(kMostSteps - stepsLeft) << " and " << steps << " more";
  }

  LogicalResult runWhile(scf::WhileOp loop) {
    carry(loop.getInits(), loop.getBeforeArguments());
    while (true) {
      if (failed(spend(loop, 1)))
        return failure();
      if (failed(run(*loop.getBeforeBody())))
        return failure();
      scf::ConditionOp condition = loop.getConditionOp();
      std::optional<int64_t> goesOn = evaluate(condition.getCondition(), -1);
      if (!goesOn)
        return unknown(loop, "its condition");
      if (!*goesOn) {
        carry(condition.getArgs(), loop.getResults());
        return success();
      }
      carry(condition.getArgs(), loop.getAfterArguments());
      if (failed(run(*loop.getAfterBody())))
        return failure();
      carry(loop.getYieldedValues(), loop.getBeforeArguments());
    }
  }

  LogicalResult count(TrafficInterface op) {
    bool uniform = true;
    for (Value v : op.getTrafficOperands()) {
      if (isa<ViewType>(v.getType())) {
        auto view = v.getDefiningOp<ViewOp>();
        if (!view)
          return unknown(op, "the view");
        v = view.getRows();
      }
      uniform &= known.count(v) != 0;
      if (!evaluate(v, 0))
        return unknown(op, "its rows");
    }
    if (roleWarp >= 0) {
      total += op.getTraffic(View(*this, roleWarp));
      return success();
    }
    int64_t warps = op.isCollective() ? 1 : kernel.getWarps();
    if (uniform || op.isCollective()) {
      total += op.getTraffic(View(*this, 0)) * warps;
      return success();
    }
    for (int64_t warp = 0; warp < warps; ++warp)
      total += op.getTraffic(View(*this, warp));
    return success();
  }

  LogicalResult runLoop(scf::ForOp loop) {
    std::optional<int64_t> lower = evaluate(loop.getLowerBound(), -1),
                           upper = evaluate(loop.getUpperBound(), -1),
                           step = evaluate(loop.getStep(), -1);
    if (!lower || !upper || !step || *step <= 0)
      return unknown(loop, "its bounds");
    carry(loop.getInitArgs(), loop.getRegionIterArgs());
    // In the unsigned numbers, in which nothing overflows.
    uint64_t span = *lower < *upper ? uint64_t(*upper) - uint64_t(*lower) : 0;
    uint64_t count = span / uint64_t(*step) + (span % uint64_t(*step) != 0);
    if (failed(spend(loop, count)))
      return failure();
    for (uint64_t number = 0; number < count; ++number) {
      known[loop.getInductionVar()] =
          int64_t(uint64_t(*lower) + number * uint64_t(*step));
      if (failed(run(*loop.getBody())))
        return failure();
      carry(loop.getYieldedValues(), loop.getRegionIterArgs());
    }
    carry(loop.getRegionIterArgs(), loop.getResults());
    return success();
  }

  LogicalResult runBranch(scf::IfOp branch) {
    std::optional<int64_t> condition = evaluate(branch.getCondition(), -1);
    if (!condition)
      return unknown(branch, "its condition");
    Block *taken = *condition ? branch.thenBlock() : branch.elseBlock();
    if (!taken)
      return success();
    if (failed(run(*taken)))
      return failure();
    carry(taken->getTerminator()->getOperands(), branch.getResults());
    return success();
  }

  /// Moves the scalars that counts depend on over an edge of the control flow,
  /// all at once.
  void carry(ValueRange from, ValueRange to) {
    SmallVector<std::optional<int64_t>> values;
    for (auto [value, target] : llvm::zip(from, to))
      values.push_back(slice.contains(target) ? evaluate(value, -1)
                                              : std::nullopt);
    for (auto [value, target] : llvm::zip(values, to)) {
      known.erase(target);
      if (value)
        known[target] = *value;
    }
  }

  KernelOp kernel;
  TrafficSlice slice;
  const ReadNumber &read;
  llvm::DenseMap<Block *, SmallVector<Operation *>> kept;
  llvm::DenseMap<Value, int64_t> known;
  /// The messages of each queue, and how many the warp has received.
  std::map<QueueKey, std::vector<SmallVector<std::optional<int64_t>>>> messages;
  std::map<QueueKey, size_t> received;
  int64_t gridX, programX = 0;
  int64_t stepsLeft = kMostSteps;
  /// The warp whose role is executed, or -1 outside of roles.
  int64_t roleWarp = -1;
  /// The values of every flag so far, of all blocks.
  std::map<std::pair<const void *, int64_t>, std::set<int64_t>> published;
  /// Draws of all blocks so far, from every counter.
  std::map<std::pair<const void *, int64_t>, int64_t> drawn;
  /// What was last drawn for the block, by buffer.
  llvm::DenseMap<Value, int64_t> ofBlock;
  /// Tables of ranks.
  llvm::DenseMap<Value, std::vector<Rank>> ranked;
  Traffic total;
};

} // namespace

FailureOr<Traffic> attn::tile::countTraffic(KernelOp kernel,
                                            std::array<int64_t, 3> grid,
                                            ArrayRef<int64_t> arguments,
                                            const ReadNumber &read) {
  Counter counter(kernel, grid[0], arguments, read);
  Traffic total;
  if (grid[1] == 0 || grid[2] == 0)
    return total;
  for (int64_t x = 0; x < grid[0]; ++x) {
    FailureOr<Traffic> one = counter.block(x);
    if (failed(one))
      return failure();
    total += *one * (grid[1] * grid[2]);
  }
  return total;
}
