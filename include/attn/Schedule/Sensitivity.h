//===- Sensitivity.h - What another machine would buy -----------*- C++ -*-===//
///
/// *Which fact of the machine limits?*  The binding term of a time names a
/// unit, but not what to do about it: tiles may be chosen anew where there is
/// more of something, and the next unit may be nearly as busy.  So every choice
/// is priced again on a machine that has twice as much of one *resource* and is
/// otherwise the same.
///
///   gain = seconds here / seconds there,   1 where it buys nothing
///
/// What limits is the resource with the greatest gain.  Where none gains
/// anything, what binds is no resource: latency, instructions, a launch.
///
/// *Which exponent?*  Words between slow memory and a fast one of M words are,
/// for a schedule with ideal tiles and many rows,
///
///   H(M) = sum of a_t / M^beta_t
///
/// One term has beta = 1 where rows of queries stay (flash), and 1/2 where
/// tiles of scores do; the scores that a spill writes are a term with 0.  Near
/// one M the sum goes with M^-beta of its own, which three prices say: the
/// schedule is the one that moves the fewest words at M, and
///
///   4^beta = H(M/2) / H(2M)
///
/// Elements of half the bytes halve the bytes of a word and double M, so that
/// bytes fall by 2^(1 + beta).  Source: FlashAttention on a Napkin, arXiv
/// 2412.03317.
///
/// Example: one H100, d = 128.  M is 116224 words in bf16 and the best schedule
/// flash: beta = 1, and f8e4m3 moves a quarter of the bytes.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_SENSITIVITY_H
#define ATTN_SCHEDULE_SENSITIVITY_H

#include "attn/Schedule/Plan.h"

namespace attn {

/// A fact that a machine may have more of, or facts that go together.
struct Resource {
  const char *name;  ///< `tensor_rate`
  const char *label; ///< `tensor rate`
  void (*scale)(Machine &machine, double factor);
};

const std::vector<Resource> &resources();

/// The machine with so many times as much, by vendor and by measurement.
Machine withMore(const Resource &resource, Machine machine, double factor);

struct Gain {
  const Resource *resource;
  double speedup; ///< of twice as much
};

/// Of every resource, in order, for the plan that would be built; none if there
/// is no plan.
std::vector<Gain> gains(const PlanReport &report);
/// The resource that gains most, or null where none gains a hundredth.
const Gain *limitOf(const std::vector<Gain> &gains);

/// Words of many rows, without a mask, in fast memory of M words.
struct Exponent {
  std::string schedule; ///< of the least words
  double beta = 0;

  /// By how much bytes fall with elements of half the bytes.
  double savesByHalving() const;
};
/// Nothing where no schedule's ideal tiles fit.
std::optional<Exponent> exponentOf(const Problem &problem, double cacheWords);

/// The least words of a schedule's ideal tiles: all sides as long as fits, but
/// for those that stream, which are 1.  Nothing if none fits, or if the
/// schedule has no portable form.
std::optional<double> idealWords(std::string_view schedule,
                                 const Problem &problem, double cacheWords);

} // namespace attn

#endif // ATTN_SCHEDULE_SENSITIVITY_H
