//===- Program.cpp - Turns a kernel into instructions ---------------------===//

#include "Run/Program.h"

#include "Run/Handlers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// The function that executes an op, or null.
static Handler handlerOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Handler>(op)
      .Case([](scf::ForOp) { return runFor; })
      .Case([](scf::IfOp) { return runIf; })
      .Case([](scf::WhileOp) { return runWhile; })
      .Case([](scf::ConditionOp) { return runCondition; })
      .Case([](scf::YieldOp yield) -> Handler {
        Operation *parent = yield->getParentOp();
        if (isa<scf::WhileOp>(parent))
          return runWhileYield;
        return isa<scf::ForOp>(parent) ? runForYield : runIfYield;
      })
      .Case([](tile::TransposeOp) { return runTranspose; })
      .Case([](tile::RolesOp) { return runRoles; })
      .Case([](tile::RoleOp) { return runRole; })
      .Case([](tile::ReturnOp) { return runReturn; })
      .Case([](tile::ProgramIdOp) { return runProgramId; })
      .Case([](tile::GridSizeOp) { return runGridSize; })
      .Case([](tile::WarpIdOp) { return runWarpId; })
      .Case([](tile::BarrierOp) { return runBarrier; })
      .Case([](tile::CommitGroupOp) { return runCommitGroup; })
      .Case([](tile::WaitGroupOp) { return runWaitGroup; })
      .Case([](tile::MbarrierOp) { return runMbarrier; })
      .Case([](tile::MbarrierWaitOp) { return runMbarrierWait; })
      .Case([](tile::MbarrierArriveOp) { return runMbarrierArrive; })
      .Case([](tile::BarSyncOp) { return runBarSync; })
      .Case([](tile::BarArriveOp) { return runBarArrive; })
      .Case([](tile::FenceAsyncOp) { return runFenceAsync; })
      .Case([](tile::QueueOp) { return runQueue; })
      .Case([](tile::PushOp) { return runPush; })
      .Case([](tile::PopOp) { return runPop; })
      .Case([](tile::DrawOp) { return runDraw; })
      .Case([](tile::PutDrawOp) { return runPutDraw; })
      .Case([](tile::GetDrawOp) { return runGetDraw; })
      .Case([](tile::StoreRegistersOp) { return runStoreRegisters; })
      .Case([](tile::LoadRegistersOp) { return runLoadRegisters; })
      .Case([](tile::PutRegistersOp) { return runPutRegisters; })
      .Case([](tile::GetRegistersOp) { return runGetRegisters; })
      .Case([](tile::ScaleRowsOp) { return runScaleRows; })
      .Case([](tile::StoreFragmentOp) { return runStoreFragment; })
      .Case([](tile::LoadFragmentOp) { return runLoadFragment; })
      .Case([](tile::PublishOp) { return runPublish; })
      .Case([](tile::CountOp) { return runCount; })
      .Case([](tile::AwaitOp) { return runAwait; })
      .Case([](tile::AwaitLaunchOp) { return runLaunchOrder; })
      .Case([](tile::ReleaseLaunchOp) { return runLaunchOrder; })
      .Case([](tile::ClusterRankOp) { return runClusterRank; })
      .Case([](tile::SideOp) { return runSide; })
      .Case([](tile::TmaLoadOp) { return runTmaLoad; })
      .Case([](tile::MbarrierExpectOp) { return runMbarrierExpect; })
      .Case([](tile::TmaLoadRowsOp) { return runTmaLoadRows; })
      .Case([](tile::TmaPrefetchOp) { return runTmaPrefetch; })
      .Case([](tile::TmaStoreOp) { return runTmaStore; })
      .Case([](tile::TmaStoreWaitOp) { return runTmaStoreWait; })
      .Case([](tile::LoadWordsOp) { return runLoadWords; })
      .Case([](tile::AddWordsOp) { return runAddWords; })
      .Case([](tile::StoreWordsOp) { return runStoreWords; })
      .Case([](tile::WgmmaOp) { return runWgmma; })
      .Case([](tile::WgmmaWaitOp) { return runWgmmaWait; })
      .Case([](tile::ViewOp) { return runView; })
      .Case([](tile::AllocOp) { return runAlloc; })
      .Case([](tile::AliasOp) { return runAlias; })
      .Case([](tile::CopyAsyncOp) { return runCopyAsync; })
      .Case([](tile::LoadMatrixOp) { return runLoadMatrix; })
      .Case([](tile::StoreMatrixOp) { return runStoreMatrix; })
      .Case([](tile::StoreTransposedOp) { return runStoreTransposed; })
      .Case([](tile::PutRowOp) { return runPutRow; })
      .Case([](tile::GetRowOp) { return runGetRow; })
      .Case([](tile::GetColumnsOp) { return runGetColumns; })
      .Case([](tile::CopyOutOp) { return runCopyOut; })
      .Case([](tile::LoadRowOp) { return runLoadRow; })
      .Case([](tile::RowDotOp) { return runRowDot; })
      .Case([](tile::StoreRowOp) { return runStoreRow; })
      .Case([](tile::FillOp) { return runFill; })
      .Case([](tile::MmaOp) { return runMma; })
      .Case([](tile::CastOp) { return runCast; })
      .Case([](tile::SplitOp) { return runSplit; })
      .Case([](tile::SplitBf16Op) { return runSplitBf16; })
      .Case([](tile::SplitRowsOp) { return runSplitRows; })
      .Case([](tile::WidenRowsOp) { return runWidenRows; })
      .Case([](tile::SplitF16Op) { return runSplitF16; })
      .Case([](tile::SplitViewOp) { return runSplitView; })
      .Case([](tile::LoadNumberOp) { return runLoadNumber; })
      .Case([](tile::ReadOp) { return runRead; })
      .Case([](tile::AnyOp) { return runAny; })
      .Case([](tile::StoreNumberOp) { return runStoreNumber; })
      .Case([](tile::RankOp) { return runRank; })
      .Case([](tile::GetNumberOp) { return runGetNumber; })
      .Case([](tile::TotalOp) { return runTotal; })
      .Case([](tile::AddElementsOp) { return runAddElements; })
      .Case([](tile::ExtractOp) { return runExtract; })
      .Case([](tile::ConcatOp) { return runConcat; })
      .Case([](tile::MapOp) { return runMap; })
      .Case([](tile::RowReduceOp) { return runRowReduce; })
      .Case([](tile::RowCombineOp) { return runRowCombine; })
      .Case([](tile::KeepColumnsOp) { return runKeepColumns; })
      .Case([](tile::AnyAboveOp) { return runAnyAbove; })
      .Default([](Operation *) -> Handler { return nullptr; });
}

