// Sums of what elements have.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @additions
tile.kernel @additions(%array: !tile.ptr<f32>, %keys: i32, %x: f32) attributes {warps = 1 : i32} {
  %offset = arith.constant 5 : i64
  %row = tile.fill %x : f32 -> !tile.row<16xf32>
  // CHECK: %[[S:.*]] = tile.fill %{{.*}} : f32 -> !tile.frag<16x64xf32, acc>
  %s = tile.fill %x : f32 -> !tile.frag<16x64xf32, acc>
  // CHECK: tile.add_elements %[[S]], %{{.*}} to %{{.*}}[%{{.*}}] : !tile.frag<16x64xf32, acc>, !tile.row<16xf32> to <f32> {
  tile.add_elements %s, %row to %array[%offset] : !tile.frag<16x64xf32, acc>, !tile.row<16xf32> to <f32> {
  ^bb0(%r: i32, %c: i32, %value: f32, %factor: f32):
    %there = arith.cmpi slt, %c, %keys : i32
    %sum = arith.mulf %value, %factor : f32
    // CHECK: tile.add %{{.*}} at %{{.*}} : i32 if %{{.*}}
    tile.add %sum at %c : i32 if %there
  }
  // CHECK: tile.total %{{.*}} : <16xf32>
  %total = tile.total %row : <16xf32>
  tile.return
}
