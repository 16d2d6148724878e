//===- AttnToTile.cpp - Build the kernels that schedules name -------------===//

#include "Bands.h"
#include "Chaining.h"
#include "HostArithmetic.h"
#include "KernelModule.h"
#include "KernelRequests.h"
#include "ListLaunches.h"
#include "MergeLaunches.h"
#include "PackedArrays.h"
#include "RaggedArrays.h"
#include "SizeLimits.h"

#include "attn/Conversion/Passes.h"
#include "attn/Kernels/CaptureLaunches.h"
#include "attn/Schedule/RaggedQueries.h"

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

/// The values of a launch's arguments, by role, worked out on the host.
class LaunchArguments {
public:
  /// The arrays of the op play roles in kernels.
  LaunchArguments(ImplicitLocOpBuilder &b, AttentionOpInterface op,
                  const KernelRequest &request)
      : b(b), a{b}, tiles(request.tiles), launches(request.launches) {
    Packing packing = packingOf(op);
    problem = packing.problem;
    for (const AttentionArray &array : packedArrays(b, op, packing)) {
      ArgumentRole role = *roleOfArray(op, array.role);
      setRows(role, isOfSequences(role.role, problem)
                        ? asOneEntry(b, array.value)
                        : array.value);
    }
    addLists(op, ClauseGroup::partial,
             {Role::partialCounts, Role::partialBlocks});
    addLists(op, ClauseGroup::full, {Role::fullCounts, Role::fullBlocks});
    if (op.direction() == Direction::backward) {
      addLists(op, ClauseGroup::transposedPartial,
               {Role::transposedPartialCounts, Role::transposedPartialBlocks});
      addLists(op, ClauseGroup::transposedFull,
               {Role::transposedFullCounts, Role::transposedFullBlocks});
    }
    for (auto [number, capture] : llvm::enumerate(op.captures()))
      values.setCapture(b, {Role::capture, Facet::itself, int(number)},
                        capture);
    gradients = op.outputs().take_back(op.gradientTargets().size());
    for (auto [number, gradient] : llvm::enumerate(gradients))
      values.setCapture(b, {Role::captureGradient, Facet::itself, int(number)},
                        gradient);
    for (Value sinks : op.clauseOperands(ClauseGroup::sinks))
      values.setArray(b, Role::sinks, sinks);
    for (Value used : op.clauseOperands(ClauseGroup::usedKeys))
      values.setArray(b, Role::usedKeys, used);
    for (Value table : op.clauseOperands(ClauseGroup::pageTable))
      values.setArray(b, Role::pageTable, table);
    constexpr Role scales[] = {Role::scaleQ, Role::scaleK, Role::scaleV};
    for (auto [group, role] : llvm::zip_equal(kScaleGroups, scales))
      for (Value scale : op.clauseOperands(group))
        values.setShared(b, role, scale);
    Value q = lookup(Role::q), k = lookup(Role::k);
    batch = problem.ragged ? addOffsets(op) : size(q, 0);
    heads = size(q, 1);
    queries = size(q, 2);
    keyHeads = size(k, 1);
    keys = size(k, 2);
    if (problem.place.isPaged())
      keys = a.times(size(lookup(Role::pageTable), 1), keys);
    values.set(Role::queries, narrow(queries, 32));
    values.set(Role::heads, narrow(heads, 32));
    values.set(Role::batch, narrow(batch, 32));
    values.set(Role::keys, narrow(keys, 32));
    group = problem.heads / problem.kvHeads;
    assertLimits(b, [&](Size size) { return valueOf(size); });
    values.set(Role::group, constant(b.getI32Type(), group));
    addBand(problem.ragged ? bandOfSequence(b, problem.mask)
                           : bandOf(b, problem.mask, keys, queries));
    values.set(Role::scale,
               arith::ConstantOp::create(
                   b, b.getF32FloatAttr(float(op.scaleOrDefault()))));
  }

