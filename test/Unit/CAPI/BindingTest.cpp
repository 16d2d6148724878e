//===- BindingTest.cpp - Does a launch get what was recorded? -------------===//
//
// The kernels here have no code: the fake driver takes any text for PTX, and
// tells what it was asked to launch.
//
//===----------------------------------------------------------------------===//

#include "attn/CAPI/Binding.h"
#include "attn/InitAll.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include "FakeCuda.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace attn;
using namespace mlir;

namespace {

/// Arguments of a launch, as the driver saw them.
struct Seen {
  std::string kernel;
  FakeMap q, o;
  uint64_t counter = 0, second = 0, pointer = 0;
  int32_t i32 = 0;
  int64_t i64 = 0;
  float f32 = 0;
  bool isAhead = false;
};

constexpr StringLiteral kAnyStrides =
    "memref<2x8x?x96xbf16, strided<[?, ?, ?, 1], offset: ?>>";

class BindingTest : public ::testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    fakeCudaOnLaunch(
        [](const char *kernel, void *, void **arguments, void *data) {
          Seen seen;
          seen.kernel = kernel;
          // The driver copies them, so they need not lie as maps must.
          std::memcpy(&seen.q, arguments[0], sizeof(FakeMap));
          std::memcpy(&seen.counter, arguments[1], sizeof(uint64_t));
          std::memcpy(&seen.o, arguments[2], sizeof(FakeMap));
          std::memcpy(&seen.i32, arguments[3], sizeof(int32_t));
          std::memcpy(&seen.i64, arguments[4], sizeof(int64_t));
          std::memcpy(&seen.f32, arguments[5], sizeof(float));
          std::memcpy(&seen.second, arguments[6], sizeof(uint64_t));
          std::memcpy(&seen.pointer, arguments[7], sizeof(uint64_t));
          seen.isAhead = fakeCudaAhead() != 0;
          static_cast<std::vector<Seen> *>(data)->push_back(seen);
        },
        &launches);
  }
  void TearDown() override { fakeCudaOnLaunch(nullptr, nullptr); }

  /// A function of q and o, which launches the kernel twice, and does what else
  /// is given; so does the kernel.
  void parse(StringRef type = kAnyStrides, StringRef more = "",
             StringRef inKernel = "") {
    std::string text = R"(
gpu.module @kernels {
  tile.kernel @k(%q: !tile.tensor_map<128x96xbf16> {tile.role = "q_map"},
                 %c: !tile.ptr<i32>, %o: !tile.tensor_map<64x96xbf16>,
                 %n: i32, %m: i64, %f: f32, %d: !tile.ptr<i32>,
                 %p: !tile.ptr<bf16>) attributes {warps = 12 : i32} {
)";
    text += inKernel.str() + R"(
    tile.return
  }
}
func.func @f(%q: !t, %o: !t) {
  %one = arith.constant 1 : index
  %n = arith.constant 7 : i32
  %m = arith.constant 8 : i64
  %f = arith.constant 9.5 : f32
  %c = tile.counter : memref<1xi32>
  %d = tile.counter : memref<1xi32>
  tile.launch @kernels::@k grid(%one, %one, %one) args(%q, %c, %o, %n, %m, %f, %d, %q)
      : !t, memref<1xi32>, !t, i32, i64, f32, memref<1xi32>, !t
  tile.launch @kernels::@k grid(%one, %one, %one) args(%o, %c, %q, %n, %m, %f, %d, %o)
      : !t, memref<1xi32>, !t, i32, i64, f32, memref<1xi32>, !t
)";
    source = "!t = " + type.str() + text + more.str() + "  return\n}\n";
    program.module = parseSourceString<ModuleOp>(source, &context);
    ASSERT_TRUE(program.module);
    KernelInfo kernel;
    kernel.name = "kernels::k";
    kernel.threads = 384;
    kernel.smemBytes = 1000;
    program.kernels = {kernel};
    program.binaries = {{"sm_90a", "no code", "", ""}};
  }

  HostArray array(int64_t rows, int64_t offset = 0) {
    HostArray result =
        HostArray::contiguous(0, {2, 8, rows, 96}, BFloat16Type::get(&context));
    result.offset = offset;
    return result;
  }

  runtime::Expected<std::shared_ptr<const Binding>>
  bind(ArrayRef<HostArray> arrays, std::vector<Binding::Apart> apart = {}) {
    runtime::Expected<runtime::Gpu> gpu = runtime::Gpu::open();
    kernels = *LoadedKernels::load(*gpu, 0, program);
    FailureOr<Recording> recording =
        record(*program.module->getOps<func::FuncOp>().begin(), arrays);
    if (failed(recording))
      return runtime::Status::failure("not recorded");
    std::vector<Binding::Buffer> buffers;
    for (auto [slot, array] : llvm::enumerate(arrays))
      buffers.push_back({slot, 2, array.count() == 0, array.offset * 2,
                         /*isMapped=*/false,
                         Layout{{array.sizes.begin(), array.sizes.end()},
                                {array.strides.begin(), array.strides.end()},
                                /*offset=*/0,
                                /*elementBytes=*/2}});
    return Binding::make(kernels, *recording, buffers, std::move(apart));
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string source;
  Program program;
  std::shared_ptr<const LoadedKernels> kernels;
  std::vector<Seen> launches;
};

} // namespace

