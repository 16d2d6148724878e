//===- SplitBackward.cpp - Gradients, byte for byte -----------------------===//
//
// Runs the launches of split_backward one after the other on random arrays;
// gradients are compared with the oracle, bytes with what the traffic analysis
// counts in the IR and with what the schedule's folds promise.
//
//===----------------------------------------------------------------------===//

#include "CaseArrays.h"
#include "KernelTest.h"

#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

using namespace mlir;
using namespace attn;

namespace {

struct Choice {
  int64_t query = 32, keyBlock = 32, queryWarps = 2, key = 32, queryBlock = 32,
          keyWarps = 2, stages = 2, separate = 0;

  operator Tiles() const {
    return {{"query", query},
            {"key_block", keyBlock},
            {"query_warps", queryWarps},
            {"key", key},
            {"query_block", queryBlock},
            {"key_warps", keyWarps},
            {"stages", stages},
            {"separate", separate}};
  }
};

/// Inputs with the statistics that belong to them, and true gradients.
struct GradientCase {
  GradientCase(const Problem &problem, uint64_t seed = 1);
  /// Works out everything that follows from q, k, v, gradient and dlse.
  void consultOracle();

  const Problem problem;
  double scale;
  std::vector<float> q, k, v, gradient, dlse; ///< gradient: of o
  std::vector<float> o, lse;
  std::vector<double> dq, dk, dv;
};

class SplitBackward : public ::testing::Test {
protected:
  SplitBackward() { loadDialects(context); }

  void check(const Problem &problem, const Tiles &tiles,
             InterpreterOptions options = {}) {
    check(GradientCase(problem), tiles, options);
  }
  void check(const GradientCase &truth, const Tiles &tiles,
             InterpreterOptions options = {});

  static Problem problem(int64_t queries, int64_t keys, int64_t headDim,
                         int64_t headDimV, Mask mask = {},
                         DataType type = DataType::bf16);

  static constexpr Mask kMasks[] = {{},
                                    {MaskKind::causal},
                                    {MaskKind::causalBottomRight},
                                    {MaskKind::window, 7, 12},
                                    {MaskKind::window, 40, 0}};
  MLIRContext context;

private:
  OwningOpRef<ModuleOp> build(const Problem &problem, double scale,
                              const Tiles &tiles);
  void launch(tile::KernelOp kernel, const GradientCase &truth,
              const Tiles &tiles, const llvm::StringMap<uint64_t> &addresses,
              GlobalMemory &memory, const InterpreterOptions &options);
};

} // namespace

GradientCase::GradientCase(const Problem &problem, uint64_t seed)
    : problem(problem), scale(1 / std::sqrt(double(problem.headDim))) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  auto fill = [&](std::vector<float> &array, StringRef name, DataType type) {
    array.resize(shapeOfArray(name, problem).elements());
    for (float &value : array)
      value = rounded(type, normal(random));
  };
  fill(q, "q", problem.dtype);
  fill(k, "k", problem.dtype);
  fill(v, "v", problem.dtype);
  fill(gradient, "do", problem.dtype);
  if (problem.dlse)
    fill(dlse, "dlse", DataType::f32);
  consultOracle();
}

void GradientCase::consultOracle() {
  auto array = [&](const std::vector<float> &data, StringRef name) {
    return oracleArray(data, shapeOfArray(name, problem));
  };
  auto size = [&](StringRef name) {
    return size_t(shapeOfArray(name, problem).elements());
  };
  oracle::Problem p = oracleProblem(problem, scale);
  std::vector<double> exactO(size("o")), exactLse(size("lse"));
  oracle::attention(p, array(q, "q"), array(k, "k"), array(v, "v"),
                    exactO.data(), exactLse.data());
  o.clear();
  for (double value : exactO)
    o.push_back(rounded(problem.dtype, float(value)));
  lse.assign(exactLse.begin(), exactLse.end());
  dq.resize(size("dq"));
  dk.resize(size("dk"));
  dv.resize(size("dv"));
  std::vector<int64_t> all(problem.batch * problem.kvHeads);
  std::iota(all.begin(), all.end(), 0);
  oracle::gradients(
      p, array(q, "q"), array(k, "k"), array(v, "v"), array(gradient, "do"),
      problem.dlse ? dlse.data() : nullptr,
      {dq.data(), dk.data(), dv.data(), all.data(), int64_t(all.size())});
}

Problem SplitBackward::problem(int64_t queries, int64_t keys, int64_t headDim,
                               int64_t headDimV, Mask mask, DataType type) {
  Problem p;
  p.direction = Direction::backward;
  p.dtype = type;
  p.queries = queries;
  p.keys = keys;
  p.headDim = headDim;
  p.headDimV = headDimV;
  p.mask = mask;
  return p;
}

