//===- RaggedCase.cpp - Sequences of any length, and the truth ------------===//

#include "Harness/RaggedCase.h"

#include "Harness/Normals.h"

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Decision.h"
#include "attn/Schedule/KeyParts.h"
#include "attn/Schedule/Registry.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace attn;

static const char *kernelOfTiles(const Tiles &tiles) {
  return tiles.has("persistent") ? "flash_wgmma" : "flash_mma_sync";
}

RaggedCase::RaggedCase(const Problem &problem, const Tiles &tiles,
                       uint64_t seed)
    : RaggedArguments(problem),
      isIgnored(problem.ragged->lengths.size(), false), tiles(tiles),
      scale(1 / std::sqrt(double(problem.headDim))) {
  Normals normal(seed);
  auto fill = [&](std::vector<float> &array, int64_t elements) {
    array.resize(elements);
    for (float &value : array)
      value = rounded(problem.dtype, normal());
  };
  const Problem &p = problem;
  int64_t keys = placed ? p.batch * p.keys : p.keys;
  fill(q, p.queries * p.heads * p.headDim);
  fill(k, keys * p.kvHeads * p.headDim);
  fill(v, keys * p.kvHeads * p.headDimV);
}

void RaggedCase::check(MLIRContext &context, const InterpreterOptions &options,
                       int64_t blocks) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  KernelRequest request;
  request.name = "ragged";
  request.problem = problem;
  request.tiles = tiles;
  request.scale = scale;
  for (const char *array : {"q", "k", "v", "o"})
    request.alignments[array] = alignmentOfRows(
        array[0] == 'v' || array[0] == 'o' ? problem.headDimV : problem.headDim,
        array[0] == 'o' ? resultType(problem) : problem.dtype);
  request.sms = 4;
  request.l2Bytes = 1 << 20;
  request.smemBytes = findMachine("h100_sxm")->smemBytesPerBlock;
  std::string name = kernelOfTiles(tiles);
  request.launches = launchesOfKernel(name, tiles);
  std::vector<tile::KernelOp> kernels;
  for (size_t launch = 0; launch < request.launches.shapes.size(); ++launch) {
    request.launch = int64_t(launch);
    kernels.push_back(findKernelBuilder(name)(builder, loc, request));
    EXPECT_TRUE(succeeded(checkRoles(kernels.back(), problem)));
  }

  GlobalMemory memory;
  int64_t rows = problem.heads * (problem.queries + kBehind);
  int64_t partRows = tiles.get("parts", 0) * problem.heads * problem.queries;
  uint64_t counter = memory.allocate(4);
  int32_t none = 0;
  memory.write(counter, &none, 4);
  llvm::StringMap<uint64_t> addresses = {
      {"q", upload(memory, q, problem.dtype)},
      {"k", upload(memory, k, problem.dtype)},
      {"v", upload(memory, v, problem.dtype)},
      {"o",
       memory.allocate(rows * problem.headDimV * bytesOf(resultType(problem)))},
      {"lse", memory.allocate(rows * 4)},
      {str(Role::keyPartsO),
       memory.allocate(partRows * pitchOfParts(problem.headDimV) * 4)},
      {str(Role::keyPartsLse), memory.allocate(partRows * 4)},
      {str(Role::counter), counter}};
  uploadOffsets(memory, addresses);
  if (placed)
    placed->upload(memory, k, v, addresses);
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
    return success();
  });
  std::string decisionError;
  Machine machine =
      *findMachine(tiles.has("persistent") ? "h100_sxm" : "a100_80g");
  std::optional<Decision> decided =
      decide(problem, machine, "flash", tiles, decisionError);
  ASSERT_TRUE(decided) << decisionError;
  std::vector<Bytes> promised = promisedBytes(*decided, problem, machine);
  for (auto [launch, kernel] : llvm::enumerate(kernels)) {
    std::array<int64_t, 3> grid =
        gridOf(request.launches, problem, {blocks}, int64_t(launch));
    if (grid[0] == 0)
      return;
    std::vector<KernelArgument> arguments;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes()))
      arguments.push_back(of(*roleOf(kernel, i), type, scale, addresses));
    FailureOr<tile::Traffic> traffic =
        interpret(kernel, grid, arguments, memory, options);
    ASSERT_EQ(error, "");
    ASSERT_TRUE(succeeded(traffic));
    Bytes bytes = promised[launch];
    if (launch == 0)
      bytes.l2 += bytesBehindUsed();
    compareTraffic(kernel, grid, *traffic, bytes);
  }
  compare(memory, addresses);
  int32_t left = 1;
  memory.read(counter, &left, 4);
  EXPECT_EQ(left, 0) << "the counter begins again";
}

