//===- TimeTerms.h - Rates, contention, and what binds ----------*- C++ -*-===//
//
// What the time of every kind of grid is made of.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TIME_TIMETERMS_H
#define ATTN_LIB_SCHEDULE_TIME_TIMETERMS_H

#include "attn/Schedule/Time.h"
#include <initializer_list>
#include <vector>

namespace attn {

/// Measured where somebody measured, else the vendor's.
double clockOf(const Machine &machine);
double l2RateOf(const Machine &machine);
double hbmRateOf(const Machine &machine, const Calibration &calibration);

/// FLOPs per clock and multiprocessor.
double productRate(const Machine &machine, const Problem &problem,
                   TensorCoreFamily family);

/// How long units take that are busy at once and get into each other's way: the
/// longest, and more as others come near it.
double powerMean(std::initializer_list<double> values, double power);

/// Clocks of the tiles that persistent blocks take.
struct TileClocks {
  double average, longest;
  double least; ///< of one that is left at the end
  bool areEqual;
};
/// Clocks until the last multiprocessor is done.  Equal tiles come in waves, of
/// which the last is paid in full; of unequal ones the longest go first, and
/// `tailShare` of a short one is left at the end.
double makespan(const TileClocks &tile, double tiles, double sms,
                double tailShare);
/// The same of tiles one by one, each for so many heads: the longest goes to
/// who is free first.
double makespan(std::vector<double> tiles, int64_t heads, int64_t sms);
/// The same if they are drawn head by head, in the order given.
double makespanInOrder(const std::vector<double> &tiles, int64_t heads,
                       int64_t sms);

/// Scores of a tile that an edge of a mask cuts: blocks of so many keys that a
/// band as wide as the tile has rows meets, on average.
double cutScores(int64_t rows, int64_t keys);

/// What copy engines bring of rows that stream, box by box of 128 bytes or less
/// of each, all of a head.
double rowsOfBoxes(const Use &use, const Problem &problem);
/// The bytes between two such rows in memory.
int64_t bytesOfRow(const Use &use, const Problem &problem);
/// Whether such rows are whole lines of 128 bytes.
bool hasWholeLines(const Use &use, const Problem &problem);
/// Clocks in which they do, however many bytes of a line a row has.
double clocksToCopy(const Use &use, const Problem &problem,
                    const Calibration &calibration);

/// The same where a row that reaches into a second line takes longer.
double clocksToCopyLines(const Use &use, const Problem &problem,
                         const Calibration &calibration);

/// What products and scores of gradients have units do, all blocks of a head.
struct GradientWork {
  double flops = 0, smemBytes = 0, scores = 0;
  double slots = 0; ///< instructions of warps

  void add(const Use &use, const Problem &problem, const Calibration &c);
  /// What goes from registers to shared memory.
  void addCopy(const Use &use, const Problem &problem, const Calibration &c);
};
/// Elements of all tiles of a use, with padded columns.
double paddedArea(const Use &use, const Problem &problem);

/// What the units of a multiprocessor have to do in a launch, in clocks.
struct BusyClocks {
  double tensor, exp, issue, smem;
  double busiest;  ///< of those that a step waits for
  double products; ///< of the tensor cores, without what they wait for
};
/// The times of units, of what hides behind none of them and of the last wave,
/// and when the last multiprocessor is done.
struct UnitTimes {
  Time time;
  double whole;
};
/// `whole` and `ideal`, as if tiles could be cut at will, are seconds at that
/// clock.  The less the tensor cores have to do, the less power limits it.  No
/// launch is done before its busiest unit.
UnitTimes unitTimes(const BusyClocks &work, double whole, double ideal,
                    double clock, const Machine &machine,
                    const Calibration &calibration);
/// Adds to times of units, L2, memory and overhead how they get into each
/// other's way, units and L2 by that power mean, and sums up.
void addContention(Time &time, double whole, double l2Power,
                   const Calibration &calibration);

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TIME_TIMETERMS_H
