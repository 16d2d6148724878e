//===- RaggedGradients.cpp - Gradients of sequences, and the truth --------===//

#include "Harness/RaggedGradients.h"

#include "Harness/Normals.h"
#include "Harness/SpecialValues.h"

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Decision.h"
#include "attn/Schedule/Launches.h"
#include "attn/Schedule/Registry.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr Role kInputs[] = {Role::q, Role::k, Role::v, Role::dO};
static constexpr Role kGradients[] = {Role::dQ, Role::dK, Role::dV};

/// The same with rows that are of no sequence.
static Problem withRowsBehind(Problem problem) {
  problem.queries += 2;
  problem.keys += 5;
  return problem;
}

static bool isOfKeys(Role role) {
  return role == Role::k || role == Role::v || role == Role::dK ||
         role == Role::dV;
}

RaggedGradients::RaggedGradients(const Problem &problem, StringRef schedule,
                                 const Tiles &tiles, uint64_t seed)
    : RaggedArguments(withRowsBehind(problem)),
      isIgnored(problem.ragged->lengths.size(), false),
      schedule(schedule.str()), tiles(tiles),
      scale(1 / std::sqrt(double(problem.headDim))) {
  Normals normal(seed);
  for (Role role : kInputs) {
    RaggedRowsOf rows = rowsOf(role);
    std::vector<float> &data = arrays[role];
    data.assign(rows.rows * rows.pitch(), kNaN);
    int64_t used = isOfKeys(role) ? firstKey.back() : firstQuery.back();
    for (int64_t i = 0; i < used * rows.pitch(); ++i)
      data[i] = rounded(problem.dtype, normal());
  }
  RaggedRowsOf output = rowsOf(Role::o);
  arrays[Role::o].assign(output.rows * output.pitch(), kNaN);
  for (Role role : {Role::lse, Role::lseLow, Role::dLse})
    arrays[role].assign(problem.heads * statisticPitch(), kNaN);
  if (problem.dlse)
    for (int64_t head = 0; head < problem.heads; ++head)
      for (int64_t row = 0; row < firstQuery.back(); ++row)
        arrays[Role::dLse][head * statisticPitch() + row] = normal();
  attendAll();
}

void RaggedGradients::spoil(size_t sequence) {
  isIgnored[sequence] = true;
  for (Role role : kInputs) {
    const std::vector<int64_t> &first = isOfKeys(role) ? firstKey : firstQuery;
    int64_t pitch = rowsOf(role).pitch();
    std::fill(arrays[role].begin() + first[sequence] * pitch,
              arrays[role].begin() + first[sequence + 1] * pitch, kNaN);
  }
  attendAll();
}

int64_t RaggedGradients::firstRowOf(Role role, size_t sequence) const {
  return isOfKeys(role) ? firstKey[sequence] : firstQuery[sequence];
}

oracle::Array RaggedGradients::arrayOf(Role role, size_t sequence) {
  RaggedRowsOf rows = rowsOf(role);
  return {arrays[role].data() + firstRowOf(role, sequence) * rows.pitch(),
          {0, rows.columns, rows.pitch(), 1}};
}

void RaggedGradients::attendAll() {
  for (size_t n = 0; n < problem.ragged->lengths.size(); ++n)
    attend(n);
}

void RaggedGradients::attend(size_t n) {
  Problem one = denseOf(problem, problem.ragged->lengths[n]);
  std::vector<double> o(one.heads * one.queries * one.headDimV),
      lse(one.heads * one.queries);
  oracle::attention(oracleProblem(one, scale), arrayOf(Role::q, n),
                    arrayOf(Role::k, n), arrayOf(Role::v, n), o.data(),
                    lse.data());
  for (int64_t head = 0; head < one.heads; ++head)
    for (int64_t row = 0; row < one.queries; ++row) {
      int64_t from = head * one.queries + row, to = firstQuery[n] + row;
      for (int64_t c = 0; c < one.headDimV; ++c)
        arrays[Role::o][(to * one.heads + head) * one.headDimV + c] =
            rounded(problem.dtype, float(o[from * one.headDimV + c]));
      int64_t place = head * statisticPitch() + to;
      float high = float(lse[from]);
      arrays[Role::lse][place] = high;
      arrays[Role::lseLow][place] =
          std::isfinite(lse[from]) ? float(lse[from] - high) : 0;
    }
}

