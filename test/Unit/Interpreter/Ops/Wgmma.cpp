//===- Wgmma.cpp - Products that four warps start together ----------------===//

#include "Harness/RolesTest.h"

#include "attn/Host/Rounding.h"

using namespace attn;

namespace {
class Wgmma : public RolesTest {
protected:
  /// Row maxima of the result, 64 of them.
  std::vector<float> result() { return floats(f, 64); }
  /// Those of a sum over 64 k of `term`(i, j, k), in row i and column j.
  void expectMaxima(float (*term)(int64_t i, int64_t j, int64_t k));

  /// Of 64 x 64 bytes, of which two warps make the transpose (`transposer`),
  /// the consumers pick row r % 16 in row r.  Row j holds j / 8 in column 5.
  void bytes(const std::string &transposer);
};
} // namespace

void Wgmma::expectMaxima(float (*term)(int64_t i, int64_t j, int64_t k)) {
  std::vector<float> values = result();
  for (int64_t i = 0; i < 64; ++i) {
    float greatest = 0;
    for (int64_t j = 0; j < 64; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < 64; ++k)
        sum += term(i, j, k);
      greatest = std::max(greatest, sum);
    }
    ASSERT_EQ(values[i], greatest) << i;
  }
}

void Wgmma::bytes(const std::string &transposer) {
  parse(R"(
!map = !tile.tensor_map<64x64xf8E4M3FN>
!box = !tile.smem<64x64xf8E4M3FN, sw128>
!turned = !tile.smem<64x64xf8E4M3FN, sw128_paired>
!out = !tile.view<?xf32, align = 4>
!acc = !tile.frag<16x64xf32, acc>
tile.kernel @k(%in: !map, %pf: !tile.ptr<f32>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s = tile.alloc "box" : !box
  %t = tile.alloc "turned" : !turned
  %full = tile.mbarrier "full" arrivals 1 : !tile.mbarrier<1>
  %done = tile.mbarrier "done" arrivals 2 : !tile.mbarrier<1>
  %out = tile.view %pf[%zero] rows(%c64) stride(%one) : !tile.ptr<f32> -> !out
  %w = tile.warp_id
  tile.roles {
    tile.role "producer" warps 2 registers 24 single_lane {
      tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to !box, !tile.mbarrier<1>
    }
    tile.role "transposer" warps 2 registers 24 {
      %strip = arith.subi %w, %c2 : i32
      %row = arith.muli %strip, %c32 : i32
)" + transposer +
        R"(
    }
    tile.role "consumer" warps 4 registers 240 {
      %number = arith.subi %w, %c4 : i32
      %mine = arith.muli %number, %c16 : i32
      %pick = tile.map -> !acc {
      ^bb0(%i: i32, %j: i32):
        %same = arith.cmpi eq, %i, %j : i32
        %f0 = arith.constant 0.0 : f32
        %v = arith.constant 1.0625 : f32
        %x = arith.select %same, %v, %f0 : f32
        tile.yield %x : f32
      }
      %lhs = tile.cast %pick : !acc -> !tile.frag<16x64xf8E4M3FN, lhs>
      tile.mbarrier_wait %done[%c0] parity %c0 : !tile.mbarrier<1>
      %p = tile.wgmma %lhs, %t[%c0] transpose : !tile.frag<16x64xf8E4M3FN, lhs>, !turned -> !tile.pending<16x64xf32> // HERE
      %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !acc
      %max = tile.row_reduce max %x : !acc -> !tile.row<16xf32>
      tile.store_row %max to %out[%mine] : !tile.row<16xf32> to !out
    }
  }
  tile.return
})");
  std::vector<uint8_t> values(64 * 64, 0);
  for (int64_t j = 0; j < 64; ++j)
    values[j * 64 + 5] = e4m3FromFloat(float(j) / 8);
  uint64_t from = memory.allocate(64 * 64);
  memory.write(from, values.data(), 64 * 64);
  f = allocateUninitialised(256);
  arguments = {array(from), f};
}

static const char *const kTranspose = R"(
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      tile.transpose %s[%c0, %row] to %t[%c0] : !box to !turned
      tile.fence_async
      tile.mbarrier_arrive %done[%c0] : !tile.mbarrier<1>)";

