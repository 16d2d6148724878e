//===- Interpreter.cpp - Runs a kernel over a grid ------------------------===//

#include "attn/Interpreter/Interpreter.h"

#include "Run/Residents.h"

#include "attn/Tile/Grid.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// The argument has the kind that the kernel's type asks for.
static bool matches(Type type, const KernelArgument &argument) {
  if (isa<tile::TensorMapType>(type))
    return std::holds_alternative<TensorMapArgument>(argument);
  if (isa<tile::PtrType>(type))
    return std::holds_alternative<uint64_t>(argument);
  if (type.isInteger(32))
    return std::holds_alternative<int32_t>(argument);
  if (type.isInteger(64))
    return std::holds_alternative<int64_t>(argument);
  return std::holds_alternative<float>(argument);
}

/// What TMA asks of an array: 16-byte steps, one behind the other in a row.
static LogicalResult checkArray(tile::KernelOp kernel, unsigned index,
                                tile::TensorMapType type,
                                const TensorMapArgument &array) {
  constexpr int64_t unit = 16;
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  if (array.address % unit != 0)
    return kernel.emitError("expects the array of argument ")
           << index << " at a multiple of " << unit << " bytes, but got "
           << array.address;
  if (!type.fits(array.sizes[3]) || array.strides[3] != 1)
    return kernel.emitError("expects the array of argument ")
           << index << " to have " << type.getColumns()
           << " columns at most, side by side, but got " << array.sizes[3]
           << " with stride " << array.strides[3];
  for (int dim = 0; dim < 3; ++dim) {
    if (array.sizes[dim] < 0)
      return kernel.emitError("expects the array of argument ")
             << index << " to have sizes of at least 0, but got "
             << array.sizes[dim];
    // The stride of a single row, head or batch entry is never used.
    if (array.sizes[dim] > 1 &&
        (array.strides[dim] < 0 || array.strides[dim] * bytes % unit != 0))
      return kernel.emitError("expects strides of the array of argument ")
             << index << " in multiples of " << unit << " bytes, but got "
             << array.strides[dim] * bytes << " in dimension " << dim;
  }
  return success();
}

static LogicalResult checkLaunch(tile::KernelOp kernel,
                                 std::array<int64_t, 3> grid,
                                 ArrayRef<KernelArgument> arguments) {
  if (std::optional<std::string> wrong = tile::checkGrid(grid))
    return kernel.emitError(*wrong);
  if (grid[0] % kernel.getCluster() != 0)
    return kernel.emitError("expects a grid of whole clusters of ")
           << kernel.getCluster() << " blocks along dimension 0, but got "
           << grid[0] << " blocks";
  ArrayRef<Type> types = kernel.getArgumentTypes();
  if (types.size() != arguments.size())
    return kernel.emitError("expects ")
           << types.size() << " arguments, but got " << arguments.size();
  for (auto [index, type] : llvm::enumerate(types))
    if (!matches(type, arguments[index]))
      return kernel.emitError("expects argument ")
             << index << " to be a value of type " << type
             << ", but got one of another type";
  for (auto [index, type] : llvm::enumerate(types))
    if (auto map = dyn_cast<tile::TensorMapType>(type))
      if (failed(checkArray(kernel, unsigned(index), map,
                            std::get<TensorMapArgument>(arguments[index]))))
        return failure();
  return success();
}

/// Counters and flags are 0 again when the kernel ends, for the next launch.
static void checkCounters(Launch &launch) {
  for (auto [address, op] : launch.counters) {
    int32_t value = 0;
    if (!launch.memory.read(address, &value, sizeof value) && value != 0)
      launch.reporter.report(
          op, "counter",
          Twine("expects the ") + (isa<tile::DrawOp>(op) ? "counter" : "flag") +
              " to be 0 at the end of the kernel, but got " + Twine(value));
  }
}

/// The blocks that run at once: all, those of a cluster, or each alone.
static std::vector<std::vector<std::array<int64_t, 3>>>
residentBlocks(const Program &program, std::array<int64_t, 3> grid) {
  std::vector<std::vector<std::array<int64_t, 3>>> groups;
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; ++x) {
        bool first = program.together ? groups.empty()
                                      : x % int64_t(program.cluster) == 0;
        if (first)
          groups.emplace_back();
        groups.back().push_back({x, y, z});
      }
  return groups;
}

FailureOr<tile::Traffic> attn::interpret(tile::KernelOp kernel,
                                         std::array<int64_t, 3> grid,
                                         ArrayRef<KernelArgument> arguments,
                                         GlobalMemory &memory,
                                         const InterpreterOptions &options) {
  if (failed(checkLaunch(kernel, grid, arguments)))
    return failure();
  FailureOr<Program> program = compile(kernel);
  if (failed(program))
    return failure();
  Launch launch{*program,
                memory,
                grid,
                arguments,
                Reporter(options.maxErrors),
                {},
                {},
                std::vector<bool>(program->ops.size())};
  std::optional<Tracer> tracer;
  if (options.trace)
    launch.tracer = &tracer.emplace(*program, kernel);
  tile::Traffic traffic;
  for (ArrayRef<std::array<int64_t, 3>> positions :
       residentBlocks(*program, grid)) {
    Residents residents(launch, positions, options);
    residents.run();
    traffic += residents.traffic();
    if (launch.reporter.exhausted())
      return failure();
  }
  if (tracer)
    options.trace->push_back(std::move(tracer->trace));
  if (options.executed)
    for (auto [op, isExecuted] : llvm::zip_equal(program->ops, launch.executed))
      if (isExecuted)
        options.executed->insert(op);
  if (launch.reporter.errors() == 0)
    checkCounters(launch);
  if (launch.reporter.errors() != 0)
    return failure();
  return traffic;
}
