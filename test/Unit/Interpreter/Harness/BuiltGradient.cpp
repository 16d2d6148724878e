//===- BuiltGradient.cpp - Are built gradients right, byte for byte? ------===//

#include "Harness/BuiltGradient.h"

#include "Harness/KeptWeights.h"
#include "Harness/Normals.h"
#include "Harness/WholeScores.h"

#include "attn/Kernels/CaptureLaunches.h"
#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace attn;

GradientCase::GradientCase(const Problem &problem, uint64_t seed,
                           ClauseCase *clauses)
    : problem(problem), clauses(clauses),
      scale(1 / std::sqrt(double(problem.headDim))) {
  Normals normal(seed);
  auto fill = [&](std::vector<float> &array, StringRef name, DataType type) {
    array.resize(shapeOfArray(name, problem).elements());
    for (float &value : array)
      value = rounded(type, normal());
  };
  fill(q, "q", problem.dtype);
  fill(k, "k", problem.dtype);
  fill(v, "v", problem.dtype);
  fill(gradient, "do", problem.dtype);
  if (problem.dlse)
    fill(dlse, "dlse", DataType::f32);
  consultOracle();
}

void GradientCase::list(const ListedBlocks::Owners &owners,
                        const ListedBlocks::Shares &shares, uint64_t seed) {
  lists.emplace(problem, owners, shares, seed);
  if (!owners.ofBatch)
    problem.pattern = lists->pattern();
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
  bool hasClauses = clauses || lists;
  oracle::Clauses all;
  oracle::BlockLists blocks;
  if (clauses)
    all = clauses->clauses();
  if (nudge != 0 && all.score) {
    all.score = [this, score = all.score](double z, const oracle::Pair &pair) {
      return score(z + nudge, pair);
    };
    all.pull = [this, pull = all.pull](double z, const oracle::Pair &pair,
                                       double slope,
                                       const oracle::PairSize &size) {
      return pull(z + nudge, pair, slope, size);
    };
  }
  if (lists) {
    blocks = lists->forOracle();
    all.blocks = &blocks;
  }
  if (hasClauses)
    oracle::attention(p, all, array(q, "q"), array(k, "k"), array(v, "v"),
                      exactO.data(), exactLse.data());
  else
    oracle::attention(p, array(q, "q"), array(k, "k"), array(v, "v"),
                      exactO.data(), exactLse.data());
  o.clear();
  for (double value : exactO)
    o.push_back(rounded(problem.dtype, float(value)));
  lse.assign(exactLse.begin(), exactLse.end());
  lseLow.clear();
  for (auto [exact, high] : llvm::zip_equal(exactLse, lse))
    lseLow.push_back(std::isfinite(exact) ? float(exact - high) : 0);
  dq.resize(size("dq"));
  dk.resize(size("dk"));
  dv.resize(size("dv"));
  if (hasClauses) {
    std::vector<double> dsinks(problem.heads);
    if (clauses)
      clauses->oracle().clearGradients();
    sizes = oracle::gradients(
        p, all, array(q, "q"), array(k, "k"), array(v, "v"),
        array(gradient, "do"), problem.dlse ? dlse.data() : nullptr, dq.data(),
        dk.data(), dv.data(), all.sinks ? dsinks.data() : nullptr);
    noteCaptured(dsinks);
    return;
  }
  std::vector<int64_t> keyHeads(problem.batch * problem.kvHeads);
  std::iota(keyHeads.begin(), keyHeads.end(), 0);
  sizes = oracle::gradients(p, array(q, "q"), array(k, "k"), array(v, "v"),
                            array(gradient, "do"),
                            problem.dlse ? dlse.data() : nullptr,
                            {dq.data(), dk.data(), dv.data(), keyHeads.data(),
                             int64_t(keyHeads.size())});
}