static const char *const kLoad =
    "tile.tma_load %in[%c0, %c0, %c0] to %s[%c0] arrive %full[%c0] : !map to "
    "!box, !slots\n";
static const char *const kAwait =
    "tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n";
static const char *const kSquare =
    "%p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum";
static const char *const kWait = "%x = tile.wgmma_wait 0, %p : !sum -> !acc\n";
/// Stores the greatest of each row of %x.
static const char *const kStore =
    "%max = tile.row_reduce max %x : !acc -> !row\n"
    "tile.store_row %max to %out[%mine] : !row to !out\n";

TEST_F(Wgmma, RowsTimesRows) {
  roles(kLoad, std::string(kAwait) + kSquare + "\n" + kWait + kStore);
  expectCorrect();
  expectMaxima([](int64_t i, int64_t j, int64_t k) {
    return input(i, k) * input(j, k);
  });
  // A once, and B once for the four warps.
  EXPECT_EQ(traffic.smem, 2 * (8192 + 2 * 8192));
}

TEST_F(Wgmma, RegistersTimesColumnsPlusAccumulator) {
  // 1 / 2 in column r % 16 of row r picks row r % 16 of the factor.
  roles(kLoad, std::string(kAwait) + R"(
  %pick = tile.map -> !acc {
  ^bb0(%i: i32, %j: i32):
    %same = arith.cmpi eq, %i, %j : i32
    %half = arith.constant 0.5 : f32
    %v = arith.select %same, %half, %f0 : f32
    tile.yield %v : f32
  }
  %lhs = tile.cast %pick : !acc -> !tile.frag<16x64xbf16, lhs>
  %init = tile.fill %f1 : f32 -> !tile.frag<16x24xf32, acc>
  %p = tile.wgmma %lhs, %s[%c0] acc(%init : !tile.frag<16x24xf32, acc>) : !tile.frag<16x64xbf16, lhs>, !box -> !tile.pending<16x24xf32>
  %y = tile.wgmma_wait 0, %p : !tile.pending<16x24xf32> -> !tile.frag<16x24xf32, acc>
  %max = tile.row_reduce max %y : !tile.frag<16x24xf32, acc> -> !row
  tile.store_row %max to %out[%mine] : !row to !out)");
  expectCorrect();
  std::vector<float> values = result();
  for (int64_t i = 0; i < 64; ++i) {
    float greatest = 0;
    for (int64_t j = 0; j < 24; ++j)
      greatest = std::max(greatest, 1 + input(i % 16, j) / 2);
    ASSERT_EQ(values[i], greatest) << i;
  }
  // Only the columns of the product are read.
  EXPECT_EQ(traffic.smem, 2 * (8192 + 64 * 24 * 2));
}

TEST_F(Wgmma, StagesAndRowsOfTheLeftFactor) {
  parse(R"(
!map = !tile.tensor_map<128x64xbf16>
!box = !tile.smem<2x128x64xbf16, sw128>
!out = !tile.view<?xf32, align = 4>
tile.kernel @k(%in: !map, %pf: !tile.ptr<f32>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %s = tile.alloc "box" : !box
  %full = tile.mbarrier "full" arrivals 1 : !tile.mbarrier<1>
  %out = tile.view %pf[%zero] rows(%c64) stride(%one) : !tile.ptr<f32> -> !out
  tile.roles {
    tile.role "producer" warps 4 registers 24 single_lane {
      tile.tma_load %in[%c0, %c0, %c0] to %s[%c1] arrive %full[%c0] : !map to !box, !tile.mbarrier<1>
    }
    tile.role "consumer" warps 4 registers 240 {
      %w = tile.warp_id
      %number = arith.subi %w, %c4 : i32
      %mine = arith.muli %number, %c16 : i32
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      %p = tile.wgmma %s[%c1, %c64], %s[%c1] transpose : !box, !box -> !tile.pending<16x128xf32>
      %x = tile.wgmma_wait 0, %p : !tile.pending<16x128xf32> -> !tile.frag<16x128xf32, acc>
      %max = tile.row_reduce max %x : !tile.frag<16x128xf32, acc> -> !tile.row<16xf32>
      tile.store_row %max to %out[%mine] : !tile.row<16xf32> to !out
    }
  }
  tile.return
})");
  // Row i is i times a unit vector: the greatest product is i * 127.
  std::vector<float> values(128 * 64, 0.0f);
  for (int64_t i = 0; i < 128; ++i)
    values[i * 64 + 3] = float(i);
  f = allocateUninitialised(256);
  arguments = {array(allocateBf16(values), 128), f};
  expectCorrect();
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_EQ(result()[i], float((64 + i) * 127));
}

