//===- Handlers.h - The function that executes each op ----------*- C++ -*-===//
//
// One function per op, in one file per family.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_RUN_HANDLERS_H
#define ATTN_LIB_INTERPRETER_RUN_HANDLERS_H

#include "Run/Warp.h"

namespace attn::interpreter {

// Control.cpp
Step runScalar(Warp &, const Instruction &);
Step runFor(Warp &, const Instruction &);
Step runForYield(Warp &, const Instruction &);
Step runWhile(Warp &, const Instruction &);
Step runCondition(Warp &, const Instruction &);
Step runWhileYield(Warp &, const Instruction &);
Step runIf(Warp &, const Instruction &);
Step runIfYield(Warp &, const Instruction &);
Step runReturn(Warp &, const Instruction &);
Step runProgramId(Warp &, const Instruction &);
Step runGridSize(Warp &, const Instruction &);
Step runWarpId(Warp &, const Instruction &);
Step runClusterRank(Warp &, const Instruction &);
Step runSide(Warp &, const Instruction &);

// Barriers.cpp
Step runBarrier(Warp &, const Instruction &);
Step runCommitGroup(Warp &, const Instruction &);
Step runWaitGroup(Warp &, const Instruction &);

// Roles.cpp
Step runRoles(Warp &, const Instruction &);
Step runRole(Warp &, const Instruction &);

// Mbarriers.cpp
Step runMbarrier(Warp &, const Instruction &);
Step runMbarrierWait(Warp &, const Instruction &);
Step runMbarrierArrive(Warp &, const Instruction &);

// NamedBarriers.cpp
Step runBarSync(Warp &, const Instruction &);
Step runBarArrive(Warp &, const Instruction &);
Step runFenceAsync(Warp &, const Instruction &);

// Queues.cpp
Step runQueue(Warp &, const Instruction &);
Step runPush(Warp &, const Instruction &);
Step runPop(Warp &, const Instruction &);
Step runDraw(Warp &, const Instruction &);
Step runPutDraw(Warp &, const Instruction &);
Step runGetDraw(Warp &, const Instruction &);

// Flags.cpp
Step runPublish(Warp &, const Instruction &);
Step runCount(Warp &, const Instruction &);
Step runAwait(Warp &, const Instruction &);
Step runLaunchOrder(Warp &, const Instruction &);

// Exchange.cpp
Step runStoreRegisters(Warp &, const Instruction &);
Step runLoadRegisters(Warp &, const Instruction &);
Step runPutRegisters(Warp &, const Instruction &);
Step runGetRegisters(Warp &, const Instruction &);
Step runScaleRows(Warp &, const Instruction &);

// Tma.cpp
Step runTmaLoad(Warp &, const Instruction &);
Step runMbarrierExpect(Warp &, const Instruction &);
Step runTmaLoadRows(Warp &, const Instruction &);
Step runTmaPrefetch(Warp &, const Instruction &);
Step runTmaStore(Warp &, const Instruction &);
Step runTmaStoreWait(Warp &, const Instruction &);

// Words.cpp
Step runLoadWords(Warp &, const Instruction &);
Step runAddWords(Warp &, const Instruction &);
Step runStoreWords(Warp &, const Instruction &);

// Wgmma.cpp
Step runWgmma(Warp &, const Instruction &);
Step runWgmmaWait(Warp &, const Instruction &);

// Buffers.cpp
Step runAlloc(Warp &, const Instruction &);
Step runAlias(Warp &, const Instruction &);
Step runLoadMatrix(Warp &, const Instruction &);
Step runStoreMatrix(Warp &, const Instruction &);
Step runStoreTransposed(Warp &, const Instruction &);
Step runPutRow(Warp &, const Instruction &);
Step runGetRow(Warp &, const Instruction &);
Step runTranspose(Warp &, const Instruction &);

// Copies.cpp
Step runView(Warp &, const Instruction &);
Step runCopyAsync(Warp &, const Instruction &);
Step runCopyOut(Warp &, const Instruction &);
Step runStoreRow(Warp &, const Instruction &);
Step runLoadRow(Warp &, const Instruction &);
Step runRowDot(Warp &, const Instruction &);
Step runGetColumns(Warp &, const Instruction &);
Step runStoreFragment(Warp &, const Instruction &);
Step runLoadFragment(Warp &, const Instruction &);

// Matrix.cpp
Step runFill(Warp &, const Instruction &);
Step runMma(Warp &, const Instruction &);
Step runCast(Warp &, const Instruction &);
Step runSplit(Warp &, const Instruction &);
Step runExtract(Warp &, const Instruction &);
Step runConcat(Warp &, const Instruction &);
Step runRowReduce(Warp &, const Instruction &);
Step runRowCombine(Warp &, const Instruction &);
Step runKeepColumns(Warp &, const Instruction &);
Step runAnyAbove(Warp &, const Instruction &);

// Split.cpp
Step runSplitBf16(Warp &, const Instruction &);
Step runSplitRows(Warp &, const Instruction &);
Step runWidenRows(Warp &, const Instruction &);
Step runSplitF16(Warp &, const Instruction &);
Step runSplitView(Warp &, const Instruction &);
Step runLoadNumber(Warp &, const Instruction &);
Step runRead(Warp &, const Instruction &);
/// An element of the array of a read; a sentence if it is not there.
std::optional<std::string> readElement(Warp &warp, const Instruction &in,
                                       tile::ReadOp read, uint64_t base,
                                       int64_t index, Number &number);

// Lists.cpp
Step runAny(Warp &, const Instruction &);
Step runStoreNumber(Warp &, const Instruction &);
Step runRank(Warp &, const Instruction &);
Step runGetNumber(Warp &, const Instruction &);

// Additions.cpp
Step runTotal(Warp &, const Instruction &);

// Map.cpp
Step runMap(Warp &, const Instruction &);
Step runAddElements(Warp &, const Instruction &);

} // namespace attn::interpreter

#endif