void GradientCase::noteCaptured(const std::vector<double> &dsinks) {
  captured.clear();
  capturedSizes.clear();
  for (size_t target = 0; clauses && target < clauses->gradients.size();
       ++target) {
    bool isOfSinks = clauses->isOfSinks(target);
    auto number = size_t(clauses->gradients[target]);
    captured.push_back(
        isOfSinks ? dsinks : clauses->oracle().captureGradients()[number]);
    // Terms of sinks are D, which is summed up from O as bf16 has it.
    capturedSizes.push_back(
        isOfSinks ? std::sqrt(double(problem.batch * problem.heads *
                                     problem.queries * problem.headDimV))
                  : clauses->oracle().captureSizes()[number]);
  }
}

Problem BuiltGradient::problem(int64_t queries, int64_t keys, int64_t headDim,
                               int64_t headDimV, Mask mask, DataType type) {
  Problem p = oneHead(queries, keys, headDim, headDimV, mask, type);
  p.direction = Direction::backward;
  return p;
}

static void addCaptures(OpBuilder &b, Location loc, KernelRequest request,
                        ClauseCase &clauses) {
  SmallVector<int64_t> ranks;
  for (size_t target = 0; target < clauses.gradients.size(); ++target)
    ranks.push_back(int64_t(clauses.sizesOfGradient(target).size()));
  for (const CaptureGradient &gradient : captureGradients(request, ranks)) {
    std::string number = std::to_string(gradient.target);
    request.name = "cleared_" + number;
    if (gradient.isCleared())
      buildCleared(b, loc, request, gradient);
    request.name = "gathered_" + number;
    if (gradient.hasHeads)
      buildGathered(b, loc, request, gradient);
  }
}

OwningOpRef<ModuleOp> BuiltGradient::build(const GradientCase &truth,
                                           const Tiles &tiles) {
  const Problem &problem = truth.problem;
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  for (int64_t number = 0;
       number < int64_t(launchesOf(schedule, tiles).shapes.size()); ++number) {
    KernelRequest request;
    request.name = "gradients_" + std::to_string(number);
    request.problem = problem;
    request.tiles = tiles;
    request.launches = launchesOf(schedule, tiles);
    request.launch = number;
    request.scale = truth.scale;
    if (truth.clauses)
      truth.clauses->addTo(request);
    request.sms = multiprocessors;
    request.smemBytes = findMachine("h100_sxm")->smemBytesPerBlock;
    for (const char *array : {"q", "k", "v", "o", "do", "dq", "dk", "dv"})
      request.alignments[array] =
          alignmentOfRows(shapeOfArray(array, problem).columns, problem.dtype);
    findKernelBuilder(builder)(b, loc, request);
    if (number == 0 && truth.clauses)
      addCaptures(b, loc, request, *truth.clauses);
  }
  return module;
}

/// Strips of all heads, those of whole blocks; or of the whole tiles whose sums
/// wait from one strip of keys to the next, none if there is one.
static int64_t strips(const Problem &p, const Launches &launches,
                      bool isInRounds) {
  if (isInRounds && p.keys <= launches.rounds.strip)
    return 0;
  int64_t ofBlock = isInRounds ? launches.rounds.queryTile / kStripRows
                               : launches.stripsOfBlock;
  return p.batch * p.heads * ofBlock *
         int64_t(llvm::divideCeil(p.queries, ofBlock * kStripRows));
}

static void allocateStrips(const ArgumentRole &role, int64_t perStrip,
                           const Problem &p, const Launches &launches,
                           bool isInRounds,
                           llvm::StringMap<uint64_t> &addresses,
                           GlobalMemory &memory) {
  std::string name = str(role);
  if (!addresses.contains(name))
    addresses[name] =
        memory.allocate(4 * perStrip * strips(p, launches, isInRounds));
}

/// What gradients of captures have around the launches.
static constexpr llvm::StringLiteral kCleared = "cleared_",
                                     kGathered = "gathered_";
static bool isAround(tile::KernelOp kernel) {
  return kernel.getName().starts_with(kCleared) ||
         kernel.getName().starts_with(kGathered);
}

