//===- split_backward.cpp - Gradients by rows, then by columns ------------===//
//
// Two views of the same products.  A block of the first launch keeps a strip of
// queries and the gradient of them; keys and values stream past.  A block of
// the second keeps a strip of keys and values and their gradients; queries and
// the gradients of the output stream past.  Every sum is one block's, taken in
// one order: the result is the same in every run, and nothing but one number a
// row (D) is passed on.  The price is that scores and dP are computed twice,
// seven products where a schedule that adds up dQ in slow memory has five.
//
// Words (Li, Liang, Shi, Song, arXiv 2410.09397, for the order; the constants
// are counted): with strips of `query` and `key`
//
//   9Nd + 2N + (N/query) 2Nd + (N/key) (2Nd + 2N)
//
// 9Nd: Q and dO stay, O and dO once more for D, dQ leaves; K and V stay, dK and
// dV leave.  D costs no launch of its own: it is the first block's that needs
// it.
//
// dK and dV of a strip are both held in registers.  Where they do not both fit
// (`separate`), each has a launch, and scores are computed three times.
//
// D is also left for queries that see nothing: blocks of the second launch may
// read it beside that of others.
//
// Query heads that share a key head add up in its gradients: a block of the
// second launch belongs to a key head and goes over all of them.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Registry.h"

using namespace attn;

static Body scoresAndGradient(Tensor owned, Tensor streamed, Tensor ownedV,
                              Tensor streamedV) {
  return {hold(Tensor::S),
          multiply(Tensor::S, owned, streamed),
          weigh(Tensor::S),
          hold(Tensor::GradP),
          multiply(Tensor::GradP, ownedV, streamedV),
          differentiate(Tensor::GradP)};
}

/// dQ of a strip of queries, and D.
static Node queryGrid(const Tiles &t) {
  Body step = sequence(
      {{stream(Tensor::K, Level::Smem), stream(Tensor::V, Level::Smem)},
       scoresAndGradient(Tensor::Q, Tensor::K, Tensor::GradO, Tensor::V),
       {multiply(Tensor::GradQ, Tensor::GradS, Tensor::K)}});
  return grid(Axis::Query, t.get("query"), t.get("query_warps", 1),
              {hold(Tensor::GradQ), hold(Tensor::Delta),
               load(Tensor::Q, Level::Smem), load(Tensor::GradO, Level::Smem),
               always(absorb(Tensor::O)), always(absorb(Tensor::GradO)),
               always(load(Tensor::Lse, Level::Registers)),
               always(load(Tensor::GradLse, Level::Registers)),
               always(spill(Tensor::Delta)),
               loop(Axis::Key, t.get("key_block"), t.get("stages", 1), step),
               store(Tensor::GradQ)});
}

/// dK, dV or both of a strip of keys.
static Node keyGrid(const Tiles &t, bool hasK, bool hasV) {
  Body held, step, stored;
  auto add = [](Body &body, Body more) {
    body = sequence({std::move(body), std::move(more)});
  };
  add(held, {load(Tensor::K, Level::Smem)});
  add(step, {stream(Tensor::Q, Level::Smem), stream(Tensor::GradO, Level::Smem),
             stream(Tensor::Lse, Level::Smem)});
  if (hasK) {
    add(held, {hold(Tensor::GradK), load(Tensor::V, Level::Smem)});
    add(step, {stream(Tensor::Delta, Level::Smem)});
    add(stored, {store(Tensor::GradK)});
  }
  add(step, {hold(Tensor::S), multiply(Tensor::S, Tensor::K, Tensor::Q),
             weigh(Tensor::S)});
  if (hasV) {
    add(held, {hold(Tensor::GradV)});
    add(step, {multiply(Tensor::GradV, Tensor::P, Tensor::GradO)});
    add(stored, {store(Tensor::GradV)});
  }
  if (hasK)
    add(step,
        {hold(Tensor::GradP), multiply(Tensor::GradP, Tensor::V, Tensor::GradO),
         differentiate(Tensor::GradP),
         multiply(Tensor::GradK, Tensor::GradS, Tensor::Q)});
  add(held, {loop(Axis::Query, t.get("query_block"), t.get("stages", 1),
                  std::move(step))});
  return grid(Axis::Key, t.get("key"), t.get("key_warps", 1),
              sequence({std::move(held), std::move(stored)}));
}

static Schedule build(const Tiles &t) {
  if (t.get("separate") == 0)
    return {"split_backward", {queryGrid(t), keyGrid(t, true, true)}};
  return {"split_backward",
          {queryGrid(t), keyGrid(t, true, false), keyGrid(t, false, true)}};
}

namespace attn::schedules {
// Named as the file and as users write it.
// NOLINTNEXTLINE(readability-identifier-naming)
ScheduleKind split_backward() {
  Form portable = {
      {TensorCoreFamily::none, TensorCoreFamily::mmaSync},
      {extentParameter("query", {64, 128}),
       extentParameter("key_block", {16, 32, 64}),
       countParameter("query_warps", {4, 8}), extentParameter("key", {64, 128}),
       extentParameter("query_block", {16, 32, 64}),
       countParameter("key_warps", {4, 8}), countParameter("stages", {1, 2, 3}),
       choiceParameter("separate", {0, 1})},
      {},
      {},
      build,
      nullptr,
      nullptr};
  return {"split_backward",
          "gradients of queries by strips of queries, of keys and values by "
          "strips of keys; each sum in one order",
          {portable},
          Regime::largeCache,
          Direction::backward};
}
} // namespace attn::schedules
