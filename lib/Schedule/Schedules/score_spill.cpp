//===- score_spill.cpp - Two matrix products, P spilled between -----------===//
//
// For M < d², after Saha and Ye: neither Q nor O fits as a strip, so each of
// the two products keeps a square tile of its *output* and streams slices of
// both operands, as a matrix product does.  The price is the probabilities that
// are written in between.
//
// Theirs spills exp(S), which overflows.  Here a tile of P is computed with the
// running max at that time and spilled together with it, one word per row; when
// it is read back it is rescaled to the max that is known by then.
//
// In *strips* of keys one launch does both: a block computes P of a strip for
// its rows, then the output of the strip, column tile by column tile, from the
// places that it alone uses.  They do not grow with the problem.  Between
// strips the output waits in places of its own.  Words:
//
//   N²d (1/query + 1/key + 1/query + 1/column)
//     + N² + N²/key (1 + d/column) + (2N/strip − 1) Nd + N
//
// Without strips all of P, N², is spilled, by two launches, so that the tiles
// of the products may differ (`out_query`).  Nobody chooses that unasked.
// Words:
//
//   N²d (1/query + 1/key + 1/out_query + 1/column)
//     + N² + N²/key (1 + d/column) + Nd + 4N
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

static Body scores(const Tiles &t) {
  return sequence({scoresBySlices(t.get("slice"), t.get("stages", 1)),
                   {softmax(Tensor::S)}});
}

//===----------------------------------------------------------------------===//
// All keys at once
//===----------------------------------------------------------------------===//

/// Scores by tiles of query × key; P and its max leave at once.
static Node scoreGrid(const Tiles &t) {
  Body keyStep =
      sequence({scores(t), {spill(Tensor::P), spill(Tensor::TileMax)}});
  return grid(Axis::Query, t.get("query"), t.get("warps", 1),
              {hold(Tensor::Stats),
               loop(Axis::Key, t.get("key"), t.get("stages", 1), keyStep),
               spill(Tensor::Stats)});
}

/// Output by tiles of out_query × column; the statistics of a row shrink to its
/// log-sum-exp as they are read.
static Node outputGrid(const Tiles &t) {
  int64_t stages = t.get("stages", 1);
  Body product =
      slices(Axis::Key, t.get("slice"), stages,
             {stream(Tensor::P, Level::Smem), stream(Tensor::V, Level::Smem),
              rescale(Tensor::P), multiply(Tensor::O, Tensor::P, Tensor::V)});
  Body keyStep = sequence({{load(Tensor::TileMax, Level::Registers)}, product});
  Body column = {hold(Tensor::O),
                 loop(Axis::Key, t.get("key"), stages, keyStep),
                 store(Tensor::O)};
  return grid(Axis::Query, t.get("out_query"), t.get("warps", 1),
              {hold(Tensor::Lse), absorb(Tensor::Stats),
               loop(Axis::HeadDimV, t.get("column"), 1, column),
               store(Tensor::Lse)});
}

//===----------------------------------------------------------------------===//
// Strips
//===----------------------------------------------------------------------===//

static Node stripGrid(const Tiles &t) {
  int64_t key = t.get("key"), strip = t.get("strip");
  int64_t stages = t.get("stages", 1), places = strip / key;
  Body keyStep = sequence(
      {scores(t), {spill(Tensor::P, places), spill(Tensor::TileMax, places)}});
  // P comes back as it left, by the threads that had it: past shared memory.
  Body product =
      sequence({{absorb(Tensor::TileMax, places)},
                slices(Axis::Key, t.get("slice"), stages,
                       {absorb(Tensor::P, places), rescale(Tensor::P),
                        stream(Tensor::V, Level::Smem),
                        multiply(Tensor::O, Tensor::P, Tensor::V)})});
  Body column = {hold(Tensor::O), between(absorb(Tensor::O, 1)),
                 rescale(Tensor::O), seek(Axis::Key, key, stages, product),
                 between(spill(Tensor::O, 1))};
  Body whole = {seek(Axis::Key, key, stages, keyStep),
                loop(Axis::HeadDimV, t.get("column"), 1, column)};
  return grid(
      Axis::Query, t.get("query"), t.get("warps", 1),
      {hold(Tensor::Stats), loop(Axis::Key, strip, stages, whole),
       loop(Axis::HeadDimV, t.get("column"), 1, {storeDirectly(Tensor::O)}),
       store(Tensor::Lse)});
}

