//===- FlashCase.cpp - A built kernel, its inputs and the truth -----------===//

#include "Harness/FlashCase.h"

#include "Harness/Normals.h"

#include "attn/Machine/Machine.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Schedule.h"
#include "attn/Schedule/Traffic.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace attn;

std::string attn::kernelOf(const Tiles &tiles) {
  return tiles.has("strip")        ? "score_spill_mma_sync"
         : tiles.has("group")      ? "column_split_wgmma"
         : tiles.has("warpgroups") ? "column_split_wgmma"
         : tiles.has("part")       ? "output_spill_wgmma"
         : tiles.has("column")     ? "output_spill_mma_sync"
         : tiles.has("persistent") ? "flash_wgmma"
         : tiles.has("slice")      ? "streamed_query_mma_sync"
                                   : "flash_mma_sync";
}

OwningOpRef<ModuleOp> attn::buildFlash(MLIRContext &context,
                                       const Problem &problem,
                                       const Tiles &tiles, double scale,
                                       ClauseCase *clauses) {
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  KernelRequest request;
  request.name = "flash";
  request.problem = problem;
  request.tiles = tiles;
  request.scale = scale;
  if (clauses)
    clauses->addTo(request);
  for (const char *array : {"q", "k", "v", "o"})
    request.alignments[array] =
        alignmentOfRows(shapeOfArray(array, problem).columns,
                        elementOf(*findArray(array), problem));
  request.sms = 4;
  request.l2Bytes = 1 << 20;
  std::string kernel = kernelOf(tiles);
  request.smemBytes = findMachine("h100_sxm")->smemBytesPerBlock;
  request.launches = launchesOfKernel(kernel, tiles);
  for (size_t i = 0; i < request.launches.shapes.size(); ++i) {
    request.launch = int64_t(i);
    builder.setInsertionPointToEnd(module->getBody());
    findKernelBuilder(kernel)(builder, loc, request);
    request.name = "behind";
  }
  return module;
}

SmallVector<tile::KernelOp> attn::launchedWith(tile::KernelOp kernel) {
  SmallVector<tile::KernelOp> all = {kernel};
  if (!kernel->hasAttr(kLaunchAttr))
    return all;
  for (Operation *op = kernel->getNextNode(); op; op = op->getNextNode())
    all.push_back(cast<tile::KernelOp>(op));
  return all;
}

/// The same with keys one after the other.
static Problem inOrder(Problem problem) {
  problem.place = {};
  return problem;
}

FlashCase::FlashCase(const Problem &problem, const Tiles &tiles, uint64_t seed)
    : problem(problem), tiles(tiles),
      scale(1 / std::sqrt(double(problem.headDim))) {
  Normals normal(seed);
  auto fill = [&](std::vector<float> &array, const char *name) {
    array.resize(shapeOfArray(name, inOrder(problem)).elements());
    for (float &value : array)
      value = rounded(elementOf(*findArray(name), problem), normal());
  };
  fill(q, "q");
  fill(k, "k");
  fill(v, "v");
  if (problem.valuesOfKeys)
    takeValuesOfKeys();
  consultOracle();
}

void FlashCase::takeValuesOfKeys() {
  int64_t rows = int64_t(k.size()) / problem.headDim;
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(&k[row * problem.headDim], problem.headDimV,
                &v[row * problem.headDimV]);
}

void FlashCase::list(const ListedBlocks::Owners &owners,
                     const ListedBlocks::Shares &shares, uint64_t seed) {
  lists.emplace(problem, owners, shares, seed);
  consultOracle();
}

void FlashCase::place(uint64_t seed, bool usesAll) {
  placed.emplace(problem, seed, usesAll);
  consultOracle();
}

double FlashCase::attendPlaced(const std::vector<float> &values,
                               std::vector<double> &o,
                               std::vector<double> &lse) const {
  double squares = 0;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    Problem entry = placed->entry(batch);
    auto array = [&](const std::vector<float> &data, Role role) {
      ArrayShape shape = shapeOfArray(role, inOrder(problem));
      oracle::Array all = oracleArray(data, shape);
      all.data += batch * all.strides[0];
      return all;
    };
    int64_t rows = batch * problem.heads * problem.queries;
    oracle::Problem one = oracleProblem(entry, scale);
    auto attend = [&](auto... clauses) {
      return oracle::attention(one, clauses..., array(q, Role::q),
                               array(k, Role::k), array(values, Role::v),
                               o.data() + rows * problem.headDimV,
                               lse.data() + rows);
    };
    double size = clauses ? attend(clauses->clauses()) : attend();
    squares += size * size;
  }
  return std::sqrt(squares);
}

