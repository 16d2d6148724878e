//===- output_spill.cpp - Only a tile of scores stays ---------------------===//
//
// For M < d² with little scratch: a block keeps a tile of scores; queries, keys
// and values stream past it in slices, and the output lies in slow memory, as
// f32 in places of the block's own, from which a tile of columns comes and to
// which it goes for every block of keys.  Words, with strips of `query` and
// blocks of `key`:
//
//   reduce = 0   2N²d/query + 3N²d/key            read, rescaled and written
//   reduce = 1   3N²d/query + 3N²d/key + 2Nd      added from afar
//
// (the first less Nd, both with statistics).  Adding needs the final maximum of
// every row; hence a pass over the scores that only finds the statistics, which
// is N²d (1/query + 1/key) of the words.
//
// No kernel reduces: it would move more words than one that does not.
//
//===----------------------------------------------------------------------===//

#include "../WarpRows.h"
#include "attn/Schedule/Registry.h"
#include <string>

using namespace attn;

static Body scores(const Tiles &t) {
  return sequence({scoresBySlices(t.get("slice"), t.get("stages", 1)),
                   {softmax(Tensor::S)}});
}

/// A tile of columns of the output of a block of keys.
static Body product(const Tiles &t) {
  return {loop(Axis::Key, t.get("piece", kKeysOfPiece), t.get("stages", 1),
               {stream(Tensor::V, Level::Smem),
                multiply(Tensor::O, Tensor::P, Tensor::V)})};
}

static Node overKeys(const Tiles &t, Body column) {
  Body columns = {loop(Axis::HeadDimV, t.get("column"), 1, std::move(column))};
  return loop(Axis::Key, t.get("key"), t.get("stages", 1),
              sequence({scores(t), columns}));
}

static Schedule build(const Tiles &t) {
  Body body;
  if (t.get("reduce")) {
    Body added =
        sequence({{hold(Tensor::O)}, product(t), {reduce(Tensor::O, 1)}});
    Body read = {absorb(Tensor::O, 1), store(Tensor::O)};
    body = {hold(Tensor::Stats),
            loop(Axis::Key, t.get("key"), t.get("stages", 1), scores(t)),
            overKeys(t, added), loop(Axis::HeadDimV, t.get("column"), 1, read),
            store(Tensor::Lse)};
  } else {
    Body updated = sequence(
        {{hold(Tensor::O), between(absorb(Tensor::O, 1)), rescale(Tensor::O)},
         product(t),
         {between(spill(Tensor::O, 1))}});
    body = {
        hold(Tensor::Stats), overKeys(t, updated),
        loop(Axis::HeadDimV, t.get("column"), 1, {storeDirectly(Tensor::O)}),
        store(Tensor::Lse)};
  }
  return {"output_spill",
          {grid(Axis::Query, t.get("query"), t.get("warps", 1), body)}};
}

static std::string number(int64_t value) { return std::to_string(value); }

static std::optional<std::string> checkStructure(const Tiles &t,
                                                 const Problem &problem) {
  if (auto sentence = checkWarpRows(t.get("query"), t.get("warps")))
    return sentence;
  if (t.get("key") % kKeysOfPiece != 0)
    return "expects blocks of whole pieces of " + number(kKeysOfPiece) +
           " keys, but got key = " + number(t.get("key"));
  if (t.get("stages") > 3)
    return "expects one to three stages, but got " + number(t.get("stages"));
  return std::nullopt;
}

static bool isWritten(const Problem &problem, const Tiles &t) {
  return t.get("reduce") == 0;
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind output_spill() {
  Form form = {{TensorCoreFamily::none, TensorCoreFamily::mmaSync},
               {extentParameter("query", {32, 64, 128}),
                extentParameter("key", {64, 128}),
                extentParameter("column", {32, 64, 128}),
                extentParameter("slice", {16, 64}),
                countParameter("stages", {2, 3}),
                countParameter("warps", {2, 4, 8})},
               {},
               {choiceParameter("reduce", {0})}, // 1 if somebody asks for it
               build,
               checkStructure,
               nullptr};
  form.hasKernel = isWritten;
  return {
      "output_spill",
      "a block keeps a tile of scores; the output lies in slow memory, where "
      "every block of keys adds to it",
      {form}};
}
} // namespace attn::schedules