  /// Memory for launches is made when a kernel asks for it: what a launch has
  /// for itself for the largest grid, what several share once.  Null for what a
  /// round has to say.
  Value get(tile::KernelOp kernel, unsigned argument, const LaunchShape &shape,
            int64_t mostBlocks) {
    ArgumentRole role = *roleOf(kernel, argument);
    const RoleFacts &facts = role.facts();
    auto count = [&](StringRef attribute) -> std::optional<int64_t> {
      auto number = kernel.getArgAttrOfType<IntegerAttr>(argument, attribute);
      return number ? std::optional(number.getInt()) : std::nullopt;
    };
    // Of what a launch has for itself.
    int64_t words =
        count(kPerLaunchAttr)
            .value_or(count(kPerBlockAttr).value_or(0) * mostBlocks);
    if (facts.memory == Memory::zeros)
      return tile::CounterOp::create(
          b, MemRefType::get({std::max<int64_t>(words, 1)}, b.getI32Type()));
    if (facts.memory == Memory::block)
      return ofBlocks(words, count(kBeyondKeysAttr));
    if (auto map =
            dyn_cast<tile::TensorMapType>(kernel.getArgumentTypes()[argument]);
        map && isOfSequences(role.role, problem))
      return role.facet == Facet::emptyMap
                 ? emptyWindowsOf(b, lookup(role), map.getBoxRows(),
                                  map.getColumns())
                 : windowsOf(b, lookup(role), map.getBoxRows());
    if (!values.has(role)) {
      Type type = kernel.getArgumentTypes()[argument];
      if (facts.memory == Memory::strip)
        addStrips(role, type, *count(kPerStripAttr), shape);
      else if (facts.memory == Memory::row)
        values.set(role,
                   scratch({problem.ragged ? index(1) : batch, heads, queries},
                           count(kPerRowAttr), elementTypeOf(type)));
      else if (facts.memory == Memory::round)
        values.set(role, waitingScores(type));
      else if (facts.memory == Memory::parts ||
               facts.memory == Memory::exponents)
        addParts(facts.of);
      else if (facts.flow(problem.direction) == Flow::scratch)
        addShared(role.role);
    }
    return lookup(role);
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
    values.set(Role::firstHead, narrow(head, 32));
    values.set(Role::roundHeads,
               narrow(arith::MinSIOp::create(b, left, most), 32));
    bool cutsQueries = launches.rounds.cutsQueries();
    Value some =
        b.createOrFold<arith::MaxSIOp>(cutsQueries ? queries : keys, index(1));
    auto overStrips =
        scf::ForOp::create(b, zero, some, index(launches.rounds.strip));
    b.setInsertionPointToStart(overStrips.getBody());
    values.set(cutsQueries ? Role::firstQuery : Role::firstKey,
               narrow(overStrips.getInductionVar(), 32));
  }

  Value lookup(const ArgumentRole &role) const { return values.lookup(role); }
  Value index(int64_t value) { return a.constant(value); }
  /// The elements of a gradient of a capture.
  Value elementsOf(unsigned gradient) {
    Value memref = gradients[gradient], all = index(1);
    int64_t rank = cast<MemRefType>(memref.getType()).getRank();
    for (int64_t dim = 0; dim < rank; ++dim)
      all = a.times(all, size(memref, dim));
    return all;
  }
  SmallVector<int64_t> ranksOfGradients() const {
    return llvm::map_to_vector(gradients, [](Value memref) {
      return cast<MemRefType>(memref.getType()).getRank();
    });
  }
  Value blocksOf(Value all, int64_t ofBlock) { return a.ceilDiv(all, ofBlock); }

