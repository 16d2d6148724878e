//===- Pipeline.cpp - Two roles, a ring of loads, products ----------------===//
//
// A small kernel with all that a Hopper kernel is made of, and wrong versions
// of it: O = Q sum_b K_b^T for blocks of 64 keys, loaded by TMA into two
// stages.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelTest.h"
#include "Mutants/Mutations.h"

#include "attn/Host/Rounding.h"

#include <map>

using namespace attn;

static const char *const kPipeline = R"(
!map = !tile.tensor_map<64x64xbf16>
!tile = !tile.smem<64x64xbf16, sw128>
!ring = !tile.smem<2x64x64xbf16, sw128>
!acc = !tile.frag<16x64xf32, acc>
!sum = !tile.pending<16x64xf32>
tile.kernel @k(%q: !map, %k: !map, %o: !map, %blocks: i32)
    attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %f0 = arith.constant 0.0 : f32
  %qs = tile.alloc "query" : !tile
  %ks = tile.alloc "key" : !ring
  %os = tile.alloc "out" : !tile
  %qfull = tile.mbarrier "query_full" arrivals 1 : !tile.mbarrier<1>
  %full = tile.mbarrier "key_full" arrivals 1 : !tile.mbarrier<2>
  %empty = tile.mbarrier "key_empty" arrivals 4 : !tile.mbarrier<2>
  tile.roles {
    tile.role "producer" warps 4 registers 24 single_lane {
      tile.tma_load %q[%c0, %c0, %c0] to %qs[%c0] arrive %qfull[%c0] : !map to !tile, !tile.mbarrier<1>
      scf.for %i = %c0 to %blocks step %c1 : i32 {
        %slot = arith.remsi %i, %c2 : i32
        %round = arith.divsi %i, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        %before = arith.subi %c1, %parity : i32
        %row = arith.muli %i, %c64 : i32
        tile.mbarrier_wait %empty[%slot] parity %before : !tile.mbarrier<2>
        tile.tma_load %k[%c0, %c0, %row] to %ks[%slot] arrive %full[%slot] : !map to !ring, !tile.mbarrier<2>
      }
    }
    tile.role "consumer" warps 4 registers 240 {
      %w = tile.warp_id
      %number = arith.subi %w, %c4 : i32
      %mine = arith.muli %number, %c16 : i32
      %zero = tile.fill %f0 : f32 -> !acc
      tile.mbarrier_wait %qfull[%c0] parity %c0 : !tile.mbarrier<1>
      %sum = scf.for %i = %c0 to %blocks step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        %slot = arith.remsi %i, %c2 : i32
        %round = arith.divsi %i, %c2 : i32
        %parity = arith.remsi %round, %c2 : i32
        %before = arith.subi %c1, %parity : i32
        tile.mbarrier_wait %full[%slot] parity %parity : !tile.mbarrier<2>
        %p = tile.wgmma %qs[%c0, %c0], %ks[%slot] transpose acc(%acc : !acc) : !tile, !ring -> !sum
        %f = tile.wgmma_wait 0, %p : !sum -> !acc
        tile.mbarrier_arrive %empty[%slot] : !tile.mbarrier<2>
        scf.yield %f : !acc
      }
      tile.store_matrix %sum to %os[%mine] : !acc to !tile
      tile.fence_async
      tile.bar_sync %c1 warps 4
      %first = arith.cmpi eq, %number, %c0 : i32
      scf.if %first {
        tile.tma_store %os[%c0] to %o[%c0, %c0, %c0, %c0] : !tile to !map
        tile.tma_store_wait 0
      }
    }
  }
  tile.return
})";

namespace {
class Pipeline : public KernelTest {
protected:
  static constexpr int64_t kBlocks = 5;

  /// The kernel with pieces of its text replaced.
  void kernel(const std::vector<Change> &changes = {}) {
    parse(kPipeline, changes);
  }
  /// The changed kernel reports the message in every order at the line that
  /// then holds `where`.
  void expectBroken(const std::vector<Change> &changes,
                    const std::string &where, const std::string &message) {
    kernel(changes);
    size_t at = source.find(where);
    ASSERT_NE(at, std::string::npos) << where;
    source.insert(source.find('\n', at), " // HERE");
    parse(std::string(source));
    allocate();
    expectError(arguments, message);
  }