void BuiltGradient::launchCaptures(ModuleOp module, const GradientCase &truth,
                                   const Tiles &tiles, bool areBehind,
                                   llvm::StringMap<uint64_t> &addresses,
                                   GlobalMemory &memory,
                                   const InterpreterOptions &options) {
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    if (!kernel.getName().starts_with(areBehind ? kGathered : kCleared))
      continue;
    SCOPED_TRACE(kernel.getName().str());
    std::vector<KernelArgument> arguments;
    unsigned target = 0;
    for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
      ArgumentRole role = *roleOf(kernel, i);
      if (role == ArgumentRole(Role::captureGradient, Facet::itself, role.part))
        target = unsigned(role.part);
      std::optional<int64_t> known = truth.clauses->integerOf(role);
      if (auto perStrip =
              kernel.getArgAttrOfType<IntegerAttr>(i, kPerStripAttr))
        allocateStrips(role, perStrip.getInt(), truth.problem,
                       launchesOf(schedule, tiles), /*isInRounds=*/false,
                       addresses, memory);
      arguments.push_back(known ? KernelArgument(*known)
                                : argumentOf(role, type, truth.problem,
                                             truth.scale, addresses));
    }
    int64_t elements = 1;
    for (int64_t size : truth.clauses->sizesOfGradient(target))
      elements *= size;
    int64_t ofBlock = kCapturingWarps * (areBehind ? 1 : kClearedElements);
    FailureOr<tile::Traffic> moved =
        interpret(kernel, {(elements + ofBlock - 1) / ofBlock, 1, 1}, arguments,
                  memory, options);
    ASSERT_TRUE(succeeded(moved));
  }
}

/// The array of scores that wait, at that address.
static TensorMapArgument
waitingScores(const Problem &p, const Launches &launches, uint64_t address) {
  RoundOrder rounds(launches, p);
  int64_t group = p.heads / p.kvHeads, head = rounds.rows * rounds.columns;
  return {address,
          {rounds.heads, group, rounds.rows, rounds.columns},
          {group * head, head, rounds.columns, 1}};
}

/// What the kernel's IR moves.
static FailureOr<tile::Traffic> count(tile::KernelOp kernel,
                                      const GradientCase &truth,
                                      std::array<int64_t, 3> grid,
                                      const Round &round) {
  SmallVector<int64_t> scalars = scalarsOf(kernel, truth.problem, round);
  if (!truth.lists)
    return tile::countTraffic(kernel, grid, scalars);
  auto nameOf = [&](unsigned i) { return str(*roleOf(kernel, i)); };
  for (auto [i, scalar] : llvm::enumerate(scalars))
    scalar = truth.lists->integerOf(nameOf(i)).value_or(scalar);
  return tile::countTraffic(
      kernel, grid, scalars, [&](unsigned argument, int64_t offset) {
        return truth.lists->numberAt(nameOf(argument), offset);
      });
}

void BuiltGradient::launch(tile::KernelOp kernel, const GradientCase &truth,
                           const Tiles &tiles, const Round &round,
                           llvm::StringMap<uint64_t> &addresses,
                           GlobalMemory &memory,
                           const InterpreterOptions &options,
                           tile::Traffic &moved) {
  const Problem &p = truth.problem;
  int64_t number = launchOf(kernel);
  SCOPED_TRACE("launch " + std::to_string(number) + ", head " +
               std::to_string(round.firstHead) + ", key " +
               std::to_string(round.firstKey));
  Launches launches = launchesOf(schedule, tiles);
  bool isInRounds = launches.shapes[size_t(number)].isInRounds;
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentRole role = *roleOf(kernel, i);
    std::string name = str(role);
    auto perStrip = kernel.getArgAttrOfType<IntegerAttr>(i, kPerStripAttr);
    if (perStrip)
      allocateStrips(role, perStrip.getInt(), p, launches, isInRounds,
                     addresses, memory);
    TensorMapArgument scores = waitingScores(p, launches, 0);
    bool areWaiting = role.facts().memory == Memory::round;
    if (areWaiting && !addresses.contains(name))
      addresses[name] = memory.allocate(bytesOf(p.dtype) * scores.sizes[0] *
                                        scores.strides[0]);
    std::optional<int64_t> known;
    if (truth.clauses)
      known = truth.clauses->integerOf(role);
    if (truth.lists && !known)
      known = truth.lists->integerOf(name);
    if (known) {
      arguments.push_back(*known);
      continue;
    }
    if (!areWaiting || !isa<tile::TensorMapType>(type)) {
      arguments.push_back(
          argumentOf(role, type, p, truth.scale, addresses, round));
      continue;
    }
    scores.address = addresses[name];
    arguments.push_back(scores);
  }
  std::array<int64_t, 3> grid = gridOf(launches, p, {multiprocessors}, number);
  FailureOr<tile::Traffic> traffic =
      interpret(kernel, grid, arguments, memory, options);
  ASSERT_TRUE(succeeded(traffic));
  FailureOr<tile::Traffic> counted = count(kernel, truth, grid, round);
  ASSERT_TRUE(succeeded(counted));
  EXPECT_EQ(counted->global, traffic->global);
  EXPECT_EQ(counted->smem, traffic->smem);
  moved += *traffic;
}

