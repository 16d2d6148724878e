//===- Advice.h - What a plan report does not say by itself -----*- C++ -*-===//
///
/// Two questions that need more than one report.
///
/// *What would fit?*  When nothing does: the choice that lacks the fewest
/// bytes, and the known machine with the least shared memory on which there is
/// a plan.
///
/// *Where is the crossover?*  The theory says M = d²: below it a schedule that
/// keeps rows of Q and O moves more words than one that does not.  The
/// constants move that by more than a factor of two, and time is not words.  So
/// the crossover is found, not assumed: the least head dimension from which on
/// the fastest plan is one for small caches.  For words, of ideal tiles on one
/// processor, with r = d/√M:
///
///   forward    4r²N² for flash and (4r + 1)N² for a spill of P; they meet at r
///              = (1 + √2)/2
///   backward   12r²N² for flash_backward, whose sums of dQ are remote, 14r²N²
///              for split_backward, and (10r + 3)N² for a spill of P and dS;
///              they meet at r = 1.07 and 0.94
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_ADVICE_H
#define ATTN_SCHEDULE_ADVICE_H

#include "attn/Schedule/Plan.h"

namespace attn {

/// Of the choices that fit but for shared memory, the one that needs least, or
/// null; with `hasKernel` only those that can be built.
const Refused *nearestFit(const PlanReport &report, bool hasKernel = false);

/// The known machine with the least shared memory per block that has a plan, or
/// null; with `hasKernel` one that can be built.
const Machine *smallestMachine(const Problem &problem, bool hasKernel = false);

/// Where the ideal words of a schedule for large caches meet those of a spill.
struct WordsCrossover {
  std::string schedule;
  double headDim;
};

struct Crossover {
  int64_t regime = 0; ///< the least d of the small-cache regime: d² > M
  std::vector<WordsCrossover> words; ///< for the problem's direction
  int64_t predicted = 0; ///< the least d whose fastest plan is for small
                         ///< caches, a multiple of 16 bytes; 0 if there is none
  std::string schedule;  ///< that plan's
};

/// The problem with other head dimensions, both the same.
Crossover crossover(const Problem &problem, const Machine &machine);

/// Whether a schedule is one for small caches: it does not keep whole rows of O
/// in one multiprocessor.
bool isForSmallCache(std::string_view schedule);

} // namespace attn

#endif // ATTN_SCHEDULE_ADVICE_H
