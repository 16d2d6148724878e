//===- Host.cpp - Is the host function run as it is written? --------------===//

#include "attn/Host/Host.h"
#include "attn/Interpreter/InterpreterDevice.h"

#include "Harness/KernelTest.h"

using namespace mlir;
using namespace attn;

namespace {
class Host : public KernelTest {
protected:
  func::FuncOp function() { return *module->getOps<func::FuncOp>().begin(); }
  Type bf16() { return BFloat16Type::get(&context); }
  Type f32() { return Float32Type::get(&context); }

  FailureOr<SmallVector<HostValue>> execute(ArrayRef<HostValue> arguments) {
    errors.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      auto location =
          diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
      errors.push_back(
          {location ? location.getLine() : 0, diagnostic.str(), ""});
      return success();
    });
    return runHost(function(), arguments, device);
  }
  void expectHostError(const std::string &text, ArrayRef<HostValue> arguments,
                       const std::string &message) {
    parse(text);
    EXPECT_TRUE(failed(execute(arguments)));
    ASSERT_FALSE(errors.empty());
    EXPECT_NE(errors.front().text.find(message), std::string::npos)
        << errors.front().text;
    EXPECT_EQ(device.memory().allocatedBytes(), 0) << "nothing leaks";
  }
  uint64_t upload(const std::vector<float> &values) {
    uint64_t address = device.memory().allocate(int64_t(values.size()) * 4);
    device.memory().write(address, values.data(), int64_t(values.size()) * 4);
    return address;
  }
  float at(const HostArray &array, int64_t element) {
    float value = 0;
    EXPECT_EQ(device.memory()
                  .read(array.address() + element * 4, &value, 4)
                  .value_or(""),
              "");
    return value;
  }

  InterpreterDevice device;
};
} // namespace

/// A kernel that stores `value + program_id` to 16 elements from `offset`.
static const char *const kFill = R"(
tile.kernel @fill(%p: !tile.ptr<f32>, %offset: i64, %n: i32, %value: f32)
    attributes {warps = 1 : i32} {
  %one = arith.constant 1 : i64
  %c16 = arith.constant 16 : i32
  %x = tile.program_id 0
  %f = arith.sitofp %x : i32 to f32
  %v = arith.addf %f, %value : f32
  %view = tile.view %p[%offset] rows(%n) stride(%one)
      : !tile.ptr<f32> -> !tile.view<?xf32, align = 4>
  %r = tile.fill %v : f32 -> !tile.row<16xf32>
  %at = arith.muli %x, %c16 : i32
  tile.store_row %r to %view[%at]
      : !tile.row<16xf32> to !tile.view<?xf32, align = 4>
  tile.return
}
)";

TEST_F(Host, AllocatesComputesAndLaunches) {
  parse(std::string(kFill) + R"(
func.func @f(%a: memref<?x4xf32, strided<[?, 1], offset: ?>>) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %v = arith.constant 2.5 : f32
  %n = memref.dim %a, %c0 : memref<?x4xf32, strided<[?, 1], offset: ?>>
  %out = memref.alloc(%n) : memref<?xf32>
  %scratch = memref.alloc() : memref<3xf32>
  %unused = memref.alloc() : memref<7xf32>
  %base, %offset, %size, %stride = memref.extract_strided_metadata %out
      : memref<?xf32> -> memref<f32>, index, index, index
  %o = arith.index_cast %offset : index to i64
  %rows = arith.index_cast %n : index to i32
  %blocks = arith.ceildivsi %n, %c16 : index
  tile.launch @fill grid(%blocks, %c1, %c1) args(%base, %o, %rows, %v)
      : memref<f32>, i64, i32, f32
  memref.dealloc %scratch : memref<3xf32>
  return %out : memref<?xf32>
})");
  uint64_t a = upload(std::vector<float>(200));
  FailureOr<SmallVector<HostValue>> results =
      execute({HostArray{a, 5, {20, 4}, {8, 1}, f32()}});
  ASSERT_TRUE(succeeded(results)) << errors.front().text;
  HostArray out = std::get<HostArray>(results->front());
  EXPECT_EQ(out.sizes, SmallVector<int64_t>({20}));
  EXPECT_EQ(at(out, 0), 2.5f);
  EXPECT_EQ(at(out, 19), 3.5f);
  EXPECT_EQ(device.traffic().global, 80);
  EXPECT_EQ(device.memory().allocatedBytes(), 800 + 80) << "scratch is freed";
}