TEST_F(Wgmma, TransposeOfTheLeftFactor) {
  roles(kLoad, std::string(kAwait) +
                   "%p = tile.wgmma %s[%c0, %c0] transpose, %s[%c0] : !box, "
                   "!box -> !sum\n" +
                   kWait + kStore);
  expectCorrect();
  expectMaxima([](int64_t i, int64_t j, int64_t k) {
    return input(k, i) * input(k, j);
  });
  EXPECT_EQ(traffic.smem, 2 * (8192 + 2 * 8192));
  roles(kLoad, std::string(kAwait) +
                   "%p = tile.wgmma %s[%c0, %c16] transpose, %s[%c0] : !box, "
                   "!box -> !sum // HERE");
  expectBreach(
      "expects a column of the left factor in multiples of 64, but got 16");
}

TEST_F(Wgmma, EightBitFactors) {
  bytes(kTranspose);
  expectCorrect();
  // 1.0625 becomes 1.
  std::vector<float> values = result();
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_EQ(values[i], float(i % 16) / 8);
  // A whole panel loaded, strips read and written, the right factor.
  EXPECT_EQ(traffic.smem, 2 * (64 * 128 + 2 * 4096 + 4096));
}

TEST_F(Wgmma, TransposeNeedsTheLoad) {
  bytes(R"(
      tile.transpose %s[%c0, %row] to %t[%c0] : !box to !turned // HERE
      tile.fence_async
      tile.mbarrier_arrive %done[%c0] : !tile.mbarrier<1>)");
  // Or written at all: what comes first depends on the order of the roles.
  expectBreach("before they are read");
}

TEST_F(Wgmma, TransposeNeedsAFenceBeforeProducts) {
  bytes(R"(
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      tile.transpose %s[%c0, %row] to %t[%c0] : !box to !turned
      tile.mbarrier_arrive %done[%c0] : !tile.mbarrier<1>)");
  expectBreach("expects tile.fence_async by warp");
}

TEST_F(Wgmma, TransposeTakesStripsOf32) {
  bytes(R"(
      tile.mbarrier_wait %full[%c0] parity %c0 : !tile.mbarrier<1>
      tile.transpose %s[%c0, %c16] to %t[%c0] : !box to !turned // HERE
      tile.fence_async
      tile.mbarrier_arrive %done[%c0] : !tile.mbarrier<1>)");
  expectBreach("expects a row in multiples of 32, but got 16");
}

TEST_F(Wgmma, TwoInFlight) {
  roles(kLoad, std::string(kAwait) + R"(
  %p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum
  %q = tile.wgmma %s[%c0, %c0], %s[%c0] : !box, !box -> !sum
  %x = tile.wgmma_wait 1, %p : !sum -> !acc
  %y = tile.wgmma_wait 0, %q : !sum -> !acc
)" + kStore);
  expectCorrect();
}

//===----------------------------------------------------------------------===//
// What is reported
//===----------------------------------------------------------------------===//

