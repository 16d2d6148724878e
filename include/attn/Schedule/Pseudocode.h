//===- Pseudocode.h - A schedule as a person would write it -----*- C++ -*-===//
///
/// Prints a schedule for one problem: real loop bounds, what stays where, what
/// moves, line by line.  For people, not for machines; the line is stable
/// enough to be quoted in documentation tests.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_PSEUDOCODE_H
#define ATTN_SCHEDULE_PSEUDOCODE_H

#include "attn/Schedule/Schedule.h"

namespace attn {

/// What hides pairs: a mask, the list of blocks, or both.
std::string whatShows(const Problem &problem);
/// `S += Q . K^T`.
std::string formulaOf(const verb::Multiply &product);
/// `4 warps`; of a pipeline also how it works.
std::string crewText(const Grid &grid);

std::string pseudocode(const Schedule &schedule, const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_PSEUDOCODE_H
