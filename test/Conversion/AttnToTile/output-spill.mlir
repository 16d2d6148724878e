// P stays in registers, O passes through the scratch: what comes and goes for a
// tile of columns.
// RUN: attn-opt %s -attn-to-tile | FileCheck %s

// A launch has the scratch of two blocks on each of 108 multiprocessors.
// CHECK-LABEL: tile.kernel @output_spill_mma_sync_bf16_520_320_lse(
// CHECK-SAME: %[[C:[^:]*]]: !tile.ptr<i32> {tile.role = "counter"}
// CHECK-SAME: %[[O:[^:]*]]: !tile.ptr<i32> {tile.beyond_keys = 64 : i64, tile.per_block = 24576 : i64, tile.role = "scratch_output"}
// CHECK-SAME: warps = 4 : i32
// CHECK-DAG: %[[Q:.*]] = tile.alloc "query" : <2x64x64xbf16>
// CHECK-DAG: %[[K:.*]] = tile.alloc "key" : <2x64x64xbf16>
// CHECK-DAG: %[[V:.*]] = tile.alloc "value" : <2x32x128xbf16>

// Tiles, blocks of keys, slices.
// CHECK: scf.while
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.wait_group 0
// CHECK-NEXT: tile.barrier
// CHECK: tile.load_matrix %[[Q]]
// CHECK: tile.load_matrix %[[K]]
// CHECK: %[[P:.*]] = tile.cast %{{.*}} : <16x64xf32, acc> -> <16x64xbf16, lhs>

// A tile of columns: O of blocks before is on its way until the first piece of
// V has come.
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = scf.if %{{.*}} -> (!tile.frag<16x128xf32, acc>)
// CHECK: tile.load_registers %[[O]]{{.*}} -> !tile.frag<16x128xf32, acc>
// CHECK: tile.wait_group 0
// CHECK-NEXT: tile.barrier
// CHECK: tile.map %[[SUM]],
// CHECK: tile.extract %[[P]][0]
// CHECK: tile.load_matrix %[[V]]
// CHECK: tile.extract %[[P]][16]
// CHECK: scf.if
// CHECK: tile.barrier
// CHECK: tile.extract %[[P]][32]
// CHECK: tile.store_fragment %{{.*}} : <16x128xf32, acc> to <?x320xbf16, align = 16>
// CHECK: tile.store_registers %{{.*}} to %[[O]]

// What sees nothing is 0.
// CHECK: tile.store_fragment
// CHECK: tile.store_row

// The next tile, whose number comes where slices of Q were.
// CHECK: tile.put_draw %[[C]] below %{{.*}} to %[[Q]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.get_draw %[[Q]]
// CHECK-NEXT: tile.barrier

// CHECK-LABEL: func.func @f(
// CHECK-DAG: tile.counter : memref<1xi32>
// CHECK-DAG: tile.scratch : memref<5308416xi32>
// CHECK: %[[BLOCKS:.*]] = arith.minsi %{{.*}}, %c216
// CHECK: tile.launch {{.*}} grid(%[[BLOCKS]], %c1, %c1)
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @f(%q: memref<?x20x1000x520xbf16>, %k: memref<?x20x3000x520xbf16>, %v: memref<?x20x3000x320xbf16>, %o: memref<?x20x1000x320xbf16>, %l: memref<?x20x1000xf32>) {
    attn.forward %q, %k, %v outs(%o, %l : memref<?x20x1000x320xbf16>, memref<?x20x1000xf32>) {schedule = #attn.schedule<output_spill, query = 64, key = 64, column = 128, slice = 64, stages = 2, warps = 4>}
        : memref<?x20x1000x520xbf16>, memref<?x20x3000x520xbf16>, memref<?x20x3000x320xbf16>
    return
  }
}