/// A launch for every pair of i in 1, 3, 5 and j in 0, 7, or none.
TEST_F(Host, LaunchesInLoops) {
  parse(std::string(kFill) + R"(
func.func @f(%a: memref<?xf32>, %from: index, %by: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %n = arith.constant 10000 : i32
  %v = arith.constant 2.5 : f32
  scf.for %i = %from to %c6 step %by {
    scf.for %j = %c0 to %c8 step %c7 {
      %row = arith.muli %i, %c8 : index
      %at = arith.addi %row, %j : index
      %element = arith.muli %at, %c16 : index
      %o = arith.index_cast %element : index to i64
      tile.launch @fill grid(%c1, %c1, %c1) args(%a, %o, %n, %v)
          : memref<?xf32>, i64, i32, f32
    }
  }
  return
})");
  uint64_t a = upload(std::vector<float>(800));
  HostArray array{a, 0, {800}, {1}, f32()};
  ASSERT_TRUE(succeeded(execute({array, HostScalar{1}, HostScalar{2}})))
      << errors.front().text;
  for (int64_t element = 0; element < 800; ++element) {
    int64_t i = element / 128, j = element % 128 / 16;
    bool isWritten = i % 2 == 1 && (j == 0 || j == 7);
    ASSERT_EQ(at(array, element), isWritten ? 2.5f : 0.0f) << element;
  }
  EXPECT_TRUE(succeeded(execute({array, HostScalar{6}, HostScalar{2}})));
  EXPECT_EQ(device.traffic().global, 6 * 64) << "none of the second time";
  EXPECT_TRUE(failed(execute({array, HostScalar{1}, HostScalar{0}})));
  EXPECT_EQ(errors.front().text, "expects a step of at least 1, but got 0");
}

/// Two arrays change places in every round.
TEST_F(Host, LoopsCarryArrays) {
  parse(R"(
func.func @f(%a: memref<1xf32>, %b: memref<1xf32>, %n: index)
    -> (memref<1xf32>, memref<1xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.for %i = %c0 to %n step %c1
      iter_args(%x = %a, %y = %b, %s = %c0)
      -> (memref<1xf32>, memref<1xf32>, index) {
    %sum = arith.addi %s, %i : index
    scf.yield %y, %x, %sum : memref<1xf32>, memref<1xf32>, index
  }
  return %r#0, %r#1, %r#2 : memref<1xf32>, memref<1xf32>, index
})");
  HostArray a{upload({1}), 0, {1}, {1}, f32()};
  HostArray b{upload({2}), 0, {1}, {1}, f32()};
  for (int64_t n : {0, 1, 4, 7}) {
    auto results = execute({a, b, HostScalar{n}});
    ASSERT_TRUE(succeeded(results)) << errors.front().text;
    EXPECT_EQ(std::get<HostArray>((*results)[0]).base, (n % 2 ? b : a).base);
    EXPECT_EQ(std::get<HostArray>((*results)[1]).base, (n % 2 ? a : b).base);
    EXPECT_EQ(std::get<HostScalar>((*results)[2]).integer, n * (n - 1) / 2);
  }
}

TEST_F(Host, AnEmptyGridLaunchesNothing) {
  parse(std::string(kFill) + R"(
func.func @f(%a: memref<0xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %o = arith.constant 0 : i64
  %n = arith.constant 16 : i32
  %v = arith.constant 2.5 : f32
  tile.launch @fill grid(%c0, %c1, %c1) args(%a, %o, %n, %v)
      : memref<0xf32>, i64, i32, f32
  return
})");
  uint64_t a = device.memory().allocate(0);
  EXPECT_TRUE(succeeded(execute({HostArray{a, 0, {0}, {1}, f32()}})));
  EXPECT_EQ(device.traffic(), tile::Traffic{});
}

