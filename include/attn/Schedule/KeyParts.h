//===- KeyParts.h - A walk over keys, dealt out to blocks -------*- C++ -*-===//
///
/// A decoding step has few rows and many keys: one tile of queries for a key
/// head, and so fewer tiles than a machine has multiprocessors.  The walk of a
/// tile over the keys that it sees is then dealt out to several blocks, whole
/// steps in the order of the walk.  Each block leaves the O and the LSE of its
/// *part* in scratch, and a launch behind makes them whole:
///
///   LSE = log sum_p exp(LSE_p),   O = sum_p exp(LSE_p - LSE) O_p
///
/// Of T steps each of S parts has T / S, and the first T mod S one more.  Parts
/// are of what is seen: a window over the last 1000 of 100000 keys is cut as
/// 1000 keys are.  A part without a step has LSE = -inf, and weighs nothing.
///
/// Example: 2000 keys in steps of 128 are 16 steps, dealt out to 3 parts: 6, 5
/// and 5.  With 4 rows of 128 columns the parts leave 3 * 4 * (128 + 1) words
/// of f32, and as many are read.
///
/// How many parts there are is a tile, as the size of a step is: a kernel is
/// built for it, and it does not follow from sizes of a call.  `partsToTry` has
/// the numbers that may be the best for a problem, and the cost model decides.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_KEYPARTS_H
#define ATTN_SCHEDULE_KEYPARTS_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Tiles.h"

namespace attn {

/// The most parts: a block each on more multiprocessors than any machine has.
inline constexpr int64_t kMostKeyParts = 256;
/// The most tiles of queries of a head whose walks are dealt out: as many keep
/// a machine busy by themselves, and each is counted by itself.
inline constexpr int64_t kMostTilesInParts = 1024;
/// Rows and columns that a warp makes whole, and parts of them on their way at
/// once.  Each warp reads the LSE of its rows.
inline constexpr int64_t kMergedRows = 16, kMergedColumns = 32,
                         kPartsInFlight = 8;

/// Columns from row to row of parts of O: rows are aligned.
inline constexpr int64_t pitchOfParts(int64_t columns) {
  return (columns + 3) / 4 * 4;
}

/// The steps of a part, of so many.
Span stepsOfPart(int64_t steps, int64_t parts, int64_t part);

/// Visits of tiles of queries that are dealt out: as many tiles as there are
/// parts of all of them.
Visits dealtOut(Visits visits, const Problem &problem, int64_t queryStep,
                int64_t keyStep, int64_t parts);
/// The same of a grid's tiles, if their walks are dealt out.
Visits dealtOut(const Visits &visits, const Problem &problem, const Grid &grid);

/// Numbers of parts, in order, of which one is the best, or nearly.
///
/// U tiles on P multiprocessors take ceil(U S / P) waves of ceil(T / S) steps,
/// so S is worth a look where it fills w waves: w P / U, rounded both ways.  Of
/// numbers that leave the longest part as long as it is the least one stands
/// for all.  There are none if tiles fill several waves by themselves: what is
/// left of the last one is less than what parts cost.
std::vector<int64_t> partsToTry(const Problem &problem, const Machine &machine,
                                const Tiles &tiles);

/// `parts` among the sizes of a form, whose numbers are these.
Parameter partsParameter();
/// Why walks cannot be dealt out so, if they cannot.
std::optional<std::string> checkKeyParts(const Tiles &tiles,
                                         const Problem &problem);
/// The grid that makes parts whole.
Grid mergeOfParts(int64_t parts);
/// The launches of a schedule whose first one walks: of parts, and the merge
/// behind it.  That one is held back until the walks are over.  Where it began
/// ahead of time and waited, a call took 4 to 5 us longer, and how long changed
/// from one compilation to the next (1 x 8192 keys in 16 parts: 23 to 26 us,
/// and 21; H200).
Launches inParts(Launches launches, int64_t parts, std::string_view suffix);

} // namespace attn

#endif // ATTN_SCHEDULE_KEYPARTS_H
