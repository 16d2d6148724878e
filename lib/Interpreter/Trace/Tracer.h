//===- Tracer.h - Records what a block's warps do ---------------*- C++ -*-===//

#ifndef ATTN_LIB_INTERPRETER_TRACE_TRACER_H
#define ATTN_LIB_INTERPRETER_TRACE_TRACER_H

#include "attn/Interpreter/Trace.h"
#include "attn/Tile/Tile.h"

namespace attn::interpreter {

struct Program;
class ThreadBlock;
class Warp;

class Tracer {
public:
  Tracer(const Program &program, tile::KernelOp kernel);
  KernelTrace trace;

  /// Whether it is the first block of the grid, and the warp one of it.
  static bool follows(const ThreadBlock &block);
  static bool follows(const ThreadBlock &block, const Warp &warp);

  /// An op that a warp has executed: products, stores and arithmetic.
  void executed(const Warp &warp, mlir::Operation *op);

  // Mbarriers are the first channels, then named barriers, then that of all
  // warps.
  void copy(const Warp &warp, mlir::Operation *op, unsigned barrier,
            int64_t phase, int64_t bytes);
  void arrive(const Warp &warp, mlir::Operation *op, unsigned channel,
              int64_t phase);
  void wait(const Warp &warp, mlir::Operation *op, unsigned channel,
            int64_t phase);
  unsigned named(unsigned id) const { return firstNamed + id; }
  unsigned all() const { return unsigned(trace.channels.size()) - 1; }
  /// How often all warps have met.
  int64_t meetings = 0;

private:
  unsigned firstNamed;
  int64_t global = 0; ///< bytes that the block has moved so far
};

} // namespace attn::interpreter

#endif