  /// Queries and keys of small integers, so that all sums are exact.
  void allocate(int64_t rows = 64, int64_t keys = 64 * kBlocks) {
    queries.clear();
    this->keys.clear();
    for (int64_t i = 0; i < rows * 64; ++i)
      queries.push_back(float(i * 7 % 5) - 2);
    for (int64_t i = 0; i < keys * 64; ++i)
      this->keys.push_back(float(i * 11 % 7) - 3);
    out = allocateUninitialised(rows * 128);
    arguments = {array(allocateBf16(queries), rows),
                 array(allocateBf16(this->keys), keys), array(out, rows),
                 int32_t(kBlocks)};
  }
  static TensorMapArgument array(uint64_t address, int64_t rows) {
    return {address, {1, 1, rows, 64}, {rows * 64, rows * 64, 64, 1}};
  }
  /// In every order the kernel reports one of the messages.
  void expectOneOf(const std::vector<std::string> &messages) {
    allocate();
    for (WarpOrder order :
         {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      ASSERT_FALSE(run(arguments, {1, 1, 1}, options));
      expectFirstError(messages);
    }
  }

  bool isRight() {
    std::vector<uint16_t> bits(64 * 64);
    if (memory.read(out, bits.data(), 64 * 64 * 2))
      return false;
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t j = 0; j < 64; ++j)
        if (floatFromBf16(bits[i * 64 + j]) != expected(i, j))
          return false;
    return true;
  }
  float expected(int64_t row, int64_t column) const {
    float sum = 0;
    for (size_t key = size_t(column); key * 64 < keys.size(); key += 64)
      for (int64_t k = 0; k < 64; ++k)
        sum += queries[row * 64 + k] * keys[key * 64 + k];
    return sum;
  }

  std::vector<float> queries, keys;
  uint64_t out = 0;
  std::vector<KernelArgument> arguments;
};
} // namespace

static const std::vector<WarpOrder> kOrders = {
    WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled};

TEST_F(Pipeline, ComputesInEveryOrder) {
  kernel();
  for (WarpOrder order : kOrders)
    for (uint64_t seed = 0; seed < 8; ++seed) {
      allocate();
      InterpreterOptions options;
      options.order = order;
      options.seed = seed;
      ASSERT_TRUE(run(arguments, {1, 1, 1}, options)) << errors.front().text;
      EXPECT_TRUE(isRight());
      // Q, K and O; fills, A and B of the products, and O twice.
      EXPECT_EQ(traffic.global, (kBlocks + 2) * 8192);
      EXPECT_EQ(traffic.smem, (kBlocks + 1) * 8192 + kBlocks * 16384 + 16384);
    }
}

//===----------------------------------------------------------------------===//
// Wrong kernels
//===----------------------------------------------------------------------===//

static const char *const kRelease =
    "tile.mbarrier_arrive %empty[%slot] : !tile.mbarrier<2>";
static const char *const kAwaitFull =
    "tile.mbarrier_wait %full[%slot] parity %parity : !tile.mbarrier<2>";
static const char *const kAwaitEmpty =
    "tile.mbarrier_wait %empty[%slot] parity %before : !tile.mbarrier<2>";
static const char *const kProductWait =
    "%f = tile.wgmma_wait 0, %p : !sum -> !acc";

static std::string lines(std::initializer_list<std::string> all) {
  std::string text;
  for (const std::string &line : all)
    text += line + "\n";
  return text;
}

TEST_F(Pipeline, MissingRelease) {
  expectBroken({{kRelease, ""}}, "mbarrier_wait %empty",
               "expects some warp to go on, but got none; this one waits for "
               "the end of phase 0 (parity 0) of barrier 'key_empty' (slot 0), "
               "where 4 of 4 arrivals and 0 bytes are missing (warp 0 of block "
               "0, 0, 0)");
  EXPECT_EQ(errors.front().notes,
            "warp 4 waits here for the end of phase 1 (parity 1) of barrier "
            "'key_full' (slot 0), where 1 of 1 arrivals and 0 bytes are "
            "missing\n");
}

TEST_F(Pipeline, ReleaseOfOneWarpMissing) {
  expectBroken({{"%empty[%slot] : !tile.mbarrier<2>",
                 "%empty[%slot] if %some : !tile.mbarrier<2>"},
                {"%zero = tile.fill",
                 "%some = arith.cmpi ne, %number, %c0 : i32\n%zero = "
                 "tile.fill"}},
               "mbarrier_wait %empty", "where 1 of 4 arrivals and 0 bytes");
}

TEST_F(Pipeline, ReleaseBeforeTheProductIsDone) {
  kernel({{kProductWait, ""}, {kRelease, lines({kRelease, kProductWait})}});
  // Whether the product is done when the load comes depends on the order.
  expectOneOf({"to have waited for its asynchronous read of rows 0 to 63 of "
               "buffer 'key' (stage ",
               "expects a barrier after the read of rows 0 to 63 of buffer "
               "'key' (stage "});
  EXPECT_EQ(errors.front().notes, "the read is here\n");
}

TEST_F(Pipeline, MissingWaitForTheLoad) {
  expectBroken({{kAwaitFull, ""}}, "tile.wgmma",
               "expects the load to rows 0 to 63 of buffer 'key' (stage 0) to "
               "be waited for before they are read, but got no wait for phase "
               "0 of barrier 'key_full' (slot 0)");
  EXPECT_EQ(errors.front().notes, "the load is here\n");
}

TEST_F(Pipeline, MissingWaitForTheSlot) {
  expectBroken({{kAwaitEmpty, ""}}, "tma_load %k",
               "expects the load to rows 0 to 63 of buffer 'key' (stage 0) to "
               "be waited for before they are overwritten, but got no wait for "
               "phase 0 of barrier 'key_full' (slot 0)");
}

