//===- BuiltKernel.cpp - Is a built kernel right, byte for byte? ----------===//

#include "Harness/BuiltKernel.h"

#include "attn/Schedule/Plan.h"

#include <limits>

using namespace mlir;
using namespace attn;

/// Of more weights than this the mean square of what rounding does to one is
/// far below that of the largest such error.
static constexpr int64_t kFewWeights = 64;

double attn::limitOf(const FlashCase &flash) {
  const Problem &problem = flash.problem;
  if (problem.dtype == DataType::f32)
    return productsPerProduct(problem) > 1 ? 5e-6 : 2e-3;
  // Weights have three bits behind the first, and some share their roundings.
  if (problem.dtype == DataType::f8e4m3)
    return 0.1;
  int64_t weights = problem.batch * problem.heads * visiblePairs(problem);
  bool hasWholeMaxima = flash.tiles.has("strip") || flash.tiles.has("part");
  if (hasWholeMaxima && weights < kFewWeights)
    return limitOfLargest(problem);
  return problem.dtype == DataType::bf16 ? 4e-3 : 6e-4;
}

double attn::limitOfLargest(const Problem &problem) {
  if (problem.dtype == DataType::f32) // scores are rounded too
    return std::numeric_limits<double>::infinity();
  if (problem.dtype == DataType::f8e4m3)
    return 0x1p-4 + 0x1p-7;
  return problem.dtype == DataType::bf16 ? 0x1p-7 : 0x1p-10;
}

double attn::limitOfLse(const Problem &problem) {
  bool isRounded =
      problem.dtype == DataType::f32 && productsPerProduct(problem) == 1;
  return isRounded ? 2e-3 : 1e-4;
}

void BuiltKernel::check(const Problem &problem, const Tiles &tiles,
                        InterpreterOptions options) {
  FlashCase flash(problem, tiles);
  check(flash, options);
}

void BuiltKernel::check(FlashCase &flash, InterpreterOptions options) {
  OwningOpRef<ModuleOp> module =
      buildFlash(context, flash.problem, flash.tiles, flash.scale);
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  Outcome outcome = flash.run(kernel, options);
  SCOPED_TRACE(
      flash.tiles.str() + "; queries " + std::to_string(flash.problem.queries) +
      ", keys " + std::to_string(flash.problem.keys) + ", d " +
      std::to_string(flash.problem.headDim) + ", d_v " +
      std::to_string(flash.problem.headDimV) + ", " + str(flash.problem.mask));
  EXPECT_EQ(outcome.error, "");
  EXPECT_LT(outcome.relativeError, limitOf(flash));
  EXPECT_LT(outcome.largestError, limitOfLargest(flash.problem));
  EXPECT_LT(outcome.lseError, limitOfLse(flash.problem));
  tile::Traffic counted;
  for (tile::KernelOp each : launchedWith(kernel)) {
    FailureOr<tile::Traffic> one = tile::countTraffic(
        each, flash.grid(launchOf(each)), flash.scalars(each),
        [&](unsigned argument, int64_t offset) -> std::optional<int64_t> {
          if (!flash.placed)
            return std::nullopt;
          return flash.placed->numberAt(*roleOf(each, argument), offset);
        });
    ASSERT_TRUE(succeeded(one));
    counted += *one;
  }
  EXPECT_EQ(counted.global, outcome.traffic.global);
  EXPECT_EQ(counted.smem, outcome.traffic.smem);
}

void BuiltKernel::checkPromise(FlashCase &flash, const std::string &schedule) {
  const Tiles &tiles = flash.tiles;
  std::string error;
  std::optional<Plan> plan =
      planFor(flash.problem, *findMachine("h100_sxm"), schedule, tiles, error);
  ASSERT_TRUE(plan) << error;
  OwningOpRef<ModuleOp> module = buildFlash(context, flash.problem, tiles);
  Outcome outcome = flash.run(*module->getOps<tile::KernelOp>().begin());
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.traffic.global, plan->bytes.l2) << tiles.str();
  EXPECT_EQ(outcome.traffic.smem, plan->bytes.smem) << tiles.str();
}

void BuiltKernel::checkHeads(int64_t headDim, int64_t headDimV,
                             const Tiles &withLse, const Tiles &without) {
  for (DataType type : {DataType::bf16, DataType::f16})
    for (auto [heads, kvHeads] :
         {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {4, 1}}) {
      Problem p = oneHead(33, 47, headDim, headDimV, {MaskKind::causal}, type);
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      check(p, withLse);
      p.lseLow = true;
      check(p, withLse);
      p.lse = p.lseLow = false;
      check(p, without);
    }
}
