//===- CheckFences.cpp - Does TMA see what it loads? ----------------------===//
//
// TMA reads global memory through the asynchronous proxy.  What a warp learned
// of by `tile.await`, or stored itself, its TMA sees only behind a
// `tile.fence_async global`.  One walk follows a warp through regions and
// loops and carries what lies behind its last such fence.
//
// What another warp of the block learned and passed on by a barrier is left to
// the interpreter, which knows who waits for whom.
//
//===----------------------------------------------------------------------===//

#include "attn/Kernels/Kernels.h"
#include "attn/Tile/Tile.h"
#include "attn/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>
#include <string>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace attn {
#define GEN_PASS_DEF_CHECKFENCESPASS
#include "attn/Transforms/Passes.h.inc"
} // namespace attn

namespace {

/// An array in global memory: a role of the kernel, under which its pointer
/// and its tensor map are one array; without roles an argument.
using Array = std::string;

/// What a warp did since its last fence of global memory.
struct Unfenced {
  Operation *await = nullptr;
  std::map<Array, Operation *> stores;

  bool join(const Unfenced &other) {
    bool grows = !await && other.await;
    if (grows)
      await = other.await;
    for (auto &[array, store] : other.stores)
      grows |= stores.try_emplace(array, store).second;
    return grows;
  }
};

class Checker {
public:
  explicit Checker(KernelOp kernel) : kernel(kernel) {
    kernel.walk([&](Operation *op) {
      if (Value target = writtenBy(op))
        writers.try_emplace(arrayOf(target), op);
    });
  }

  LogicalResult check() {
    Unfenced state;
    return walk(kernel.getBody(), state);
  }

private:
  /// The array that an op writes, by any proxy.
  static Value writtenBy(Operation *op) {
    return TypeSwitch<Operation *, Value>(op)
        .Case([](TmaStoreOp op) { return op.getMap(); })
        .Case<AddWordsOp, StoreWordsOp>([](auto op) { return op.getBase(); })
        .Default([](Operation *op) { return storedBy(op); });
  }
  /// The array that an op writes by the generic proxy.
  static Value storedBy(Operation *op) {
    return TypeSwitch<Operation *, Value>(op)
        .Case<StoreFragmentOp, StoreRowOp>([](auto op) { return op.getView(); })
        .Case([](StoreRegistersOp op) { return op.getBase(); })
        .Default(Value());
  }
  /// The array that an op has TMA load.
  static Value loadedBy(Operation *op) {
    return TypeSwitch<Operation *, Value>(op)
        .Case([](TmaLoadOp op) { return op.getMap(); })
        .Case([](LoadWordsOp op) { return op.getBase(); })
        .Default(Value());
  }

  Array arrayOf(Value value) {
    while (auto view = value.getDefiningOp<ViewOp>())
      value = view.getBase();
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &kernel.getBody().front())
      return "";
    unsigned number = argument.getArgNumber();
    auto text = kernel.getArgAttrOfType<StringAttr>(number, kRoleAttr);
    std::optional<ArgumentRole> role;
    if (text)
      role = parseRole(std::string_view(text.getValue()));
    return role ? str(role->at(Facet::itself)) : std::to_string(number);
  }

  LogicalResult walk(Region &region, Unfenced &state) {
    for (Block &block : region)
      for (Operation &op : block)
        if (failed(step(&op, state)))
          return failure();
    return success();
  }

  LogicalResult step(Operation *op, Unfenced &state) {
    if (auto fence = dyn_cast<FenceAsyncOp>(op); fence && fence.getGlobal())
      state = {};
    if (isa<AwaitOp>(op))
      state.await = op;
    if (Value target = storedBy(op))
      state.stores[arrayOf(target)] = op;
    if (Value source = loadedBy(op); source && failed(check(op, source, state)))
      return failure();
    if (op->getNumRegions() == 0)
      return success();
    return isa<LoopLikeOpInterface>(op) ? repeat(op, state) : choose(op, state);
  }

  /// The body runs so often that another time adds nothing.
  LogicalResult repeat(Operation *loop, Unfenced &state) {
    Unfenced after;
    do {
      after = state;
      for (Region &region : loop->getRegions())
        if (failed(walk(region, after)))
          return failure();
    } while (state.join(after));
    return success();
  }

  /// Any of the regions runs, or none if one of them is missing.  A role is
  /// other warps.
  LogicalResult choose(Operation *op, Unfenced &state) {
    SmallVector<Unfenced> ends;
    for (Region &region : op->getRegions()) {
      Unfenced &end = ends.emplace_back(state);
      if (failed(walk(region, end)))
        return failure();
    }
    if (isa<RoleOp>(op))
      return success();
    state = {};
    for (const Unfenced &end : ends)
      state.join(end);
    return success();
  }

  LogicalResult check(Operation *load, Value source, const Unfenced &state) {
    Array array = arrayOf(source);
    auto writer = writers.find(array);
    auto store = state.stores.find(array);
    bool isOwn = store != state.stores.end();
    if (!isOwn && (!state.await || writer == writers.end()))
      return success();
    InFlightDiagnostic diagnostic =
        load->emitOpError("expects tile.fence_async global between ")
        << (isOwn ? "the store" : "the await")
        << " and this load of an array that the kernel writes, but got none";
    if (!isOwn)
      diagnostic.attachNote(state.await->getLoc()) << "the await is here";
    diagnostic.attachNote((isOwn ? store->second : writer->second)->getLoc())
        << "the array is written here";
    return diagnostic;
  }

  KernelOp kernel;
  std::map<Array, Operation *> writers;
};

struct CheckFencesPass : attn::impl::CheckFencesPassBase<CheckFencesPass> {
  using CheckFencesPassBase::CheckFencesPassBase;

  void runOnOperation() override {
    WalkResult result = getOperation().walk([](KernelOp kernel) {
      return failed(Checker(kernel).check()) ? WalkResult::interrupt()
                                             : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