void RaggedCase::compare(GlobalMemory &memory,
                         const llvm::StringMap<uint64_t> &addresses) const {
  const Problem &p = problem;
  DataType type = resultType(p);
  int64_t lines = p.heads * p.headDimV;
  std::optional<std::vector<float>> o =
      download(memory, addresses.lookup("o"), p.queries * lines, type);
  ASSERT_TRUE(o) << "some rows of O were not written";
  EXPECT_FALSE(download(memory,
                        addresses.lookup("o") +
                            uint64_t(p.queries * lines * bytesOf(type)),
                        1, type))
      << "a row behind the last sequence was written";
  std::vector<double> truth, truthLse;
  std::vector<float> got, gotLse;
  double squares = 0;
  for (size_t n = 0; n < p.ragged->lengths.size(); ++n) {
    if (isIgnored[n])
      continue;
    Problem one = denseOf(p, p.ragged->lengths[n]);
    auto rows = [&](const std::vector<float> &data, int64_t first,
                    int64_t heads, int64_t columns) {
      return oracle::Array{data.data() + first * heads * columns,
                           {0, columns, heads * columns, 1}};
    };
    std::vector<double> exact(p.heads * one.queries * p.headDimV),
        lse(p.heads * one.queries);
    auto keys = [&](const std::vector<float> &data, int64_t columns) {
      if (!placed)
        return rows(data, firstKey[n], p.kvHeads, columns);
      int64_t ofHead = p.keys * columns;
      return oracle::Array{data.data() + int64_t(n) * p.kvHeads * ofHead,
                           {0, ofHead, columns, 1}};
    };
    double size = oracle::attention(
        oracleProblem(one, scale), rows(q, firstQuery[n], p.heads, p.headDim),
        keys(k, p.headDim), keys(v, p.headDimV), exact.data(), lse.data());
    squares += size * size;
    llvm::append_range(truth, exact);
    llvm::append_range(truthLse, lse);
    for (int64_t head = 0; head < p.heads; ++head) {
      for (int64_t row = 0; row < one.queries; ++row) {
        auto begin =
            o->begin() + (firstQuery[n] + row) * lines + head * p.headDimV;
        got.insert(got.end(), begin, begin + p.headDimV);
      }
      if (!p.lse || one.queries == 0)
        continue;
      std::optional<std::vector<float>> sums = download(
          memory,
          addresses.lookup("lse") +
              4 * uint64_t(head * (p.queries + kBehind) + firstQuery[n]),
          one.queries, DataType::f32);
      ASSERT_TRUE(sums) << "some LSE were not written";
      llvm::append_range(gotLse, *sums);
    }
  }
  double limit = p.dtype == DataType::f32    ? 5e-6
                 : p.dtype == DataType::bf16 ? 4e-3
                                             : 6e-4;
  EXPECT_LT(relativeError(got, truth, std::sqrt(squares)), limit);
  for (size_t i = 0; i < gotLse.size(); ++i) {
    if (std::isinf(truthLse[i]))
      EXPECT_EQ(gotLse[i], float(truthLse[i]));
    else
      EXPECT_NEAR(gotLse[i], truthLse[i],
                  1e-4 + 0x1p-21 * std::abs(truthLse[i]));
  }
}

/// Boxes of keys of a cache come whole.
int64_t RaggedCase::bytesBehindUsed() const {
  if (!placed || !tiles.has("persistent"))
    return 0;
  const Problem &p = problem;
  int64_t key = tiles.get("key"), packed = tiles.get("packed", 1);
  int64_t query = tiles.get("query") / packed, parts = tiles.get("parts", 1);
  int64_t page = p.place.pageRows, box = std::gcd(page, key), rows = 0;
  for (const Lengths &each : p.ragged->lengths) {
    Problem one = denseOf(p, each);
    int64_t end =
        p.place.isPaged() ? (each.keys + box - 1) / box * box : p.keys;
    for (int64_t row = 0; row < each.queries; row += query) {
      Span seen = visible(one).seenBySome(
          {row, std::min(row + query, each.queries)}, each.keys);
      Span blocks = {seen.begin / key, (seen.end + key - 1) / key};
      if (seen.isEmpty())
        blocks = {0, 1};
      auto behind = [&](int64_t last) {
        return std::clamp<int64_t>(last * key, each.keys,
                                   std::max(end, each.keys)) -
               each.keys;
      };
      rows += behind(blocks.end);
      // Parts without a step walk the first block.
      int64_t none = std::max<int64_t>(parts - blocks.size(), 0);
      rows += none * behind(1);
    }
  }
  return rows * p.headDim * bytesOf(p.dtype) * p.heads / packed;
}

/// What the schedule promises, what the IR says, and what was moved.
void RaggedCase::compareTraffic(tile::KernelOp kernel,
                                std::array<int64_t, 3> grid,
                                const tile::Traffic &interpreted,
                                const Bytes &promised) const {
  FailureOr<tile::Traffic> counted = count(kernel, grid);
  ASSERT_TRUE(succeeded(counted));
  EXPECT_EQ(counted->global, interpreted.global);
  EXPECT_EQ(counted->smem, interpreted.smem);
  EXPECT_EQ(counted->global, promised.l2);
  EXPECT_EQ(counted->smem, promised.smem);
}
