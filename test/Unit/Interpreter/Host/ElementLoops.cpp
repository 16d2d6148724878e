//===- ElementLoops.cpp - Are loops over elements run as written? ---------===//

#include "attn/Host/Recording.h"
#include "attn/Host/Rounding.h"
#include "attn/Interpreter/InterpreterDevice.h"

#include "Harness/KernelTest.h"

using namespace mlir;
using namespace attn;

namespace {

class LoopsOverElements : public KernelTest {
protected:
  func::FuncOp function() { return *module->getOps<func::FuncOp>().begin(); }
  Type type(StringRef name) {
    return name == "bf16" ? Type(BFloat16Type::get(&context))
           : name == "i1" ? Type(IntegerType::get(&context, 1))
                          : Type(Float32Type::get(&context));
  }

  /// What `run` says, of a text.
  template <typename Run> std::string diagnosed(Run run) {
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return success();
    });
    run();
    return said;
  }

  template <typename T> uint64_t upload(const std::vector<T> &values) {
    int64_t bytes = int64_t(values.size() * sizeof(T));
    uint64_t address = device.memory().allocate(bytes);
    device.memory().write(address, values.data(), bytes);
    return address;
  }
  template <typename T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(device.memory()
                  .read(address, values.data(), int64_t(count * sizeof(T)))
                  .value_or(""),
              "");
    return values;
  }

  InterpreterDevice device;
};

/// What has no memory that a host could look at.
class Elsewhere : public Device {
public:
  FailureOr<uint64_t> allocate(int64_t, Location) override { return 1; }
  LogicalResult free(uint64_t, Location) override { return success(); }
  LogicalResult launch(tile::KernelOp, std::array<int64_t, 3>,
                       ArrayRef<KernelArgument>, Location) override {
    return success();
  }
  FailureOr<uint64_t> counters(int64_t, Location) override { return 1; }
  LogicalResult copy(const HostArray &, const HostArray &, Location) override {
    return success();
  }
};

} // namespace

/// out[i, j] = shown[j] ? 2 a[j, i] + i : -1, of bf16, with strides and sizes
/// that are known at run time only; and then a sum over rows.
static const char *const kNests = R"(
func.func @f(%a: memref<?x?xbf16, strided<[?, ?], offset: ?>>,
             %shown: memref<?xi1>) -> (memref<?x?xf32>, memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %hidden = arith.constant -1.0 : f32
  %zero = arith.constant 0.0 : f32
  %m = memref.dim %a, %c0 : memref<?x?xbf16, strided<[?, ?], offset: ?>>
  %n = memref.dim %a, %c1 : memref<?x?xbf16, strided<[?, ?], offset: ?>>
  %out = memref.alloc(%n, %m) : memref<?x?xf32>
  %sums = memref.alloc(%n) : memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    memref.store %zero, %sums[%i] : memref<?xf32>
    scf.for %j = %c0 to %m step %c1 {
      %x = memref.load %a[%j, %i] : memref<?x?xbf16, strided<[?, ?], offset: ?>>
      %s = memref.load %shown[%j] : memref<?xi1>
      %w = arith.extf %x : bf16 to f32
      %t = arith.mulf %w, %two : f32
      %k = arith.index_cast %i : index to i32
      %r = arith.sitofp %k : i32 to f32
      %y = arith.addf %t, %r : f32
      %z = arith.select %s, %y, %hidden : f32
      memref.store %z, %out[%i, %j] : memref<?x?xf32>
    }
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %m step %c1 {
      %x = memref.load %out[%i, %j] : memref<?x?xf32>
      %s = memref.load %sums[%i] : memref<?xf32>
      %y = arith.addf %s, %x : f32
      memref.store %y, %sums[%i] : memref<?xf32>
    }
  }
  return %out, %sums : memref<?x?xf32>, memref<?xf32>
})";

