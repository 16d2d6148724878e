//===- AttnToTile.cpp - Build the kernels that schedules name -------------===//

#include "Bands.h"
#include "Chaining.h"
#include "KernelModule.h"
#include "KernelRequests.h"
#include "MergeLaunches.h"
#include "PackedArrays.h"
#include "SizeLimits.h"

#include "attn/Conversion/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ATTNTOTILEPASS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

namespace {

/// Sizes as values of the host function.
struct HostArithmetic {
  using Number = Value;
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value times(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
  Value plus(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value least(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(x, y); }
  Value most(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(x, y); }
  Value ceilDiv(Value x, int64_t divisor) {
    return b.createOrFold<arith::CeilDivSIOp>(x, constant(divisor));
  }

  ImplicitLocOpBuilder &b;
};

/// The values of a launch's arguments, by role, worked out on the host.
class LaunchArguments {
public:
  LaunchArguments(ImplicitLocOpBuilder &b, AttentionOpInterface op,
                  const KernelRequest &request)
      : b(b), a{b}, tiles(request.tiles), launches(request.launches) {
    Packing packing = packingOf(op);
    problem = packing.problem;
    for (const AttentionArray &array : packedArrays(b, op, packing))
      addOperand(array.role, array.value);
    Value q = lookup("q"), k = lookup("k");
    batch = size(q, 0);
    heads = size(q, 1);
    queries = size(q, 2);
    keyHeads = size(k, 1);
    keys = size(k, 2);
    set("queries", narrow(queries, 32));
    set("heads", narrow(heads, 32));
    set("batch", narrow(batch, 32));
    set("keys", narrow(keys, 32));
    group = problem.heads / problem.kvHeads;
    assertLimits(b, [&](Size size) { return valueOf(size); });
    set("group", constant(b.getI32Type(), group));
    addBand(problem.mask);
    set("scale", arith::ConstantOp::create(
                     b, b.getF32FloatAttr(float(op.scaleOrDefault()))));
  }

  /// Memory for launches is made when a kernel asks for it: what a launch has
  /// for itself for the largest grid, what several share once.  Null for what a
  /// round has to say.
  Value get(tile::KernelOp kernel, unsigned argument, const LaunchShape &shape,
            int64_t mostBlocks) {
    auto name = kernel.getArgAttrOfType<StringAttr>(argument, kRoleAttr);
    if (!name)
      return {};
    StringRef role = name.getValue();
    auto count = kernel.getArgAttrOfType<IntegerAttr>(argument, kPerBlockAttr);
    auto all = kernel.getArgAttrOfType<IntegerAttr>(argument, kPerLaunchAttr);
    int64_t words = all     ? all.getInt()
                    : count ? count.getInt() * mostBlocks
                            : 1;
    auto type = MemRefType::get({words}, b.getI32Type());
    if (role == kCounterRole || role == kStripCounterRole || role == kFlagsRole)
      return tile::CounterOp::create(b, type);
    auto shared = kernel.getArgAttrOfType<IntegerAttr>(argument, kPerStripAttr);
    Type want = kernel.getArgumentTypes()[argument];
    if (shared && !values.contains(role)) {
      Value strips =
          shape.isInRounds ? waitingStrips() : sizes().stripsOfHead();
      set(role, scratch({batch, heads, strips}, shared.getInt(),
                        cast<tile::PtrType>(want).getElementType()));
    }
    if (StringRef input = inputOfParts(role); !input.empty()) {
      if (!values.contains(role))
        addParts(input);
      return values.lookup(role);
    }
    bool isWaiting = isScratchRole(role) && shape.isInRounds && !shared;
    if (isWaiting && !values.contains(role))
      set(role, waitingScores(want));
    if (isScratchRole(role) && !shared && !isWaiting) {
      auto beyond =
          kernel.getArgAttrOfType<IntegerAttr>(argument, kBeyondKeysAttr);
      if (!beyond)
        return tile::ScratchOp::create(b, type);
      return scratch({beyondKeys(beyond.getInt(), index(words))}, std::nullopt,
                     type.getElementType());
    }
    // What a launch leaves for those behind it: D, a number for each query.
    if (role == kDelta && !values.contains(role))
      addOperand(kDelta, scratch({batch, heads, queries}, std::nullopt,
                                 b.getF32Type()));
    return values.lookup(role);
  }

  /// What launches work on.
  LaunchSizes<HostArithmetic> sizes() {
    return {launches, problem, {batch, heads, keyHeads, queries, keys}, a};
  }

  /// Loops over the rounds, see RoundOrder; arguments are those of one from now
  /// on and launches go into the inner loop.
  void enterRounds() {
    Value zero = index(0), all = a.times(batch, keyHeads);
    Value most = index(launches.rounds.heads);
    auto overHeads = scf::ForOp::create(b, zero, all, most);
    b.setInsertionPointToStart(overHeads.getBody());
    Value head = overHeads.getInductionVar();
    Value left = arith::SubIOp::create(b, all, head);
    set("first_head", narrow(head, 32));
    set("round_heads", narrow(arith::MinSIOp::create(b, left, most), 32));
    bool cutsQueries = launches.rounds.cutsQueries();
    Value some =
        b.createOrFold<arith::MaxSIOp>(cutsQueries ? queries : keys, index(1));
    auto overStrips =
        scf::ForOp::create(b, zero, some, index(launches.rounds.strip));
    b.setInsertionPointToStart(overStrips.getBody());
    set(cutsQueries ? "first_query" : "first_key",
        narrow(overStrips.getInductionVar(), 32));
  }

  Value lookup(StringRef role) const { return values.lookup(role); }
  Value index(int64_t value) { return a.constant(value); }
  Value batch, heads, queries, keyHeads, keys;

private:
  static constexpr StringLiteral kDelta = "delta";

  void set(StringRef role, Value value) { values[role] = value; }

  /// Of the array that an argument is a pointer to or a map of.
  static Type elementTypeOf(Type argument) {
    if (auto map = dyn_cast<tile::TensorMapType>(argument))
      return map.getElementType();
    return cast<tile::PtrType>(argument).getElementType();
  }

  /// So many if there are more keys than `most`, or else none.
  Value beyondKeys(int64_t most, Value count) {
    Value isMore = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt,
                                                 keys, index(most));
    return b.createOrFold<arith::SelectOp>(isMore, count, index(0));
  }

  /// An array of scores that wait from launch to launch, or of what belongs to
  /// the rows of a block of them.
  Value waitingScores(Type argument) {
    LaunchSizes<HostArithmetic> sizes = this->sizes();
    RoundArrays<Value> arrays = sizes.roundArrays();
    // Of blocks of keys an array has the columns of its map, in all its parts.
    Value columns = arrays.columns;
    if (launches.rounds.cutsQueries()) {
      auto map = dyn_cast<tile::TensorMapType>(argument);
      columns = index(map ? map.getColumns() : kRowStatistics);
    }
    Value blocks = a.times(index(group), arrays.blocks);
    return scratch({sizes.roundHeads(), blocks, arrays.rows, columns},
                   std::nullopt, elementTypeOf(argument));
  }

  /// The array of an input's parts, for pointers to it and maps of it, and that
  /// of their exponents.
  void addParts(StringRef input) {
    Value memref = lookup(input);
    std::string role = partsRole(input);
    Value parts = scratch({size(memref, 0), size(memref, 1), size(memref, 2)},
                          tile::SplitViewOp::kParts *
                              columnsOfPart(input, problem, tiles),
                          b.getF16Type());
    set(role, parts);
    set(mapRole(role), parts);
    Value blocks = a.ceilDiv(size(memref, 2), tile::SplitViewOp::kBlockRows);
    set(exponentsRole(input),
        scratch({size(memref, 0), size(memref, 1), blocks}, std::nullopt,
                b.getI32Type()));
  }

  /// Sums that wait from one strip of keys to the next: none, if there is one.
  Value waitingStrips() {
    return beyondKeys(launches.rounds.strip, sizes().stripsOfTiles());
  }

  Value valueOf(Size size) {
    switch (size) {
    case Size::batch:
      return batch;
    case Size::queries:
      return queries;
    case Size::keys:
      return keys;
    case Size::heads:
    case Size::kvHeads:
    case Size::group:
    case Size::headDim:
    case Size::headDimV:
      return index(attn::valueOf(size, problem));
    }
    return {};
  }

  /// Scratch memory with these extents and, within, so many elements.
  Value scratch(ValueRange sizes, std::optional<int64_t> inner, Type element) {
    SmallVector<OpFoldResult> extents = getAsOpFoldResult(sizes);
    if (inner)
      extents.push_back(b.getIndexAttr(*inner));
    SmallVector<int64_t> shape;
    SmallVector<Value> dynamicSizes;
    dispatchIndexOpFoldResults(extents, dynamicSizes, shape);
    return tile::ScratchOp::create(b, MemRefType::get(shape, element),
                                   dynamicSizes);
  }

  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(
        b, cast<TypedAttr>(b.getIntegerAttr(type, value)));
  }

