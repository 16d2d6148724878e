//===- score_spill.cpp - Two matrix products, P spilled between -----------===//
//
// For M < d², after Saha and Ye: neither Q nor O fits as a strip, so each of
// the two products keeps a square tile of its *output* and streams slices of
// both operands, as a matrix product does.  The price is the N² probabilities
// that are written in between.
//
// Theirs spills exp(S), which overflows.  Here a tile of P is computed with the
// running max at that time and spilled together with it, one word per row;
// when it is read back it is rescaled to the final max.  Words:
//
//   N²d (1/query + 1/key + 1/out_query + 1/column)
//     + N² + N²/key (1 + d/column) + Nd + 4N
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

/// Scores by tiles of query × key; P and its max leave at once.
static Node scoreGrid(const Tiles &t) {
  int64_t stages = t.get("stages", 1);
  Body product =
      slices(Axis::HeadDim, t.get("slice"), stages,
             {stream(Tensor::Q, Level::Smem), stream(Tensor::K, Level::Smem),
              multiply(Tensor::S, Tensor::Q, Tensor::K)});
  Body keyStep = sequence(
      {{hold(Tensor::S)},
       product,
       {softmax(Tensor::S), spill(Tensor::P), spill(Tensor::TileMax)}});
  return grid(Axis::Query, t.get("query"), t.get("warps", 1),
              {hold(Tensor::Stats),
               loop(Axis::Key, t.get("key"), stages, keyStep),
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

static Schedule build(const Tiles &t) {
  return {"score_spill", {scoreGrid(t), outputGrid(t)}};
}

static std::optional<std::string> checkMask(const Tiles &t,
                                            const Problem &problem) {
  bool isMasked = problem.mask.kind != MaskKind::none;
  if (isMasked && t.get("query") % t.get("out_query") != 0)
    return "expects query to be a multiple of out_query under a mask, but "
           "got " +
           std::to_string(t.get("query")) + " and " +
           std::to_string(t.get("out_query")) +
           ": a tile of the output would read scores that were never written";
  return std::nullopt;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind score_spill() {
  return {"score_spill",
          "two matrix products that keep square tiles of their output; the "
          "probabilities are spilled in between",
          {{{TensorCoreFamily::none, TensorCoreFamily::mmaSync},
            {extentParameter("query", {64, 128}),
             extentParameter("key", {64, 128, 256}),
             extentParameter("out_query", {64, 128}),
             extentParameter("column", {64, 128, 256}),
             extentParameter("slice", {64}), countParameter("stages", {2, 3}),
             countParameter("warps", {4, 8})},
            {},
            {},
            build,
            nullptr,
            checkMask}}};
}
} // namespace attn::schedules
