//===- OpsTest.h - Kernels of a few ops -------------------------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_INTERPRETER_OPSTEST_H
#define ATTN_TEST_UNIT_INTERPRETER_OPSTEST_H

#include "Harness/KernelTest.h"

namespace attn {

/// A warp or two over square inputs.
class Ops : public KernelTest {
protected:
  /// A kernel over inputs %a and %b and outputs %out and %half, with the
  /// constants that the bodies use.
  void kernel(const std::string &body, int warps = 1) {
    parse(R"(
!in = !tile.view<?x16xbf16, align = 2>
!out = !tile.view<?xf32, align = 4>
!acc = !tile.frag<16x16xf32, acc>
!row = !tile.row<16xf32>
!part = !tile.row<16xf32, partial>
tile.kernel @k(%pa: !tile.ptr<bf16>, %pb: !tile.ptr<bf16>,
               %pf: !tile.ptr<f32>, %ph: !tile.ptr<bf16>, %n: i32)
    attributes {warps = )" +
          std::to_string(warps) + R"( : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %sixteen = arith.constant 16 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c1000 = arith.constant 1000 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %f10 = arith.constant 10.0 : f32
  %a = tile.view %pa[%zero] rows(%n) stride(%sixteen) : !tile.ptr<bf16> -> !in
  %b = tile.view %pb[%zero] rows(%n) stride(%sixteen) : !tile.ptr<bf16> -> !in
  %out = tile.view %pf[%zero] rows(%c1000) stride(%one) : !tile.ptr<f32> -> !out
  %half = tile.view %ph[%zero] rows(%c16) stride(%sixteen)
      : !tile.ptr<bf16> -> !in
)" + body +
          "\n  tile.return\n}");
  }

  /// Runs with 16 x 16 inputs a(i, j) = i + j / 16 and b(i, j) = 10 i + j.
  void runSquare(int32_t rows = 16, InterpreterOptions options = {}) {
    std::vector<float> a, b;
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 16; ++j) {
        a.push_back(float(i) + float(j) / 16);
        b.push_back(float(10 * i + j));
      }
    f = allocateUninitialised(4000);
    h = allocateUninitialised(512);
    ASSERT_TRUE(
        run({allocateBf16(a), allocateBf16(b), f, h, rows}, {1, 1, 1}, options))
        << errors.front().text;
  }

  uint64_t f = 0, h = 0;
};

} // namespace attn

#endif
