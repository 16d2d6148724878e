//===- Roles.h - What the arguments of kernels are --------------*- C++ -*-===//
///
/// A kernel says of each of its arguments which *role* it plays, and who
/// launches the kernel reads that; so a new schedule brings no second list.
/// Roles.def has one row per role, which all who deal with arguments read: the
/// ops, the kernel builders, the code that launches, the run time and the
/// tests.  A feature that needs an operand adds a row.
///
/// Of an array a kernel may take several things, each an argument: its
/// *facets*.  The role of `q` and the facet `row stride` print as
/// `q_stride_row`, and that is the text in the IR and in the description of a
/// binding:
///
///   <name>                              the aligned base of the array, or the
///                                       number itself
///   <name>_offset                       elements from there to element 0
///   <name>_stride_<batch|head|row>      elements
///   <name>_stride_<number>              the same of what may have any shape,
///   <name>_size_<number>                and its sizes, by dimension
///   <name>_map                          a tensor map
///   <name>_octet_map, <name>_row_map    the same of boxes of 8 rows, and of
///   one
///   <name>_empty_map                    the same of boxes that have no rows
///
/// A row whose arrays are as many as there are parts has their number behind
/// its name: `o_0`, `o_1_stride_head`.
///
/// Example: a kernel that merges two outputs of f32 takes `o_0`, `o_0_offset`,
/// three strides, the same of `lse_0`, `o_1`, `lse_1` and `o`, and then
/// `queries` and `heads`.
///
/// Deliberately absent: types of MLIR (Kernels.h checks those of a kernel
/// against its roles), and how memory of a launch is made (AttnToTile).
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_ROLES_H
#define ATTN_SCHEDULE_ROLES_H

#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Problem.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

enum class Role {
#define ATTN_ARRAY(role, ...) role,
#define ATTN_ARRAYS(role, ...) role,
#define ATTN_CAPTURES(role, ...) role,
#define ATTN_MEMORY(role, ...) role,
#define ATTN_NUMBER(role, ...) role,
#include "attn/Schedule/Roles.def"
};

/// What a size of an array counts.
enum class Extent {
  batch,
  heads,
  kvHeads,
  queries,
  keys,
  headDim,
  headDimV,
  keptRows,    ///< follows from keys
  queryBlocks, ///< of a pattern, and
  keyBlocks,
  offsets,    ///< of sequences, and where the last one ends
  tablePages, ///< that hold the keys of a batch entry
  pages,      ///< of all, and
  pageRows
};
inline constexpr unsigned kExtents = unsigned(Extent::pageRows) + 1;
int64_t valueOf(Extent extent, const Problem &problem);

/// What a kernel does with an array: nothing, as there is none; or it is given,
/// or left to the caller; or it is of the launches alone.
enum class Flow { none, in, out, scratch };

/// The type of the elements, or of a number: that of Q, of K and V, or of O; of
/// scores that wait, which are of the input's type or parts of it; any type
/// that O may have; or always the same.
/// Of what regions read it is any that they read; of whole numbers i32
/// or i64.
enum class Element {
  input,
  keys,
  result,
  scores,
  any,
  read,
  whole,
  i32,
  f16,
  f32
};

/// Whose memory it is.
enum class Memory {
  array,     ///< the caller's, or the launches', in the shape of the row
  captured,  ///< the caller's, in any shape of up to kMostCapturedDims
  zeros,     ///< words that are 0 between launches
  block,     ///< so many elements for every block of a grid
  strip,     ///< so many for every strip of queries, which launches share
  row,       ///< the same for every row of queries
  round,     ///< of scores that wait, which launches of a round share
  parts,     ///< of an input in parts, which launches share
  exponents, ///< of the blocks of these
  none       ///< it is a number
};

/// Dimensions of what regions read in kernels.
inline constexpr int kMostCapturedDims = 4;

/// A row of the table.
struct RoleFacts {
  std::string_view name; ///< as printed
  Flow forward = Flow::none, backward = Flow::none;
  Element element = Element::i32;
  Memory memory = Memory::none;
  std::vector<Extent> shape = {}; ///< of an array
  bool isMany = false;            ///< one for every part, by number
  Role of = Role::q;              ///< the input that parts and exponents are of
  /// A number of a problem, or of one of its rounds.
  int64_t (*value)(const Problem &, const Round &) = nullptr;

  Flow flow(Direction direction) const {
    return direction == Direction::forward ? forward : backward;
  }
  bool isArray() const { return memory == Memory::array; }
  bool isNumber() const { return memory == Memory::none; }
};
const RoleFacts &factsOf(Role role);
/// The shape of an array of the caller; where sequences lie one behind the
/// other, [rows, heads, columns], and of what has a number for each row [heads,
/// rows].
std::vector<Extent> shapeOf(Role role, bool isRagged,
                            const Placement &place = {});
/// The memory of that kind, parts or exponents, that an input has.
Role memoryOf(Role input, Memory memory);
/// All roles, in the order of the table.
const std::vector<Role> &allRoles();

enum class Facet {
  itself,
  offset,
  strideBatch,
  strideHead,
  strideRow,
  map,
  octetMap,
  rowMap,
  emptyMap,
  stride0,
  stride1,
  stride2,
  stride3,
  size0,
  size1,
  size2,
  size3
};
inline constexpr Facet kFacets[] = {
    Facet::itself,    Facet::offset,  Facet::strideBatch, Facet::strideHead,
    Facet::strideRow, Facet::map,     Facet::octetMap,    Facet::rowMap,
    Facet::emptyMap,  Facet::stride0, Facet::stride1,     Facet::stride2,
    Facet::stride3,   Facet::size0,   Facet::size1,       Facet::size2,
    Facet::size3};
inline constexpr Facet kMaps[] = {Facet::map, Facet::octetMap, Facet::rowMap,
                                  Facet::emptyMap};
bool isMap(Facet facet);
inline constexpr Facet kStrides[] = {Facet::strideBatch, Facet::strideHead,
                                     Facet::strideRow};
/// Of what has any shape, by dimension.
inline constexpr Facet kCapturedStrides[kMostCapturedDims] = {
    Facet::stride0, Facet::stride1, Facet::stride2, Facet::stride3};
inline constexpr Facet kCapturedSizes[kMostCapturedDims] = {
    Facet::size0, Facet::size1, Facet::size2, Facet::size3};
/// Whether there are arguments of that facet.
bool hasFacet(Role role, Facet facet);

/// The role of one argument.
struct ArgumentRole {
  ArgumentRole(Role role, Facet facet = Facet::itself, int part = 0)
      : role(role), facet(facet), part(part) {}
  /// Another facet of the same.
  ArgumentRole at(Facet other) const { return {role, other, part}; }
  const RoleFacts &facts() const { return factsOf(role); }

  Role role;
  Facet facet;
  int part; ///< of many

  bool operator==(const ArgumentRole &other) const;
  bool operator<(const ArgumentRole &other) const;
};
/// As printed, and back; nothing if no argument has that role.
std::string str(const ArgumentRole &role);
std::optional<ArgumentRole> parseRole(std::string_view text);
/// The array of an op by its name, which is no part of many.
std::optional<Role> findArray(std::string_view name);
/// The names of all rows, for messages.
std::string roleNames();

/// The sizes of an array.
std::vector<int64_t> sizesOf(Role role, const Problem &problem);
/// The type of the elements of an array of a caller.
DataType elementOf(Role role, const Problem &problem);

} // namespace attn

#endif // ATTN_SCHEDULE_ROLES_H