OwningOpRef<ModuleOp> SplitBackward::build(const Problem &problem, double scale,
                                           const Tiles &tiles) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  for (size_t number = 0; number < launchesOf(tiles).size(); ++number) {
    KernelRequest request;
    request.name = "gradients_" + std::to_string(number);
    request.problem = problem;
    request.tiles = tiles;
    request.launch = int64_t(number);
    request.scale = scale;
    for (const char *array : {"q", "k", "v", "o", "do", "dq", "dk", "dv"})
      request.alignments[array] =
          alignmentOfRows(shapeOfArray(array, problem).columns, problem.dtype);
    findKernelBuilder("split_backward_mma_sync")(builder, loc, request);
  }
  return module;
}

void SplitBackward::launch(tile::KernelOp kernel, const GradientCase &truth,
                           const Tiles &tiles,
                           const llvm::StringMap<uint64_t> &addresses,
                           GlobalMemory &memory,
                           const InterpreterOptions &options) {
  const Problem &p = truth.problem;
  int64_t number = launchOf(kernel);
  SCOPED_TRACE("launch " + std::to_string(number));
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto role = kernel.getArgAttrOfType<StringAttr>(i, kRoleAttr);
    arguments.push_back(
        argumentOf(role.getValue(), type, p, truth.scale, addresses));
  }
  std::array<int64_t, 3> grid =
      gridOf(tiles, p, /*multiprocessors=*/4, /*blocksPerSm=*/1, number);
  FailureOr<tile::Traffic> moved =
      interpret(kernel, grid, arguments, memory, options);
  ASSERT_TRUE(succeeded(moved));
  FailureOr<tile::Traffic> counted =
      tile::countTraffic(kernel, grid, scalarsOf(kernel, p));
  ASSERT_TRUE(succeeded(counted));
  EXPECT_EQ(counted->global, moved->global);
  EXPECT_EQ(counted->smem, moved->smem);
  if (attn::check(p)) // the model has no use for empty arrays
    return;
  Schedule schedule = findScheduleKind("split_backward")->build(tiles);
  Bytes promised = gridTraffic(census(schedule, p), size_t(number), p,
                               *findMachine("h100_sxm"), /*residentBlocks=*/1);
  EXPECT_EQ(promised.l2, moved->global);
  EXPECT_EQ(promised.smem, moved->smem);
}

void SplitBackward::check(const GradientCase &truth, const Tiles &tiles,
                          InterpreterOptions options) {
  const Problem &p = truth.problem;
  SCOPED_TRACE(tiles.str() + "; queries " + std::to_string(p.queries) +
               ", keys " + std::to_string(p.keys) + ", d " +
               std::to_string(p.headDim) + ", d_v " +
               std::to_string(p.headDimV) + ", " + str(p.mask));
  OwningOpRef<ModuleOp> module = build(p, truth.scale, tiles);
  GlobalMemory memory;
  llvm::StringMap<uint64_t> addresses = {
      {"q", upload(memory, truth.q, p.dtype)},
      {"k", upload(memory, truth.k, p.dtype)},
      {"v", upload(memory, truth.v, p.dtype)},
      {"o", upload(memory, truth.o, p.dtype)},
      {"do", upload(memory, truth.gradient, p.dtype)},
      {"lse", upload(memory, truth.lse, DataType::f32)},
      {"dlse", upload(memory, truth.dlse, DataType::f32)},
      {"delta", memory.allocate(int64_t(truth.lse.size()) * 4)}};
  std::pair<const char *, const std::vector<double> &> gradients[] = {
      {"dq", truth.dq}, {"dk", truth.dk}, {"dv", truth.dv}};
  for (const auto &[name, exact] : gradients)
    addresses[name] = memory.allocate(int64_t(exact.size()) * bytesOf(p.dtype));
  for (auto kernel : module->getOps<tile::KernelOp>())
    launch(kernel, truth, tiles, addresses, memory, options);
  for (const auto &[name, exact] : gradients) {
    SCOPED_TRACE(name);
    std::optional<std::vector<float>> values =
        download(memory, addresses[name], int64_t(exact.size()), p.dtype);
    ASSERT_TRUE(values);
    EXPECT_LT(relativeError(*values, exact), p.dtype == DataType::bf16  ? 1e-2
                                             : p.dtype == DataType::f16 ? 2e-3
                                                                        : 1e-5);
  }
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

TEST_F(SplitBackward, MasksRowsAndStages) {
  for (const Mask &mask : kMasks)
    for (int64_t stages : {1, 2, 3})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                   {90, 70},
                                   {1, 130},
                                   {130, 1},
                                   {32, 32}}) {
        Choice c;
        c.stages = stages;
        check(problem(queries, keys, 32, 16, mask), c);
      }
}

