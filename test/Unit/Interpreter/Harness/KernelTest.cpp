//===- KernelTest.cpp - Runs kernels written in a test --------------------===//

#include "Harness/KernelTest.h"

#include "Mutants/Survivors.h"

#include "attn/Host/Rounding.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

void attn::loadDialects(MLIRContext &context) {
  context.printOpOnDiagnostic(false);
  context.loadDialect<tile::TileDialect, arith::ArithDialect, math::MathDialect,
                      scf::SCFDialect, func::FuncDialect, memref::MemRefDialect,
                      cf::ControlFlowDialect>();
}

void KernelTest::parse(const std::string &text,
                       const std::vector<Change> &changes) {
  source = text;
  for (const auto &[from, to] : changes) {
    size_t at = source.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    source.replace(at, from.size(), to);
  }
  module = parseSourceString<ModuleOp>(source, &context);
  ASSERT_TRUE(module);
}

uint64_t KernelTest::allocateFloats(const std::vector<float> &values) {
  uint64_t address = memory.allocate(int64_t(values.size()) * 4);
  memory.write(address, values.data(), int64_t(values.size()) * 4);
  return address;
}

uint64_t KernelTest::allocateBf16(const std::vector<float> &values) {
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), bf16FromFloat);
  uint64_t address = memory.allocate(int64_t(bits.size()) * 2);
  memory.write(address, bits.data(), int64_t(bits.size()) * 2);
  return address;
}

std::vector<float> KernelTest::floats(uint64_t address, int64_t count) {
  std::vector<float> values(count);
  std::optional<std::string> error =
      memory.read(address, values.data(), count * 4);
  EXPECT_EQ(error.value_or(""), "");
  return values;
}

/// Numbers of 16 bits.
static std::vector<float> halves(GlobalMemory &memory, uint64_t address,
                                 int64_t count, float (*decode)(uint16_t)) {
  std::vector<uint16_t> bits(count);
  std::optional<std::string> error =
      memory.read(address, bits.data(), count * 2);
  EXPECT_EQ(error.value_or(""), "");
  std::vector<float> values(count);
  std::transform(bits.begin(), bits.end(), values.begin(), decode);
  return values;
}

std::vector<float> KernelTest::bf16s(uint64_t address, int64_t count) {
  return halves(memory, address, count, floatFromBf16);
}

std::vector<float> KernelTest::f16s(uint64_t address, int64_t count) {
  return halves(memory, address, count, floatFromF16);
}

bool KernelTest::run(const std::vector<KernelArgument> &arguments,
                     std::array<int64_t, 3> grid, InterpreterOptions options) {
  errors.clear();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    auto location = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
    Diagnosed &error = errors.emplace_back();
    error.line = location ? location.getLine() : 0;
    error.text = diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      error.notes += note.str() + "\n";
    return success();
  });
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  FailureOr<tile::Traffic> moved =
      interpret(kernel, grid, arguments, memory, options);
  if (succeeded(moved))
    traffic = *moved;
  EXPECT_EQ(succeeded(moved), errors.empty());
  return succeeded(moved);
}

void KernelTest::expectError(const std::vector<KernelArgument> &arguments,
                             const std::string &message, int64_t blocks) {
  size_t marker = source.find("// HERE");
  ASSERT_NE(marker, std::string::npos);
  unsigned line =
      1 + unsigned(std::count(source.begin(), source.begin() + marker, '\n'));
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
    InterpreterOptions options;
    options.order = order;
    ASSERT_FALSE(run(arguments, {blocks, 1, 1}, options)) << message;
    EXPECT_NE(errors.front().text.find(message), std::string::npos)
        << errors.front().text;
    EXPECT_EQ(errors.front().line, line) << errors.front().text;
  }
}

void KernelTest::expectFirstError(const std::vector<std::string> &messages) {
  ASSERT_FALSE(errors.empty()) << messages.front();
  const std::string &text = errors.front().text;
  EXPECT_TRUE(std::any_of(messages.begin(), messages.end(),
                          [&](const std::string &message) {
                            return text.find(message) != std::string::npos;
                          }))
      << text;
}

void KernelTest::expectMutantsKilled(
    const std::string &subject, int atLeast,
    const std::vector<InterpreterOptions> &orders,
    llvm::function_ref<bool(const InterpreterOptions &)> runs,
    llvm::function_ref<bool()> isRight) {
  OwningOpRef<ModuleOp> right = std::move(module);
  expectKilled(subject, *right, atLeast, [&](ModuleOp mutant) -> std::string {
    module = mutant.clone();
    for (const InterpreterOptions &options : orders) {
      bool isRun = runs(options);
      if (!errors.empty())
        return errors.front().text;
      if (!isRun || !isRight())
        return "wrong results";
    }
    return "";
  });
  module = std::move(right);
}