  Value batch, heads, queries, keyHeads, keys;

private:
  /// Counts and numbers of a list of blocks.  Of what is one for all a stride
  /// is 0; and a list that is absent is one count, 0, for all.
  void addLists(AttentionOpInterface op, ClauseGroup group,
                ArrayRef<Role> roles) {
    if (!op.blockSize())
      return;
    OperandRange lists = op.clauseOperands(group);
    for (auto [i, role] : llvm::enumerate(roles)) {
      if (!lists.empty()) {
        values.setShared(b, role, lists[i]);
        continue;
      }
      values.setArray(b, role, noList());
      for (Facet stride : kStrides)
        values.set(ArgumentRole(role, stride), constant(b.getI64Type(), 0));
    }
  }

  /// The number of sequences.
  Value addOffsets(AttentionOpInterface op) {
    OperandRange offsets = op.clauseOperands(ClauseGroup::offsets);
    constexpr Role roles[] = {Role::offsetsQ, Role::offsetsK};
    // On a cache keys have none.
    for (auto [each, role] : llvm::zip_first(offsets, roles))
      values.setArray(b, role, each);
    return b.createOrFold<arith::SubIOp>(size(offsets.front(), 0), index(1));
  }

  Value noList() {
    return tile::CounterOp::create(b, MemRefType::get({1}, b.getI32Type()));
  }

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

  /// Rows of a batch entry; tiles of sequences have their numbers there.
  void setRows(const ArgumentRole &role, Value array) {
    values.setArray(b, role, array);
    if (isOfSequences(role.role, problem))
      values.set(role.at(Facet::strideBatch), constant(b.getI64Type(), 0));
  }

  /// Memory that a launch has for itself, if there are more keys than that.
  Value ofBlocks(int64_t words, std::optional<int64_t> beyond) {
    auto type = MemRefType::get({words}, b.getI32Type());
    if (!beyond)
      return tile::ScratchOp::create(b, type);
    return scratch({beyondKeys(*beyond, index(words))}, std::nullopt,
                   type.getElementType());
  }

  void addStrips(const ArgumentRole &role, Type argument, int64_t perStrip,
                 const LaunchShape &shape) {
    Value strips = shape.isInRounds ? waitingStrips() : sizes().stripsOfHead();
    values.set(role, scratch({valueOf(Extent::batch), heads, strips}, perStrip,
                             elementTypeOf(argument)));
  }

  /// The array of an input's parts, for pointers to it and maps of it, and that
  /// of their exponents.
  void addParts(Role input) {
    Value memref = lookup(input);
    Value parts = scratch({size(memref, 0), size(memref, 1), size(memref, 2)},
                          tile::SplitViewOp::kParts *
                              columnsOfPart(input, problem, tiles),
                          b.getF16Type());
    ArgumentRole role = memoryOf(input, Memory::parts);
    values.set(role, parts);
    values.set(role.at(Facet::map), parts);
    Value blocks = a.ceilDiv(size(memref, 2), tile::SplitViewOp::kBlockRows);
    values.set(memoryOf(input, Memory::exponents),
               scratch({size(memref, 0), size(memref, 1), blocks}, std::nullopt,
                       b.getI32Type()));
  }

  /// What a launch leaves for those behind it, in the shape of an array of f32.
  void addShared(Role role) {
    SmallVector<Value> sizes;
    for (Extent extent : factsOf(role).shape)
      sizes.push_back(valueOf(extent));
    setRows(role, scratch(sizes, std::nullopt, b.getF32Type()));
  }

  /// Sums that wait from one strip of keys to the next: none, if there is one.
  Value waitingStrips() {
    return beyondKeys(launches.rounds.strip, sizes().stripsOfTiles());
  }

  Value tileOfEach() { return a.times(batch, index(kLeastTileRows)); }
  Value valueOf(Size size) {
    switch (size) {
    case Size::batch: // of ragged sequences see limitedBy
      return problem.ragged ? index(1) : batch;
    case Size::queries:
      return problem.ragged ? a.plus(queries, tileOfEach()) : queries;
    case Size::keys:
      return problem.ragged && problem.direction == Direction::backward
                 ? a.plus(keys, tileOfEach())
                 : keys;
    case Size::heads:
    case Size::kvHeads:
    case Size::group:
    case Size::headDim:
    case Size::headDimV:
      return index(attn::valueOf(size, problem));
    }
    return {};
  }

