//===- Diagram.h - What a picture of a schedule shows -----------*- C++ -*-===//
///
/// A schedule for one problem as a list of *marks* in nested *frames*, with all
/// numbers that a picture has and no coordinates.  A mark is a leaf of the
/// tree, in order: what it moves, and what fast memory holds while it runs.  A
/// frame is a range of marks: a grid, a loop, or the rounds around grids.
///
/// `flash` with 4096 queries and keys in tiles of 128 and 64 has the marks
///
///   hold O, hold stats, load Q, stream K, stream V, hold S, S += Q . K^T, ...
///
/// in two frames, "every query tile of 128" around all of them and "every key
/// tile of 64" around those of the loop.
///
/// It computes no byte: a mark has the `Use` that the census has of its leaf,
/// and what folds make of it.  So the bytes of all marks are those of the plan.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_DIAGRAM_H
#define ATTN_SCHEDULE_DIAGRAM_H

#include "attn/Schedule/Census.h"
#include "attn/Schedule/Footprint.h"
#include "attn/Schedule/Traffic.h"

namespace attn {

/// One leaf.  Bytes are those of all heads.
struct Mark {
  Use use;
  size_t frame;       ///< the innermost one
  int64_t count;      ///< how often it runs, for all heads
  int64_t slowBytes;  ///< between L2 and the multiprocessors
  int64_t smemBytes;  ///< in and out of shared memory
  HeldWords held;     ///< while it runs
  int64_t rows, cols; ///< of the tile that it touches; a statistic has 0
  int64_t stages;     ///< of the loop around it

  const Node &node() const { return *use.node; }
};

/// Loops go on in order; those whose steps are `blocks`, and all others, do
/// not.
enum class FrameKind { rounds, grid, loop, blocks, share };

/// A range of marks, and why it repeats.
struct Frame {
  FrameKind kind;
  size_t parent;      ///< of a frame without one, itself
  size_t first, last; ///< marks, both within
  size_t depth;
  std::string what; ///< "every key tile of 128"
  std::string how;  ///< "32 of them, 2 in flight"
  std::string more; ///< who works how, of a grid
};

/// How a grid is launched.
struct DrawnGrid {
  size_t frame, launch;
  bool isMain; ///< else it is done by the blocks of the main one
};

struct Diagram {
  std::vector<Mark> marks;
  std::vector<Frame> frames; ///< outer ones first
  std::vector<DrawnGrid> grids;
  size_t launches = 0;
};

/// The schedule must outlive its diagram.
Diagram diagram(const Schedule &schedule, const Problem &problem);

/// What a mark does in a word or a formula: "streams", "P = exp(S - max)".
std::string captionOf(const Node &node, const Problem &problem);

/// An operation of the op as it is written, without a schedule.
struct Operation {
  std::string formula; ///< "S = Q . K^T"
  std::vector<Tensor> reads;
  Tensor result;
};
/// All of them, in order.
std::vector<Operation> operationsOf(const Problem &problem);
/// Bytes of all of a tensor.
int64_t wholeBytes(Tensor tensor, const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_DIAGRAM_H