TEST_F(BindingTest, PassesMapsCountersAndScalars) {
  parse();
  auto binding = bind({array(1000), array(300)});
  ASSERT_TRUE(binding) << binding.message();
  runtime::Status status =
      (*binding)->launch({0x10000, 0x90000}, /*stream=*/nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(launches.size(), 2u);
  const Seen &first = launches[0], &second = launches[1];
  EXPECT_EQ(first.kernel, "k");
  EXPECT_EQ(first.q.address, 0x10000u);
  EXPECT_EQ(first.q.extents[0], 96u);
  EXPECT_EQ(first.q.extents[1], 1000u);
  EXPECT_EQ(first.q.extents[2], 8u);
  EXPECT_EQ(first.q.extents[3], 2u);
  EXPECT_EQ(first.q.strides[0], 192u);
  EXPECT_EQ(first.q.strides[1], 192000u);
  EXPECT_EQ(first.q.strides[2], 1536000u);
  EXPECT_EQ(first.q.box[1], 128);
  EXPECT_EQ(first.o.address, 0x90000u);
  EXPECT_EQ(first.o.extents[1], 300u);
  EXPECT_EQ(first.o.box[1], 64);
  EXPECT_EQ(second.q.address, 0x90000u);
  EXPECT_EQ(first.pointer, 0x10000u);
  EXPECT_EQ(second.pointer, 0x90000u);
  EXPECT_EQ(first.i32, 7);
  EXPECT_EQ(first.i64, 8);
  EXPECT_EQ(first.f32, 9.5f);
  EXPECT_EQ(first.second, first.counter + 4) << "two counters, two words";
  EXPECT_EQ(second.counter, first.counter) << "one counter of the function";
}

/// Ahead of time is only what waits for a launch of the same call, right behind
/// that; one without blocks is none.
TEST_F(BindingTest, LaunchesAheadWhatWaits) {
  std::string launch = "  tile.launch @kernels::@k grid(%x, %one, %one) "
                       "args(%q, %c, %o, %n, %m, %f, %d, %q) : !t, "
                       "memref<1xi32>, !t, i32, i64, f32, memref<1xi32>, !t\n";
  auto onGrid = [&](StringRef x) {
    std::string text = launch;
    return text.replace(text.find("%x"), 2, x.str());
  };
  std::string more = "  memref.copy %q, %o : !t to !t\n" + onGrid("%one") +
                     onGrid("%zero") + onGrid("%one") + onGrid("%one");
  parse(kAnyStrides, "  %zero = arith.constant 0 : index\n" + more,
        "tile.await_launch");
  auto binding = bind({array(5), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  ASSERT_TRUE((*binding)->launch({0x10000, 0x90000}, nullptr).ok());
  std::vector<bool> ahead;
  for (const Seen &seen : launches)
    ahead.push_back(seen.isAhead);
  EXPECT_EQ(ahead, std::vector<bool>({false, true, false, true, true}));
  EXPECT_NE((*binding)->json().find("\"ahead\":true"), std::string::npos);

  launches.clear();
  parse();
  binding = bind({array(5), array(5)});
  ASSERT_TRUE((*binding)->launch({0x10000, 0x90000}, nullptr).ok());
  EXPECT_FALSE(launches[1].isAhead);
}

/// A loop of the function is as many launches.
TEST_F(BindingTest, LaunchesInRounds) {
  parse("memref<2x8x?x96xbf16, strided<[?, ?, ?, 1], offset: ?>>", R"(
  %zero = arith.constant 0 : index
  %many = arith.constant 900 : index
  scf.for %i = %zero to %many step %one {
    %round = arith.index_cast %i : index to i32
    tile.launch @kernels::@k grid(%one, %one, %one) args(%q, %c, %o, %round, %m, %f, %d, %q)
        : !t, memref<1xi32>, !t, i32, i64, f32, memref<1xi32>, !t
  }
)");
  auto binding = bind({array(5), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  ASSERT_TRUE((*binding)->launch({0x10000, 0x90000}, nullptr).ok());
  ASSERT_EQ(launches.size(), 902u);
  for (int32_t i = 0; i < 900; ++i) {
    EXPECT_EQ(launches[i + 2].i32, i);
    EXPECT_EQ(launches[i + 2].q.address, 0x10000u);
    EXPECT_EQ(launches[i + 2].counter, launches[0].counter);
  }
}

TEST_F(BindingTest, CountersAreTheStreamsOrTheGraphs) {
  parse();
  auto binding = bind({array(5), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  auto counterOn = [&](uintptr_t handle) {
    launches.clear();
    EXPECT_TRUE((*binding)
                    ->launch({0x10000, 0x90000},
                             reinterpret_cast<runtime::Stream>(handle))
                    .ok());
    EXPECT_EQ(launches[0].counter, launches[1].counter);
    return launches[0].counter;
  };
  uint64_t own = counterOn(100);
  EXPECT_EQ(counterOn(100), own);
  EXPECT_NE(counterOn(200), own);
  fakeCudaCapture(reinterpret_cast<void *>(100), 1);
  uint64_t captured = counterOn(100);
  EXPECT_NE(captured, own);
  EXPECT_NE(counterOn(100), captured);
  fakeCudaCapture(reinterpret_cast<void *>(100), 0);
  EXPECT_EQ(counterOn(100), own);
}

TEST_F(BindingTest, MapsBeginAtTheArraysFirstElement) {
  parse();
  // The slot begins 48 elements before the array.
  auto binding = bind({array(5, 48), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  EXPECT_EQ((*binding)->check({0x10060, 0x90000}), std::nullopt);
  ASSERT_TRUE((*binding)->launch({0x10060, 0x90000}, nullptr).ok());
  EXPECT_EQ(launches[0].q.address, 0x10060u);
  EXPECT_EQ(launches[0].pointer, 0x10000u) << "pointers are bases";
}

TEST_F(BindingTest, MappedBuffersAreAligned) {
  parse();
  auto binding = bind({array(5), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  EXPECT_EQ((*binding)->check({0x10000, 0x90000}), std::nullopt);
  EXPECT_EQ((*binding)->check({0x10000, 0x90008}).value_or(""),
            "buffer 1: expects memory aligned to 16 bytes, since TMA moves it, "
            "but got an address that is 8 bytes off");
  runtime::Status status = (*binding)->launch({0x10000, 0x90008}, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "kernel 'kernels::k': expects an array for a tensor map at a "
            "multiple of 16 bytes, but got an address that is 8 bytes off");
  EXPECT_TRUE(launches.empty());
}

TEST_F(BindingTest, WrittenMemoryIsItsOwn) {
  parse();
  auto binding = bind({array(1000), array(300)}, {{1, 0, "o", "q"}});
  ASSERT_TRUE(binding) << binding.message();
  const uint64_t bytes = uint64_t(2) * 8 * 1000 * 96 * 2, q = 0x10000;
  EXPECT_EQ((*binding)->check({q, q + bytes}), std::nullopt);
  EXPECT_EQ((*binding)->check({q + bytes, q}), std::nullopt);
  for (uint64_t o : {q, q + bytes - 16})
    EXPECT_EQ((*binding)->check({q, o}).value_or(""),
              "expects o in memory of its own, but it overlaps q (buffers 1 "
              "and 0)");
}

TEST_F(BindingTest, EmptyArraysNeedNoAddress) {
  parse();
  auto binding = bind({array(0), array(5)});
  ASSERT_TRUE(binding) << binding.message();
  EXPECT_EQ((*binding)->check({0, 0x90000}), std::nullopt);
  ASSERT_TRUE((*binding)->launch({0, 0x90000}, nullptr).ok());
  EXPECT_NE(launches[0].q.address, 0u);
  EXPECT_EQ(launches[0].q.extents[1], 1u);
}

TEST_F(BindingTest, SaysWhatItLaunches) {
  parse();
  auto binding = bind({array(1000, 48), array(300)});
  ASSERT_TRUE(binding) << binding.message();
  std::string json = (*binding)->json();
  EXPECT_NE(json.find("\"alignment\":[16,16]"), std::string::npos) << json;
  EXPECT_NE(json.find("\"type\":\"tensor_map\",\"buffer\":0,\"offset_bytes\":0,"
                      "\"element\":\"bf16\",\"sizes\":[2,8,1000,96],"
                      "\"strides\":[768000,96000,96,1],\"box_rows\":128}"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("{\"role\":\"\",\"counter\":1}"), std::string::npos)
      << json;
}

TEST_F(BindingTest, RolesAreOfTheTable) {
  parse();
  size_t place = source.find("\"q_map\"");
  source.replace(place, 7, "\"query_map\"");
  program.module = parseSourceString<ModuleOp>(source, &context);
  auto binding = bind({array(5), array(5)});
  ASSERT_FALSE(binding);
  EXPECT_EQ(binding.message(),
            "kernel 'kernels::k': expects argument 0 to have a role, but got "
            "\"query_map\"; roles: " +
                roleNames());
}

TEST_F(BindingTest, TooFarApartIsAnError) {
  parse();
  HostArray far = array(5);
  far.strides[0] = int64_t(1) << 40;
  auto binding = bind({far, array(5)});
  ASSERT_FALSE(binding);
  EXPECT_EQ(binding.message(),
            "kernel 'kernels::k': 'q_map': making a tensor map: expects batch "
            "entries that are a multiple of 16 bytes below 1099511627776 "
            "apart, but got 2199023255552");
}

TEST_F(BindingTest, ACounterIsNoResult) {
  program.module = parseSourceString<ModuleOp>(R"(
func.func @f() -> memref<1xi32> {
  %c = tile.counter : memref<1xi32>
  return %c : memref<1xi32>
})",
                                               &context);
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(
      failed(record(*program.module->getOps<func::FuncOp>().begin(), {})));
  EXPECT_NE(error.find("expects to return arrays, but got a counter"),
            std::string::npos)
      << error;
}
