//===- Ragged.h - Sequences that lie one behind the other -------*- C++ -*-===//
///
/// The rows of all sequences of a batch are those of one array, [tokens, heads,
/// d], without padding.  Sequence i has the rows from offset i to offset i + 1;
/// offsets are on the device, and so are lengths: what is known on the host are
/// the tokens, the number of sequences, and the longest that any may be.
///
/// **Slots.**  A kernel finds its tiles by numbers, of as many as the host can
/// count.  With tiles of r rows sequence i has the slots
///
///   floor(offset i / r) + i   ..   floor(offset (i + 1) / r) + i
///
/// which are as many as its tiles or one more.  So no slot is of two sequences,
/// whose slot it is follows from offsets alone, by halving, and all sequences
/// together have floor(tokens / r) + sequences of them.  Nothing has to be
/// summed up before the first tile, as it would with tiles that are numbered
/// without gaps: that is a launch, or a wait of all blocks.
///
/// Example: tiles of 4 rows, lengths 3, 17, 8, 1, 12: offsets 0, 3, 20, 28, 29,
/// 41, and slots 0, 1-6, 7-9, 10 and 11-14: 15 = 10 + 5 for 12 tiles, 1 + 5 + 2
/// + 1 + 3.  Slots 6, 9 and 14 have no rows.
///
/// **Order.**  Slots are taken from the last on, so that of a sequence under a
/// causal mask the longest tile is first.  In any order the grid ends at most
/// one tile later than the mean of its blocks.  Where blocks of `flash` draw
/// tiles on Hopper, each of them first ranks up to 256 sequences by their keys
/// in shared memory (`tile.rank`), and slots are numbered by rank: then the
/// last tiles are short.  More sequences stay in the order of memory, where one
/// tile is little beside the whole.
///
/// **Bytes** are those of each sequence alone: nothing is padded.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_RAGGED_H
#define ATTN_SCHEDULE_RAGGED_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn {

struct Problem;

/// Rows of a sequence.
struct Lengths {
  int64_t queries = 0, keys = 0;

  bool operator==(const Lengths &other) const {
    return queries == other.queries && keys == other.keys;
  }
};

/// What is known of a batch of sequences.
struct Ragged {
  Lengths longest;                   ///< at most
  std::vector<Lengths> lengths = {}; ///< of all, if they are known
  /// Offsets have 64 bits, or 32.
  bool isWide = false;
  /// Whether this is of a stand-in.
  bool isStandIn = false;
};

/// Sequences of which a kernel knows the order by length, at most: one for each
/// thread of two warpgroups.
inline constexpr int64_t kRankedSequences = 256;

/// The problem of these sequences.  Of a ragged problem `batch` is the number
/// of sequences, and `queries` and `keys` are the rows of all.
Problem raggedProblem(const Problem &ofOne, std::vector<Lengths> lengths);

/// A dense problem, of sequences that are as long as the longest, with at least
/// as many visible pairs: what is planned, as lengths are not known when a
/// kernel is chosen.  It remembers what it stands for.  Of other problems the
/// same.
Problem standIn(const Problem &problem);

/// Some sequences of the same lengths, as a dense problem.
struct Sequences {
  int64_t count;
  Lengths lengths;
};
/// Those that are known, or as many of the longest as there may be; without
/// those that have no rows with tiles: no queries, and for gradients no keys.
std::vector<Sequences> sequencesOf(const Problem &problem);
Problem denseOf(const Problem &problem, const Lengths &lengths);

/// Offsets of queries and keys, and their bytes.
int64_t offsetsOf(const Problem &problem);
int64_t bytesOfOffsets(const Problem &problem);

/// A dense problem that is within the limits if a ragged one is: of one batch
/// entry, with a tile more for each sequence.
Problem limitedBy(const Problem &problem);

/// Slots of all sequences for tiles of so many rows.
int64_t slotsOf(const Problem &problem, int64_t rows);

/// A sentence when something is wrong with it.
std::optional<std::string> checkRagged(const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_RAGGED_H