void RaggedGradients::upload(GlobalMemory &memory,
                             llvm::StringMap<uint64_t> &addresses) {
  for (auto &[role, data] : arrays) {
    bool isStatistic = factsOf(role).element == Element::f32;
    addresses[str(role)] =
        attn::upload(memory, data, isStatistic ? DataType::f32 : problem.dtype);
  }
  for (Role role : kGradients) {
    RaggedRowsOf rows = rowsOf(role);
    addresses[str(role)] = memory.allocate(
        (rows.rows + kBehind) * rows.pitch() * bytesOf(problem.dtype));
  }
  addresses["delta"] = memory.allocate(problem.heads * statisticPitch() * 4);
  uploadOffsets(memory, addresses);
  uint64_t counter = memory.allocate(4);
  int32_t none = 0;
  memory.write(counter, &none, 4);
  addresses[str(Role::counter)] = counter;
}

void RaggedGradients::launch(tile::KernelOp kernel, const Launches &launches,
                             int64_t number, std::array<int64_t, 3> grid,
                             llvm::StringMap<uint64_t> &addresses,
                             GlobalMemory &memory,
                             const InterpreterOptions &options) {
  SCOPED_TRACE("launch " + std::to_string(number));
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentRole role = *roleOf(kernel, i);
    auto perStrip = kernel.getArgAttrOfType<IntegerAttr>(i, kPerStripAttr);
    if (perStrip && !addresses.contains(str(role)))
      addresses[str(role)] =
          memory.allocate(4 * perStrip.getInt() * problem.heads *
                          sizesOf(launches, problem).stripsOfHead());
    arguments.push_back(of(role, type, scale, addresses));
  }
  FailureOr<tile::Traffic> traffic =
      interpret(kernel, grid, arguments, memory, options);
  ASSERT_TRUE(succeeded(traffic));
  FailureOr<tile::Traffic> counted = count(kernel, grid);
  ASSERT_TRUE(succeeded(counted));
  EXPECT_EQ(counted->global, traffic->global);
  EXPECT_EQ(counted->smem, traffic->smem);
  std::string error;
  Machine machine =
      *findMachine(tiles.has("persistent") ? "h100_sxm" : "a100_80g");
  std::optional<Decision> decided =
      decide(problem, machine, schedule, tiles, error);
  ASSERT_TRUE(decided) << error;
  Bytes promised = promisedBytes(*decided, problem, machine)[size_t(number)];
  EXPECT_EQ(promised.l2, traffic->global);
  EXPECT_EQ(promised.smem, traffic->smem);
}

void RaggedGradients::check(MLIRContext &context,
                            const InterpreterOptions &options, int64_t blocks) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  KernelRequest request;
  request.problem = problem;
  request.tiles = tiles;
  request.scale = scale;
  for (const char *array : {"q", "k", "v", "o", "do", "dq", "dk", "dv"})
    request.alignments[array] = alignmentOfRows(
        rowsOf(parseRole(std::string_view(array))->role).columns,
        problem.dtype);
  request.sms = blocks;
  request.l2Bytes = 1 << 20;
  request.smemBytes = findMachine("h100_sxm")->smemBytesPerBlock;
  request.launches = launchesOf(schedule, tiles);
  std::string name =
      schedule + (tiles.has("persistent") ? "_wgmma" : "_mma_sync");
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (error.empty())
      error = diagnostic.str();
    return success();
  });
  GlobalMemory memory;
  llvm::StringMap<uint64_t> addresses;
  upload(memory, addresses);
  for (size_t number = 0; number < request.launches.shapes.size(); ++number) {
    request.launch = int64_t(number);
    request.name = "ragged_" + std::to_string(number);
    tile::KernelOp kernel = findKernelBuilder(name)(builder, loc, request);
    EXPECT_TRUE(succeeded(checkRoles(kernel, problem)));
    std::array<int64_t, 3> grid =
        gridOf(request.launches, problem, {blocks}, int64_t(number));
    if (grid[0] != 0)
      launch(kernel, request.launches, int64_t(number), grid, addresses, memory,
             options);
    ASSERT_EQ(error, "");
  }
  compare(memory, addresses);
  int32_t left = 1;
  memory.read(addresses[str(Role::counter)], &left, 4);
  EXPECT_EQ(left, 0) << "the counter begins again";
}