double FlashCase::attend(const std::vector<float> &values,
                         std::vector<double> &o,
                         std::vector<double> &lse) const {
  if (placed)
    return attendPlaced(values, o, lse);
  if (clauses)
    return attendClauses(values, o, lse);
  if (lists)
    return attendListed(values, o, lse);
  auto array = [&](const std::vector<float> &data, const char *name) {
    return oracleArray(data, shapeOfArray(name, inOrder(problem)));
  };
  return oracle::attention(oracleProblem(problem, scale), array(q, "q"),
                           array(k, "k"), array(values, "v"), o.data(),
                           lse.data());
}

void FlashCase::use(ClauseCase &used) {
  clauses = &used;
  consultOracle();
}

// What bands and lists show, `sees` shows; full blocks whatever it says.
double FlashCase::attendClauses(const std::vector<float> &values,
                                std::vector<double> &o,
                                std::vector<double> &lse) const {
  oracle::Clauses all = clauses->clauses();
  Visible band = visible(problem);
  auto ofRegion = all.sees;
  all.sees = [&](const oracle::Pair &pair) {
    if (lists) {
      ListedBlocks::Kind kind =
          lists->kindOf(pair.batch, pair.head, pair.query, pair.key);
      if (kind != ListedBlocks::Kind::partial)
        return kind == ListedBlocks::Kind::full;
    }
    return band.sees(pair.query, pair.key) && (!ofRegion || ofRegion(pair));
  };
  auto array = [&](const std::vector<float> &data, const char *name) {
    return oracleArray(data, shapeOfArray(name, inOrder(problem)));
  };
  Problem open = problem;
  open.mask = {};
  return oracle::attention(oracleProblem(open, scale), all, array(q, "q"),
                           array(k, "k"), array(values, "v"), o.data(),
                           lse.data());
}

// The keys that a query sees are gathered; the oracle then has one query that
// sees all of them.
double FlashCase::attendListed(const std::vector<float> &values,
                               std::vector<double> &o,
                               std::vector<double> &lse) const {
  const Problem &p = problem;
  int64_t d = p.headDim, e = p.headDimV;
  Visible seen = visible(p);
  double squares = 0;
  for (int64_t line = 0; line < p.batch * p.heads * p.queries; ++line) {
    int64_t query = line % p.queries, head = line / p.queries % p.heads,
            batch = line / p.queries / p.heads;
    int64_t first = (batch * p.kvHeads + head / (p.heads / p.kvHeads)) * p.keys;
    std::vector<float> keys, rows;
    for (int64_t key = 0; key < p.keys; ++key) {
      ListedBlocks::Kind kind = lists->kindOf(batch, head, query, key);
      if (kind == ListedBlocks::Kind::none ||
          (kind == ListedBlocks::Kind::partial && !seen.sees(query, key)))
        continue;
      auto append = [&](std::vector<float> &to, const std::vector<float> &from,
                        int64_t columns) {
        auto row = from.begin() + (first + key) * columns;
        to.insert(to.end(), row, row + columns);
      };
      append(keys, k, d);
      append(rows, values, e);
    }
    auto count = int64_t(keys.size()) / d;
    oracle::Problem one{1, 1, 1,           1,          count,
                        d, e, -kUnbounded, kUnbounded, scale};
    auto array = [](const float *data, int64_t columns) {
      return oracle::Array{data, {0, 0, columns, 1}};
    };
    double size = oracle::attention(
        one, array(q.data() + line * d, d), array(keys.data(), d),
        array(rows.data(), e), o.data() + line * e, &lse[line], /*threads=*/1);
    squares += size * size;
  }
  return std::sqrt(squares);
}

void FlashCase::consultOracle() {
  truth.assign(shapeOfArray("o", problem).elements(), 0);
  truthLse.assign(shapeOfArray("lse", problem).elements(), 0);
  size = attend(v, truth, truthLse);
  magnitude.assign(truth.size(), 0);
  std::vector<float> absolute(v.size());
  llvm::transform(v, absolute.begin(), [](float x) { return std::abs(x); });
  std::vector<double> sameLse(truthLse.size());
  attend(absolute, magnitude, sameLse);
}

void FlashCase::growScores(float growth, int64_t every) {
  llvm::fill(q, 1.0f);
  for (size_t i = 0; i < k.size(); ++i) {
    int64_t row = int64_t(i) / problem.headDim % problem.keys;
    int64_t steps = row / every;
    k[i] = growth * float(steps);
  }
  if (problem.valuesOfKeys)
    takeValuesOfKeys();
  consultOracle();
}

std::array<int64_t, 3> FlashCase::grid(int64_t launch) const {
  return gridOf(launchesOfKernel(kernelOf(tiles), tiles), problem,
                {multiprocessors}, launch);
}