  Value valueOf(Extent extent) {
    switch (extent) {
    case Extent::batch: // sequences are rows of one entry
      return valueOf(Size::batch);
    case Extent::heads:
      return heads;
    case Extent::kvHeads:
      return keyHeads;
    case Extent::queries:
      return queries;
    case Extent::keys:
      return keys;
    case Extent::headDim:
    case Extent::headDimV:
      return index(attn::valueOf(extent, problem));
    case Extent::keptRows:
      return a.times(a.ceilDiv(keys, kKeptKeys), index(2));
    case Extent::queryBlocks:
      return a.ceilDiv(queries, problem.pattern->size().queries);
    case Extent::keyBlocks:
      return a.ceilDiv(keys, problem.pattern->size().keys);
    case Extent::offsets:
      return a.plus(batch, index(1));
    case Extent::tablePages:
    case Extent::pages:
    case Extent::pageRows: // of callers' arrays only
      break;
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

  void addBand(const BandValues &band) {
    if (band.first)
      values.set(Role::bandFirst, narrow(band.first, 32));
    if (band.last)
      values.set(Role::bandLast, narrow(band.last, 32));
    if (band.openKeys)
      values.set(Role::openKeys, narrow(band.openKeys, 32));
  }

  ImplicitLocOpBuilder &b;
  HostArithmetic a;
  const Tiles &tiles;
  const Launches &launches;
  Problem problem;
  int64_t group = 1;
  ArgumentValues values;
  SmallVector<Value> gradients; ///< of captures
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
    for (const AttentionArray &array : op.arrays())
      if (failed(roleOfArray(op, array.role)))
        return failure();
    OpBuilder builder(op);
    ImplicitLocOpBuilder b(op->getLoc(), builder);
    LaunchArguments arguments(b, op, choices->front().request);
    if (failed(launchCaptures(b, op, choices->front().request, arguments,
                              /*isBehind=*/false)))
      return failure();
    SmallVector<Launch> inRounds;
    for (KernelChoice &choice : *choices) {
      const LaunchShape &shape = choice.request.shape();
      FailureOr<tile::KernelOp> kernel = findOrBuild(op, choice);
      if (failed(kernel))
        return failure();
      Launch one = prepare(b, *kernel, choice.request, arguments);
      if (shape.isInRounds)
        inRounds.push_back(std::move(one));
      else if (failed(launch(b, one)))
        return failure();
    }
    if (!inRounds.empty())
      arguments.enterRounds();
    for (Launch &one : inRounds) {
      addRound(one, arguments);
      if (failed(launch(b, one)))
        return failure();
    }
    if (failed(launchCaptures(b, op, choices->front().request, arguments,
                              /*isBehind=*/true)))
      return failure();
    op->erase();
    return success();
  }

private:
  /// What gradients of captures need in front of the others, or behind them.
  LogicalResult launchCaptures(ImplicitLocOpBuilder &b, AttentionOpInterface op,
                               const KernelRequest &request,
                               LaunchArguments &arguments, bool isBehind) {
    KernelRequest own = request;
    own.minBlocksPerSm = 1;
    for (const CaptureGradient &gradient :
         captureGradients(request, arguments.ranksOfGradients())) {
      if (isBehind ? !gradient.hasHeads : !gradient.isCleared())
        continue;
      StringRef verb = isBehind ? "gathered" : "cleared";
      gpu::GPUModuleOp into = kernelModule.at(op->getLoc());
      own.name = kernelModule.uniqueName(
          (verb + "_gradient_" + Twine(gradient.target)).str());
      OpBuilder builder(op->getContext());
      builder.setInsertionPointToEnd(into.getBody());
      tile::KernelOp kernel =
          isBehind ? buildGathered(builder, op->getLoc(), own, gradient)
                   : buildCleared(builder, op->getLoc(), own, gradient);
      if (failed(checkRoles(kernel, own.problem)))
        return failure();
      kernel->setAttr("machine", machineAttr);
      Launch one;
      one.kernel = kernel;
      for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
        one.operands.push_back(
            arguments.get(kernel, i, own.shape(), /*mostBlocks=*/0));
      int64_t ofBlock = kCapturingWarps * (isBehind ? 1 : kClearedElements);
      Value size = arguments.index(1);
      one.grid = {
          arguments.blocksOf(arguments.elementsOf(gradient.target), ofBlock),
          size, size};
      if (failed(launch(b, one)))
        return failure();
    }
    return success();
  }

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
      if (!operand)
        operand = arguments.lookup(*roleOf(launch.kernel, i));
  }

