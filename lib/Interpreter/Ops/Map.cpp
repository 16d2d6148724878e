//===- Map.cpp - Elementwise functions, a row at a time -------------------===//
//
// The body of a map, or of additions, becomes a list of scalar ops over
// registers.  A register holds a chunk of lanes: the elements of one row of a
// fragment, or all rows of a row (times four, if a row is partial).  What the
// body captures, its constants, and a row operand of a fragment are the same in
// all lanes. What lanes read they read one by one.
//
//===----------------------------------------------------------------------===//

#include "Run/Handlers.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::interpreter;

namespace attn::interpreter {
/// A compiled body.  Registers are numbered; arguments come first.
struct MapBody {
  struct Op {
    /// Nothing: it reads memory.
    std::optional<ScalarOp> scalar;
    mlir::Operation *op;
    llvm::SmallVector<unsigned, 3> operands;
    unsigned result;
  };
  /// Values of the kernel that the body uses: slot and register.
  llvm::SmallVector<std::pair<unsigned, unsigned>> captured;
  std::vector<Op> ops;
  /// Whether a register holds reals.
  std::vector<bool> real;
  /// What the body ends in: the element of a map; or what is added, where, and
  /// whether it is.
  llvm::SmallVector<unsigned, 3> results;
  /// Row index, and column index if the result is a fragment.
  unsigned indices;
};
} // namespace attn::interpreter

/// Of a block, some of whose arguments stand for inputs.
static FailureOr<std::shared_ptr<const MapBody>>
compileBody(Block &block, size_t inputs, Slots &slots) {
  auto body = std::make_shared<MapBody>();
  llvm::DenseMap<Value, unsigned> registers;
  auto define = [&](Value value) {
    registers[value] = unsigned(body->real.size());
    body->real.push_back(value.getType().isF32());
    return registers[value];
  };
  for (BlockArgument argument : block.getArguments())
    define(argument);
  body->indices = unsigned(block.getNumArguments() - inputs);
  auto use = [&](Value value) {
    if (auto known = registers.find(value); known != registers.end())
      return known->second;
    unsigned reg = define(value);
    body->captured.push_back({slots.of(value), reg});
    return reg;
  };
  for (Operation &op : block) {
    if (isa<tile::YieldOp, tile::AddOp>(op)) {
      for (Value operand : op.getOperands())
        body->results.push_back(use(operand));
      continue;
    }
    std::optional<ScalarOp> scalar = decodeScalar(&op);
    if (!scalar && !isa<tile::ReadOp>(op))
      return op.emitError("expects an op that the interpreter executes, but "
                          "got '")
             << op.getName() << "'";
    MapBody::Op &compiled = body->ops.emplace_back();
    compiled.scalar = scalar;
    compiled.op = &op;
    for (Value operand : op.getOperands())
      compiled.operands.push_back(use(operand));
    compiled.result = define(op.getResult(0));
  }
  return std::shared_ptr<const MapBody>(std::move(body));
}

FailureOr<std::shared_ptr<const MapBody>>
attn::interpreter::compileMap(tile::MapOp map, Slots &slots) {
  return compileBody(map.getBody().front(), map.getInputs().size(), slots);
}

FailureOr<std::shared_ptr<const MapBody>>
attn::interpreter::compileMap(tile::AddElementsOp op, Slots &slots) {
  return compileBody(op.getBody().front(), op.getInputs().size(), slots);
}

namespace {
/// The registers of one execution of a map, `lanes` lanes each.
class Registers {
public:
  Registers(Warp &warp, const Instruction &in, int64_t lanes)
      : warp(warp), in(in), body(*in.map), lanes(lanes),
        reals(body.real.size() * lanes), integers(body.real.size() * lanes) {}

