//===- FlashCase.cpp - A built kernel, its inputs and the truth -----------===//

#include "FlashCase.h"

#include "attn/Interpreter/Rounding.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using namespace attn;

/// Bytes that divide every row of so many elements.
static int64_t alignmentOf(int64_t columns, DataType type) {
  int64_t bytes = bytesOf(type) * columns;
  return std::min<int64_t>(16, bytes & -bytes);
}

OwningOpRef<ModuleOp> attn::buildFlash(MLIRContext &context,
                                       const Problem &problem,
                                       const Tiles &tiles) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  KernelRequest request;
  request.name = "flash";
  request.problem = problem;
  request.tiles = tiles;
  int64_t key = alignmentOf(problem.headDim, problem.dtype);
  request.alignments = {
      {"q", key},
      {"k", key},
      {"v", alignmentOf(problem.headDimV, problem.dtype)},
      {"o", alignmentOf(problem.headDimV, resultType(problem))}};
  request.sms = 4;
  request.l2Bytes = 1 << 20;
  const char *kernel = tiles.has("strip")        ? "score_spill_mma_sync"
                       : tiles.has("persistent") ? "flash_wgmma"
                       : tiles.has("slice")      ? "streamed_query_mma_sync"
                                                 : "flash_mma_sync";
  findKernelBuilder(kernel)(builder, loc, request);
  return module;
}

static float rounded(DataType type, float value) {
  if (type == DataType::f32)
    return value;
  if (type == DataType::f8e4m3)
    return roundToE4m3(value);
  return type == DataType::bf16 ? roundToBf16(value) : roundToF16(value);
}

FlashCase::FlashCase(const Problem &problem, const Tiles &tiles, uint64_t seed)
    : problem(problem), tiles(tiles),
      scale(1 / std::sqrt(double(problem.headDim))) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  auto fill = [&](std::vector<float> &array, int64_t heads, int64_t rows,
                  int64_t columns) {
    array.resize(problem.batch * heads * rows * columns);
    for (float &value : array)
      value = rounded(problem.dtype, normal(random));
  };
  fill(q, problem.heads, problem.queries, problem.headDim);
  fill(k, problem.kvHeads, problem.keys, problem.headDim);
  fill(v, problem.kvHeads, problem.keys, problem.headDimV);
  consultOracle();
}

void FlashCase::consultOracle() {
  Band visible = band(problem);
  oracle::Problem p{problem.batch,    problem.heads,
                    problem.kvHeads,  problem.queries,
                    problem.keys,     problem.headDim,
                    problem.headDimV, visible.first,
                    visible.last,     scale};
  auto array = [](const std::vector<float> &data, int64_t heads, int64_t rows,
                  int64_t columns) {
    return oracle::Array{data.data(),
                         {heads * rows * columns, rows * columns, columns, 1}};
  };
  int64_t rows = problem.batch * problem.heads * problem.queries;
  truth.assign(rows * problem.headDimV, 0);
  truthLse.assign(rows, 0);
  oracle::attention(p, array(q, p.heads, p.queries, p.headDim),
                    array(k, p.kvHeads, p.keys, p.headDim),
                    array(v, p.kvHeads, p.keys, p.headDimV), truth.data(),
                    truthLse.data());
}

std::array<int64_t, 3> FlashCase::grid() const {
  return gridOf(tiles, problem, multiprocessors);
}

/// An integer argument; arrays are row-major.
int64_t FlashCase::roleOf(StringRef role) const {
  auto [operand, rest] = role.split('_');
  if (!rest.starts_with("stride"))
    return roleValue(role, problem);
  bool keySide = operand == "k" || operand == "v";
  int64_t columns = operand == "lse"                   ? 1
                    : operand == "q" || operand == "k" ? problem.headDim
                                                       : problem.headDimV;
  int64_t rows = keySide ? problem.keys : problem.queries;
  int64_t heads = keySide ? problem.kvHeads : problem.heads;
  if (rest == "stride_row")
    return columns;
  return rest == "stride_head" ? rows * columns : heads * rows * columns;
}

SmallVector<int64_t> FlashCase::scalars(tile::KernelOp kernel) const {
  SmallVector<int64_t> values;
  for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i)
    values.push_back(
        roleOf(kernel.getArgAttrOfType<StringAttr>(i, kRoleAttr).getValue()));
  return values;
}

static uint64_t upload(GlobalMemory &memory, const std::vector<float> &values,
                       DataType type) {
  std::vector<uint8_t> bytes;
  for (float value : values) {
    if (type == DataType::f32) {
      uint32_t bits = bitsOfFloat(value);
      for (int shift : {0, 8, 16, 24})
        bytes.push_back(uint8_t(bits >> shift));
      continue;
    }
    if (type == DataType::f8e4m3) {
      bytes.push_back(e4m3FromFloat(value));
      continue;
    }
    uint16_t bits =
        type == DataType::bf16 ? bf16FromFloat(value) : f16FromFloat(value);
    bytes.insert(bytes.end(), {uint8_t(bits), uint8_t(bits >> 8)});
  }
  uint64_t address = memory.allocate(int64_t(bytes.size()));
  memory.write(address, bytes.data(), int64_t(bytes.size()));
  return address;
}

