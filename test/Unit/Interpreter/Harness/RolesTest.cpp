//===- RolesTest.cpp - Kernels of two roles, written in a test ------------===//

#include "Harness/RolesTest.h"

using namespace attn;

static const char *const kTop = R"(
!map = !tile.tensor_map<64x64xbf16>
!box = !tile.smem<64x64xbf16, sw128>
!ring = !tile.smem<2x64x64xbf16, sw128>
!acc = !tile.frag<16x64xf32, acc>
!sum = !tile.pending<16x64xf32>
!row = !tile.row<16xf32>
!out = !tile.view<?xf32, align = 4>
!slots = !tile.mbarrier<2>
!queue = !tile.queue<2x2>
tile.kernel @k(%in: !map, %to: !map, %pf: !tile.ptr<f32>,
               %counter: !tile.ptr<i32>, %n: i32)
    attributes {warps = 8 : i32} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %c16 = arith.constant 16 : i32
  %c1000 = arith.constant 1000 : i32
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %out = tile.view %pf[%zero] rows(%c1000) stride(%one) : !tile.ptr<f32> -> !out
  %r = tile.alloc "ring" : !ring
  %s = tile.alloc "box" : !box
  %full = tile.mbarrier "full" arrivals 1 : !slots
  %empty = tile.mbarrier "empty" arrivals 4 : !slots
  %queue = tile.queue "message" readers 4 : !queue
  %w = tile.warp_id
  %number = arith.subi %w, %c4 : i32
  %mine = arith.muli %number, %c16 : i32
  %is4 = arith.cmpi eq, %w, %c4 : i32
  %is5 = arith.cmpi eq, %w, %c5 : i32
)";

void RolesTest::roles(const std::string &producer, const std::string &consumer,
                      const std::string &top, const std::string &bottom,
                      const std::string &helper) {
  std::string warps = helper.empty() ? "4" : "1";
  std::string beside =
      "\n    }\n    tile.role \"helper\" warps 3 registers 24 {\n";
  parse(kTop + top + "\n  tile.roles {\n    tile.role \"producer\" warps " +
        warps + " registers 24 single_lane {\n" + producer +
        (helper.empty() ? "" : beside + helper) +
        "\n    }\n    tile.role \"consumer\" warps 4 registers 240 {\n" +
        consumer + "\n    }\n  }\n" + bottom + "\n  tile.return\n}");
  std::vector<float> values;
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j)
      values.push_back(input(i, j));
  in = allocateBf16(values);
  to = allocateUninitialised(64 * 128);
  f = allocateUninitialised(4000);
  counter = memory.allocate(4);
  int32_t none = 0;
  memory.write(counter, &none, 4);
  arguments = {array(in), array(to), f, counter, int32_t(3)};
}

void RolesTest::expectCorrect() {
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled})
    for (uint64_t seed = 0; seed < 4; ++seed) {
      InterpreterOptions options;
      options.order = order;
      options.seed = seed;
      ASSERT_TRUE(run(arguments, {2, 1, 1}, options)) << errors.front().text;
    }
}

void RolesTest::expectOneOf(const std::vector<std::string> &messages) {
  for (WarpOrder order :
       {WarpOrder::forward, WarpOrder::reverse, WarpOrder::shuffled}) {
    InterpreterOptions options;
    options.order = order;
    ASSERT_FALSE(run(arguments, {1, 1, 1}, options)) << messages.front();
    expectFirstError(messages);
  }
}