TEST_F(Pipeline, MissingFence) {
  expectBroken({{"tile.fence_async", ""}}, "tile.tma_store %os",
               "expects tile.fence_async by warp 4 and then a barrier between "
               "its store to rows 0 to 63 of buffer 'out' and this op, or a "
               "fence behind the barrier, but got neither");
  EXPECT_EQ(errors.front().notes, "the store is here\n");
}

TEST_F(Pipeline, FenceBehindTheBarrier) {
  // By the warp that goes on to the store.
  kernel({{"tile.fence_async", ""},
          {"tile.tma_store %os", "tile.fence_async\ntile.tma_store %os"}});
  for (WarpOrder order : kOrders) {
    allocate();
    InterpreterOptions options;
    options.order = order;
    EXPECT_TRUE(run(arguments, {1, 1, 1}, options)) << errors.front().text;
    EXPECT_TRUE(isRight());
  }
}

TEST_F(Pipeline, FenceByAWarpThatTellsNobody) {
  expectBroken({{"tile.fence_async", ""},
                {"tile.bar_sync %c1 warps 4",
                 lines({"tile.bar_sync %c1 warps 4",
                        "%second = arith.cmpi eq, %number, %c1 : i32",
                        "scf.if %second {", "tile.fence_async", "}"})}},
               "tile.tma_store %os", "expects tile.fence_async by warp 4");
}

TEST_F(Pipeline, MissingWaitForTheStore) {
  expectBroken({{"tile.tma_store_wait 0", ""}}, "tile.return",
               "expects every store to be waited for, but got one in flight");
  EXPECT_EQ(errors.front().notes, "the store is here\n");
}

TEST_F(Pipeline, TooFewArrivalsExpected) {
  kernel({{"\"key_empty\" arrivals 4", "\"key_empty\" arrivals 3"}});
  // The fourth warp comes too late to arrive, or even to read.
  expectOneOf({"expects 3 arrivals in a phase of barrier 'key_empty' (slot 0) "
               "and others only behind its end, but got one that is not "
               "ordered behind the end of phase 0",
               "before they are read, but got no wait for phase 1 of barrier "
               "'key_full' (slot 0)"});
}

TEST_F(Pipeline, TooManyArrivalsExpected) {
  expectBroken({{"\"key_empty\" arrivals 4", "\"key_empty\" arrivals 5"}},
               "mbarrier_wait %empty",
               "where 1 of 5 arrivals and 0 bytes are missing");
}

TEST_F(Pipeline, WrongParityOfTheProducer) {
  expectBroken(
      {{kAwaitEmpty, "tile.mbarrier_wait %empty[%slot] parity %parity : "
                     "!tile.mbarrier<2>"}},
      "mbarrier_wait %empty",
      "waits for the end of phase 0 (parity 0) of barrier "
      "'key_empty' (slot 0), where 4 of 4 arrivals");
}

TEST_F(Pipeline, WrongParityOfTheConsumer) {
  kernel({{kAwaitFull, "tile.mbarrier_wait %full[%slot] parity %before : "
                       "!tile.mbarrier<2>"}});
  // Who comes first finds the barrier open.
  expectOneOf({"expects to wait for parity 1 of barrier 'key_full' (slot 0) "
               "before phase 0 ends, but got to it in phase 1",
               "but got no wait for phase 0 of barrier"});
}

TEST_F(Pipeline, AWaitTwiceIsHarmlessBeforeTheRelease) {
  kernel({{kAwaitFull, lines({kAwaitFull, kAwaitFull})}});
  for (WarpOrder order : kOrders) {
    allocate();
    InterpreterOptions options;
    options.order = order;
    EXPECT_TRUE(run(arguments, {1, 1, 1}, options)) << errors.front().text;
  }
}

TEST_F(Pipeline, AWaitTwiceMayHangBehindTheRelease) {
  kernel({{kRelease, lines({kRelease, kAwaitFull})}});
  // Reported where the next phase may end too early, or where it has.
  expectOneOf({"to end behind the wait of warp ", "but got to it in phase "});
}

/// Every mutant is reported in every order, or explained.
TEST_F(Pipeline, MutantsAreKilled) {
  const std::map<std::string, const char *> survivors = {
      {"consumer fence_async 1 moved down",
       "the warp that stores fences for all"},
      {"consumer bar_sync 1 moved up", "the warp that stores fences for all"},
      {"consumer bar_sync 1 repeated", "the warps meet twice"}};
  kernel();
  int killed = 0;
  for (Mutant &mutant : mutants(*module)) {
    module = std::move(mutant.module);
    for (WarpOrder order : kOrders) {
      allocate();
      InterpreterOptions options;
      options.order = order;
      bool survived = run(arguments, {1, 1, 1}, options) && isRight();
      EXPECT_EQ(survived, survivors.count(mutant.name) != 0)
          << mutant.name << ", order " << int(order) << ": "
          << (errors.empty() ? "" : errors.front().text);
      killed += !survived;
    }
  }
  EXPECT_GT(killed, 60);
}
