//===- Registry.cpp - Kernel builders by name -----------------------------===//

#include "attn/Kernels/Kernels.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace mlir;

namespace attn {
#define ATTN_KERNEL(name)                                                      \
  tile::KernelOp name(OpBuilder &, Location, const KernelRequest &);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
} // namespace attn

attn::KernelBuilder attn::findKernelBuilder(StringRef name) {
  llvm::StringSwitch<KernelBuilder> found(name);
#define ATTN_KERNEL(kernel) found.Case(#kernel, &kernel);
#include "attn/Kernels/Registry.inc"
#undef ATTN_KERNEL
  return found.Default(nullptr);
}

std::string attn::offsetRole(StringRef operand) {
  return (operand + "_offset").str();
}

std::string attn::strideRole(StringRef operand, StringRef axis) {
  return (operand + "_stride_" + axis).str();
}

std::string attn::mapRole(StringRef operand) {
  return (operand + "_map").str();
}

bool attn::isScratchRole(StringRef role) {
  return role == kScratchRole || role.starts_with((kScratchRole + "_").str());
}

int64_t attn::blocksOfTeam(const Tiles &tiles) {
  return tiles.get("group", 1) * tiles.get("cluster", 1);
}

int64_t attn::launchOf(tile::KernelOp kernel) {
  auto launch = kernel->getAttrOfType<IntegerAttr>(kLaunchAttr);
  return launch ? launch.getInt() : 0;
}

int64_t attn::stripsOfBlock(const Tiles &tiles) {
  return tiles.get("query_block", kStripRows) / kStripRows;
}

/// The grid of a schedule's only launch, or of its main one.
static attn::GridForm formOf(const attn::Tiles &tiles) {
  using attn::GridForm;
  if (tiles.has("group"))
    return GridForm::teams;
  if (tiles.has("strip")) // each block has places of its own
    return GridForm::resident;
  if (!tiles.has("persistent"))
    return GridForm::rowsHeadsBatch;
  return tiles.get("persistent") != 0 ? GridForm::persistent : GridForm::tiles;
}

SmallVector<attn::LaunchShape, 3> attn::launchesOf(const Tiles &tiles) {
  GridForm form = formOf(tiles);
  int64_t queries = tiles.get("query", 1) * tiles.get("cluster", 1);
  int64_t keys = tiles.get("key");
  if (!tiles.has("query_block"))
    return {{"", form, false, queries}};
  // Without strips of its own to take dQ from, one that adds it up in slow
  // memory.
  if (!tiles.has("query")) {
    int64_t strips = stripsOfBlock(tiles);
    GridForm around = GridForm::rowsHeadsBatch;
    return {{"_prepare", around, false, kStripRows, strips},
            {"", form, true, keys},
            {"_finish", around, false, kStripRows, strips}};
  }
  SmallVector<LaunchShape, 3> shapes;
  // Blocks that take tile after tile have no time for statistics.
  if (tiles.has("persistent"))
    shapes.push_back({"_prepare", GridForm::rowsHeadsBatch, false, kStripRows,
                      stripsOfBlock(tiles)});
  shapes.push_back({"_dq", form, false, queries});
  if (tiles.get("separate") == 0) {
    shapes.push_back({"_dk_dv", form, true, keys});
  } else {
    shapes.push_back({"_dk", form, true, keys});
    shapes.push_back({"_dv", form, true, keys});
  }
  return shapes;
}

std::array<int64_t, 3> attn::gridOf(const Tiles &tiles, const Problem &problem,
                                    int64_t multiprocessors,
                                    int64_t blocksPerSm, int64_t launch) {
  LaunchShape shape = launchesOf(tiles)[launch];
  int64_t extent = shape.ownsKeys ? problem.keys : problem.queries;
  int64_t heads = shape.ownsKeys ? problem.kvHeads : problem.heads;
  int64_t rows = llvm::divideCeil(extent, shape.rows * shape.unit) * shape.unit;
  int64_t all = rows * heads * problem.batch;
  switch (shape.form) {
  case GridForm::rowsHeadsBatch:
    return {rows, heads, problem.batch};
  case GridForm::tiles:
    return {all, 1, 1};
  case GridForm::persistent:
    return {std::min(all, multiprocessors), 1, 1};
  case GridForm::resident:
    return {std::min(all, multiprocessors * blocksPerSm), 1, 1};
  case GridForm::teams: {
    int64_t team = blocksOfTeam(tiles);
    return {std::min(all, multiprocessors / team) * team, 1, 1};
  }
  }
  llvm_unreachable("closed enum");
}
