//===- AttnToTile.cpp - Build the kernels that schedules name -------------===//

#include "KernelRequests.h"

#include "attn/Conversion/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_ATTNTOTILEPASS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

namespace {

constexpr StringLiteral kModuleName = "attn_kernels";

/// The values of a launch's arguments, by role, worked out on the host.
class LaunchArguments {
public:
  LaunchArguments(ImplicitLocOpBuilder &b, AttentionOpInterface op) : b(b) {
    for (const AttentionArray &array : op.arrays())
      addOperand(array.role, array.value);
    Value q = op.array("q");
    batch = size(q, 0);
    heads = size(q, 1);
    queries = size(q, 2);
    keyHeads = size(op.array("k"), 1);
    keys = size(op.array("k"), 2);
    set("queries", narrow(queries, 32));
    set("heads", narrow(heads, 32));
    set("batch", narrow(batch, 32));
    set("keys", narrow(keys, 32));
    Problem problem = problemOf(op);
    Type i32 = b.getI32Type();
    set("group", constant(i32, problem.heads / problem.kvHeads));
    addBand(problem.mask, arith::SubIOp::create(b, keys, queries));
    set("scale", arith::ConstantOp::create(
                     b, b.getF32FloatAttr(float(op.scaleOrDefault()))));
  }

  /// Memory for launches is made when a kernel asks for it: what a launch has
  /// for itself for the largest grid, what several share once.
  Value get(tile::KernelOp kernel, unsigned argument,
            const KernelRequest &request, int64_t mostBlocks) {
    auto name = kernel.getArgAttrOfType<StringAttr>(argument, kRoleAttr);
    if (!name)
      return {};
    StringRef role = name.getValue();
    auto count = kernel.getArgAttrOfType<IntegerAttr>(argument, kPerBlockAttr);
    auto type = MemRefType::get({count ? count.getInt() * mostBlocks : 1},
                                b.getI32Type());
    if (role == kCounterRole || role == kFlagsRole)
      return tile::CounterOp::create(b, type);
    auto shared = kernel.getArgAttrOfType<IntegerAttr>(argument, kPerStripAttr);
    if (shared && !values.contains(role)) {
      auto pointer = cast<tile::PtrType>(kernel.getArgumentTypes()[argument]);
      set(role, scratch({batch, heads, tiles(launchesOf(request.tiles)[0])},
                        shared.getInt(), pointer.getElementType()));
    }
    if (isScratchRole(role) && !shared)
      return tile::ScratchOp::create(b, type);
    // What a launch leaves for those behind it: D, a number for each query.
    if (role == kDelta && !values.contains(role))
      addOperand(kDelta, scratch({batch, heads, queries}, std::nullopt,
                                 b.getF32Type()));
    return values.lookup(role);
  }

  /// Tiles of rows of a head.
  Value tiles(const LaunchShape &shape) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    Value units = b.createOrFold<arith::CeilDivSIOp>(
        shape.ownsKeys ? keys : queries, constant(shape.rows * shape.unit));
    return shape.unit == 1
               ? units
               : b.createOrFold<arith::MulIOp>(units, constant(shape.unit));
  }

  Value batch, heads, queries, keyHeads, keys;

private:
  static constexpr StringLiteral kDelta = "delta";

  void set(StringRef role, Value value) { values[role] = value; }

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
    auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
    set(name, memref);
    set(mapRole(name), memref);
    set(offsetRole(name), narrow(metadata.getOffset(), 64));
    constexpr StringLiteral axes[] = {"batch", "head", "row"};
    for (auto [axis, stride] : llvm::zip(axes, metadata.getStrides()))
      set(strideRole(name, axis), narrow(stride, 64));
  }

  /// The band of Problem.h, for sizes that may be known only at run time;
  /// `diagonal` is keys - queries.
  void addBand(const Mask &mask, Value diagonal) {
    auto shifted = [&](int64_t by) {
      Value sum = b.createOrFold<arith::AddIOp>(diagonal,
                                                constant(b.getIndexType(), by));
      sum = b.createOrFold<arith::MinSIOp>(
          sum, constant(b.getIndexType(), kUnbounded));
      sum = b.createOrFold<arith::MaxSIOp>(
          sum, constant(b.getIndexType(), -kUnbounded));
      return narrow(sum, 32);
    };
    switch (mask.kind) {
    case MaskKind::none:
      return;
    case MaskKind::causal:
      return set("band_last", constant(b.getI32Type(), 0));
    case MaskKind::causalBottomRight:
      return set("band_last", shifted(0));
    case MaskKind::window:
      set("band_first", shifted(-mask.left));
      return set("band_last", shifted(mask.right));
    }
  }

  ImplicitLocOpBuilder &b;
  llvm::StringMap<Value> values;
};

class Converter {
public:
  Converter(ModuleOp module, MachineAttr machine)
      : module(module), machineAttr(machine), machine(machine.resolve()) {}