TEST_F(Wgmma, TheOlderOfTwoIsDoneTheYoungerNot) {
  // The younger one reads the box until its own wait.
  roles(kLoad +
            std::string("tile.mbarrier_wait %full[%c0] parity %c0 : !slots\n"
                        "tile.tma_load %in[%c0, %c0, %c0] to %r[%c0] "
                        "arrive %full[%c1] : !map to !ring, !slots"),
        std::string(kAwait) +
            "tile.mbarrier_wait %full[%c1] parity %c0 : !slots\n"
            R"(
  %acc = tile.fill %f1 : f32 -> !acc
  %p = tile.wgmma %r[%c0, %c0], %r[%c0] transpose : !ring, !ring -> !sum
  %q = tile.wgmma %s[%c0, %c0], %s[%c0] : !box, !box -> !sum
  %x = tile.wgmma_wait 1, %p : !sum -> !acc
  tile.bar_sync %c1 warps 4
  tile.store_matrix %acc to %s[%mine] : !acc to !box // HERE
  %y = tile.wgmma_wait 0, %q : !sum -> !acc)");
  expectBreach("to have waited for its asynchronous read of rows ");
  EXPECT_EQ(errors.front().notes, "the read is here\n");
}

TEST_F(Wgmma, FactorsMustBeReadyAtTheIssue) {
  roles(kLoad, std::string(kSquare) + " // HERE\n" + kAwait + kWait);
  expectOneOf({"of buffer 'box' to be waited for before they are read, but got "
               "no wait for phase 0 of barrier 'full' (slot 0)",
               "of buffer 'box' to be written before they are read",
               "of buffer 'box' before they are overwritten, but got it in "
               "flight"});
}

TEST_F(Wgmma, FactorsThatWereStoredNeedAFence) {
  const std::string store = "%acc = tile.fill %f1 : f32 -> !acc\n"
                            "tile.store_matrix %acc to %s[%mine] : !acc to "
                            "!box\n";
  const std::string sync = "tile.bar_sync %c1 warps 4\n";
  const std::string product = std::string(kSquare) + " // HERE\n" + kWait;
  roles("", store + sync + product);
  expectBreach("expects tile.fence_async by warp ");
  roles("", "tile.fence_async\n" + store + sync + product);
  expectBreach("expects tile.fence_async by warp ");
  roles("", store + "tile.fence_async\n" + sync + product);
  expectCorrect();
  // Every warp for itself.
  roles("", store + sync + "tile.fence_async\n" + product);
  expectCorrect();
  // One for the others, which it tells; and without telling.
  const std::string one = "scf.if %is5 {\ntile.fence_async\n}\n";
  roles("", store + sync + one + sync + product);
  expectCorrect();
  roles("", store + sync + one + product);
  expectBreach("expects tile.fence_async by warp ");
}

TEST_F(Wgmma, FactorsThatWereCopiedNeedAFence) {
  auto with = [&](const std::string &fence) {
    parse(R"(
!box = !tile.smem<64x64xbf16, sw128>
!in = !tile.view<?x64xbf16, align = 16>
!sum = !tile.pending<16x64xf32>
!acc = !tile.frag<16x64xf32, acc>
tile.kernel @k(%p: !tile.ptr<bf16>) attributes {warps = 4 : i32} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant 0 : i64
  %pitch = arith.constant 64 : i64
  %v = tile.view %p[%zero] rows(%c64) stride(%pitch) : !tile.ptr<bf16> -> !in
  %s = tile.alloc "box" : !box
  tile.copy_async %v[%c0] to %s[%c0] : !in to !box
  tile.commit_group
  tile.wait_group 0
  )" + fence +
          R"(
  tile.barrier
  %p0 = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum // HERE
  %x = tile.wgmma_wait 0, %p0 : !sum -> !acc
  tile.return
})");
    arguments = {allocateBf16(std::vector<float>(64 * 64, 1.0f))};
  };
  with("tile.fence_async");
  expectCorrect();
  with("");
  expectBreach("expects tile.fence_async by warp 0 and then a barrier between "
               "its store to rows ");
}

TEST_F(Wgmma, WarpsThatDiffer) {
  roles(kLoad, std::string(kAwait) +
                   "%stage = arith.select %is5, %c1, %c0 : i32\n"
                   "%p = tile.wgmma %s[%c0, %c0], %r[%stage] transpose : !box, "
                   "!ring -> !sum\n" +
                   kWait);
  expectOneOf({"expects the warps of a warpgroup to start the same products in "
               "the same order, but got this one at other places in warp ",
               "expects rows 0 to 63 of buffer 'ring'"});
  roles(kLoad, std::string(kAwait) + R"(
  scf.if %is5 {
    %p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum
    %x = tile.wgmma_wait 0, %p : !sum -> !acc
  } else {
    %p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum
    %x = tile.wgmma_wait 0, %p : !sum -> !acc
  })");
  expectOneOf({"expects the warps of a warpgroup to start the same products in "
               "the same order, but got another one in warp "});
}

