//===- Launches.h - What a schedule's tiles mean: its launches --*- C++ -*-===//
///
/// A schedule with its tiles says which kernels are launched, over how many
/// tiles, and which arrays wait between them.  Its file builds that once, as
/// the value `Launches`; the passes, the kernel builders, the host code and the
/// tests only read it.
///
/// Sizes of a call are numbers where the problem is known, and values of the
/// host function where it is not.  `LaunchSizes` has each formula once, over an
/// arithmetic of either (Arithmetic.h).
///
/// Example: `score_spill` on wgmma with query = 128, key_block = 256, column =
/// 128, strip = 1024 and heads = 8, not merged, has two launches in rounds, of
/// 8 key heads and 1024 queries each.  For 2 heads, 1000 queries, 600 keys and
/// 320 columns of O, one round has 2 x 8 x 3 tiles of scores, 2 x 8 x 3 tiles
/// of O, and an array of P of 2 heads x 3 blocks x 1024 rows x 256 columns.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_LAUNCHES_H
#define ATTN_SCHEDULE_LAUNCHES_H

#include "attn/Schedule/Arithmetic.h"
#include "attn/Schedule/Problem.h"
#include "attn/Schedule/Rounds.h"
#include "attn/Schedule/Tiles.h"

#include <array>
#include <string_view>
#include <vector>

namespace attn {

/// The grid of a kernel, of one dimension: one block per tile of all heads; or
/// of those only as many as multiprocessors, or as run at once; or as many
/// teams of blocks that share tiles as run at once.
enum class GridForm { tiles, persistent, resident, teams };

/// One launch of a schedule.
struct LaunchShape {
  /// What the kernel's name says about it; empty if there is nothing to tell.
  std::string_view suffix;
  GridForm form = GridForm::tiles;
  bool ownsKeys = false; ///< tiles are rows of keys, of key heads
  int64_t rows = 1;      ///< of a tile: those of all its groups
  int64_t rowHeads = 1;  ///< heads of which it has that many (SharedTiles.h)
  /// Tiles come in units of so many, even if those at the end have no rows.
  int64_t unit = 1;
  /// Columns of a tile of O or of a gradient, dQ or first dK and then dV; 0:
  /// all.
  int64_t columns = 0;
  /// Blocks of keys, each a tile of scores.
  int64_t keyBlocks = 1;
  /// Or blocks of so many of all keys, and one at least; 0: there are none.
  int64_t keyBlock = 0;
  /// Tiles of dK and dV too, of so many keys; 0: there are none.
  int64_t keyRows = 0;
  /// Whether it is launched again and again, see Rounds.
  bool isInRounds = false;
  /// Whether a block runs if there are no tiles, but queries.
  bool isNeverEmpty = false;
  /// Whether the launch behind it begins when this one is over, not ahead of
  /// time (KeyParts.h).
  bool holdsNext = false;

  /// Tiles of the same rows, of as many as there are blocks of all keys.
  int64_t tilesOfRows(const Problem &problem) const;
  /// The same of keys, where there are tiles of them too.
  int64_t tilesOfKeys(const Problem &problem) const;

private:
  int64_t tilesOfColumns(const Problem &problem, bool areOfKeys) const;
};

/// Rows of a strip of queries in scratch memory.  A head has those of whole
/// blocks of queries, and at least one block, in every batch entry.
inline constexpr int64_t kStripRows = 64;

/// All launches of a schedule with certain tiles.
struct Launches {
  /// In order; those in rounds are behind the others.
  std::vector<LaunchShape> shapes;
  /// Blocks of a team, which work on the same or on neighbouring tiles.
  int64_t team = 1;
  /// Strips of a block of queries.
  int64_t stripsOfBlock = 1;
  /// How those in rounds alternate.
  Rounds rounds = {};
  /// Whether tiles of a round wait for others of the same launch, by a flag for
  /// each tile of queries.
  bool hasFlags = false;

  bool areInRounds() const { return shapes.back().isInRounds; }
  /// Flags of a round: one for every tile of queries of its heads.
  int64_t flags(const Problem &problem) const;
};

/// What runs at once.
struct Residency {
  int64_t multiprocessors;
  int64_t blocksPerSm = 1; ///< of a resident grid

