//===- Scalars.cpp - Does every scalar op compute what it says? -----------===//
//
// Each row of a table is an op on constants and the value it must have.  It is
// evaluated twice: as a scalar of the kernel, and in the body of a map.
//
//===----------------------------------------------------------------------===//

#include "Harness/KernelTest.h"
#include "Harness/SpecialValues.h"

#include <cmath>

using namespace attn;

namespace {
struct Row {
  /// Defines %r of type i32, i64, i1 or f32.
  std::string text, type;
  float expected;
};
class Scalars : public KernelTest {
protected:
  static std::string operands() {
    return R"(
    %i7 = arith.constant 7 : i32
    %m7 = arith.constant -7 : i32
    %i2 = arith.constant 2 : i32
    %m1 = arith.constant -1 : i32
    %min = arith.constant -2147483648 : i32
    %i40 = arith.constant 40 : i32
    %l7 = arith.constant 7 : i64
    %big = arith.constant 4294967298 : i64
    %yes = arith.constant true
    %no = arith.constant false
    %x = arith.constant 2.25 : f32
    %y = arith.constant -0.5 : f32
    %nan = arith.constant 0x7fc00000 : f32
    %inf = arith.constant 0x7f800000 : f32
)";
  }
  /// The op, and its result as %f of type f32.
  static std::string value(const Row &row) {
    std::string text = "    " + row.text + "\n";
    if (row.type == "f32")
      return text + "    %zero = arith.constant -0.0 : f32\n"
                    "    %f = arith.addf %r, %zero : f32\n";
    std::string convert = row.type == "i1" ? "uitofp" : "sitofp";
    return text + "    %f = arith." + convert + " %r : " + row.type +
           " to f32\n";
  }
  void check(const Row &row) {
    parse("tile.kernel @k(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {" +
          operands() + value(row) + R"(
    %o = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %n = arith.constant 32 : i32
    %first = arith.constant 0 : i32
    %second = arith.constant 16 : i32
    %view = tile.view %p[%o] rows(%n) stride(%one)
        : !tile.ptr<f32> -> !tile.view<?xf32, align = 4>
    %a = tile.fill %f : f32 -> !tile.row<16xf32>
    tile.store_row %a to %view[%first]
        : !tile.row<16xf32> to !tile.view<?xf32, align = 4>
    %b = tile.map -> !tile.row<16xf32> {
    ^bb0(%row: i32):)" +
          rename(operands() + value(row)) + R"(
      tile.yield %f_ : f32
    }
    tile.store_row %b to %view[%second]
        : !tile.row<16xf32> to !tile.view<?xf32, align = 4>
    tile.return
})");
    uint64_t out = allocateUninitialised(32 * 4);
    ASSERT_TRUE(run({out})) << row.text << errors.front().text;
    std::vector<float> values = floats(out, 32);
    for (int at : {0, 31}) {
      if (std::isnan(row.expected))
        EXPECT_TRUE(std::isnan(values[at])) << row.text;
      else
        EXPECT_FLOAT_EQ(values[at], row.expected) << row.text;
    }
  }

private:
  /// Appends an underscore to every name.
  static std::string rename(const std::string &text) {
    std::string result;
    bool name = false;
    for (char c : text) {
      if (name && !std::isalnum(static_cast<unsigned char>(c))) {
        result += '_';
        name = false;
      }
      name |= c == '%';
      result += c;
    }
    return result;
  }
};
} // namespace

TEST_F(Scalars, Integers) {
  const Row rows[] = {
      {"%r = arith.addi %i7, %i2 : i32", "i32", 9},
      {"%r = arith.addi %min, %m1 : i32", "i32", 2147483647.0f},
      {"%r = arith.subi %i2, %i7 : i32", "i32", -5},
      {"%r = arith.muli %m7, %i2 : i32", "i32", -14},
      {"%r = arith.muli %min, %i2 : i32", "i32", 0},
      {"%r = arith.divsi %m7, %i2 : i32", "i32", -3},
      {"%r = arith.divsi %min, %m1 : i32", "i32", -2147483648.0f},
      {"%r = arith.floordivsi %m7, %i2 : i32", "i32", -4},
      {"%r = arith.floordivsi %i7, %i2 : i32", "i32", 3},
      {"%r = arith.ceildivsi %m7, %i2 : i32", "i32", -3},
      {"%r = arith.ceildivsi %i7, %i2 : i32", "i32", 4},
      {"%r = arith.ceildivsi %i7, %m1 : i32", "i32", -7},
      {"%r = arith.remsi %m7, %i2 : i32", "i32", -1},
      {"%r = arith.divui %m7, %i2 : i32", "i32", 2147483644.0f},
      {"%r = arith.remui %m7, %i2 : i32", "i32", 1},
      {"%r = arith.ceildivui %i7, %i2 : i32", "i32", 4},
      {"%r = arith.minsi %m7, %i2 : i32", "i32", -7},
      {"%r = arith.maxsi %m7, %i2 : i32", "i32", 2},
      {"%r = arith.minui %m7, %i2 : i32", "i32", 2},
      {"%r = arith.maxui %m7, %i2 : i32", "i32", -7},
      {"%r = arith.andi %i7, %i2 : i32", "i32", 2},
      {"%r = arith.ori %i7, %i40 : i32", "i32", 47},
      {"%r = arith.xori %i7, %i2 : i32", "i32", 5},
      {"%r = arith.shli %i7, %i2 : i32", "i32", 28},
      {"%r = arith.shrsi %m7, %i2 : i32", "i32", -2},
      {"%r = arith.shrui %m1, %i2 : i32", "i32", 1073741823.0f},
      {"%r = arith.addi %big, %l7 : i64", "i64", 4294967305.0f},
  };
  for (const Row &row : rows)
    check(row);
}