namespace {
class Compiler {
public:
  explicit Compiler(Program &program) : program(program) {}

  LogicalResult compileRegion(Region &region, Code &code) {
    if (!region.hasOneBlock())
      return region.getParentOp()->emitError("expects one block in a region, "
                                             "but got ")
             << llvm::range_size(region);
    for (BlockArgument argument : region.getArguments())
      code.arguments.push_back(slots.of(argument));
    for (Operation &op : region.front())
      if (failed(compileOp(op, code.instructions.emplace_back())))
        return failure();
    return success();
  }

  Slots slots;

private:
  static LogicalResult keep(FailureOr<std::shared_ptr<const MapBody>> body,
                            Instruction &in) {
    if (succeeded(body))
      in.map = *body;
    return success(succeeded(body));
  }

  LogicalResult compileOp(Operation &op, Instruction &in) {
    in.op = &op;
    in.index = unsigned(program.ops.size());
    program.ops.push_back(&op);
    in.run = handlerOf(&op);
    program.adds |= isa<tile::AddWordsOp, tile::StoreWordsOp>(op);
    program.together |= isa<tile::AwaitOp>(op);
    if (!in.run) {
      in.scalar = decodeScalar(&op);
      in.run = runScalar;
      if (!in.scalar)
        return op.emitError("expects an op that the interpreter executes, but "
                            "got '")
               << op.getName() << "'";
    }
    for (Value operand : op.getOperands())
      in.operands.push_back(slots.of(operand));
    for (Value result : op.getResults())
      in.results.push_back(slots.of(result));
    if (auto map = dyn_cast<tile::MapOp>(op))
      return keep(compileMap(map, slots), in);
    if (auto additions = dyn_cast<tile::AddElementsOp>(op))
      return keep(compileMap(additions, slots), in);
    for (Region &region : op.getRegions()) {
      std::unique_ptr<Code> &code = in.regions.emplace_back();
      if (region.empty())
        continue;
      code = std::make_unique<Code>();
      if (failed(compileRegion(region, *code)))
        return failure();
    }
    return success();
  }

  Program &program;
};
} // namespace

/// Numbers the mbarriers of rings and queues.
static void collectBarriers(tile::KernelOp kernel, Program &program) {
  auto add = [&](Twine what, StringRef name, int64_t slots, StringRef which,
                 unsigned arrivals) {
    for (int64_t slot = 0; slot < slots; ++slot)
      program.barriers.push_back(
          {(what + " '" + name + "' (slot " + Twine(slot) + which + ")").str(),
           arrivals});
  };
  kernel.getBody().walk([&](Operation *op) {
    if (!isa<tile::MbarrierOp, tile::QueueOp>(op))
      return;
    program.firstBarrier[op] = unsigned(program.barriers.size());
    if (auto barrier = dyn_cast<tile::MbarrierOp>(op)) {
      add("barrier", barrier.getName(),
          barrier.getResult().getType().getSlots(), "",
          unsigned(barrier.getArrivals()));
      return;
    }
    auto queue = cast<tile::QueueOp>(op);
    int64_t slots = queue.getResult().getType().getSlots();
    add("queue", queue.getName(), slots, ", full", 1);
    add("queue", queue.getName(), slots, ", empty",
        unsigned(queue.getReaders()));
  });
}

FailureOr<Program> attn::interpreter::compile(tile::KernelOp kernel) {
  Program program(kernel);
  collectBarriers(kernel, program);
  Compiler compiler(program);
  if (failed(compiler.compileRegion(kernel.getBody(), program.body)))
    return failure();
  program.slots = compiler.slots.count();
  return program;
}