  Value size(Value memref, int64_t dim) {
    return b.createOrFold<memref::DimOp>(memref, dim);
  }

  Value narrow(Value index, unsigned width) {
    return b.createOrFold<arith::IndexCastOp>(b.getIntegerType(width), index);
  }

  void addOperand(StringRef name, Value memref) {
    addArray(b, values, name, memref);
  }

  void addBand(const Mask &mask) {
    BandValues band = bandOf(b, mask, keys, queries);
    if (band.first)
      set("band_first", narrow(band.first, 32));
    if (band.last)
      set("band_last", narrow(band.last, 32));
    if (band.openKeys)
      set("open_keys", narrow(band.openKeys, 32));
  }

  ImplicitLocOpBuilder &b;
  HostArithmetic a;
  const Tiles &tiles;
  const Launches &launches;
  Problem problem;
  int64_t group = 1;
  llvm::StringMap<Value> values;
};

/// A launch, without what a round has to say.
struct Launch {
  tile::KernelOp kernel;
  std::array<Value, 3> grid;
  SmallVector<Value> operands;
};

class Converter {
public:
  Converter(ModuleOp module, MachineAttr machine, KernelModule &kernelModule)
      : module(module), machineAttr(machine), machine(machine.resolve()),
        kernelModule(kernelModule) {}

