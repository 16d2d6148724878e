//===- Tile.h - The dialect of kernels: one header for users ----*- C++ -*-===//
//
// `tile` says HOW an attention kernel runs: which tile lies in shared memory,
// which fragment in which registers, what is copied when, who waits for what.
// The dialect's description (TileDialect.td) has the execution model.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILE_H
#define ATTN_TILE_TILE_H

#include "attn/Tile/Traffic.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Tile/TileDialect.h.inc"
#include "attn/Tile/TileEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "attn/Tile/TileTypes.h.inc"
#include "attn/Tile/TrafficInterface.h.inc"
#define GET_OP_CLASSES
#include "attn/Tile/TileOps.h.inc"

namespace attn::tile {

/// Whether an op, or one inside of it, reads or writes global memory.
bool touchesGlobalMemory(mlir::Operation *op);

} // namespace attn::tile

#endif
