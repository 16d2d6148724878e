//===- GradientChecks.cpp - Checks that all gradients must pass -----------===//

#include "Harness/GradientChecks.h"

#include <limits>

using namespace attn;

void GradientChecks::checkMasks(const Rows &rows, int64_t headDim,
                                const Tiles &tiles) {
  for (const Mask &mask : kMasks)
    for (auto [queries, keys] : {std::pair(rows.few, rows.many),
                                 {rows.many, rows.few},
                                 {1, 130},
                                 {130, 1},
                                 {rows.whole, rows.whole}})
      check(problem(queries, keys, headDim, 16, mask), tiles);
}

void GradientChecks::checkHeads(Problem p, const Tiles &tiles) {
  p.batch = 2;
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}}) {
    p.heads = heads;
    p.kvHeads = kvHeads;
    check(p, tiles);
  }
}

void GradientChecks::checkWarpOrders(const Problem &p, const Tiles &tiles) {
  for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                          WarpOrder::shuffled, WarpOrder::shuffled}) {
    InterpreterOptions options;
    options.order = order;
    options.seed += 17;
    check(p, tiles, options);
  }
}

void GradientChecks::checkBlindRows(int64_t rows, int64_t headDim,
                                    const Tiles &tiles) {
  check(problem(rows, 20, headDim, 32, {MaskKind::causalBottomRight}), tiles);
  check(problem(20, rows, headDim, 32, {MaskKind::causal}), tiles);
  check(problem(0, 40, headDim, 32), tiles);
  check(problem(40, 0, headDim, 32), tiles);
}

void GradientChecks::checkGradientOfTheLse(Problem p, const Tiles &tiles) {
  p.heads = 2;
  p.dlse = true;
  check(p, tiles);
}

void GradientChecks::checkScales(const Problem &p, const Tiles &tiles) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(p);
    truth.scale = scale;
    truth.consultOracle();
    check(truth, tiles);
  }
}

void GradientChecks::checkRowsBehindTheEnd(int64_t headDim,
                                           const Tiles &tiles) {
  GradientCase truth(problem(90, 100, headDim, 32));
  for (size_t i = 0; i < truth.q.size(); i += headDim)
    truth.q[i] = 2048;
  for (size_t i = 0; i < truth.k.size(); i += headDim)
    truth.k[i] = -1;
  truth.consultOracle();
  check(truth, tiles);
}

void GradientChecks::checkNotANumber(int64_t key, const Problem &p,
                                     const Tiles &tiles) {
  GradientCase truth(p);
  truth.v[key * p.headDimV + 5] = std::numeric_limits<float>::quiet_NaN();
  truth.consultOracle();
  check(truth, tiles);
}

void GradientChecks::checkRandom(int count,
                                 llvm::function_ref<Drawn(Random &)> choose) {
  Seed seed;
  Random random(seed);
  for (int i = 0; i < drawsOf(count); ++i) {
    Drawn drawn = choose(random);
    const Mask masks[] = {
        {},
        {MaskKind::causal},
        {MaskKind::causalBottomRight},
        {MaskKind::window, random.number(0, 200), random.number(0, 100)},
        {MaskKind::prefix, 0, 0, random.number(0, 200)}};
    Problem p = problem(drawn.queries, drawn.keys, drawn.headDim,
                        drawn.headDimV, masks[random.number(0, 4)],
                        random.number(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = random.number(1, 2);
    p.heads = p.kvHeads * random.number(1, 3);
    p.dlse = random.number(0, 3) == 0;
    p.lseLow = random.number(0, 3) == 0;
    multiprocessors = random.number(1, 7);
    InterpreterOptions options;
    options.order = WarpOrder(random.number(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), drawn.tiles, options);
  }
}
