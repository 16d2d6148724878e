//===- Pipeline.cpp - Two roles, a ring of loads, products ----------------===//
//
// A small kernel with all that a Hopper kernel is made of, and wrong versions
// of it: O = Q sum_b K_b^T for blocks of 64 keys, loaded by TMA into two
// stages.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include <cmath>

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
        tile.tma_store %os[%c0] to %o[%c0, %c0, %c0, 0] : !tile to !map
        tile.tma_store_wait
      }
    }
  }
  tile.return
})";

namespace {
class Pipeline : public KernelTest {
protected:
  static constexpr int64_t kBlocks = 5;

  /// The kernel with one piece of its text replaced.
  void kernel(const std::string &from = "", const std::string &to = "") {
    std::string text = kPipeline;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    parse(text.replace(at, from.size(), to));
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
      std::vector<float> values = bf16s(out, 64 * 64);
      for (int64_t i = 0; i < 64; ++i)
        for (int64_t j = 0; j < 64; ++j)
          ASSERT_EQ(values[i * 64 + j], expected(i, j)) << i << " " << j;
      // Q, K and O; fills, A and B of the products, and O twice.
      EXPECT_EQ(traffic.global, (kBlocks + 2) * 8192);
      EXPECT_EQ(traffic.smem, (kBlocks + 1) * 8192 + kBlocks * 16384 + 16384);
    }
}