  Lanes operator[](unsigned reg) {
    return {&integers[reg * lanes], &reals[reg * lanes]};
  }
  void broadcast(unsigned reg, const Number &value) {
    std::fill_n(&integers[reg * lanes], lanes, value.integer);
    std::fill_n(&reals[reg * lanes], lanes, value.real);
  }
  /// Nothing, or a sentence and the op that it is about.
  std::optional<std::string> evaluateAll(Operation *&at) {
    SmallVector<Lanes, 4> operands;
    for (const MapBody::Op &op : body.ops) {
      operands.clear();
      for (unsigned reg : op.operands)
        operands.push_back((*this)[reg]);
      at = op.op;
      if (auto read = dyn_cast<tile::ReadOp>(op.op)) {
        if (auto error = readAll(read, operands, (*this)[op.result]))
          return error;
        continue;
      }
      if (const char *error =
              evaluate(*op.scalar, operands, (*this)[op.result], lanes))
        return error;
    }
    return std::nullopt;
  }

private:
  std::optional<std::string> readAll(tile::ReadOp read, ArrayRef<Lanes> from,
                                     Lanes to) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool exists = from.size() < 4 || from[3].integers[lane] != 0;
      Number number;
      uint64_t base = uint64_t(from[0].integers[lane]);
      int64_t index = from[1].integers[lane] + from[2].integers[lane];
      if (exists)
        if (auto error = readElement(warp, in, read, base, index, number))
          return error;
      to.integers[lane] = number.integer;
      to.reals[lane] = number.real;
    }
    return std::nullopt;
  }

  Warp &warp;
  const Instruction &in;
  const MapBody &body;
  int64_t lanes;
  std::vector<float> reals;
  std::vector<int64_t> integers;
};
} // namespace

static Number elementOf(const Matrix &matrix, int64_t index) {
  if (matrix.integers.empty())
    return {0, matrix.reals[index]};
  return {matrix.integers[index]};
}

/// Copies lanes out of a register.
static void store(Lanes from, int64_t count, Matrix &to, int64_t begin) {
  if (to.integers.empty())
    std::copy_n(from.reals, count, &to.reals[begin]);
  else
    std::copy_n(from.integers, count, &to.integers[begin]);
}

/// One chunk of lanes per row; row operands are the same in all of them.  What
/// becomes of a row is for `finish`, which may have a sentence to say.
static std::optional<std::string>
forEachRow(const MapBody &body, Registers &registers,
           ArrayRef<MatrixRef> inputs, int64_t rows, int64_t columns,
           Operation *&at,
           function_ref<std::optional<std::string>(int64_t row)> finish) {
  std::iota(registers[1].integers, registers[1].integers + columns, 0);
  for (int64_t i = 0; i < rows; ++i) {
    registers.broadcast(0, {i});
    for (auto [index, input] : llvm::enumerate(inputs)) {
      unsigned reg = body.indices + unsigned(index);
      if (input->columns == columns)
        std::copy_n(input->row(i), columns, registers[reg].reals);
      else
        registers.broadcast(reg, elementOf(*input, i * input->columns));
    }
    if (auto error = registers.evaluateAll(at))
      return error;
    if (auto error = finish(i))
      return error;
  }
  return std::nullopt;
}

static std::optional<std::string> mapFragment(const MapBody &body,
                                              Registers &registers,
                                              ArrayRef<MatrixRef> inputs,
                                              Matrix &result, Operation *&at) {
  return forEachRow(body, registers, inputs, result.rows, result.columns, at,
                    [&](int64_t i) -> std::optional<std::string> {
                      store(registers[body.results.front()], result.columns,
                            result, i * result.columns);
                      return std::nullopt;
                    });
}

/// All rows in one chunk, `parts` lanes for each.
static std::optional<std::string>
mapRow(const MapBody &body, Registers &registers, ArrayRef<MatrixRef> inputs,
       int64_t parts, Matrix &result, Operation *&at) {
  int64_t lanes = result.rows * parts;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    registers[0].integers[lane] = lane / parts;
    for (auto [index, input] : llvm::enumerate(inputs)) {
      Lanes reg = registers[body.indices + unsigned(index)];
      Number value =
          elementOf(*input, input->columns == 1 ? lane / parts : lane);
      reg.reals[lane] = value.real;
      reg.integers[lane] = value.integer;
    }
  }
  if (auto error = registers.evaluateAll(at))
    return error;
  store(registers[body.results.front()], lanes, result, 0);
  return std::nullopt;
}