TEST_F(LoopsOverElements, AreStepsOfARecording) {
  parse(kNests);
  constexpr int64_t m = 5, n = 3, before = 2, stride = 7;
  std::vector<uint16_t> a(before + stride * m, 0xffff);
  for (int64_t j = 0; j < m; ++j)
    for (int64_t i = 0; i < n; ++i)
      a[before + stride * j + 2 * i] =
          bf16FromFloat(float(j) - 0.5F * float(i));
  std::vector<uint8_t> shown = {1, 0, 1, 1, 0};
  HostArray shapes[] = {{0, before, {m, n}, {stride, 2}, type("bf16")},
                        HostArray::contiguous(0, {m}, type("i1"))};
  FailureOr<Recording> recording = record(function(), shapes);
  ASSERT_TRUE(succeeded(recording));
  ASSERT_EQ(recording->steps.size(), 2u);
  ASSERT_EQ(recording->allocationBytes, (std::vector<int64_t>{60, 12}));

  std::vector<uint64_t> slots = {upload(a), upload(shown),
                                 device.memory().allocate(60),
                                 device.memory().allocate(12)};
  ASSERT_TRUE(
      succeeded(replay(*recording, device, slots, function().getLoc())));
  std::vector<float> out = download<float>(slots[2], n * m),
                     sums = download<float>(slots[3], n);
  for (int64_t i = 0; i < n; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < m; ++j) {
      float wanted =
          shown[j] ? 2 * (float(j) - 0.5F * float(i)) + float(i) : -1;
      EXPECT_EQ(out[i * m + j], wanted) << i << ", " << j;
      sum += wanted;
    }
    EXPECT_EQ(sums[i], sum);
  }
}

TEST_F(LoopsOverElements, AreRefusedWhereMemoryIsElsewhere) {
  parse(kNests);
  HostValue arguments[] = {HostArray::contiguous(0, {5, 3}, type("bf16")),
                           HostArray::contiguous(0, {5}, type("i1"))};
  Elsewhere elsewhere;
  std::string said = diagnosed(
      [&] { EXPECT_TRUE(failed(runHost(function(), arguments, elsewhere))); });
  EXPECT_NE(said.find(kNoElementLoops), std::string::npos) << said;
}

TEST_F(LoopsOverElements, SayWhatIsWrong) {
  auto expect = [&](const std::string &body, const std::string &message) {
    parse("func.func @f(%a: memref<4xf32>) {\n"
          "  %c0 = arith.constant 0 : index\n"
          "  %c1 = arith.constant 1 : index\n"
          "  %c5 = arith.constant 5 : index\n" +
          body + "  return\n}\n");
    HostValue a =
        HostArray::contiguous(upload(std::vector<float>(4)), {4}, type("f32"));
    std::string said =
        diagnosed([&] { EXPECT_TRUE(failed(runHost(function(), a, device))); });
    EXPECT_NE(said.find(message), std::string::npos) << said;
  };
  expect("  scf.for %i = %c0 to %c5 step %c1 {\n"
         "    %x = memref.load %a[%i] : memref<4xf32>\n"
         "    memref.store %x, %a[%c0] : memref<4xf32>\n  }\n",
         "expects an index between 0 and 3, but got 4");
  expect("  scf.for %i = %c0 to %c1 step %c0 {\n"
         "    %x = memref.load %a[%i] : memref<4xf32>\n"
         "    memref.store %x, %a[%c0] : memref<4xf32>\n  }\n",
         "expects a step of at least 1, but got 0");
  expect("  scf.for %i = %c0 to %c1 step %c1 {\n"
         "    %b = memref.alloc() : memref<4xf32>\n"
         "    %x = memref.load %b[%i] : memref<4xf32>\n"
         "    memref.store %x, %a[%c0] : memref<4xf32>\n  }\n",
         "expects an op that a loop over elements may have, but got "
         "'memref.alloc'");
  expect("  %zero = arith.constant 0.0 : f32\n"
         "  %s = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %zero) -> f32 "
         "{\n    %x = memref.load %a[%i] : memref<4xf32>\n"
         "    scf.yield %x : f32\n  }\n",
         "expects a loop over elements to carry nothing");
}