  /// Blocks of a grid that a machine runs at once.
  int64_t mostBlocks(const LaunchShape &shape, int64_t team) const {
    int64_t perSm = shape.form == GridForm::resident ? blocksPerSm : 1;
    return multiprocessors / team * team * perSm;
  }
};

/// The sizes of a call.
template <typename Number> struct CallSizes {
  Number batch, heads, keyHeads, queries, keys;
};

/// Extents of what launches work on; see the head of the file.
template <typename Arithmetic> class LaunchSizes {
public:
  using Number = typename Arithmetic::Number;

  LaunchSizes(const Launches &launches, const Problem &problem,
              const CallSizes<Number> &call, Arithmetic arithmetic)
      : launches(launches), problem(problem), call(call), a(arithmetic) {}

  /// Blocks of a grid, in every round.
  Number blocks(const LaunchShape &shape, const Residency &residency) {
    Number all = a.times(rowTiles(shape), headsWithTiles(shape));
    if (int64_t ofRows = shape.tilesOfRows(problem); ofRows != 1)
      all = a.times(all, a.constant(ofRows));
    if (shape.keyBlock > 0)
      all = a.times(all, keyBlocks(shape.keyBlock));
    if (shape.keyRows > 0)
      all = a.plus(all, a.times(keyTiles(shape),
                                a.constant(shape.tilesOfKeys(problem))));
    if (shape.isNeverEmpty)
      all = a.most(all,
                   a.least(a.times(call.queries, call.batch), a.constant(1)));
    int64_t team = shape.form == GridForm::teams ? launches.team : 1;
    if (shape.form != GridForm::tiles)
      all = a.least(all, a.constant(residency.mostBlocks(shape, team) / team));
    return team > 1 ? a.times(all, a.constant(team)) : all;
  }

  /// Key heads of a round, if there are as many.
  Number roundHeads() {
    return a.least(a.times(call.batch, call.keyHeads),
                   a.constant(launches.rounds.heads));
  }

  /// The arrays of scores that wait, of each query head of a round (Rounds.h).
  RoundArrays<Number> roundArrays() {
    const Rounds &rounds = launches.rounds;
    Number strip = a.constant(rounds.strip);
    Number rows = roundUp(call.queries, rounds.queryTile);
    if (rounds.cutsQueries())
      return {keyBlocks(rounds.keyBlock), a.least(rows, strip),
              a.constant(rounds.keyBlock)};
    Number columns = roundUp(call.keys, rounds.keyBlock);
    return {a.constant(1), rows, a.least(columns, strip)};
  }

  /// Strips of whole blocks of queries, of a head.
  Number stripsOfHead() {
    int64_t ofBlock = launches.stripsOfBlock, rows = kStripRows * ofBlock;
    Number blocks =
        areSlots() ? slots(call.queries, rows) : a.ceilDiv(call.queries, rows);
    return a.times(blocks, a.constant(ofBlock));
  }
  /// Strips of whole tiles of queries, of a head of a round.
  Number stripsOfTiles() {
    int64_t tile = launches.rounds.queryTile;
    return a.times(a.ceilDiv(call.queries, tile),
                   a.constant(tile / kStripRows));
  }

private:
  bool areSlots() const { return problem.ragged && !problem.ragged->isStandIn; }
  /// Of all sequences (Ragged.h); without any there are no offsets to read.
  Number slots(Number rows, int64_t ofSlot) {
    return a.times(a.plus(a.floorDiv(rows, ofSlot), call.batch),
                   a.least(call.batch, a.constant(1)));
  }
  /// Tiles of rows of a head, or of those in a round.
  Number rowTiles(const LaunchShape &shape) {
    Number rows = shape.ownsKeys ? call.keys : call.queries;
    if (areSlots()) {
      Number units = slots(rows, shape.rows * shape.unit);
      return shape.unit == 1 ? units : a.times(units, a.constant(shape.unit));
    }
    bool isOfStrip = shape.ownsKeys != launches.rounds.cutsQueries();
    if (shape.isInRounds && isOfStrip)
      rows = a.least(rows, a.constant(launches.rounds.strip));
    Number units = a.ceilDiv(rows, shape.rows * shape.unit);
    return shape.unit == 1 ? units : a.times(units, a.constant(shape.unit));
  }
  /// Heads of all batch entries, or of those in a round, that have tiles.
  Number headsWithTiles(const LaunchShape &shape) {
    if (areSlots())
      return shape.ownsKeys ? call.keyHeads : call.heads;
    if (!shape.isInRounds) {
      Number heads = shape.ownsKeys ? call.keyHeads : call.heads;
      if (shape.rowHeads > 1)
        heads = a.floorDiv(heads, shape.rowHeads);
      return a.times(heads, call.batch);
    }
    Number all = roundHeads();
    int64_t group = problem.heads / problem.kvHeads;
    return shape.ownsKeys ? all : a.times(all, a.constant(group));
  }
  /// Blocks of so many keys, and one at least.
  Number keyBlocks(int64_t keyBlock) {
    return a.ceilDiv(a.most(call.keys, a.constant(1)), keyBlock);
  }
  /// Tiles of keys of a round, of all its heads.
  Number keyTiles(const LaunchShape &shape) {
    Number rows = a.least(call.keys, a.constant(launches.rounds.strip));
    return a.times(a.ceilDiv(rows, shape.keyRows), roundHeads());
  }
  Number roundUp(Number value, int64_t unit) {
    return a.times(a.ceilDiv(value, unit), a.constant(unit));
  }

  const Launches &launches;
  const Problem &problem;
  CallSizes<Number> call;
  Arithmetic a;
};

/// The sizes of a problem.
LaunchSizes<Integers> sizesOf(const Launches &launches, const Problem &problem);

/// The extents of a launch's grid, in every round.
std::array<int64_t, 3> gridOf(const Launches &launches, const Problem &problem,
                              const Residency &residency, int64_t launch = 0);

//===----------------------------------------------------------------------===//
// Rounds of a problem
//===----------------------------------------------------------------------===//

/// What launches that go in rounds do at once: some key heads, numbered through
/// all batch entries, and a strip of their keys, or of the queries that they
/// have; of the others all.
struct Round {
  int64_t firstHead = 0, heads = 0, firstKey = 0, firstQuery = 0;
  int64_t rows = 0; ///< of a head in the arrays of scores that wait
};

/// All rounds of a problem, in order.  There is a round without keys: gradients
/// of queries are 0 then.  For 2 x 3 key heads and 5000 keys in rounds of 4
/// heads and 4096 keys:
///
///   head 0, 4 heads, key 0     head 0, 4 heads, key 4096
///   head 4, 2 heads, key 0     head 4, 2 heads, key 4096
///
/// Where nothing goes in rounds there is one, of everything.
class RoundOrder {
public:
  RoundOrder(const Launches &launches, const Problem &problem);

  int64_t count() const { return groups * strips; }
  Round at(int64_t number) const;

  int64_t heads, strip;          ///< of a round, if there are as many
  int64_t blocks, rows, columns; ///< of the arrays

private:
  bool cutsQueries;
  int64_t allHeads, groups, strips;
};

} // namespace attn

#endif // ATTN_SCHEDULE_LAUNCHES_H
