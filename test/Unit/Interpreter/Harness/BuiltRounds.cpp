//===- BuiltRounds.cpp - Are launches in rounds right, byte for byte? -----===//

#include "Harness/BuiltRounds.h"

#include "Harness/KeptWeights.h"

#include "attn/Schedule/Limits.h"
#include "attn/Schedule/Registry.h"
#include "attn/Schedule/Traffic.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

/// A case on its way through the rounds.
struct BuiltRounds::Run {
  FlashCase &flash;
  const InterpreterOptions &options;
  GlobalMemory memory = {};
  llvm::StringMap<uint64_t> addresses = {};
  std::vector<tile::Traffic> moved = {};
};

OwningOpRef<ModuleOp> BuiltRounds::build(const FlashCase &flash) {
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  int64_t launches = int64_t(launchesOf(schedule, flash.tiles).shapes.size());
  for (int64_t number = 0; number < launches; ++number) {
    KernelRequest request;
    request.name = "launch_" + std::to_string(number);
    request.problem = flash.problem;
    request.tiles = flash.tiles;
    request.launches = launchesOf(schedule, flash.tiles);
    request.launch = number;
    request.scale = flash.scale;
    request.sms = flash.multiprocessors;
    request.smemBytes = findMachine("h100_sxm")->smemBytesPerBlock;
    for (const char *array : {"q", "k", "v", "o"})
      request.alignments[array] = alignmentOfRows(
          shapeOfArray(array, flash.problem).columns, flash.problem.dtype);
    findKernelBuilder(kernel)(b, loc, request);
  }
  return module;
}

KernelArgument BuiltRounds::partsOf(Run &run, Role input, bool isMap) {
  constexpr int64_t parts = tile::SplitViewOp::kParts, bytes = 2;
  const Problem &p = run.flash.problem;
  ArrayShape s = shapeOfArray(input, p);
  int64_t columns = parts * columnsOfPart(input, p, run.flash.tiles);
  int64_t head = s.rows * columns;
  uint64_t &address = run.addresses[str(memoryOf(input, Memory::parts))];
  if (address == 0)
    address = run.memory.allocate(bytes * s.batch * s.heads * head);
  if (!isMap)
    return address;
  return TensorMapArgument{address,
                           {s.batch, s.heads, s.rows, columns},
                           {s.heads * head, head, columns, 1}};
}

uint64_t BuiltRounds::exponentsOf(Run &run, Role input) {
  ArrayShape s = shapeOfArray(input, run.flash.problem);
  int64_t blocks = llvm::divideCeil(s.rows, tile::SplitViewOp::kBlockRows);
  uint64_t &address = run.addresses[str(memoryOf(input, Memory::exponents))];
  if (address == 0)
    address = run.memory.allocate(sizeof(int32_t) * s.batch * s.heads * blocks);
  return address;
}

/// So many words of 0.
static uint64_t zeros(GlobalMemory &memory, int64_t words) {
  std::vector<int32_t> none(words);
  uint64_t address = memory.allocate(4 * words);
  memory.write(address, none.data(), 4 * words);
  return address;
}

void BuiltRounds::launch(Run &run, tile::KernelOp kernel, const Round &round) {
  const Problem &p = run.flash.problem;
  const std::optional<ListedBlocks> &lists = run.flash.lists;
  Launches launches = launchesOf(schedule, run.flash.tiles);
  int64_t number = launchOf(kernel);
  SCOPED_TRACE("launch " + std::to_string(number) + ", head " +
               std::to_string(round.firstHead) + ", query " +
               std::to_string(round.firstQuery));
  RoundOrder rounds(launches, p);
  int64_t arrays = rounds.blocks * (p.heads / p.kvHeads);
  std::vector<KernelArgument> arguments;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    ArgumentRole role = *roleOf(kernel, i);
    if (lists)
      if (std::optional<int64_t> known = lists->integerOf(str(role))) {
        arguments.push_back(*known);
        continue;
      }
    const RoleFacts &facts = role.facts();
    if (facts.memory == Memory::exponents) {
      arguments.push_back(exponentsOf(run, facts.of));
      continue;
    }
    if (facts.memory == Memory::parts) {
      arguments.push_back(partsOf(run, facts.of, role.facet == Facet::map));
      continue;
    }
    auto words = kernel.getArgAttrOfType<IntegerAttr>(i, kPerLaunchAttr);
    if (facts.memory == Memory::zeros)
      run.addresses.try_emplace(str(role),
                                zeros(run.memory, words ? words.getInt() : 1));
    auto ordinary = [&, type = type] {
      return argumentOf(role, type, p, run.flash.scale, run.addresses, round);
    };
    if (facts.memory != Memory::round) {
      arguments.push_back(ordinary());
      continue;
    }
    // What nobody has written is reported when it is read.
    auto map = dyn_cast<tile::TensorMapType>(type);
    int64_t columns = map ? map.getColumns() : kRowStatistics;
    int64_t head = rounds.rows * columns;
    int64_t bytes = map ? map.getElementType().getIntOrFloatBitWidth() / 8 : 4;
    if (!run.addresses.contains(str(role)))
      run.addresses[str(role)] =
          run.memory.allocate(bytes * rounds.heads * arrays * head);
    if (!map)
      arguments.push_back(ordinary());
    else
      arguments.push_back(
          TensorMapArgument{run.addresses[str(role)],
                            {rounds.heads, arrays, rounds.rows, columns},
                            {arrays * head, head, columns, 1}});
  }
  std::array<int64_t, 3> grid =
      gridOf(launches, p, {run.flash.multiprocessors}, number);
  if (llvm::is_contained(grid, 0))
    return;
  FailureOr<tile::Traffic> traffic =
      interpret(kernel, grid, arguments, run.memory, run.options);
  ASSERT_TRUE(succeeded(traffic));
  FailureOr<tile::Traffic> counted = run.flash.count(kernel, grid, round);
  ASSERT_TRUE(succeeded(counted));
  EXPECT_EQ(counted->global, traffic->global);
  EXPECT_EQ(counted->smem, traffic->smem);
  run.moved[number] += *traffic;
}

