//===- Registry.cpp - Which schedules and kernels exist -------------------===//

#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Plan.h"
#include <algorithm>

namespace attn::schedules {
#define ATTN_SCHEDULE(NAME) ScheduleKind NAME();
#define ATTN_KERNEL(NAME)
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
} // namespace attn::schedules

using namespace attn;

const std::vector<ScheduleKind> &attn::scheduleKinds() {
  static const std::vector<ScheduleKind> kinds = {
#define ATTN_SCHEDULE(NAME) schedules::NAME(),
#define ATTN_KERNEL(NAME)
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
  };
  return kinds;
}

Parameter attn::keptParameter() {
  Parameter kept = countParameter("kept", {1});
  kept.most = 1;
  return kept;
}

std::optional<std::string> attn::checkKeptBlocks(const Tiles &tiles) {
  int64_t block = tiles.get("key_block");
  if (block == kKeptKeys)
    return std::nullopt;
  return "expects blocks of " + std::to_string(kKeptKeys) +
         " keys to keep weights, but got key_block = " + std::to_string(block);
}

std::optional<std::string> attn::checkWgmmaColumns(int64_t column) {
  if (column % kPanelColumns == 0 && column <= kMostWgmmaColumns)
    return std::nullopt;
  return "expects whole panels of " + std::to_string(kPanelColumns) +
         " columns, at most " + std::to_string(kMostWgmmaColumns) +
         ", but got " + std::to_string(column);
}

std::vector<std::string> attn::kernelNames() {
  return {
#define ATTN_SCHEDULE(NAME)
#define ATTN_KERNEL(NAME) #NAME,
#include "Registry.inc"
#undef ATTN_SCHEDULE
#undef ATTN_KERNEL
  };
}

/// Kernels that walk along lists of blocks: the one table of them.
/// spill_backward_wgmma walks lists in one strip of all keys, but no host yet
/// refuses sizes, left open when it was compiled, that are more than that.
static const std::vector<std::string_view> kWalkingKernels = {
    "column_split_wgmma",   "flash_mma_sync",    "flash_wgmma",
    "flash_backward_wgmma", "score_spill_wgmma", "split_backward_mma_sync",
    "split_backward_wgmma"};

bool attn::walksLists(std::string_view kernel) {
  return std::find(kWalkingKernels.begin(), kWalkingKernels.end(), kernel) !=
         kWalkingKernels.end();
}

/// Kernels that have regions of scores and sinks: the one table of them.
static const std::vector<std::string_view> kScoringKernels = {
    "flash_mma_sync", "flash_wgmma", "flash_backward_wgmma",
    "split_backward_mma_sync", "split_backward_wgmma"};

bool attn::takesClauses(std::string_view kernel) {
  return std::find(kScoringKernels.begin(), kScoringKernels.end(), kernel) !=
         kScoringKernels.end();
}

/// Kernels that ask the device where rows lie: the one table of them.
static const std::vector<std::string_view> kLocatingKernels = {
    "column_split_wgmma", "flash_mma_sync", "flash_wgmma"};

bool attn::locatesRows(std::string_view kernel) {
  return std::find(kLocatingKernels.begin(), kLocatingKernels.end(), kernel) !=
         kLocatingKernels.end();
}

/// Kernels that read scales of their operands: the one table of them.
static const std::vector<std::string_view> kScalingKernels = {"flash_mma_sync",
                                                              "flash_wgmma"};

bool attn::takesScales(std::string_view kernel) {
  return std::find(kScalingKernels.begin(), kScalingKernels.end(), kernel) !=
         kScalingKernels.end();
}

/// Kernels that find their tiles in ragged sequences: the one table of them.
static const std::vector<std::string_view> kRaggedKernels = {
    "flash_mma_sync", "flash_wgmma", "flash_backward_wgmma",
    "split_backward_mma_sync", "split_backward_wgmma"};

bool attn::takesRagged(std::string_view kernel) {
  return std::find(kRaggedKernels.begin(), kRaggedKernels.end(), kernel) !=
         kRaggedKernels.end();
}

/// Kernels that carry sums of a head; of flash_backward a tile of keys meets
/// heads of queries in turns.
static const std::vector<std::string_view> kSummingKernels = {
    "split_backward_mma_sync", "split_backward_wgmma"};

bool attn::sumsOfHeads(std::string_view kernel) {
  return std::find(kSummingKernels.begin(), kSummingKernels.end(), kernel) !=
         kSummingKernels.end();
}