void BuiltGradient::launchAll(ModuleOp module, const GradientCase &truth,
                              const Tiles &tiles,
                              llvm::StringMap<uint64_t> &addresses,
                              GlobalMemory &memory,
                              const InterpreterOptions &options) {
  const Problem &p = truth.problem;
  Launches launches = launchesOf(schedule, tiles);
  RoundOrder rounds(launches, p);
  const std::vector<LaunchShape> &shapes = launches.shapes;
  std::vector<tile::Traffic> moved(shapes.size());
  auto launchThose = [&](bool inRounds, const Round &round) {
    for (auto kernel : module.getOps<tile::KernelOp>())
      if (int64_t number = launchOf(kernel);
          !isAround(kernel) && shapes[number].isInRounds == inRounds)
        launch(kernel, truth, tiles, round, addresses, memory, options,
               moved[number]);
  };
  launchCaptures(module, truth, tiles, /*areBehind=*/false, addresses, memory,
                 options);
  launchThose(/*inRounds=*/false, {});
  launchCaptures(module, truth, tiles, /*areBehind=*/true, addresses, memory,
                 options);
  for (int64_t n = 0; shapes.back().isInRounds && n < rounds.count(); ++n) {
    launchThose(/*inRounds=*/true, rounds.at(n));
    // Scores of a round are not to be seen in the next.
    for (Role what : {Role::scratchP, Role::scratchDS})
      for (Facet facet : {Facet::itself, Facet::map})
        if (auto found = addresses.find(str({what, facet}));
            found != addresses.end()) {
          memory.free(found->second);
          addresses.erase(found);
        }
  }
  if (isEmpty(p)) // the model plans with one row
    return;
  // Plans count no blocks that a mask hides, nor know lists of batch entries.
  if (p.pattern && !(p.pattern->hasLists() && p.mask.isOpen()))
    return;
  Schedule built = findScheduleKind(schedule)->build(tiles);
  std::vector<Bytes> promised =
      launchTraffic(census(built, p), built, p, *findMachine("h100_sxm"), {});
  ASSERT_EQ(promised.size(), moved.size());
  // On mma.sync a block of a pattern is walked to its end, even if there are no
  // rows to load any more.
  bool goesBeyond = p.pattern && StringRef(builder).ends_with("mma_sync") &&
                    (p.queries % p.pattern->size().queries != 0 ||
                     p.keys % p.pattern->size().keys != 0);
  for (auto [number, traffic] : llvm::enumerate(moved)) {
    SCOPED_TRACE("launch " + std::to_string(number));
    // What is added for pairs is counted there, though there are none.
    if (!goesBeyond || p.clauses.pairGradients == 0)
      EXPECT_EQ(promised[number].l2, traffic.global);
    if (!goesBeyond)
      EXPECT_EQ(promised[number].smem, traffic.smem);
  }
}

static std::string nameOfGradient(size_t target) {
  return str(ArgumentRole(Role::captureGradient, Facet::itself, int(target)));
}