/// The input times 1 / 2, in columns 64 and behind of a factor of 128.
static std::string productFrom(const std::string &column) {
  return std::string(kAwait) + R"(
  %two = tile.alias %r : !ring -> !tile.smem<64x128xbf16, sw128>
  %pick = tile.map -> !acc {
  ^bb0(%i: i32, %j: i32):
    %same = arith.cmpi eq, %i, %j : i32
    %half = arith.constant 0.5 : f32
    %v = arith.select %same, %half, %f0 : f32
    tile.yield %v : f32
  }
  %lhs = tile.cast %pick : !acc -> !tile.frag<16x64xbf16, lhs>
  %column = arith.muli %c4, %)" +
         column + R"( : i32
  %p = tile.wgmma %lhs, %two[%c0, %column] : !tile.frag<16x64xbf16, lhs>, !tile.smem<64x128xbf16, sw128> -> !tile.pending<16x24xf32> // HERE
  %y = tile.wgmma_wait 0, %p : !tile.pending<16x24xf32> -> !tile.frag<16x24xf32, acc>
  %max = tile.row_reduce max %y : !tile.frag<16x24xf32, acc> -> !row
  tile.store_row %max to %out[%mine] : !row to !out)";
}

TEST_F(Wgmma, ColumnsOfTheRightFactor) {
  const char *load = "tile.tma_load %in[%c0, %c0, %c0] to %r[%c1] arrive "
                     "%full[%c0] : !map to !ring, !slots";
  roles(load, productFrom("c16"));
  expectCorrect();
  std::vector<float> values = result();
  for (int64_t i = 0; i < 64; ++i) {
    float greatest = 0;
    for (int64_t j = 0; j < 24; ++j)
      greatest = std::max(greatest, input(i % 16, j) / 2);
    ASSERT_EQ(values[i], greatest) << i;
  }
  roles(load, productFrom("c4"));
  expectBreach("expects a column of the right factor in multiples of 64, but "
               "got 16");
  roles(load, productFrom("c0"));
  expectBreach("of buffer 'ring' to be written before they are read");
  roles(load, "%c32 = arith.constant 32 : i32\n" + productFrom("c32"));
  expectBreach("expects columns 0 to 127 of buffer 'ring', but got 128 to 151");
}

TEST_F(Wgmma, AWarpThatNeverComes) {
  roles(kLoad, std::string(kAwait) + R"(
  scf.if %is5 {
  } else {
    %p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !box, !box -> !sum // HERE
    %x = tile.wgmma_wait 0, %p : !sum -> !acc
  })");
  expectBreach("expects all 4 warps of a warpgroup to start the product, but "
               "got 3 of warpgroup 1 (block 0, 0, 0)");
}

TEST_F(Wgmma, AProductNobodyWaitsFor) {
  roles(kLoad, std::string(kAwait) + kSquare, "",
        "tile.return // HERE\n}\n"
        "tile.kernel @other() attributes {warps = 1 : i32} {");
  expectBreach("expects every product to be waited for, but got one in flight");
  EXPECT_EQ(errors.front().notes, "the product is here\n");
}

TEST_F(Wgmma, RowsOfTheLeftFactor) {
  roles(kLoad, std::string(kAwait) +
                   "%p = tile.wgmma %s[%c0, %c4], %s[%c0] transpose : !box, "
                   "!box -> !sum // HERE");
  expectBreach("expects a row of the left factor in multiples of 8, but got 4");
  roles(kLoad, std::string(kAwait) +
                   "%p = tile.wgmma %s[%c0, %c16], %s[%c0] transpose : !box, "
                   "!box -> !sum // HERE\n" +
                   kWait);
  expectBreach(
      "expects rows 0 to 63 of buffer 'box', but got 64 to 79 (warp 7");
}