  LogicalResult convert(AttentionOpInterface op) {
    if (failed(checkPlace(op, module)))
      return failure();
    FailureOr<std::vector<KernelChoice>> choices = kernelsFor(op, machine);
    if (failed(choices))
      return failure();
    OpBuilder builder(op);
    ImplicitLocOpBuilder b(op->getLoc(), builder);
    LaunchArguments arguments(b, op, choices->front().request);
    SmallVector<Launch> inRounds;
    for (KernelChoice &choice : *choices) {
      const LaunchShape &shape = choice.request.shape();
      Launch one =
          prepare(b, findOrBuild(op, choice), choice.request, arguments);
      if (shape.isInRounds)
        inRounds.push_back(std::move(one));
      else
        launch(b, one);
    }
    if (!inRounds.empty())
      arguments.enterRounds();
    for (Launch &one : inRounds) {
      addRound(one, arguments);
      launch(b, one);
    }
    op->erase();
    return success();
  }

private:
  Launch prepare(ImplicitLocOpBuilder &b, tile::KernelOp kernel,
                 const KernelRequest &request, LaunchArguments &arguments) {
    Launch launch;
    launch.kernel = kernel;
    const LaunchShape &shape = request.shape();
    Residency residency = {machine.sms, request.minBlocksPerSm};
    int64_t most = residency.mostBlocks(shape, request.launches.team);
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      launch.operands.push_back(arguments.get(kernel, i, shape, most));
    Value one = arguments.index(1);
    launch.grid = {arguments.sizes().blocks(shape, residency), one, one};
    return launch;
  }

  static void addRound(Launch &launch, const LaunchArguments &arguments) {
    for (auto [i, operand] : llvm::enumerate(launch.operands))
      if (auto role = launch.kernel.getArgAttrOfType<StringAttr>(i, kRoleAttr);
          role && !operand)
        operand = arguments.lookup(role.getValue());
  }

  void launch(ImplicitLocOpBuilder &b, const Launch &launch) {
    auto [x, y, z] = launch.grid;
    tile::LaunchOp::create(b, kernelModule.symbolOf(launch.kernel), x, y, z,
                           launch.operands);
  }

  tile::KernelOp findOrBuild(AttentionOpInterface op, KernelChoice &choice) {
    for (auto &[known, kernel] : kernels)
      if (sameKernel(known, choice))
        return kernel;
    gpu::GPUModuleOp into = kernelModule.at(op->getLoc());
    choice.request.name = kernelModule.uniqueName(kernelName(choice));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(into.getBody());
    KernelBuilder build = findKernelBuilder(choice.builder);
    assert(build && "the plan names a builder that the registry has");
    tile::KernelOp kernel = build(builder, op->getLoc(), choice.request);
    if (canChain(machine) && choice.request.launches.shapes.size() > 1)
      chain(kernel);
    kernel->setAttr("schedule", op.getScheduleAttr());
    kernel->setAttr("machine", machineAttr);
    kernel->setAttr(kProblemAttr,
                    problemAttr(op->getContext(), choice.request.problem));
    kernels.push_back({choice, kernel});
    return kernel;
  }

  ModuleOp module;
  MachineAttr machineAttr;
  Machine machine;
  KernelModule &kernelModule;
  std::vector<std::pair<KernelChoice, tile::KernelOp>> kernels;
};

struct AttnToTilePass : attn::impl::AttnToTilePassBase<AttnToTilePass> {
  using AttnToTilePassBase::AttnToTilePassBase;

  /// Kernels stand in the module of the ops that need them.
  void runOnOperation() override {
    llvm::MapVector<ModuleOp, SmallVector<Operation *>> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOpInterface, MergeOpInterface>(op))
        ops[op->getParentOfType<ModuleOp>()].push_back(op);
    });
    for (auto &[module, ofModule] : ops)
      if (failed(convert(module, ofModule)))
        return signalPassFailure();
  }

private:
  static LogicalResult convert(ModuleOp module, ArrayRef<Operation *> ops) {
    MachineAttr machine = machineAttrOf(module);
    if (!machine)
      return module.emitError("expects the module attribute ")
             << machineAttrName << ": run -attn-attach-machine first";
    KernelModule kernels(module);
    Converter converter(module, machine, kernels);
    MergeConverter merges(module, machine, kernels);
    auto convert = [&](Operation *op) {
      if (auto merge = dyn_cast<MergeOpInterface>(op))
        return merges.convert(merge);
      return converter.convert(cast<AttentionOpInterface>(op));
    };
    for (Operation *op : ops)
      if (failed(convert(op)))
        return failure();
    return success();
  }
};

} // namespace