TEST_F(Scalars, Comparisons) {
  const Row rows[] = {
      {"%r = arith.cmpi slt, %m7, %i2 : i32", "i1", 1},
      {"%r = arith.cmpi ult, %m7, %i2 : i32", "i1", 0},
      {"%r = arith.cmpi uge, %m7, %i2 : i32", "i1", 1},
      {"%r = arith.cmpi eq, %i2, %i2 : i32", "i1", 1},
      {"%r = arith.cmpi ne, %i2, %i2 : i32", "i1", 0},
      {"%r = arith.cmpi sge, %i2, %i2 : i32", "i1", 1},
      {"%r = arith.cmpi sgt, %i2, %i2 : i32", "i1", 0},
      {"%r = arith.cmpf oeq, %x, %x : f32", "i1", 1},
      {"%r = arith.cmpf olt, %y, %x : f32", "i1", 1},
      {"%r = arith.cmpf ole, %x, %nan : f32", "i1", 0},
      {"%r = arith.cmpf ogt, %x, %y : f32", "i1", 1},
      {"%r = arith.cmpf oge, %y, %x : f32", "i1", 0},
      {"%r = arith.cmpf one, %x, %nan : f32", "i1", 0},
      {"%r = arith.cmpf une, %x, %nan : f32", "i1", 1},
      {"%r = arith.cmpf ueq, %x, %nan : f32", "i1", 1},
      {"%r = arith.cmpf ueq, %x, %y : f32", "i1", 0},
      {"%r = arith.cmpf ult, %y, %x : f32", "i1", 1},
      {"%r = arith.cmpf ugt, %y, %x : f32", "i1", 0},
      {"%r = arith.cmpf uno, %x, %nan : f32", "i1", 1},
      {"%r = arith.cmpf ord, %x, %y : f32", "i1", 1},
      {"%r = arith.select %yes, %x, %y : f32", "f32", 2.25f},
      {"%r = arith.select %no, %i7, %i2 : i32", "i32", 2},
      {"%r = arith.andi %yes, %no : i1", "i1", 0},
      {"%r = arith.ori %yes, %no : i1", "i1", 1},
      {"%r = arith.xori %yes, %yes : i1", "i1", 0},
  };
  for (const Row &row : rows)
    check(row);
}

TEST_F(Scalars, Conversions) {
  const Row rows[] = {
      {"%r = arith.extsi %m7 : i32 to i64", "i64", -7},
      {"%r = arith.extui %m7 : i32 to i64", "i64", 4294967289.0f},
      {"%r = arith.extui %yes : i1 to i32", "i32", 1},
      {"%r = arith.extsi %yes : i1 to i32", "i32", -1},
      {"%r = arith.trunci %big : i64 to i32", "i32", 2},
      {"%r = arith.sitofp %m7 : i32 to f32", "f32", -7},
      {"%r = arith.uitofp %m7 : i32 to f32", "f32", 4294967289.0f},
      {"%r = arith.fptosi %x : f32 to i32", "i32", 2},
      {"%r = arith.fptosi %y : f32 to i32", "i32", 0},
      {"%r = arith.bitcast %x : f32 to i32", "i32", 0x40100000},
      {"%r = arith.bitcast %i2 : i32 to f32", "f32", 0x1p-148f},
  };
  for (const Row &row : rows)
    check(row);
}

TEST_F(Scalars, Reals) {
  const Row rows[] = {
      {"%r = arith.addf %x, %y : f32", "f32", 1.75f},
      {"%r = arith.subf %x, %y : f32", "f32", 2.75f},
      {"%r = arith.mulf %x, %y : f32", "f32", -1.125f},
      {"%r = arith.divf %x, %y : f32", "f32", -4.5f},
      {"%r = arith.negf %x : f32", "f32", -2.25f},
      {"%r = arith.maximumf %x, %y : f32", "f32", 2.25f},
      {"%r = arith.maximumf %x, %nan : f32", "f32", kNaN},
      {"%r = arith.minimumf %x, %y : f32", "f32", -0.5f},
      {"%r = arith.minimumf %nan, %y : f32", "f32", kNaN},
      {"%r = arith.maxnumf %nan, %y : f32", "f32", -0.5f},
      {"%r = arith.minnumf %x, %nan : f32", "f32", 2.25f},
      {"%r = math.exp %y : f32", "f32", 0.60653066f},
      {"%r = math.exp2 %y : f32", "f32", 0.70710678f},
      {"%r = math.log %x : f32", "f32", 0.81093022f},
      {"%r = math.log2 %x : f32", "f32", 1.169925f},
      {"%r = math.sqrt %x : f32", "f32", 1.5f},
      {"%r = math.rsqrt %x : f32", "f32", 0.6666667f},
      {"%r = math.absf %y : f32", "f32", 0.5f},
      {"%r = math.fma %x, %y, %x : f32", "f32", 1.125f},
      {"%r = arith.subf %inf, %inf : f32", "f32", kNaN},
  };
  for (const Row &row : rows)
    check(row);
}