std::map<std::string, std::vector<float>>
BuiltGradient::run(const GradientCase &truth, const Tiles &tiles,
                   const InterpreterOptions &options) {
  const Problem &p = truth.problem;
  OwningOpRef<ModuleOp> module = build(truth, tiles);
  if (change)
    change(*module);
  GlobalMemory memory;
  llvm::StringMap<uint64_t> addresses = {
      {"q", upload(memory, truth.q, p.dtype)},
      {"k", upload(memory, truth.k, p.dtype)},
      {"v", upload(memory, truth.v, p.dtype)},
      {"o", upload(memory, truth.o, p.dtype)},
      {"do", upload(memory, truth.gradient, p.dtype)},
      {"lse", upload(memory, truth.lse, DataType::f32)},
      {"lse_low", upload(memory, truth.lseLow, DataType::f32)},
      {"dlse", upload(memory, truth.dlse, DataType::f32)},
      {"delta", memory.allocate(int64_t(truth.lse.size()) * 4)},
      {str(Role::counter), memory.allocate(4)},
      {str(Role::stripCounter), memory.allocate(4)},
      {str(Role::flags), memory.allocate(4 * kHeadFlags)}};
  const std::vector<int32_t> none(kHeadFlags, 0);
  for (Role counter : {Role::counter, Role::stripCounter})
    memory.write(addresses[str(counter)], none.data(), 4);
  memory.write(addresses[str(Role::flags)], none.data(), 4 * kHeadFlags);
  std::pair<const char *, size_t> gradients[] = {{"dq", truth.dq.size()},
                                                 {"dk", truth.dk.size()},
                                                 {"dv", truth.dv.size()}};
  for (auto [name, size] : gradients)
    addresses[name] = memory.allocate(int64_t(size) * bytesOf(p.dtype));
  if (p.keepsWeights) {
    KeptWeights::allocate(p, memory, addresses);
    KeptWeights(p, truth.scale, truth.q, truth.k).upload(memory, addresses);
  }
  if (truth.clauses)
    truth.clauses->upload(memory, addresses);
  for (size_t target = 0; target < truth.captured.size(); ++target) {
    int64_t before = ClauseCase::kBeforeGradient;
    uint64_t &address = addresses[nameOfGradient(target)];
    address =
        memory.allocate(4 * (before + int64_t(truth.captured[target].size())));
    const std::vector<float> poison(before, -1);
    memory.write(address, poison.data(), 4 * before);
  }
  if (truth.lists)
    truth.lists->upload(memory, addresses);
  launchAll(*module, truth, tiles, addresses, memory, options);
  std::map<std::string, std::vector<float>> left;
  auto leave = [&](const std::string &name, size_t size, DataType type) {
    if (std::optional<std::vector<float>> values =
            download(memory, addresses[name], int64_t(size), type))
      left[name] = std::move(*values);
  };
  for (auto [name, size] : gradients)
    leave(name, size, p.dtype);
  for (size_t target = 0; target < truth.captured.size(); ++target) {
    std::string name = nameOfGradient(target);
    leave(name, ClauseCase::kBeforeGradient + truth.captured[target].size(),
          DataType::f32);
    if (left.count(name))
      left[name].erase(left[name].begin(),
                       left[name].begin() + ClauseCase::kBeforeGradient);
  }
  if (addresses.contains("scratch_dq"))
    leave("scratch_dq", truth.dq.size(), DataType::f32);
  return left;
}

/// What f16 has no place for: 2^-25 of each gradient of a score, times a column
/// of Q or K, as the size of which the limit of f16 is a part.
static double sizeOfSubnormals(const Problem &p) {
  if (p.dtype != DataType::f16)
    return 0;
  return 0x1p-25 / 9e-4 *
         std::sqrt(double(p.batch * p.heads * p.queries * p.keys * p.headDim));
}

namespace {

/// How far gradients are from those of scores that differ by roundings in f32.
/// It is far only where a function of a score has a kink in between, as `max`
/// has: one slope is as right as the other there.
class Kinks {
public:
  explicit Kinks(const GradientCase &truth) : truth(truth) {
    constexpr double rounding = 0x1p-19; // of some numbers near 1
    for (double nudge : {rounding, -rounding}) {
      GradientCase &one = nudged.emplace_back(truth);
      one.nudge = nudge;
      one.consultOracle();
    }
  }

