//===- Interpreter.cpp - Runs a kernel over a grid ------------------------===//

#include "attn/Interpreter/Interpreter.h"

#include "Warp.h"

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

/// The argument has the kind that the kernel's type asks for.
static bool matches(Type type, const KernelArgument &argument) {
  if (isa<tile::PtrType>(type))
    return std::holds_alternative<uint64_t>(argument);
  if (type.isInteger(32))
    return std::holds_alternative<int32_t>(argument);
  if (type.isInteger(64))
    return std::holds_alternative<int64_t>(argument);
  return std::holds_alternative<float>(argument);
}

static LogicalResult checkLaunch(tile::KernelOp kernel,
                                 std::array<int64_t, 3> grid,
                                 ArrayRef<KernelArgument> arguments) {
  for (int64_t extent : grid)
    if (extent < 0)
      return kernel.emitError("expects a grid of at least 0 blocks, but got ")
             << extent;
  ArrayRef<Type> types = kernel.getArgumentTypes();
  if (types.size() != arguments.size())
    return kernel.emitError("expects ")
           << types.size() << " arguments, but got " << arguments.size();
  for (auto [index, type] : llvm::enumerate(types))
    if (!matches(type, arguments[index]))
      return kernel.emitError("expects argument ")
             << index << " to be a value of type " << type
             << ", but got one of another type";
  return success();
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
  Reporter reporter(options.maxErrors);
  tile::Traffic traffic;
  for (int64_t z = 0; z < grid[2]; ++z)
    for (int64_t y = 0; y < grid[1]; ++y)
      for (int64_t x = 0; x < grid[0]; ++x) {
        ThreadBlock block(*program, memory, {x, y, z}, arguments, reporter);
        block.run(options);
        traffic += block.traffic;
        if (reporter.exhausted())
          return failure();
      }
  if (reporter.errors() != 0)
    return failure();
  return traffic;
}
