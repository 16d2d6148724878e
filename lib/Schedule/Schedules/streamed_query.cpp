//===- streamed_query.cpp - Only the output stays -------------------------===//
//
// For head dimensions at which Q and O do not both fit: the output stays in
// registers, and queries come anew with every block of keys, by slices of the
// head dimension beside those of the keys.  Of what grows with the head
// dimension shared memory has only a few rows of values.  Words, with strips of
// `query` and blocks of `key`:
//
//   Nd + N + 2N²d/query + N²d/key
//
// What bounds the strip is then the register file.  A warp has at most 255
// registers a thread, so rows that are too wide are given to several:
// `column_warps` of them (for wgmma `column_groups` of warpgroups) have the
// same rows, each computes the scores of a part of the keys and owns a part of
// the columns of O.  P, which all of them need, goes through shared memory.  O
// leaves straight from registers: warps have different columns, so that staging
// them panel by panel would leave most of them idle between barriers.
//
//===----------------------------------------------------------------------===//

#include "Folds/WarpRows.h"
#include "attn/Schedule/Census.h"
#include "attn/Schedule/Registry.h"

using namespace attn;

/// Of warps that load themselves: those on the same rows have a barrier of
/// their own, out of 15.
static constexpr int64_t kMostWarps = 16;

static std::string number(int64_t value) { return std::to_string(value); }

/// A step over the keys: scores by slices, output by pieces of V.
static Body keyStep(int64_t slice, int64_t piece, int64_t stages,
                    bool isShared) {
  Body shared = isShared ? Body{hold(Tensor::P, Level::Smem)} : Body{};
  Body output = {stream(Tensor::V, Level::Smem),
                 multiply(Tensor::O, Tensor::P, Tensor::V)};
  return sequence({shared,
                   scoresBySlices(slice, stages),
                   {softmax(Tensor::S), rescale(Tensor::O)},
                   slices(Axis::Key, piece, stages, output)});
}

static Schedule build(const Tiles &t) {
  int64_t stages = t.get("stages", 1), across = t.get("column_warps", 1);
  Grid whole =
      grid(Axis::Query, t.get("query"), t.get("warps", 1),
           {hold(Tensor::O), hold(Tensor::Stats),
            loop(Axis::Key, t.get("key"), stages,
                 keyStep(t.get("slice"), t.get("piece"), stages, across > 1)),
            storeDirectly(Tensor::O), store(Tensor::Lse)});
  whole.workers.across = across;
  return {"streamed_query", {whole}};
}

static Schedule buildPipeline(const Tiles &t) {
  int64_t stages = t.get("stages", 2), across = t.get("column_groups", 1);
  Crew crew;
  crew.workers.warpgroups = t.get("query") / kWarpgroupRows * across;
  crew.order.isPersistent = true;
  Grid whole =
      grid(Axis::Query, t.get("query"), crew,
           {hold(Tensor::O), hold(Tensor::Stats),
            loop(Axis::Key, t.get("key"), stages,
                 keyStep(kPanelColumns, kKeysOfPiece, stages, across > 1)),
            storeDirectly(Tensor::O), store(Tensor::Lse)});
  whole.workers.across = across;
  return {"streamed_query", {whole}};
}

/// Keys and columns are dealt out in units of a product.
static std::optional<std::string> checkParts(const char *what, int64_t parts,
                                             int64_t unit, const Tiles &t,
                                             const Problem &problem) {
  int64_t piece = t.get("piece", kKeysOfPiece);
  if (t.get("key") % (parts * unit) != 0 || t.get("key") % piece != 0)
    return "expects a multiple of " + number(std::max(parts * unit, piece)) +
           " keys with " + number(parts) + " " + what +
           " on the same rows, but got " + number(t.get("key"));
  if (problem.headDimV < parts * unit)
    return "expects " + number(parts * unit) + " columns of v or more for " +
           number(parts) + " " + what + " on the same rows, but got " +
           number(problem.headDimV);
  return std::nullopt;
}

static std::optional<std::string> checkWarps(const Tiles &t,
                                             const Problem &problem) {
  int64_t warps = t.get("warps"), across = t.get("column_warps");
  if (auto sentence = checkWarpRows(t.get("query"), warps, across))
    return *sentence + ", " + number(across) + " of them on the same rows";
  if (warps > kMostWarps)
    return "expects at most " + number(kMostWarps) + " warps, but got " +
           number(warps);
  if (t.get("stages") < 2 || t.get("stages") > 3)
    return "expects two or three stages, but got " + number(t.get("stages"));
  int64_t columns = roundUp(ceilDiv(problem.headDimV, across), 16);
  if ((across - 1) * columns >= problem.headDimV)
    return "expects columns of v for each of " + number(across) +
           " warps on the same rows, in parts of " + number(columns) +
           ", but got " + number(problem.headDimV);
  return checkParts("warps", across, 16, t, problem);
}

static std::optional<std::string> checkPipeline(const Tiles &t,
                                                const Problem &problem) {
  int64_t query = t.get("query"), across = t.get("column_groups");
  if (bytesOf(problem.dtype) != 2)
    return "expects bf16 or f16, but got " + std::string(name(problem.dtype));
  if (query % kWarpgroupRows != 0 || query / kWarpgroupRows * across > 3)
    return "expects one, two or three warpgroups of 64 rows, but got " +
           number(query) + " rows and " + number(across) +
           " warpgroups on the same rows";
  if (t.get("key") > 256)
    return "expects at most 256 keys, the columns of a product, but got " +
           number(t.get("key"));
  if (t.get("stages") < 2)
    return "expects two stages or more, but got " + number(t.get("stages"));
  int64_t columns = ceilDiv(problem.headDimV, across);
  if (columns > kMostWgmmaColumns)
    return "expects at most " + number(kMostWgmmaColumns) +
           " columns of v for each of the warpgroups on the same rows, but "
           "got " +
           number(columns);
  return checkParts("warpgroups", across, 16, t, problem);
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind streamed_query() {
  Form portable = {
      {TensorCoreFamily::none, TensorCoreFamily::mmaSync},
      {extentParameter("query", {16, 32, 64, 128}),
       extentParameter("key", {32, 64, 128}),
       extentParameter("slice", {32, 64}), extentParameter("piece", {16, 32}),
       countParameter("stages", {2, 3}), countParameter("warps", {4, 8}),
       countParameter("column_warps", {1, 2, 4, 8})},
      {},
      {},
      build,
      checkWarps,
      nullptr};
  Form pipeline = {{TensorCoreFamily::wgmma},
                   {extentParameter("query", {64, 128, 192}),
                    extentParameter("key", {64, 96, 128, 192, 256}),
                    countParameter("column_groups", {1, 2, 3})},
                   {countParameter("stages", {6, 5, 4, 3, 2})},
                   {},
                   buildPipeline,
                   checkPipeline,
                   nullptr};
  pipeline.mostHeadDim = 4096;
  return {
      "streamed_query",
      "a block keeps a strip of the output; queries, keys and values stream "
      "past",
      {portable, pipeline},
      Regime::largeCache};
}
} // namespace attn::schedules