  /// Of a gradient that `of` finds, as relativeError measures.
  template <typename Of> double far(Of of, double size) const {
    double most = 0;
    for (const GradientCase &one : nudged) {
      const std::vector<double> &other = of(one);
      most = std::max(
          most, relativeError(std::vector<float>(other.begin(), other.end()),
                              of(truth), size));
    }
    return most;
  }

private:
  const GradientCase &truth;
  std::vector<GradientCase> nudged;
};

} // namespace

void BuiltGradient::check(const GradientCase &truth, const Tiles &tiles,
                          InterpreterOptions options) {
  DataType type = truth.problem.dtype;
  double limit = type == DataType::bf16  ? 6e-3
                 : type == DataType::f16 ? 9e-4
                                         : 1e-5;
  std::optional<Kinks> kinks;
  auto compare = [&](const std::vector<float> &values, auto of, double size) {
    double error = relativeError(values, of(truth), size);
    if (error >= limit && truth.clauses) {
      if (!kinks)
        kinks.emplace(truth);
      error -= kinks->far(of, size);
    }
    EXPECT_LT(error, limit);
  };
  SCOPED_TRACE(
      tiles.str() + "; queries " + std::to_string(truth.problem.queries) +
      ", keys " + std::to_string(truth.problem.keys) + ", d " +
      std::to_string(truth.problem.headDim) + ", d_v " +
      std::to_string(truth.problem.headDimV) + ", " + str(truth.problem.mask));
  std::map<std::string, std::vector<float>> left = run(truth, tiles, options);
  std::tuple<const char *, std::vector<double> GradientCase::*, double>
      gradients[] = {{"dq", &GradientCase::dq, truth.sizes.dq},
                     {"dk", &GradientCase::dk, truth.sizes.dk},
                     {"dv", &GradientCase::dv, truth.sizes.dv}};
  for (const auto &[name, member, size] : gradients) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(left.count(name));
    compare(
        left[name],
        [member = member](const GradientCase &one) -> auto & {
          return one.*member;
        },
        std::hypot(size, sizeOfSubnormals(truth.problem)));
  }
  for (size_t target = 0; target < truth.captured.size(); ++target) {
    std::string name = nameOfGradient(target);
    SCOPED_TRACE(name);
    ASSERT_TRUE(left.count(name));
    compare(
        left[name],
        [target](const GradientCase &one) -> auto & {
          return one.captured[target];
        },
        truth.capturedSizes[target]);
  }
}

void BuiltGradient::checkLargeScores(Problem p, const Tiles &tiles,
                                     float largestScale) {
  Seed seed;
  Draws draw(seed);
  p.lseLow = true;
  for (float scale :
       {1.0F, largestScale / 100, -largestScale / 10, 0.3F, largestScale}) {
    SCOPED_TRACE("scale " + std::to_string(scale));
    GradientCase truth(p, uint64_t(draw(0, 1 << 30)));
    truth.scale = scale;
    bool isFar = scale == 0.3F;
    if (isFar) {
      drawFar(truth.q, truth.k, p.headDim, draw, /*bitsOfQ=*/11,
              /*bitsOfK=*/10);
    } else {
      drawWhole(truth.q, draw, 2);
      drawWhole(truth.k, draw, 2);
    }
    // Two keys of four are alike.  What the sum of a row owes to equal scores
    // is lost from one word, whatever the scale.
    if (scale == largestScale)
      for (int64_t from = 0; from + 2 * p.headDim <= int64_t(truth.k.size());
           from += 4 * p.headDim)
        std::copy_n(truth.k.begin() + from, p.headDim,
                    truth.k.begin() + from + p.headDim);
    // Gradients that f16 has.
    constexpr int mostBits = 9;
    int bits = std::max(std::ilogb(scale) - mostBits, 0);
    for (float &x : truth.gradient)
      x = rounded(p.dtype, std::ldexp(x, -bits));
    truth.consultOracle();
    check(truth, tiles);
    if (scale != largestScale)
      continue;
    // The low word is needed: rounding LSE costs about 1e-7 of the scale.
    llvm::fill(truth.lseLow, 0.0F);
    std::vector<float> dv = run(truth, tiles)["dv"];
    EXPECT_GT(relativeError(dv, truth.dv, truth.sizes.dv), 1e-8 * scale);
  }
}