SmallVector<int64_t> FlashCase::scalars(tile::KernelOp kernel) const {
  SmallVector<int64_t> values = scalarsOf(kernel, problem);
  if (placed)
    for (auto [i, value] : llvm::enumerate(values))
      value = placed->integerOf(*roleOf(kernel, i)).value_or(value);
  return values;
}

FailureOr<tile::Traffic> FlashCase::count(tile::KernelOp kernel,
                                          std::array<int64_t, 3> grid,
                                          const Round &round) const {
  SmallVector<int64_t> scalars = scalarsOf(kernel, problem, round);
  if (!lists)
    return tile::countTraffic(kernel, grid, scalars);
  auto nameOf = [&](unsigned i) { return str(*roleOf(kernel, i)); };
  for (auto [i, scalar] : llvm::enumerate(scalars))
    scalar = lists->integerOf(nameOf(i)).value_or(scalar);
  return tile::countTraffic(kernel, grid, scalars,
                            [&](unsigned argument, int64_t offset) {
                              return lists->numberAt(nameOf(argument), offset);
                            });
}

std::vector<Bytes> FlashCase::promised(StringRef schedule) const {
  Problem counted = problem;
  if (lists) {
    counted.mask = {};
    counted.pattern = lists->pattern();
  }
  Schedule built = findScheduleKind(schedule.str())->build(tiles);
  return launchTraffic(census(built, counted), built, counted,
                       *findMachine("h100_sxm"), {});
}

Outcome FlashCase::run(tile::KernelOp kernel,
                       const InterpreterOptions &options) {
  GlobalMemory memory;
  int64_t resultBytes = bytesOf(resultType(problem));
  int64_t lseBytes = int64_t(truthLse.size()) * 4;
  uint64_t counter = memory.allocate(4);
  int32_t none = 0;
  memory.write(counter, &none, 4);
  llvm::StringMap<uint64_t> addresses = {
      {"q", upload(memory, q, problem.dtype)},
      {"k", upload(memory, k, kvTypeOf(problem))},
      {"v", upload(memory, v, kvTypeOf(problem))},
      {"o", memory.allocate(int64_t(truth.size()) * resultBytes)},
      {"lse", memory.allocate(lseBytes)},
      {"lse_low", memory.allocate(lseBytes)},
      {str(Role::counter), counter}};
  if (lists)
    lists->upload(memory, addresses);
  if (clauses)
    clauses->upload(memory, addresses);
  if (placed)
    placed->upload(memory, k, v, addresses);
  Outcome outcome;
  ScopedDiagnosticHandler handler(kernel.getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (outcome.error.empty())
                                      outcome.error = diagnostic.str();
                                    return success();
                                  });
  for (tile::KernelOp each : launchedWith(kernel)) {
    FailureOr<tile::Traffic> traffic =
        interpret(each, grid(launchOf(each)),
                  argumentsOf(each, memory, addresses), memory, options);
    if (failed(traffic))
      return outcome;
    outcome.traffic += *traffic;
  }
  compare(memory, addresses, outcome);
  return outcome;
}

std::vector<KernelArgument>
FlashCase::argumentsOf(tile::KernelOp kernel, GlobalMemory &memory,
                       llvm::StringMap<uint64_t> &addresses) const {
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentRole role = *roleOf(kernel, i);
    std::optional<int64_t> known =
        lists ? lists->integerOf(str(role)) : std::nullopt;
    if (clauses && !known)
      known = clauses->integerOf(role);
    if (known) {
      arguments.push_back(*known);
      continue;
    }
    if (placed)
      if (auto argument = placed->argumentOf(role, type, addresses)) {
        arguments.push_back(*argument);
        continue;
      }
    // What nobody has written is reported when it is read.
    if (auto words = kernel.getArgAttrOfType<IntegerAttr>(i, kPerBlockAttr)) {
      std::vector<int32_t> zeros(words.getInt() * grid()[0]);
      uint64_t address = addresses[str(role)] =
          memory.allocate(int64_t(zeros.size()) * 4);
      if (role.facts().memory == Memory::zeros)
        memory.write(address, zeros.data(), int64_t(zeros.size()) * 4);
    }
    auto perRow = kernel.getArgAttrOfType<IntegerAttr>(i, kPerRowAttr);
    if (perRow && !addresses.contains(str(role)))
      addresses[str(role)] =
          memory.allocate(4 * perRow.getInt() * int64_t(truthLse.size()));
    arguments.push_back(argumentOf(role, type, problem, scale, addresses));
  }
  return arguments;
}

double FlashCase::errorOf(ArrayRef<float> o) const {
  return relativeError(o, truth, size);
}