void RaggedGradients::take(GlobalMemory &memory, uint64_t address, Role role,
                           size_t n, const std::vector<double> &exact,
                           double size, Results &results) {
  RaggedRowsOf rows = rowsOf(role);
  const Lengths &lengths = problem.ragged->lengths[n];
  int64_t count = isOfKeys(role) ? lengths.keys : lengths.queries;
  if (count == 0)
    return;
  std::optional<std::vector<float>> got =
      download(memory,
               address + uint64_t(firstRowOf(role, n) * rows.pitch() *
                                  bytesOf(problem.dtype)),
               count * rows.pitch(), problem.dtype);
  ASSERT_TRUE(got) << "some rows of sequence " << n << " were not written";
  if (isIgnored[n])
    return;
  for (int64_t head = 0; head < rows.heads; ++head)
    for (int64_t row = 0; row < count; ++row) {
      auto begin = got->begin() + row * rows.pitch() + head * rows.columns;
      results.got.insert(results.got.end(), begin, begin + rows.columns);
    }
  llvm::append_range(results.truth, exact);
  results.squares += size * size;
}

void RaggedGradients::compare(GlobalMemory &memory,
                              const llvm::StringMap<uint64_t> &addresses) {
  std::map<Role, Results> all;
  for (size_t n = 0; n < problem.ragged->lengths.size(); ++n) {
    Problem one = denseOf(problem, problem.ragged->lengths[n]);
    std::vector<double> dq(one.heads * one.queries * one.headDim),
        dk(one.kvHeads * one.keys * one.headDim),
        dv(one.kvHeads * one.keys * one.headDimV);
    std::vector<float> dlse;
    for (int64_t head = 0; head < one.heads && one.dlse; ++head)
      for (int64_t row = 0; row < one.queries; ++row)
        dlse.push_back(
            arrays[Role::dLse][head * statisticPitch() + firstQuery[n] + row]);
    std::vector<int64_t> keyHeads;
    for (int64_t head = 0; head < one.kvHeads; ++head)
      keyHeads.push_back(head);
    oracle::GradientSizes sizes = oracle::gradients(
        oracleProblem(one, scale), arrayOf(Role::q, n), arrayOf(Role::k, n),
        arrayOf(Role::v, n), arrayOf(Role::dO, n),
        one.dlse ? dlse.data() : nullptr,
        {dq.data(), dk.data(), dv.data(), keyHeads.data(),
         int64_t(keyHeads.size())});
    const std::tuple<Role, const std::vector<double> &, double> gradients[] = {
        {Role::dQ, dq, sizes.dq},
        {Role::dK, dk, sizes.dk},
        {Role::dV, dv, sizes.dv}};
    for (const auto &[role, exact, size] : gradients)
      take(memory, addresses.lookup(str(role)), role, n, exact, size,
           all[role]);
  }
  for (Role role : kGradients) {
    SCOPED_TRACE(str(role));
    RaggedRowsOf rows = rowsOf(role);
    int64_t end = isOfKeys(role) ? firstKey.back() : firstQuery.back();
    int64_t bytes = bytesOf(problem.dtype);
    for (int64_t row = end; row < rows.rows + kBehind; ++row)
      EXPECT_FALSE(download(memory,
                            addresses.lookup(str(role)) +
                                uint64_t(row * rows.pitch() * bytes),
                            1, problem.dtype))
          << "a row behind the last sequence was written";
    const Results &results = all[role];
    EXPECT_LT(
        relativeError(results.got, results.truth, std::sqrt(results.squares)),
        problem.dtype == DataType::bf16  ? 6e-3
        : problem.dtype == DataType::f16 ? 9e-4
                                         : 1e-5);
  }
}
