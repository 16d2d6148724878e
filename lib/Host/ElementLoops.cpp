//===- ElementLoops.cpp - Loops over elements, one by one -----------------===//
//
// A nest is read once, into steps whose values have numbers, and then run:
//
//   for i = 0 to %n            value 3 counts from value 0 to value 1 by 2
//     %x = load %a[%i]         value 4 is the element of array 0 at (3)
//     %y = mulf %x, %x         value 5 is mulf of 4 and 4
//     store %y, %b[%i]         the element of array 1 at (3) is value 5
//
//===----------------------------------------------------------------------===//

#include "attn/Host/Host.h"
#include "attn/Host/Scalars.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <memory>

using namespace attn;
using namespace mlir;

namespace {

using Slot = unsigned;

struct Scalar {
  ScalarOp op;
  SmallVector<Slot, 3> operands;
  Slot result;
};

/// A load, or a store.
struct Access {
  unsigned array;
  SmallVector<Slot, 4> indices;
  Slot element;
  Type type;
  bool isStore;
};

struct Loop;
struct Step {
  Operation *op;
  std::variant<Scalar, Access, std::unique_ptr<Loop>> what;
};

struct Loop {
  Slot lower, upper, step, counter;
  std::vector<Step> body;
};

class Nest {
public:
  Nest(const ElementLoops &loops, Device &device) : device(device) {
    for (const auto &[value, of] : loops.values) {
      if (const auto *array = std::get_if<HostArray>(&of)) {
        arrayOf[value] = arrays.size();
        arrays.push_back(*array);
      } else {
        const auto &scalar = std::get<HostScalar>(of);
        values[slot(value)] = {scalar.integer, float(scalar.real)};
      }
    }
  }

  LogicalResult run(scf::ForOp op) {
    Step outer = {op, {}};
    return failed(read(op, outer)) ? failure() : run(outer);
  }

private:
  Slot slot(Value value) {
    auto [at, isNew] = slotOf.try_emplace(value, values.size());
    if (isNew)
      values.push_back({});
    return at->second;
  }
  SmallVector<Slot, 4> slots(ValueRange range) {
    return llvm::map_to_vector<4>(range, [&](Value v) { return slot(v); });
  }

  LogicalResult read(Operation *op, Step &step);
  LogicalResult read(scf::ForOp op, Step &step);
  LogicalResult readAccess(Operation *op, Value array, ValueRange indices,
                           Value element, Step &step);

  LogicalResult run(const Step &step);
  LogicalResult run(const Loop &loop, Operation *op);
  LogicalResult run(const Access &access, Operation *op);
  LogicalResult run(const Scalar &scalar, Operation *op);

  Device &device;
  llvm::DenseMap<Value, Slot> slotOf;
  llvm::DenseMap<Value, unsigned> arrayOf;
  std::vector<Number> values;
  std::vector<HostArray> arrays;
};

} // namespace

LogicalResult Nest::read(scf::ForOp op, Step &step) {
  if (op.getNumResults() != 0)
    return op.emitError("expects a loop over elements to carry nothing");
  auto loop = std::make_unique<Loop>();
  loop->lower = slot(op.getLowerBound());
  loop->upper = slot(op.getUpperBound());
  loop->step = slot(op.getStep());
  loop->counter = slot(op.getInductionVar());
  for (Operation &inside : op.getBody()->without_terminator()) {
    loop->body.push_back({&inside, {}});
    if (failed(read(&inside, loop->body.back())))
      return failure();
  }
  step.what = std::move(loop);
  return success();
}

LogicalResult Nest::readAccess(Operation *op, Value array, ValueRange indices,
                               Value element, Step &step) {
  auto found = arrayOf.find(array);
  if (found == arrayOf.end())
    return op->emitError("expects an array from outside of the loops");
  step.what = Access{found->second, slots(indices), slot(element),
                     element.getType(), isa<memref::StoreOp>(op)};
  return success();
}

LogicalResult Nest::read(Operation *op, Step &step) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return read(loop, step);
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return readAccess(op, load.getMemRef(), load.getIndices(), load.getResult(),
                      step);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return readAccess(op, store.getMemRef(), store.getIndices(),
                      store.getValueToStore(), step);
  std::optional<ScalarOp> decoded = decodeScalar(op);
  if (!decoded)
    return op->emitError("expects an op that a loop over elements may have, "
                         "but got '")
           << op->getName() << "'";
  Scalar scalar = {*decoded, {}, slot(op->getResult(0))};
  llvm::append_range(scalar.operands, slots(op->getOperands()));
  step.what = std::move(scalar);
  return success();
}

LogicalResult Nest::run(const Step &step) {
  if (const auto *loop = std::get_if<std::unique_ptr<Loop>>(&step.what))
    return run(**loop, step.op);
  if (const auto *access = std::get_if<Access>(&step.what))
    return run(*access, step.op);
  return run(std::get<Scalar>(step.what), step.op);
}

LogicalResult Nest::run(const Loop &loop, Operation *op) {
  int64_t upper = values[loop.upper].integer, by = values[loop.step].integer;
  if (by <= 0)
    return op->emitError("expects a step of at least 1, but got ") << by;
  for (int64_t i = values[loop.lower].integer; i < upper; i += by) {
    values[loop.counter].integer = i;
    for (const Step &step : loop.body)
      if (failed(run(step)))
        return failure();
  }
  return success();
}

LogicalResult Nest::run(const Access &access, Operation *op) {
  const HostArray &array = arrays[access.array];
  int64_t place = 0;
  for (auto [dim, index] : llvm::enumerate(access.indices)) {
    int64_t at = values[index].integer;
    if (at < 0 || at >= array.sizes[dim])
      return op->emitError("expects an index between 0 and ")
             << array.sizes[dim] - 1 << ", but got " << at;
    place += at * array.strides[dim];
  }
  uint64_t address = array.address() + place * array.elementBytes();
  Number &element = values[access.element];
  if (access.isStore)
    return device.store({element.integer, element.real}, access.type, address,
                        op->getLoc());
  FailureOr<HostScalar> found = device.load(access.type, address, op->getLoc());
  if (failed(found))
    return failure();
  element = {found->integer, float(found->real)};
  return success();
}

LogicalResult Nest::run(const Scalar &scalar, Operation *op) {
  SmallVector<Lanes, 3> operands;
  for (Slot operand : scalar.operands)
    operands.push_back({&values[operand].integer, &values[operand].real});
  Number &result = values[scalar.result];
  if (const char *error =
          evaluate(scalar.op, operands, {&result.integer, &result.real}, 1))
    return op->emitError(error);
  return success();
}

LogicalResult attn::runElementLoops(const ElementLoops &loops, Device &device) {
  return Nest(loops, device).run(cast<scf::ForOp>(loops.loop));
}