  LogicalResult launch(ImplicitLocOpBuilder &b, const Launch &launch) {
    return attn::launch(b, kernelModule.symbolOf(launch.kernel), launch.kernel,
                        launch.grid, launch.operands);
  }

  FailureOr<tile::KernelOp> findOrBuild(AttentionOpInterface op,
                                        KernelChoice &choice) {
    for (const Built &known : built)
      if (sameKernel(known.choice, choice))
        return known.kernel;
    gpu::GPUModuleOp into = kernelModule.at(op->getLoc());
    choice.request.name = kernelModule.uniqueName(kernelName(choice));
    OpBuilder builder(op->getContext());
    builder.setInsertionPointToEnd(into.getBody());
    KernelBuilder build = findKernelBuilder(choice.builder);
    assert(build && "the plan names a builder that the registry has");
    tile::KernelOp kernel = build(builder, op->getLoc(), choice.request);
    if (failed(checkRoles(kernel, choice.request.problem)))
      return failure();
    if (machine.canChain() && choice.request.launches.shapes.size() > 1)
      chain(kernel, choice.request.shape().holdsNext);
    kernel->setAttr("schedule", op.getScheduleAttr());
    kernel->setAttr("machine", machineAttr);
    kernel->setAttr(kProblemAttr,
                    problemAttr(op->getContext(), choice.request.problem));
    Built one = {choice, copyOf(choice.request.sees),
                 copyOf(choice.request.score), kernel};
    one.choice.request.sees = one.sees.get();
    one.choice.request.score = one.score.get();
    built.push_back(std::move(one));
    return kernel;
  }

  ModuleOp module;
  MachineAttr machineAttr;
  Machine machine;
  KernelModule &kernelModule;
  /// What a kernel is known by.
  struct Built {
    KernelChoice choice;
    std::unique_ptr<Region> sees, score;
    tile::KernelOp kernel;
  };
  std::vector<Built> built;
};

struct AttnToTilePass : attn::impl::AttnToTilePassBase<AttnToTilePass> {
  using AttnToTilePassBase::AttnToTilePassBase;

  /// Kernels stand in the module of the ops that need them.
  void runOnOperation() override {
    llvm::MapVector<ModuleOp, SmallVector<Operation *>> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOpInterface, MergeOpInterface, BlockListsOp,
              TransposeBlocksOp>(op))
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
    ListConverter lists(module, machine, kernels);
    auto convert = [&](Operation *op) {
      if (auto merge = dyn_cast<MergeOpInterface>(op))
        return merges.convert(merge);
      if (auto blocks = dyn_cast<BlockListsOp>(op))
        return lists.convert(blocks);
      if (auto blocks = dyn_cast<TransposeBlocksOp>(op))
        return lists.convert(blocks);
      return converter.convert(cast<AttentionOpInterface>(op));
    };
    for (Operation *op : ops)
      if (failed(convert(op)))
        return failure();
    return success();
  }
};

} // namespace