double FlashCase::largestErrorOf(ArrayRef<float> o) const {
  double most = 0;
  for (float x : v)
    if (std::isfinite(x))
      most = std::max(most, double(std::abs(x)));
  // Beside the largest weight of its row one of f16 loses up to 2^-24, which is
  // two roundings of 2^-14.
  // One of f8e4m3, which is taken times 2^4, loses up to 2^-14, a roundings'
  // 2^-10.
  double ofWeight = problem.dtype == DataType::f16      ? 0x1p-14
                    : problem.dtype == DataType::f8e4m3 ? 0x1p-10
                                                        : 0;
  double lost = ofWeight * double(problem.keys) * most;
  double largest = 0;
  for (auto [value, exact, size] : llvm::zip_equal(o, truth, magnitude))
    if (std::isfinite(exact) && value != exact)
      largest = std::max(largest, std::abs(value - exact) / (size + lost));
  return largest;
}

void FlashCase::compare(GlobalMemory &memory,
                        const llvm::StringMap<uint64_t> &addresses,
                        Outcome &outcome) const {
  const double infinity = std::numeric_limits<double>::infinity();
  auto read = [&](const char *array, DataType type) {
    return download(memory, addresses.lookup(array),
                    shapeOfArray(array, problem).elements(), type);
  };
  std::optional<std::vector<float>> values = read("o", resultType(problem)),
                                    sums = read("lse", DataType::f32),
                                    low = read("lse_low", DataType::f32);
  if (!values || (problem.lse && !sums) || (problem.lseLow && !low)) {
    outcome.relativeError = infinity;
    return;
  }
  outcome.o = *values;
  if (sums)
    outcome.lse = *sums;
  if (low)
    outcome.lseLow = *low;
  outcome.relativeError = errorOf(*values);
  outcome.largestError = largestErrorOf(*values);
  if (problem.lse)
    outcome.lseError = lseErrorOf(*sums);
  if (problem.lseLow)
    outcome.lowError = lowErrorOf(*sums, *low);
}

/// Of schedules whose blocks exchange maxima, which are whole numbers up to
/// 2^23 and rounded beyond, and beyond 2^125 have six bits less
/// (GroupSoftmax.h).
static bool exchangesMaxima(const Tiles &tiles) {
  return tiles.has("strip") || tiles.has("part") || tiles.has("group") ||
         tiles.has("warpgroups");
}

double FlashCase::lseErrorOf(ArrayRef<float> lse) const {
  const double infinity = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < truthLse.size(); ++i) {
    double got = lse[i], want = truthLse[i];
    if (got == double(float(want)) || (std::isnan(got) && std::isnan(want)))
      continue;
    double size = std::fabs(want);
    double rounds =
        exchangesMaxima(tiles) && size > 0x1p124 ? 0x1p-17 : 0x1p-21;
    double error = std::fabs(got - want) - rounds * size;
    largest = std::max(largest, std::isnan(error) ? infinity : error);
  }
  return largest;
}

double FlashCase::lowErrorOf(ArrayRef<float> lse, ArrayRef<float> low) const {
  const double infinity = std::numeric_limits<double>::infinity();
  // What weights are summed up from is rounded once.
  constexpr double ofSums = 0x1p-20, ofTwoWords = 0x1p-44;
  double largest = 0;
  for (size_t i = 0; i < truthLse.size(); ++i) {
    double got = double(lse[i]) + low[i], want = truthLse[i];
    double size = std::fabs(want);
    bool isOneWord = !std::isfinite(want) || size > 0x1p90;
    if (!std::isfinite(low[i]) || (!std::isfinite(want) && low[i] != 0) ||
        (!isOneWord && float(got) != lse[i]))
      return infinity;
    bool isRounded = isOneWord || (exchangesMaxima(tiles) && size > 0x1p22);
    if (got == want || isRounded || std::isnan(want))
      continue;
    double error = std::fabs(got - want) - ofTwoWords * size - ofSums;
    largest = std::max(largest, std::isnan(error) ? infinity : error);
  }
  return largest;
}

Problem BoundaryDraws::problem(Problem like, int64_t tileRows,
                               int64_t mostKeys) {
  BoundaryDraws &draw = *this;
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causalBottomRight},
                        {MaskKind::window, draw(0, 200), 0},
                        {MaskKind::window, draw(0, 100), draw(0, 100)},
                        {MaskKind::prefix, 0, 0, draw(0, 100)}};
  like.mask = masks[draw(0, 5)];
  like.queries = draw(1, 3 * tileRows);
  like.keys = draw(1, mostKeys);
  like.heads = like.kvHeads = draw(1, 2);
  return like;
}

InterpreterOptions BoundaryDraws::place(FlashCase &flash, uint64_t seed) {
  flash.multiprocessors = (*this)(1, 4);
  InterpreterOptions options;
  options.order = WarpOrder((*this)(0, 2));
  options.seed = seed;
  return options;
}