std::optional<std::string> attn::checkTilesOfBlocks(const BlockSize &tile,
                                                    const Problem &problem) {
  if (!problem.pattern)
    return std::nullopt;
  BlockSize size = problem.pattern->size();
  if (size.queries % tile.queries == 0 && size.keys % tile.keys == 0)
    return std::nullopt;
  return "expects tiles that divide blocks of " + str(size) + ", but got " +
         str(tile);
}

const ScheduleKind *attn::findScheduleKind(std::string_view name) {
  for (const ScheduleKind &kind : scheduleKinds())
    if (kind.name == name)
      return &kind;
  return nullptr;
}

Launches attn::launchesOf(std::string_view schedule, const Tiles &tiles) {
  return findScheduleKind(schedule)->launches(tiles);
}

Launches attn::oneLaunch(GridForm form, int64_t rows, int64_t team) {
  LaunchShape shape;
  shape.form = form;
  shape.rows = rows;
  Launches launches;
  launches.shapes = {shape};
  launches.team = team;
  return launches;
}

Launches attn::oneLaunch(const Tiles &tiles) {
  return oneLaunch(GridForm::tiles, tiles.get("query"));
}

std::string attn::whatReplaced(std::string_view schedule) {
  if (schedule == "cluster")
    return ", which was never faster than flash and is gone: ask for flash, "
           "or for column_split where rows are wider than a block";
  return "";
}

static Parameter parameter(std::string name, std::vector<int64_t> values,
                           int64_t unit, int64_t least, int64_t most) {
  return {std::move(name), std::move(values), unit, least, most};
}
Parameter attn::extentParameter(std::string name, std::vector<int64_t> values) {
  return parameter(std::move(name), std::move(values), 16, 16, 65536);
}
Parameter attn::countParameter(std::string name, std::vector<int64_t> values) {
  return parameter(std::move(name), std::move(values), 1, 1, 32);
}
Parameter attn::optionalExtent(std::string name, std::vector<int64_t> values) {
  return parameter(std::move(name), std::move(values), 16, 0, 65536);
}
bool Parameter::isChoice() const { return least == 0 && unit == 1; }
Parameter attn::choiceParameter(std::string name, std::vector<int64_t> values) {
  int64_t most = *std::max_element(values.begin(), values.end());
  return parameter(std::move(name), std::move(values), 1, 0,
                   std::max<int64_t>(most, 1));
}

std::vector<Parameter> Form::parameters() const {
  std::vector<Parameter> all = sizes;
  all.insert(all.end(), room.begin(), room.end());
  all.insert(all.end(), choices.begin(), choices.end());
  return all;
}

bool Form::serves(TensorCoreFamily family) const {
  return std::find(families.begin(), families.end(), family) != families.end();
}

bool Form::has(std::string_view name) const {
  for (const auto *group : {&sizes, &room, &choices})
    for (const Parameter &parameter : *group)
      if (parameter.name == name)
        return true;
  return false;
}

bool Form::hasAll(const Tiles &tiles) const {
  return std::all_of(tiles.begin(), tiles.end(),
                     [&](const Tiles::Item &item) { return has(item.first); });
}

bool Form::saysAll(const Tiles &tiles) const {
  for (const Parameter &parameter : parameters())
    if (!tiles.has(parameter.name))
      return false;
  return hasAll(tiles);
}

const Form &ScheduleKind::formOf(const Tiles &tiles) const {
  for (const Form &form : forms)
    if (form.hasAll(tiles))
      return form;
  return forms.front();
}

std::vector<std::string> attn::scheduleNames() {
  std::vector<std::string> names;
  for (const ScheduleKind &kind : scheduleKinds())
    names.push_back(kind.name);
  return names;
}

std::vector<std::string> attn::scheduleNames(Direction direction) {
  std::vector<std::string> names;
  for (const ScheduleKind &kind : scheduleKinds())
    if (kind.direction == direction)
      names.push_back(kind.name);
  return names;
}

std::vector<std::string> attn::tileNames(std::string_view schedule) {
  std::vector<std::string> names;
  const ScheduleKind *kind = findScheduleKind(schedule);
  for (const Form &form : kind ? kind->forms : std::vector<Form>())
    for (const Parameter &parameter : form.parameters())
      if (std::find(names.begin(), names.end(), parameter.name) == names.end())
        names.push_back(parameter.name);
  return names;
}

bool attn::mayBeZero(std::string_view schedule, std::string_view tile) {
  if (const ScheduleKind *kind = findScheduleKind(schedule))
    for (const Form &form : kind->forms)
      for (const Parameter &parameter : form.parameters())
        if (parameter.name == tile)
          return parameter.least == 0;
  return false;
}

std::string attn::summary(std::string_view schedule) {
  const ScheduleKind *kind = findScheduleKind(schedule);
  return kind ? kind->summary : "";
}
