//===- Step.h - How long a step and a tile take -----------------*- C++ -*-===//
//
// One model for every grid.  With W workers on a multiprocessor a step takes
//
//   max(units + s (locked - units), chain), or as long as the ring
//
//   units    what units do for all workers: tensor cores, shared memory,
//            exponentials, instructions; a power mean, as they are busy at once
//   chain    what one worker does one behind the other, with its barriers
//   locked   W chains: as if all did the same at the same time
//   s        how far workers are from keeping apart, by their `Order`
//   ring     by Little's law: a slot is taken for a latency, the copy, the time
//            it is read, and until it is handed back
//
// A tile is its steps and a *boundary*: results leave, and the next tile's
// inputs come unless they are there.
//
// Every constant is one of the machine's (Times.def).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TIME_STEP_H
#define ATTN_LIB_SCHEDULE_TIME_STEP_H

#include "Time/Work.h"
#include <initializer_list>

namespace attn {

/// How long units take that are busy at once and get into each other's way: the
/// longest, and more as others come near it.
double powerMean(std::initializer_list<double> values, double power);

/// Measured where somebody measured, else the vendor's.
double clockOf(const Machine &machine);
double l2RateOf(const Machine &machine);
double hbmRateOf(const Machine &machine, const Calibration &c);

/// Clocks of a multiprocessor that has some blocks of a grid.
class Step {
public:
  Step(const Work &work, const Machine &machine, const Calibration &c);

  /// A step of so many blocks, of each of which so many workers have something
  /// to do; and an average one.
  double clocks(double blocks, double active) const;
  double average(double blocks) const;
  /// What a tile takes beside its steps; and one that is drawn for nothing.
  double boundary(double blocks) const;
  double empty() const { return latency; }
  /// What a persistent block's first tile takes more.
  double start() const;
  /// What copy engines take for all that a head moves.
  double copies() const;

private:
  const Work &w;
  const Calibration &c;
  double latency, sms, bytesPerClock, memoryBytesPerClock;
  double tensor, output, smem, exp, issue; ///< of a step of a block

  double units(double blocks, double part) const;
  double chain() const;
  double exposed(double blocks) const;
  double uncovered(double blocks) const;
  double ring() const;
  double leaving() const;
  double restart() const;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_STEP_H