  LogicalResult convert(AttentionOpInterface op) {
    if (op->getParentOfType<ModuleOp>() != module)
      return op->emitOpError("expects to stand in a function of the outermost "
                             "module, but got a nested module");
    FailureOr<std::vector<KernelChoice>> choices = kernelsFor(op, machine);
    if (failed(choices))
      return failure();
    OpBuilder builder(op);
    ImplicitLocOpBuilder b(op->getLoc(), builder);
    LaunchArguments arguments(b, op);
    for (KernelChoice &choice : *choices)
      launch(b, findOrBuild(op, choice), choice.request, arguments);
    op->erase();
    return success();
  }

private:
  void launch(ImplicitLocOpBuilder &b, tile::KernelOp kernel,
              const KernelRequest &request, LaunchArguments &arguments) {
    SmallVector<Value> operands;
    int64_t most = mostBlocks(request);
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      operands.push_back(arguments.get(kernel, i, request, most));
    auto name = SymbolRefAttr::get(
        b.getContext(), kModuleName,
        {FlatSymbolRefAttr::get(b.getContext(), kernel.getName())});
    std::array<Value, 3> grid = gridOf(b, arguments, request);
    tile::LaunchOp::create(b, name, grid[0], grid[1], grid[2], operands);
  }

  /// Of a grid that a machine runs at once.
  int64_t mostBlocks(const KernelRequest &request) const {
    int64_t team = blocksOfTeam(request.tiles);
    bool isResident =
        launchesOf(request.tiles)[request.launch].form == GridForm::resident;
    return machine.sms / team * team *
           (isResident ? request.minBlocksPerSm : 1);
  }

  std::array<Value, 3> gridOf(ImplicitLocOpBuilder &b,
                              LaunchArguments &arguments,
                              const KernelRequest &request) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, value);
    };
    LaunchShape shape = launchesOf(request.tiles)[request.launch];
    Value heads = shape.ownsKeys ? arguments.keyHeads : arguments.heads;
    Value rows = arguments.tiles(shape);
    if (shape.form == GridForm::rowsHeadsBatch)
      return {rows, heads, arguments.batch};
    Value all = b.createOrFold<arith::MulIOp>(rows, heads);
    all = b.createOrFold<arith::MulIOp>(all, arguments.batch);
    if (shape.form == GridForm::persistent || shape.form == GridForm::resident)
      all = b.createOrFold<arith::MinSIOp>(all, constant(mostBlocks(request)));
    if (shape.form == GridForm::teams) {
      int64_t team = blocksOfTeam(request.tiles);
      all = b.createOrFold<arith::MinSIOp>(all, constant(machine.sms / team));
      all = b.createOrFold<arith::MulIOp>(all, constant(team));
    }
    Value one = constant(1);
    return {all, one, one};
  }

  tile::KernelOp findOrBuild(AttentionOpInterface op, KernelChoice &choice) {
    for (auto &[known, kernel] : kernels)
      if (sameKernel(known, choice))
        return kernel;
    gpu::GPUModuleOp kernelModule = findOrCreateModule(op->getLoc());
    choice.request.name = uniqueName(kernelModule, kernelName(choice));
    OpBuilder builder(kernelModule.getContext());
    builder.setInsertionPointToEnd(kernelModule.getBody());
    KernelBuilder build = findKernelBuilder(choice.builder);
    assert(build && "the plan names a builder that the registry has");
    tile::KernelOp kernel = build(builder, op->getLoc(), choice.request);
    kernel->setAttr("schedule", op.getScheduleAttr());
    kernel->setAttr("machine", machineAttr);
    kernel->setAttr(kProblemAttr,
                    problemAttr(op->getContext(), choice.request.problem));
    kernels.push_back({choice, kernel});
    return kernel;
  }

  gpu::GPUModuleOp findOrCreateModule(Location loc) {
    if (auto existing = module.lookupSymbol<gpu::GPUModuleOp>(kModuleName))
      return existing;
    OpBuilder builder(module.getContext());
    builder.setInsertionPointToStart(module.getBody());
    return gpu::GPUModuleOp::create(builder, loc, kModuleName);
  }

  static std::string uniqueName(gpu::GPUModuleOp module,
                                const std::string &name) {
    std::string candidate = name;
    for (int i = 1; module.lookupSymbol(candidate); ++i)
      candidate = name + "_" + std::to_string(i);
    return candidate;
  }

  ModuleOp module;
  MachineAttr machineAttr;
  Machine machine;
  std::vector<std::pair<KernelChoice, tile::KernelOp>> kernels;
};

struct AttnToTilePass : attn::impl::AttnToTilePassBase<AttnToTilePass> {
  using AttnToTilePassBase::AttnToTilePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<AttentionOpInterface> ops;
    module.walk([&](AttentionOpInterface op) { ops.push_back(op); });
    if (ops.empty())
      return;
    auto machine = module->getAttrOfType<MachineAttr>(machineAttrName);
    if (!machine) {
      module.emitError("expects the module attribute ")
          << machineAttrName << ": run -attn-attach-machine first";
      return signalPassFailure();
    }
    Converter converter(module, machine);
    for (AttentionOpInterface op : ops)
      if (failed(converter.convert(op)))
        return signalPassFailure();
  }
};

} // namespace
