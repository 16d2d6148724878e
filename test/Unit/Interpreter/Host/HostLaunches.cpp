//===- HostLaunches.cpp - Do launches get their maps and counters? --------===//

#include "attn/Host/Host.h"
#include "attn/Interpreter/InterpreterDevice.h"

#include "Harness/KernelTest.h"

using namespace mlir;
using namespace attn;

namespace {

/// Notes what is launched.
class Notes : public InterpreterDevice {
public:
  LogicalResult launch(tile::KernelOp, std::array<int64_t, 3>,
                       ArrayRef<KernelArgument> arguments, Location) override {
    launches.push_back(llvm::to_vector(arguments));
    return success();
  }
  std::vector<SmallVector<KernelArgument>> launches;
};

class HostLaunches : public KernelTest {
protected:
  LogicalResult execute(Device &device, ArrayRef<HostValue> arguments) {
    errors.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      auto location =
          diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
      errors.push_back(
          {location ? location.getLine() : 0, diagnostic.str(), ""});
      return success();
    });
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    return success(succeeded(runHost(function, arguments, device)));
  }
  HostArray array(int64_t offset, ArrayRef<int64_t> sizes,
                  ArrayRef<int64_t> strides) {
    return {0x10000, offset, SmallVector<int64_t>(sizes),
            SmallVector<int64_t>(strides), BFloat16Type::get(&context)};
  }
  void expectHostError(const HostArray &value, const std::string &message) {
    Notes device;
    EXPECT_TRUE(failed(execute(device, {value})));
    ASSERT_FALSE(errors.empty());
    EXPECT_EQ(errors.front().text, message);
    EXPECT_EQ(errors.front().line, 8u) << "at the launch";
    EXPECT_TRUE(device.launches.empty());
  }
};

} // namespace

static const char *const kMapped = R"(
tile.kernel @k(%m: !tile.tensor_map<128x96xbf16>, %p: !tile.ptr<bf16>)
    attributes {warps = 12 : i32} {
  tile.return
}
func.func @f(%a: memref<?x?x?x96xbf16, strided<[?, ?, ?, ?], offset: ?>>) {
  %one = arith.constant 1 : index
  tile.launch @k grid(%one, %one, %one) args(%a, %a)
      : memref<?x?x?x96xbf16, strided<[?, ?, ?, ?], offset: ?>>, memref<?x?x?x96xbf16, strided<[?, ?, ?, ?], offset: ?>>
  return
}
)";

TEST_F(HostLaunches, AMapIsTheArray) {
  parse(kMapped);
  Notes device;
  ASSERT_TRUE(succeeded(
      execute(device, {array(48, {2, 8, 100, 96}, {96 * 900, 104, 904, 1})})))
      << errors.front().text;
  auto map = std::get<TensorMapArgument>(device.launches[0][0]);
  EXPECT_EQ(map.address, 0x10060u) << "of the first element";
  EXPECT_EQ(map.sizes, (std::array<int64_t, 4>{2, 8, 100, 96}));
  EXPECT_EQ(map.strides, (std::array<int64_t, 4>{96 * 900, 104, 904, 1}));
  EXPECT_EQ(std::get<uint64_t>(device.launches[0][1]), 0x10000u);
}

TEST_F(HostLaunches, StridesOfSingleEntriesAreFree) {
  parse(kMapped);
  Notes device;
  EXPECT_TRUE(
      succeeded(execute(device, {array(0, {1, 1, 1, 96}, {3, 5, 7, 1})})));
  EXPECT_TRUE(
      succeeded(execute(device, {array(0, {2, 8, 4, 96}, {0, 0, 96, 1})})))
      << "and 0 repeats";
}

TEST_F(HostLaunches, MapsNeedSixteenBytes) {
  parse(kMapped);
  expectHostError(array(4, {2, 8, 100, 96}, {76800, 9600, 96, 1}),
                  "expects the rows, heads and batch entries "
                  "of argument 0 at multiples of 16 bytes, but got offset 4 "
                  "and strides 76800, 9600, 96, 1 of 'bf16'");
  expectHostError(array(0, {2, 8, 100, 96}, {76800, 9600, 100, 1}),
                  "expects the rows, heads and batch entries "
                  "of argument 0 at multiples of 16 bytes, but got offset 0 "
                  "and strides 76800, 9600, 100, 1 of 'bf16'");
  expectHostError(array(0, {2, 8, 100, 96}, {153600, 19200, 192, 2}),
                  "expects the columns of argument 0 side by "
                  "side, but got a stride of 2");
}

static const char *const kCounted = R"(
tile.kernel @k(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>)
    attributes {warps = 1 : i32} {
  tile.return
}
func.func @f() {
  %one = arith.constant 1 : index
  %a = tile.counter : memref<1xi32>
  %b = tile.counter : memref<1xi32>
  tile.launch @k grid(%one, %one, %one) args(%a, %b) : memref<1xi32>, memref<1xi32>
  tile.launch @k grid(%one, %one, %one) args(%b, %a) : memref<1xi32>, memref<1xi32>
  return
}
)";

TEST_F(HostLaunches, CountersAreZeroAndApart) {
  parse(kCounted);
  Notes device;
  ASSERT_TRUE(succeeded(execute(device, {}))) << errors.front().text;
  auto a = std::get<uint64_t>(device.launches[0][0]);
  auto b = std::get<uint64_t>(device.launches[0][1]);
  EXPECT_NE(a, b);
  EXPECT_EQ(std::get<uint64_t>(device.launches[1][0]), b);
  EXPECT_EQ(std::get<uint64_t>(device.launches[1][1]), a);
  int32_t value = -1;
  EXPECT_EQ(device.memory().read(a, &value, 4), std::nullopt);
  EXPECT_EQ(value, 0);
}

TEST_F(HostLaunches, KernelsLeaveCountersAtZero) {
  parse(kCounted);
  InterpreterDevice device;
  EXPECT_TRUE(succeeded(execute(device, {})));
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  uint64_t counter = *device.counters(1, kernel.getLoc());
  uint64_t other = *device.allocate(4, kernel.getLoc());
  int32_t three = 3;
  ASSERT_EQ(device.memory().write(other, &three, 4), std::nullopt);
  EXPECT_TRUE(succeeded(
      device.launch(kernel, {1, 1, 1}, {other, counter}, kernel.getLoc())));
  ASSERT_EQ(device.memory().write(counter, &three, 4), std::nullopt);
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(
      device.launch(kernel, {1, 1, 1}, {other, counter}, kernel.getLoc())));
  EXPECT_EQ(error, "expects 'k' to leave its counter at 0, but got 3");
}