TEST_F(SplitBackward, HeadDimensions) {
  for (int64_t separate : {0, 1})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 64},
                         {64, 64},
                         {40, 72},
                         {17, 65},
                         {96, 128},
                         {128, 96}}) {
      Choice c;
      c.separate = separate;
      check(problem(50, 60, d, dv, {MaskKind::causal}, DataType::f16), c);
    }
}

TEST_F(SplitBackward, HeadsShareKeys) {
  for (auto [heads, kvHeads] :
       {std::pair<int64_t, int64_t>{3, 3}, {4, 2}, {6, 2}, {4, 1}})
    for (int64_t stages : {1, 2, 3}) {
      Problem p = problem(45, 67, 24, 32, {MaskKind::causal});
      p.batch = 2;
      p.heads = heads;
      p.kvHeads = kvHeads;
      Choice c;
      c.stages = stages;
      check(p, c);
    }
}

TEST_F(SplitBackward, TilesAndWarps) {
  for (int64_t rows : {16, 32})
    for (int64_t warps : {1, 2, 4})
      for (int64_t block : {16, 48, 64}) {
        Choice c;
        c.query = c.key = rows * warps;
        c.queryWarps = c.keyWarps = warps;
        c.keyBlock = block;
        c.queryBlock = 80 - block;
        if (c.queryBlock < 16)
          c.queryBlock = 16;
        check(problem(100, 120, 32, 48, {MaskKind::window, 30, 5}), c);
      }
}

TEST_F(SplitBackward, AllWarpOrders) {
  for (int64_t stages : {1, 2, 3})
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      Choice c;
      c.stages = stages;
      c.query = c.key = 64;
      c.queryWarps = c.keyWarps = 4;
      Problem p = problem(100, 120, 48, 32, {MaskKind::causal});
      p.heads = 2;
      check(p, c, options);
    }
}

TEST_F(SplitBackward, RowsThatSeeNothingHaveNoGradient) {
  for (int64_t stages : {1, 2}) {
    Choice c;
    c.stages = stages;
    // The first 60 of 80 queries see none of the 20 keys; and the other way.
    check(problem(80, 20, 48, 32, {MaskKind::causalBottomRight}), c);
    check(problem(20, 80, 48, 32, {MaskKind::causal}), c);
    check(problem(0, 40, 48, 32), c);
    check(problem(40, 0, 48, 32), c);
  }
}

TEST_F(SplitBackward, GradientOfTheLse) {
  Problem p = problem(70, 50, 32, 32, {MaskKind::causal});
  p.heads = 2;
  p.dlse = true;
  check(p, Choice());
}

TEST_F(SplitBackward, Scales) {
  for (double scale : {-0.3, 0.0, 2.0}) {
    GradientCase truth(problem(60, 70, 32, 32, {MaskKind::causal}));
    truth.scale = scale;
    truth.consultOracle();
    check(truth, Choice());
  }
}

/// A key whose value is NaN spoils the gradients of all queries that see it,
/// but of none before: what is hidden has no dS, whatever dP is there.
TEST_F(SplitBackward, NotANumberInAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  GradientCase truth(problem(80, 80, 48, 32, {MaskKind::causal}));
  truth.v[37 * 32 + 5] = nan;
  truth.consultOracle();
  check(truth, Choice());
}

/// Other draws: --gtest_shuffle --gtest_random_seed=1 --gtest_repeat=100.
TEST_F(SplitBackward, RandomProblems) {
  std::mt19937_64 random(testing::UnitTest::GetInstance()->random_seed());
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const Mask masks[] = {{},
                          {MaskKind::causal},
                          {MaskKind::causalBottomRight},
                          {MaskKind::window, draw(0, 100), draw(0, 50)}};
    Choice c;
    c.queryWarps = draw(1, 4);
    c.query = c.queryWarps * 16 * draw(1, 2);
    c.keyWarps = draw(1, 4);
    c.key = c.keyWarps * 16 * draw(1, 2);
    c.keyBlock = 16 * draw(1, 4);
    c.queryBlock = 16 * draw(1, 4);
    c.stages = draw(1, 3);
    c.separate = draw(0, 1);
    Problem p =
        problem(draw(1, 150), draw(0, 200), draw(1, 80), draw(1, 80),
                masks[draw(0, 3)], draw(0, 1) ? DataType::bf16 : DataType::f16);
    p.kvHeads = draw(1, 2);
    p.heads = p.kvHeads * draw(1, 3);
    p.dlse = draw(0, 3) == 0;
    InterpreterOptions options;
    options.order = WarpOrder(draw(0, 2));
    options.seed = uint64_t(i);
    check(GradientCase(p, /*seed=*/i), c, options);
  }
}