static Schedule build(const Tiles &t) {
  if (t.get("strip") > 0)
    return {"score_spill", {stripGrid(t)}};
  return {"score_spill", {scoreGrid(t), outputGrid(t)}};
}

//===----------------------------------------------------------------------===//
// What is possible
//===----------------------------------------------------------------------===//

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkRows(const Tiles &t, int64_t extent) {
  int64_t rows = extent / t.get("warps");
  if (extent % t.get("warps") == 0 && (rows == 16 || rows == 32))
    return std::nullopt;
  return "expects 16 or 32 rows per warp, but got " + number(extent) +
         " rows and " + number(t.get("warps")) + " warps";
}

static std::optional<std::string> checkStrips(const Tiles &t,
                                              const Problem &problem) {
  if (auto sentence = checkRows(t, t.get("query")))
    return sentence;
  int64_t strip = t.get("strip"), stages = t.get("stages");
  if (stages < 2 || stages > 3)
    return "expects two or three stages in strips, but got " + number(stages);
  if (strip % t.get("key") != 0 || t.get("key") % t.get("slice") != 0)
    return "expects strips of whole blocks of whole slices of keys, but got "
           "strip = " +
           number(strip) + ", key = " + number(t.get("key")) +
           " and slice = " + number(t.get("slice"));
  return std::nullopt;
}

static std::optional<std::string> checkWhole(const Tiles &t,
                                             const Problem &problem) {
  auto sentence = checkRows(t, t.get("query"));
  return sentence ? sentence : checkRows(t, t.get("out_query"));
}

static std::optional<std::string> checkMask(const Tiles &t,
                                            const Problem &problem) {
  bool isMasked = problem.mask.kind != MaskKind::none;
  int64_t query = t.get("query"), outQuery = t.get("out_query");
  if (isMasked && query % outQuery != 0)
    return "expects query to be a multiple of out_query under a mask, but "
           "got " +
           number(query) + " and " + number(outQuery) +
           ": a tile of the output would read scores that were never written";
  return std::nullopt;
}

/// The kernel has factors of 16 bits.
static bool isWritten(const Problem &problem) {
  return bytesOf(problem.dtype) == 2;
}
static bool isNotWritten(const Problem &) { return false; }

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind score_spill() {
  std::vector<TensorCoreFamily> families = {TensorCoreFamily::none,
                                            TensorCoreFamily::mmaSync};
  Parameter query = extentParameter("query", {32, 64, 128}),
            key = extentParameter("key", {64, 128, 256}),
            column = extentParameter("column", {64, 128, 256}),
            slice = extentParameter("slice", {16, 32, 64}),
            warps = countParameter("warps", {2, 4, 8}),
            stages = countParameter("stages", {3, 2});
  Form strips = {families,
                 {query, key, column, slice, warps,
                  extentParameter("strip", {256, 512, 2048})},
                 {stages},
                 {},
                 build,
                 checkStrips,
                 nullptr};
  strips.hasKernel = isWritten;
  Form whole = {families,
                {query, key, extentParameter("out_query", {64, 128}), column,
                 slice, warps},
                {stages},
                {},
                build,
                checkWhole,
                checkMask};
  whole.hasKernel = isNotWritten;
  return {"score_spill",
          "two matrix products that keep square tiles of their output; the "
          "probabilities of a strip of keys are spilled in between",
          {strips, whole}};
}
} // namespace attn::schedules