void BuiltRounds::check(const Problem &problem, const Tiles &tiles,
                        const InterpreterOptions &options) {
  FlashCase flash(problem, tiles);
  check(flash, options);
}

void BuiltRounds::check(FlashCase &flash, const InterpreterOptions &options) {
  const Problem &p = flash.problem;
  SCOPED_TRACE(flash.tiles.str() + "; queries " + std::to_string(p.queries) +
               ", keys " + std::to_string(p.keys) + ", d " +
               std::to_string(p.headDim) + ", d_v " +
               std::to_string(p.headDimV) + ", " + str(p.mask));
  OwningOpRef<ModuleOp> module = build(flash);
  if (change)
    change(*module);
  Run run{flash, options};
  Launches launches = launchesOf(schedule, flash.tiles);
  run.moved.resize(launches.shapes.size());
  int64_t results = shapeOfArray("o", p).elements();
  int64_t rows = shapeOfArray("lse", p).elements();
  GlobalMemory &memory = run.memory;
  run.addresses = {{"q", upload(memory, flash.q, p.dtype)},
                   {"k", upload(memory, flash.k, p.dtype)},
                   {"v", upload(memory, flash.v, p.dtype)},
                   {"o", memory.allocate(results * bytesOf(p.dtype))},
                   {"lse", memory.allocate(rows * 4)},
                   {"lse_low", memory.allocate(rows * 4)}};
  if (flash.lists)
    flash.lists->upload(memory, run.addresses);
  if (p.keepsWeights)
    KeptWeights::allocate(p, memory, run.addresses);
  RoundOrder rounds(launches, p);
  auto isInRounds = [&](tile::KernelOp kernel) {
    return launches.shapes[size_t(launchOf(kernel))].isInRounds;
  };
  for (auto kernel : module->getOps<tile::KernelOp>())
    if (!isInRounds(kernel))
      launch(run, kernel, {});
  for (int64_t n = 0; n < rounds.count(); ++n) {
    for (auto kernel : module->getOps<tile::KernelOp>())
      if (isInRounds(kernel))
        launch(run, kernel, rounds.at(n));
    // What waits in a round is not to be seen in the next.
    for (const char *role : {"scratch_p_map", "scratch_rows"})
      if (auto found = run.addresses.find(role); found != run.addresses.end()) {
        memory.free(found->second);
        run.addresses.erase(found);
      }
  }
  auto o = download(memory, run.addresses["o"], results, p.dtype);
  auto lse = download(memory, run.addresses["lse"], rows, DataType::f32);
  ASSERT_TRUE(o) << "not all of O was written";
  EXPECT_LT(flash.errorOf(*o), limitOf(flash));
  EXPECT_LT(flash.largestErrorOf(*o), limitOfLargest(p));
  if (p.lse) {
    ASSERT_TRUE(lse) << "not all of the LSE was written";
    EXPECT_LT(flash.lseErrorOf(*lse), limitOfLse(p));
  }
  if (p.lseLow) {
    auto low = download(memory, run.addresses["lse_low"], rows, DataType::f32);
    ASSERT_TRUE(low) << "not all low words were written";
    EXPECT_LT(flash.lowErrorOf(*lse, *low), limitOfLse(p));
  }
  if (p.keepsWeights)
    KeptWeights(p, flash.scale, flash.q, flash.k)
        .compare(memory, run.addresses);
  if (isEmpty(p)) // the model plans with one row
    return;
  if (flash.lists && flash.lists->areOfBatch())
    return;
  std::vector<Bytes> promised = flash.promised(schedule);
  ASSERT_EQ(promised.size(), run.moved.size());
  for (auto [number, traffic] : llvm::enumerate(run.moved)) {
    SCOPED_TRACE("launch " + std::to_string(number));
    EXPECT_EQ(promised[number].l2, traffic.global);
    EXPECT_EQ(promised[number].smem, traffic.smem);
  }
}