Step attn::interpreter::runMap(Warp &warp, const Instruction &in) {
  const MapBody &body = *in.map;
  SmallVector<MatrixRef> inputs;
  for (unsigned operand = 0; operand < in.operands.size(); ++operand)
    inputs.push_back(warp.matrix(in, operand));
  Type type = cast<tile::MapOp>(in.op).getResult().getType();
  auto fragment = dyn_cast<tile::FragType>(type);
  auto row = dyn_cast<tile::RowType>(type);
  int64_t rows = fragment ? fragment.getRows() : row.getRows();
  int64_t parts = row && row.getPartial() ? kPartsOfRow : 1;
  auto result =
      std::make_shared<Matrix>(rows, fragment ? fragment.getColumns() : parts,
                               fragment || row.getElementType().isF32());

  Registers registers(warp, in, fragment ? result->columns : rows * parts);
  for (auto [slot, reg] : body.captured)
    registers.broadcast(reg, std::get<Number>(warp.cell(slot)));
  Operation *at = nullptr;
  std::optional<std::string> error =
      fragment ? mapFragment(body, registers, inputs, *result, at)
               : mapRow(body, registers, inputs, parts, *result, at);
  if (error) {
    warp.report(at, "scalar", *error);
    return Step::stop;
  }
  return warp.set(in, MatrixRef(std::move(result)));
}

//===----------------------------------------------------------------------===//
// tile.add_elements
//===----------------------------------------------------------------------===//

/// Adds to a word that nobody else reads or writes: additions commute.
static std::optional<std::string> addWord(Warp &warp, uint64_t address,
                                          float value) {
  GlobalMemory &memory = warp.block.memory;
  float sum = 0;
  if (auto error = memory.read(address, &sum, sizeof sum))
    return error;
  sum += value;
  return memory.write(address, &sum, sizeof sum);
}

Step attn::interpreter::runAddElements(Warp &warp, const Instruction &in) {
  const MapBody &body = *in.map;
  auto op = cast<tile::AddElementsOp>(in.op);
  unsigned count = unsigned(op.getInputs().size());
  SmallVector<MatrixRef> inputs;
  for (unsigned operand = 0; operand < count; ++operand)
    inputs.push_back(warp.matrix(in, operand));
  auto base = uint64_t(warp.integer(in, count));
  int64_t offset = warp.integer(in, count + 1);
  auto type = cast<tile::FragType>(op.getInputs().front().getType());
  Registers registers(warp, in, type.getColumns());
  for (auto [slot, reg] : body.captured)
    registers.broadcast(reg, std::get<Number>(warp.cell(slot)));
  Operation *at = nullptr;
  auto add = [&](int64_t) -> std::optional<std::string> {
    Lanes value = registers[body.results[0]],
          index = registers[body.results[1]];
    bool isAsked = body.results.size() > 2;
    Lanes exists = isAsked ? registers[body.results[2]] : Lanes();
    for (int64_t lane = 0; lane < type.getColumns(); ++lane) {
      if (isAsked && exists.integers[lane] == 0)
        continue;
      int64_t place = offset + index.integers[lane];
      uint64_t address = base + uint64_t(place * int64_t(sizeof(float)));
      if (auto error = addWord(warp, address, value.reals[lane]))
        return *error + " at element " + std::to_string(place);
    }
    return std::nullopt;
  };
  if (std::optional<std::string> error =
          forEachRow(body, registers, inputs, type.getRows(), type.getColumns(),
                     at, add)) {
    warp.report(in.op, "addition", *error);
    return Step::stop;
  }
  constexpr int64_t wordBytes = sizeof(float);
  warp.block.traffic.global += type.getRows() * type.getColumns() * wordBytes;
  return Step::next;
}
