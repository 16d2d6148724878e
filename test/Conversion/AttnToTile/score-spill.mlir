// Two products with P between: what passes through the scratch, and how.
// RUN: attn-opt %s -attn-to-tile | FileCheck %s

// A launch has the scratch of one block on each of 108 multiprocessors.
// CHECK-LABEL: tile.kernel @score_spill_mma_sync_bf16_520_320_lse(
// CHECK-SAME: %[[C:[^:]*]]: !tile.ptr<i32> {tile.role = "counter"}
// CHECK-SAME: %[[P:[^:]*]]: !tile.ptr<i32> {tile.per_block = 16384 : i64, tile.role = "scratch"}
// CHECK-SAME: %[[M:[^:]*]]: !tile.ptr<i32> {tile.per_block = 1024 : i64, tile.role = "scratch_maxima"}
// CHECK-SAME: %[[O:[^:]*]]: !tile.ptr<i32> {tile.beyond_keys = 512 : i64, tile.per_block = 24576 : i64, tile.role = "scratch_output"}
// CHECK-SAME: warps = 4 : i32
// CHECK-DAG: %[[Q:.*]] = tile.alloc "query" : <2x64x64xbf16>
// CHECK-DAG: %[[K:.*]] = tile.alloc "key" : <2x128x64xbf16>
// CHECK-DAG: %[[V:.*]] = tile.alloc "value" : <2x64x128xbf16>

// Tiles, strips; then the scores of a block, whose P leaves in two pieces and
// the maximum behind it.
// CHECK: scf.while
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.wait_group 0
// CHECK-NEXT: tile.barrier
// CHECK: tile.load_matrix %[[Q]]
// CHECK: tile.load_matrix %[[K]]
// CHECK: tile.extract %[[W:.*]][0]
// CHECK: tile.cast %{{.*}} : <16x64xf32, acc> -> <16x64xbf16, lhs>
// CHECK: tile.store_registers %{{.*}} to %[[P]]{{.*}} : !tile.frag<16x64xbf16, lhs>
// CHECK: tile.extract %[[W]][64]
// CHECK: tile.store_registers %{{.*}} to %[[P]]
// CHECK: tile.store_registers %{{.*}} to %[[M]]{{.*}} : !tile.row<16xf32>

// A tile of columns: what strips before have summed up, P a piece ahead of its
// product.
// CHECK: scf.for
// CHECK: tile.load_registers %[[O]]{{.*}} -> !tile.frag<16x128xf32, acc>
// CHECK: tile.load_registers %[[P]]{{.*}} -> !tile.frag<16x64xbf16, lhs>
// CHECK: scf.for
// CHECK: tile.load_registers %[[M]]
// CHECK: scf.for
// CHECK: tile.load_registers %[[P]]
// CHECK: tile.barrier
// CHECK: tile.scale_rows
// CHECK: tile.load_matrix %[[V]]
// CHECK: tile.store_fragment %{{.*}} : <16x128xf32, acc> to <?x320xbf16, align = 16>
// CHECK: tile.store_registers %{{.*}} to %[[O]]

// The next tile.
// CHECK: tile.put_draw %[[C]] below %{{.*}} to %[[Q]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.get_draw %[[Q]]
// CHECK-NEXT: tile.barrier

// CHECK-LABEL: func.func @f(
// CHECK: tile.scratch : memref<1769472xi32>
// CHECK: tile.scratch : memref<110592xi32>
// CHECK: tile.scratch : memref<2654208xi32>
// CHECK: %[[BLOCKS:.*]] = arith.minsi %{{.*}}, %c108
// CHECK: tile.launch {{.*}} grid(%[[BLOCKS]], %c1, %c1)
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @f(%q: memref<?x20x1000x520xbf16>, %k: memref<?x20x3000x520xbf16>, %v: memref<?x20x3000x320xbf16>, %o: memref<?x20x1000x320xbf16>, %l: memref<?x20x1000xf32>) {
    attn.forward %q, %k, %v outs(%o, %l : memref<?x20x1000x320xbf16>, memref<?x20x1000xf32>) {schedule = #attn.schedule<score_spill, query = 64, key = 128, column = 128, slice = 64, warps = 4, strip = 512, stages = 2>}
        : memref<?x20x1000x520xbf16>, memref<?x20x3000x520xbf16>, memref<?x20x3000x320xbf16>
    return
  }
}