KernelArgument
FlashCase::argument(StringRef role, Type type,
                    const llvm::StringMap<uint64_t> &addresses) const {
  if (role == "scale")
    return float(scale);
  if (isa<tile::PtrType>(type))
    return addresses.lookup(role);
  if (isa<tile::TensorMapType>(type)) {
    StringRef operand = role.split('_').first;
    bool keySide = operand == "k" || operand == "v";
    int64_t row = roleOf((operand + "_stride_row").str());
    int64_t head = roleOf((operand + "_stride_head").str());
    int64_t batch = roleOf((operand + "_stride_batch").str());
    return TensorMapArgument{addresses.lookup(operand),
                             {problem.batch,
                              keySide ? problem.kvHeads : problem.heads,
                              keySide ? problem.keys : problem.queries, row},
                             {batch, head, row, 1}};
  }
  if (type.isInteger(32))
    return int32_t(roleOf(role));
  return roleOf(role);
}

Outcome FlashCase::run(tile::KernelOp kernel,
                       const InterpreterOptions &options) {
  GlobalMemory memory;
  int64_t resultBytes = bytesOf(resultType(problem));
  uint64_t o = memory.allocate(int64_t(truth.size()) * resultBytes);
  uint64_t lse = memory.allocate(int64_t(truthLse.size()) * 4);
  uint64_t counter = memory.allocate(4);
  int32_t none = 0;
  memory.write(counter, &none, 4);
  llvm::StringMap<uint64_t> addresses = {
      {"q", upload(memory, q, problem.dtype)},
      {"k", upload(memory, k, problem.dtype)},
      {"v", upload(memory, v, problem.dtype)},
      {"o", o},
      {"lse", lse},
      {kCounterRole, counter}};
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    StringRef role =
        kernel.getArgAttrOfType<StringAttr>(i, kRoleAttr).getValue();
    // What nobody has written is reported when it is read.
    if (auto words = kernel.getArgAttrOfType<IntegerAttr>(i, kPerBlockAttr))
      addresses[role] = memory.allocate(words.getInt() * 4 * grid()[0]);
    arguments.push_back(argument(role, type, addresses));
  }
  Outcome outcome;
  ScopedDiagnosticHandler handler(kernel.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (outcome.error.empty())
                                      outcome.error = diagnostic.str();
                                    return success();
                                  });
  FailureOr<tile::Traffic> traffic =
      interpret(kernel, grid(), arguments, memory, options);
  if (failed(traffic))
    return outcome;
  outcome.traffic = *traffic;
  compare(memory, o, lse, outcome, problem.lse);
  return outcome;
}

/// Elements of a type as they lie in memory.
static std::vector<float> decoded(DataType type,
                                  const std::vector<uint8_t> &bytes) {
  std::vector<float> values;
  int64_t step = bytesOf(type);
  for (size_t i = 0; i < bytes.size(); i += step) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i], step);
    values.push_back(type == DataType::f32    ? floatOfBits(bits)
                     : type == DataType::bf16 ? floatFromBf16(uint16_t(bits))
                                              : floatFromF16(uint16_t(bits)));
  }
  return values;
}

double FlashCase::errorOf(ArrayRef<float> o) const {
  const double infinity = std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (auto [value, truth] : llvm::zip_equal(o, truth)) {
    bool isSame = value == truth || (std::isnan(value) && std::isnan(truth));
    if (isSame && !std::isfinite(truth))
      continue;
    difference += (value - truth) * (value - truth);
    norm += std::isnan(truth) ? infinity : truth * truth;
  }
  if (difference == 0)
    return 0;
  return std::isfinite(difference) && norm > 0 ? std::sqrt(difference / norm)
                                               : infinity;
}

void FlashCase::compare(GlobalMemory &memory, uint64_t o, uint64_t lse,
                        Outcome &outcome, bool storesLse) const {
  const double infinity = std::numeric_limits<double>::infinity();
  DataType type = resultType(problem);
  std::vector<uint8_t> bytes(truth.size() * bytesOf(type));
  std::vector<float> sums(truthLse.size());
  if (memory.read(o, bytes.data(), int64_t(bytes.size())) ||
      (storesLse && memory.read(lse, sums.data(), int64_t(sums.size()) * 4))) {
    outcome.relativeError = infinity;
    return;
  }
  outcome.relativeError = errorOf(decoded(type, bytes));
  if (!storesLse)
    return;
  for (size_t i = 0; i < sums.size(); ++i) {
    double got = sums[i], want = truthLse[i];
    if (got == want || (std::isnan(got) && std::isnan(want)))
      continue;
    double error = std::fabs(got - want);
    outcome.lseError =
        std::max(outcome.lseError, std::isnan(error) ? infinity : error);
  }
}
