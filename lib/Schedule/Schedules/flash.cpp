//===- flash.cpp - Queries stay, keys and values stream past --------------===//
//
// FlashAttention-2.  A block keeps a strip of queries and its output; keys and
// values stream past, and the running max repairs what came before.  Traffic is
// 2Nd + N + 2N²d/query words, so everything is in favour of a tall strip, and
// the strip is what fast memory must hold: optimal within a constant while
// M >= d².
//
// `slice` cuts keys and values along the head dimension, down to the theory's
// single column; kernels stream whole rows (slice = 0).
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

static Schedule build(const Tiles &t) {
  int64_t slice = t.get("slice"), stages = t.get("stages", 1);
  Body scores = {stream(Tensor::K, Level::Smem),
                 multiply(Tensor::S, Tensor::Q, Tensor::K)};
  Body output = {stream(Tensor::V, Level::Smem),
                 multiply(Tensor::O, Tensor::P, Tensor::V)};
  Body keyStep = sequence({{hold(Tensor::S)},
                           slices(Axis::HeadDim, slice, stages, scores),
                           {softmax(Tensor::S), rescale(Tensor::O)},
                           slices(Axis::HeadDimV, slice, stages, output)});
  return {
      "flash",
      {grid(Axis::Query, t.get("query"), t.get("warps", 1),
            {hold(Tensor::O), hold(Tensor::Stats), load(Tensor::Q, Level::Smem),
             loop(Axis::Key, t.get("key"), stages, keyStep), store(Tensor::O),
             store(Tensor::Lse)})}};
}

namespace attn::schedules {
ScheduleKind flash() {
  return {"flash",
          "a block keeps a strip of queries and its output; keys and values "
          "stream past",
          {{"query", {16, 32, 64, 128, 256}},
           {"key", {16, 32, 48, 64, 80, 96, 112, 128}},
           {"stages", {1, 2, 3}},
           {"warps", {1, 2, 4, 8}}},
          build,
          nullptr};
}
} // namespace attn::schedules
