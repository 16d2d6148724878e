//===- Verbs.h - What a schedule is made of ---------------------*- C++ -*-===//
///
/// A node of a schedule is one of the structs below, with the fields and the
/// reading rules of that verb alone.  A fold is a `match`:
///
///   node.match([&](const verb::Loop &loop) { return inside(loop.body); },
///              [&](verb::OneOf<verb::Load, verb::Stream>) { return 1; }, ...)
///
/// It needs a case for each verb: with a new one, the compiler names every fold
/// that has not learnt it.  What several verbs have in common, as a tensor or a
/// place in scratch memory, is asked of the node (`tensorOf`).
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_VERBS_H
#define ATTN_SCHEDULE_VERBS_H

#include "attn/Schedule/Tensor.h"
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace attn {

class Node;
using Body = std::vector<Node>;

/// The columns of a tensor from `first` on: `count` of them or, if that is 0,
/// all that follow.
struct ColumnRange {
  int64_t first = 0, count = 0;

  explicit operator bool() const { return first > 0 || count > 0; }
  /// Of so many.
  int64_t of(int64_t whole) const;
};

/// How a tensor lies in slow memory that is no input or result: row by row,
/// unless it says so.  In places and tiles it is whole, in the form in which
/// registers hold it, and accumulators are f32.
struct InScratch {
  /// Places of a block that are used in turn; 0: one for every tile of the
  /// problem.
  int64_t slots = 0;
  /// In tiles of so many rows.  In grids of products they are whole along the
  /// keys too, and along a head dimension in the steps of the loop that cuts
  /// it.
  int64_t wholeRows = 0;
  /// Warpgroups among which columns are divided, in whole panels (`Multiply`).
  int64_t columnGroups = 0;
  /// In the parts that tensor cores take it in, side by side, each in whole
  /// tiles of so many columns; 0: whole.
  int64_t partColumns = 0;
  /// In an array of the caller, where one launch leaves it for others to come:
  /// row by row as results do.  It takes no scratch, and leaves for device
  /// memory.
  bool isKept = false;
  /// One for each part of the keys (KeyParts.h); 0: there are none.  A grid
  /// whose walks are dealt out spills each, and one behind it absorbs all.
  int64_t keyParts = 0;
};

namespace verb {

/// In order over the tiles of an axis.  Inside a loop over the other axis of
/// rows it visits only pairs of tiles in which the mask shows at least one
/// pair.  A loop over an axis that already has a loop around it cuts that
/// loop's tile.
struct Loop {
  Axis axis;
  int64_t step;       ///< extent of a tile; 0 is all of it
  int64_t stages = 1; ///< depth of the rings inside
  /// Visits only the part of the tile that it cuts that the mask shows.
  bool seeks = false;
  /// Its steps are blocks of their own, so that a tile of a result has rows and
  /// columns.
  bool isParallel = false;
  /// If the mask shows only one half of a tile, the other half is neither
  /// streamed nor multiplied.
  bool isHalved = false;
  /// Where blocks are listed, a step takes the next ones of a list side by side
  /// wherever they lie, in tiles of so many rows; 0: what lies side by side.
  int64_t gathers = 0;
  Body body = {};
};

/// At once over the tiles of an axis: one for each block of a group.  Of keys,
/// all blocks take every share of a step, even one behind the last key.
struct Share {
  Axis axis;
  int64_t step; ///< 0 is an equal part, in whole panels
  Body body = {};
};

/// Occupies fast memory; nothing moves.
struct Hold {
  Tensor tensor;
  Level level = Level::Registers;
  int64_t buffers = 1;
  ColumnRange columns = {};
  int64_t columnGroups = 0; ///< see `Multiply`
};

/// Reads a tile that stays for the rest of the scope.
struct Load {
  Tensor tensor;
  Level level = Level::Smem;
  int64_t buffers = 1;
  ColumnRange columns = {};
  bool isAlways = false; ///< also for tiles that see nothing
};

/// Reads a tile into a ring; the next step overwrites it.
struct Stream {
  Tensor tensor;
  Level level = Level::Smem;
  int64_t buffers = 0; ///< of its ring; 0: as many as the loop has stages
  ColumnRange columns = {};
  InScratch scratch = {};
};

/// Reads a tile and folds it at once into what is held.  Of a group, whoever
/// made it still has it.
struct Absorb {
  Tensor tensor;
  InScratch scratch = {};
  bool isAlways = false;  ///< also for tiles that see nothing
  bool isBetween = false; ///< only between steps of a loop: not in the first
};

/// Rewrites a streamed tile by columns in a ring of its own, for tensor cores
/// that take it no other way (`needsTranspose`).
struct Transpose {
  Tensor tensor;
};

/// Rewrites a streamed tile in the type of Q in a ring of its own, if it has
/// another (`needsWidening`).
struct Widen {
  Tensor tensor;
};

/// Rewrites a loaded or streamed tile as several of 16 bits, which take its
/// place, if wgmma has no better way (`needsSplit`).
struct Split {
  Tensor tensor;
};

/// tensor += a · b, a matrix product.
/// * If the result lies the other way round (S += K . Q in a grid over keys),
///   it is that of the transposes: own rows are the rows of fragments.
/// * If the result is a number for each row (D += dO . O), it is that of a
///   warpgroup's rows with as many of the same rows, of which the diagonal
///   counts.
struct Multiply {
  Tensor tensor, a, b;
  /// Pipeline over keys, result with streamed rows: warpgroups among which its
  /// columns are divided, in whole panels; 0: its rows are divided instead.
  int64_t columnGroups = 0;
};

/// S becomes P; the running max and sum of the rows follow.
struct Softmax {
  Tensor tensor;
};

/// S becomes P by the LSE, which is known.
struct Weigh {
  Tensor tensor;
};

/// dP becomes dS = P (dP - D).
struct Differentiate {
  Tensor tensor;
};

/// Scales an accumulator after the max of its rows has moved.
struct Rescale {
  Tensor tensor;
  bool isStaged = false; ///< what lies in shared memory, read there
};

/// Writes a tile to scratch memory, to be read by a later grid or by the others
/// of a group, thread to thread.
struct Spill {
  Tensor tensor;
  InScratch scratch = {};
  bool isStaged = false;  ///< by the copy engine, from shared memory
  bool isAlways = false;  ///< also for tiles that see nothing
  bool isBetween = false; ///< only between steps of a loop: not in the last
};

/// Adds a tile to one in slow memory, without reading it; or stores it there
/// (`firstStores`).
struct Reduce {
  Tensor tensor;
  InScratch scratch = {};
};

/// Writes a result.
struct Store {
  Tensor tensor;
  int64_t atOnce = 0;    ///< columns that leave at once; 0 is all of them
  bool isDirect = false; ///< from registers, past shared memory
};

using Any = std::variant<Loop, Share, Hold, Load, Stream, Absorb, Transpose,
                         Widen, Split, Multiply, Softmax, Weigh, Differentiate,
                         Rescale, Spill, Reduce, Store>;

/// One of several verbs, for a case of `match` that needs to know no more.
template <typename... Verbs> struct OneOf {
  template <typename V,
            typename = std::enable_if_t<(std::is_same_v<V, Verbs> || ...)>>
  OneOf(const V &) {} // NOLINT(google-explicit-constructor)
};

} // namespace verb

/// A verb, and the body that it may have.
class Node {
  template <typename V, typename Any> struct IsIn;
  template <typename V, typename... Verbs>
  struct IsIn<V, std::variant<Verbs...>>
      : std::bool_constant<(std::is_same_v<V, Verbs> || ...)> {};

public:
  template <typename V, typename = std::enable_if_t<IsIn<V, verb::Any>::value>>
  Node(V verb) // NOLINT(google-explicit-constructor)
      : verb(std::in_place_type<V>, std::move(verb)) {}

  /// The verb if it is that one, or null.
  template <typename V> const V *as() const { return std::get_if<V>(&verb); }
  template <typename V> bool is() const {
    return std::holds_alternative<V>(verb);
  }

  /// What the cases make of it.  Each verb needs one: its own, or a `OneOf`.
  template <typename... Cases> decltype(auto) match(Cases... cases) const {
    return std::visit(Overloads<Cases...>{std::move(cases)...}, verb);
  }

private:
  template <typename... Cases> struct Overloads : Cases... {
    Overloads(Cases... cases) : Cases(std::move(cases))... {}
    using Cases::operator()...;
  };
  verb::Any verb;
};

// What several verbs have; nothing of the others.
Tensor tensorOf(const Node &node); ///< moved, held or made; not of loops
const Body &bodyOf(const Node &node);
InScratch scratchOf(const Node &node);
ColumnRange columnsOf(const Node &node);
int64_t columnGroupsOf(const Node &node);
bool isAlways(const Node &node);
bool isBetween(const Node &node);

/// Which way a verb moves its tile, seen from slow memory.
enum class Move { none, down, up };
Move moveOf(const Node &node);
/// Where its tile lies or goes to, or leaves from; accumulators are in
/// registers.
Level levelOf(const Node &node);
/// Whether its tensor is in shared memory from then on.
bool putsInSmem(const Node &node);
/// Whether its tile takes room of fast memory.
bool occupies(const Node &node);

/// Whether it rewrites a tile that tensor cores take as it is.
bool isIdle(const Node &node, const Problem &problem);

/// Bytes per element position that a verb moves: O and dQ are accumulators
/// unless they are stored, and parts are several.
int64_t bytesMoved(const Node &node, const Problem &problem);
/// Columns of a tensor with so many as memory has them: of a part, whole tiles.
int64_t columnsMoved(const Node &node, int64_t columns);

} // namespace attn

#endif // ATTN_SCHEDULE_VERBS_H
