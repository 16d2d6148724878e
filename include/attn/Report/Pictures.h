//===- Pictures.h - Plans as pictures ---------------------------*- C++ -*-===//
//
// The schedule of a plan, or a tile of it in time, as a whole SVG file.  A
// picture brings its background and has one font, of which every letter is
// equally wide, so what a text takes is known without the font.  What colours
// say, places and strokes say too.
//
// Numbers are in attributes as well, for programs that check them:
//
//   data-bytes       of an arrow: between L2 and the multiprocessors
//   data-smem-bytes  of a mark: in and out of shared memory
//   data-words       of a bar: held at one time, by the two-level model
//   data-block-bytes of a gauge: shared memory of a block
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REPORT_PICTURES_H
#define ATTN_REPORT_PICTURES_H

#include "attn/Schedule/Plan.h"

#include <string>

namespace attn {

/// The op as it is written, and below it what the plan's schedule makes of it.
std::string diagramSvg(const PlanReport &report, const Plan &plan);
/// The first steps of one tile of its longest launch, unit by unit, by the
/// model (Timeline.h).
std::string timelineSvg(const PlanReport &report, const Plan &plan);

} // namespace attn

#endif // ATTN_REPORT_PICTURES_H