TEST_F(Host, ViewsKeepTheirBase) {
  parse(R"(
func.func @f(%a: memref<4x6xf32>) -> (memref<3xf32, strided<[6], offset: 8>>,
    memref<2x2xf32, strided<[?, 2], offset: ?>>, memref<?x6xf32>, index) {
  %c2 = arith.constant 2 : index
  %column = memref.subview %a[1, 2] [3, 1] [1, 1]
      : memref<4x6xf32> to memref<3xf32, strided<[6], offset: 8>>
  %again = memref.reinterpret_cast %a to offset: [%c2], sizes: [2, 2],
      strides: [%c2, 2]
      : memref<4x6xf32> to memref<2x2xf32, strided<[?, 2], offset: ?>>
  %cast = memref.cast %a : memref<4x6xf32> to memref<?x6xf32>
  %one = arith.constant 1 : index
  %d = memref.dim %cast, %one : memref<?x6xf32>
  return %column, %again, %cast, %d : memref<3xf32, strided<[6], offset: 8>>,
      memref<2x2xf32, strided<[?, 2], offset: ?>>, memref<?x6xf32>, index
})");
  auto results = execute({HostArray::contiguous(4096, {4, 6}, f32())});
  ASSERT_TRUE(succeeded(results)) << errors.front().text;
  HostArray column = std::get<HostArray>((*results)[0]);
  EXPECT_EQ(column.address(), 4096u + 32);
  EXPECT_EQ(column.strides, SmallVector<int64_t>({6}));
  EXPECT_EQ(column.extent(), 8 + 12 + 1);
  HostArray again = std::get<HostArray>((*results)[1]);
  EXPECT_EQ(again.offset, 2);
  EXPECT_EQ(again.strides, SmallVector<int64_t>({2, 2}));
  EXPECT_EQ(std::get<HostArray>((*results)[2]).base, 4096u);
  EXPECT_EQ(std::get<HostScalar>((*results)[3]).integer, 6);
}

TEST_F(Host, CopiesElements) {
  parse(R"(
func.func @f(%a: memref<2x3xf32, strided<[1, 2]>>) -> memref<2x3xf32> {
  %out = memref.alloc() : memref<2x3xf32>
  memref.copy %a, %out : memref<2x3xf32, strided<[1, 2]>> to memref<2x3xf32>
  return %out : memref<2x3xf32>
})");
  uint64_t a = upload({0, 1, 2, 3, 4, 5});
  auto results = execute({HostArray{a, 0, {2, 3}, {1, 2}, f32()}});
  ASSERT_TRUE(succeeded(results)) << errors.front().text;
  HostArray out = std::get<HostArray>(results->front());
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      EXPECT_EQ(at(out, i * 3 + j), float(i + 2 * j));
}

TEST_F(Host, ArgumentsMustFitTheirTypes) {
  const char *text = "func.func @f(%a: memref<2x3xf32>) { return }";
  expectHostError(text, {}, "expects 1 arguments, but got 0");
  expectHostError(text, {HostScalar{1}},
                  "expects argument 0 to be 'memref<2x3xf32>', but got a "
                  "scalar");
  expectHostError(text, {HostArray::contiguous(0, {2, 4}, f32())},
                  "expects extent 3 of 'memref<2x3xf32>', but got 4");
  expectHostError(text, {HostArray{0, 0, {2, 3}, {4, 1}, f32()}},
                  "expects stride 3 of 'memref<2x3xf32>', but got 4");
  expectHostError(text, {HostArray{0, 1, {2, 3}, {3, 1}, f32()}},
                  "expects offset 0 of 'memref<2x3xf32>', but got 1");
  expectHostError(text, {HostArray::contiguous(0, {2, 3}, bf16())},
                  "expects an array for 'memref<2x3xf32>', but got 2 extents "
                  "of 'bf16'");
}

