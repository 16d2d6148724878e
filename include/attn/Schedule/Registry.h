//===- Registry.h - Which schedules and kernels exist -----------*- C++ -*-===//
///
/// A schedule is one file in lib/Schedule/Schedules that defines one function
/// named as the file, returning a `ScheduleKind`.  A kernel builder is one file
/// `<schedule>_<family>.cpp` in lib/Kernels.  The build lists both folders; no
/// other list is kept.
///
/// A schedule has one *form* per way in which tensor cores want to be fed: what
/// streams and what stays is the same, who loads and which parameters there are
/// is not.  The parameters of two forms differ in at least one name, so a full
/// list of tiles tells its form.  Of several for the same tensor cores only the
/// first that takes the problem is ever chosen; another has to be asked for, by
/// its tiles.  A *rival* of that form is priced beside it.
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_REGISTRY_H
#define ATTN_SCHEDULE_REGISTRY_H

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Bounds.h"
#include "attn/Schedule/Families.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Schedule.h"
#include "attn/Schedule/Tiles.h"

namespace attn {

/// A tile parameter: the values worth trying, and those that are legal.
struct Parameter {
  std::string name;
  std::vector<int64_t> values;
  int64_t unit, least, most;
  /// If values depend on the problem, those worth trying with the tiles before
  /// this one.
  std::vector<int64_t> (*derived)(const Problem &problem,
                                  const Machine &machine,
                                  const Tiles &tiles) = nullptr;

  /// Of no (0) or yes (1), and so no size.
  bool isChoice() const;
};
/// An extent in elements, a count, and a choice of yes (1) or no (0).
Parameter extentParameter(std::string name, std::vector<int64_t> values);
Parameter countParameter(std::string name, std::vector<int64_t> values);
/// An extent, of which 0 means all.
Parameter optionalExtent(std::string name, std::vector<int64_t> values);
Parameter choiceParameter(std::string name, std::vector<int64_t> values);

/// The launches of a schedule that has one: a block for each tile of `query`
/// rows, or one of that form.
Launches oneLaunch(const Tiles &tiles);
Launches oneLaunch(GridForm form, int64_t rows, int64_t team = 1);

/// A schedule for some families of tensor cores.
struct Form {
  std::vector<TensorCoreFamily> families;
  /// What decides whether the schedule fits.
  std::vector<Parameter> sizes;
  /// What takes the memory that is left: the fastest value that fits, and the
  /// first of equally fast ones.
  std::vector<Parameter> room;
  /// Choices that need no memory.
  std::vector<Parameter> choices;
  Schedule (*build)(const Tiles &tiles);
  /// A sentence when these tiles are no choice at all; plans pass over it.
  std::optional<std::string> (*checkStructure)(const Tiles &tiles,
                                               const Problem &problem);
  /// A sentence when these tiles are wrong for the problem on any machine;
  /// plans report it.
  std::optional<std::string> (*check)(const Tiles &tiles,
                                      const Problem &problem);
  /// The widest head dimension where wgmma computes whole rows at once.
  int64_t mostHeadDim = kMostWgmmaColumns;
  /// Whether factors that need it are split in parts (`needsSplit`).
  bool splits = false;
  /// Whether K and V of another type than Q become of that (`needsWidening`).
  bool widens = false;
  /// Whether a launch before the others rewrites all inputs, and results leave
  /// from registers: rows then are of any length and at any address.
  bool rewrites = false;
  /// Whether weights are kept (Problem.h); another form is no choice where they
  /// are to be, nor this one where they are not.
  bool keeps = false;
  /// Chosen by time, beside the first form for the same tensor cores.
  bool isRival = false;
  /// Which problems this form accepts (all, if null).  Of several forms for the
  /// same tensor cores the first that accepts wins.
  bool (*takes)(const Problem &problem) = nullptr;
  /// What is launched, of the tiles of a plan.
  Launches (*launches)(const Tiles &tiles) = oneLaunch;
  /// Which problems and tiles the kernel builder accepts (all, if null).
  bool (*hasKernel)(const Problem &problem, const Tiles &tiles) = nullptr;

  /// All parameters, in the order in which tiles print.
  std::vector<Parameter> parameters() const;
  bool serves(TensorCoreFamily family) const;
  bool has(std::string_view name) const;
  bool hasAll(const Tiles &tiles) const;
  /// Whether these tiles name each parameter.
  bool saysAll(const Tiles &tiles) const;
};

struct ScheduleKind {
  std::string name;
  std::string summary; ///< one sentence
  /// The portable form first.
  std::vector<Form> forms;
  /// What it is for: with a large cache one multiprocessor keeps rows of O.
  Regime regime = Regime::smallCache;
  Direction direction = Direction::forward;

  /// The form that has all these tiles; the portable one if none has.
  const Form &formOf(const Tiles &tiles) const;
  Schedule build(const Tiles &tiles) const {
    return formOf(tiles).build(tiles);
  }
  Launches launches(const Tiles &tiles) const {
    return formOf(tiles).launches(tiles);
  }
};

/// All schedules, by name.
const std::vector<ScheduleKind> &scheduleKinds();
const ScheduleKind *findScheduleKind(std::string_view name);
/// The launches of a schedule that there is.
Launches launchesOf(std::string_view schedule, const Tiles &tiles);

/// Whether a kernel walks along lists of blocks (Pattern.h).  Schedules without
/// such a kernel are priced, but nothing runs them.
bool walksLists(std::string_view kernel);

/// Whether a kernel takes what clauses make of scores (ScoreClauses).
bool takesClauses(std::string_view kernel);
/// Whether it takes sequences that lie one behind the other (Ragged.h).
bool takesRagged(std::string_view kernel);

/// Whether a kernel asks the device where rows lie (Placement).
bool locatesRows(std::string_view kernel);

/// Whether it takes scales of its operands at run time (OperandScales).
bool takesScales(std::string_view kernel);
/// Whether it adds up gradients of captures that are one for a head.
bool sumsOfHeads(std::string_view kernel);

/// A sentence unless blocks of the problem's pattern, if it has one, are walked
/// in steps of one such tile or several.
std::optional<std::string> checkTilesOfBlocks(const BlockSize &tile,
                                              const Problem &problem);

/// The most flags of tiles that one launch has.
inline constexpr int64_t kMostFlags = 8000;
/// Flags of a fused flash_backward: one per key head, shared by neighbours if
/// there are more heads.
inline constexpr int64_t kHeadFlags = 1024;

/// What a form has that keeps weights, and a sentence unless its blocks of
/// scores are those that are kept.
Parameter keptParameter();
std::optional<std::string> checkKeptBlocks(const Tiles &tiles);

/// A sentence unless tiles of plain products on wgmma may have so many columns:
/// whole panels, and no more than an instruction has.
std::optional<std::string> checkWgmmaColumns(int64_t column);

} // namespace attn

#endif // ATTN_SCHEDULE_REGISTRY_H
