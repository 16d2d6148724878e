//===- DiagramLayout.h - Where a diagram has what ---------------*- C++ -*-===//
//
// A *system* is the picture of one grid.  From left to right it has a column
// for each mark that does something; from top to bottom the headings of its
// frames, a lane for each memory level, and a bar for each column.  A tile that
// is held is a band in its lane, from its column to the end of its frame.
//
// The arithmetic is simple: a column is as wide as its words, and the last one
// of a frame also as wide as the heading wants.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REPORT_DIAGRAM_LAYOUT_H
#define ATTN_LIB_REPORT_DIAGRAM_LAYOUT_H

#include "Svg.h"

#include "attn/Schedule/Diagram.h"
#include <vector>

namespace attn {

/// Left of it are the names of lanes.
inline constexpr int64_t kMargin = 130;
/// From the left of a column to its arrow, and to the words beside it.
inline constexpr int64_t kShaft = 10, kBeside = 20;
inline constexpr int64_t kBarHeight = 56;

struct Column {
  size_t mark;
  int64_t x, width;
};

struct DrawnBand {
  size_t mark;
  std::string label;
  int64_t labelAt; ///< its left
  bool streams;    ///< the next step overwrites it
  Rectangle box;
};

struct FrameBox {
  size_t frame;
  Rectangle box;
};

struct System {
  std::vector<Column> columns;
  std::vector<FrameBox> frames; ///< outer ones first
  std::vector<DrawnBand> bands;
  Rectangle l2, smem, registers,
      products;                     ///< lanes; of no height, if not there
  int64_t captions;                 ///< the top of what arrows are called
  int64_t smemBoxes, registerBoxes; ///< the top of rows of boxes
  int64_t bars;                     ///< the top of all bars
  int64_t left, right, bottom;      ///< left: of the columns

  /// The band of a tensor that is alive in a column, or null.
  const DrawnBand *bandOf(const Diagram &diagram, Tensor tensor,
                          const Column &column) const;
};

/// Of the grid in a frame; columns begin at `left`.
System layoutSystem(const Diagram &diagram, size_t frame,
                    const Problem &problem, int64_t top, int64_t left);

/// Whether what a verb moves lies in scratch memory.
bool isOfScratch(const Node &node, const Problem &problem);
/// `512 MiB`.
std::string amountText(int64_t bytes);

} // namespace attn

#endif // ATTN_LIB_REPORT_DIAGRAM_LAYOUT_H