TEST_F(Host, UnknownOpsAreNamed) {
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc() : memref<4xf32>
  %x = memref.load %a[%n] : memref<4xf32>
  return
})",
                  {HostScalar{0}},
                  "expects an op that the host function may have, but got "
                  "'memref.load'");
  EXPECT_EQ(errors.front().line, 3u);
}

TEST_F(Host, WrongMemory) {
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  return
})",
                  {HostScalar{-1}},
                  "expects extents of at least 0, but got -1");
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc(%n, %n) : memref<?x?xf32>
  return
})",
                  {HostScalar{int64_t(1) << 40}},
                  "expects at most 281474976710656 elements in an array of "
                  "extents 1099511627776, 1099511627776");
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  return
})",
                  {HostScalar{int64_t(1) << 31}},
                  "expects at most 4294967296 bytes of memory for the "
                  "interpreter, but got 8589934592 more than the 0 in use");
  expectHostError(R"(func.func @f(%a: memref<4xf32>) {
  memref.dealloc %a : memref<4xf32>
  return
})",
                  {HostArray::contiguous(0, {4}, f32())},
                  "expects an array that this function allocated");
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.subview %a[1] [%n] [1]
      : memref<4xf32> to memref<?xf32, strided<[1], offset: 1>>
  return
})",
                  {HostScalar{4}},
                  "expects indices 0 to 3 in dimension 0, but got 1 to 4");
  expectHostError(R"(func.func @f(%n: index) {
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.cast %a : memref<?xf32> to memref<5xf32>
  return
})",
                  {HostScalar{4}},
                  "expects extent 5 of 'memref<5xf32>', but "
                  "got 4");
}

TEST_F(Host, ErrorsOfAKernelAreErrorsOfTheFunction) {
  parse(std::string(kFill) + R"(
func.func @f(%n: i32) {
  %a = memref.alloc() : memref<16xf32>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %o = arith.constant 0 : i64
  %v = arith.constant 2.5 : f32
  tile.launch @fill grid(%c2, %c1, %c1) args(%a, %o, %n, %v)
      : memref<16xf32>, i64, i32, f32
  return
})");
  EXPECT_TRUE(succeeded(execute({HostScalar{16}})));
  EXPECT_TRUE(failed(execute({HostScalar{17}})));
  EXPECT_NE(errors.front().text.find("expects bytes of an allocation"),
            std::string::npos);
  EXPECT_EQ(device.memory().allocatedBytes(), 0);
}

TEST_F(Host, AssertsHold) {
  const char *const text = R"(
func.func @f(%n: index) {
  %c9 = arith.constant 9 : index
  %fits = arith.cmpi sle, %n, %c9 : index
  cf.assert %fits, "expects at most 9 rows"
  return
}
)";
  parse(text);
  EXPECT_TRUE(succeeded(execute({HostScalar{9}})));
  expectHostError(text, {HostScalar{10}}, "expects at most 9 rows");
}

/// A device refuses what CUDA refuses, along each dimension.
TEST_F(Host, GridsHaveLimits) {
  const char *const text = R"(
tile.kernel @k() attributes {warps = 1 : i32} {
  tile.return
}
func.func @f(%x: index, %y: index, %z: index) {
  tile.launch @k grid(%x, %y, %z) args()
  return
}
)";
  int64_t most = 65535;
  expectHostError(text, {HostScalar{1}, HostScalar{most + 1}, HostScalar{1}},
                  "expects a grid of 0 to 65535 blocks along dimension 1, but "
                  "got 65536");
  expectHostError(text, {HostScalar{1}, HostScalar{1}, HostScalar{most + 1}},
                  "expects a grid of 0 to 65535 blocks along dimension 2, but "
                  "got 65536");
  expectHostError(text,
                  {HostScalar{int64_t(1) << 31}, HostScalar{1}, HostScalar{1}},
                  "expects a grid of 0 to 2147483647 blocks along dimension 0, "
                  "but got 2147483648");
  parse(text);
  EXPECT_TRUE(
      succeeded(execute({HostScalar{1}, HostScalar{most}, HostScalar{1}})));
  EXPECT_TRUE(
      succeeded(execute({HostScalar{0}, HostScalar{1}, HostScalar{1}})));
}
