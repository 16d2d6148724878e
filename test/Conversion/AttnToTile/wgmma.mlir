// The kernel of flash on wgmma: what it reserves, its roles, and what is launched.
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// 168 rows are 2 tiles of 128 and 3 of 64, of 8 heads and 3 batches.  A grid that
// is no larger than the machine shares a counter; the base, the strides of lse
// and the sizes are scalars, all else goes by tensor maps.
// CHECK-LABEL: tile.kernel @flash_wgmma_bf16_64_causal_lse(
// CHECK-SAME: !tile.tensor_map<128x64xbf16> {tile.role = "q_map"}, %{{[^:]*}}: !tile.tensor_map<64x64xbf16> {tile.role = "k_map"}, %{{[^:]*}}: !tile.tensor_map<64x64xbf16> {tile.role = "v_map"}, %[[OMAP:[^:]*]]: !tile.tensor_map<64x64xbf16> {tile.role = "o_map"},
// CHECK-SAME: !tile.ptr<f32> {tile.role = "lse"}, {{.*}} {tile.role = "lse_stride_row"}, %[[COUNTER:[^:]*]]: !tile.ptr<i32> {tile.role = "counter"},
// CHECK-SAME: i32 {tile.role = "queries"}, {{.*}} {tile.role = "keys"}, {{.*}} {tile.role = "heads"}, {{.*}} {tile.role = "batch"}, {{.*}} {tile.role = "group"}, {{.*}} {tile.role = "band_last"}, {{.*}}: f32 {tile.role = "scale"})
// CHECK-SAME: warps = 12 : i32
// Slots come back from every warp of the consumers.
// CHECK: %[[Q:.*]] = tile.alloc "query" : <128x64xbf16, sw128>
// CHECK-NEXT: %[[K:.*]] = tile.alloc "key" : <2x64x64xbf16, sw128>
// CHECK-NEXT: %[[V:.*]] = tile.alloc "value" : <2x64x64xbf16, sw128>
// CHECK-NEXT: %[[S:.*]] = tile.alloc "staging" : <128x64xbf16, sw128>
// CHECK-NEXT: %[[QFULL:.*]] = tile.mbarrier "query_full" arrivals 1 : <1>
// CHECK-NEXT: %[[QEMPTY:.*]] = tile.mbarrier "query_empty" arrivals 8 : <1>
// CHECK-NEXT: %[[KFULL:.*]] = tile.mbarrier "key_full" arrivals 1 : <2>
// CHECK-NEXT: %[[KEMPTY:.*]] = tile.mbarrier "key_empty" arrivals 8 : <2>
// CHECK-NEXT: %[[VFULL:.*]] = tile.mbarrier "value_full" arrivals 1 : <2>
// CHECK-NEXT: %[[VEMPTY:.*]] = tile.mbarrier "value_empty" arrivals 8 : <2>
// CHECK-NEXT: %[[TILE:.*]] = tile.queue "tile" readers 8 : <2x3>
// CHECK: tile.role "producer" warps 4 registers 24 single_lane {
// CHECK: tile.push %[[TILE]]
// CHECK: tile.mbarrier_wait %[[KEMPTY]]
// CHECK: tile.tma_load %{{.*}} to %[[K]][%{{.*}}] arrive %[[KFULL]]
// CHECK: tile.mbarrier_wait %[[QEMPTY]]
// CHECK: tile.tma_load %{{.*}} to %[[Q]][%{{.*}}] arrive %[[QFULL]]
// CHECK: scf.while
// CHECK: tile.draw %[[COUNTER]] below
// CHECK: tile.push %[[TILE]]
// CHECK: tile.mbarrier_wait %[[VEMPTY]]
// CHECK: tile.tma_load %{{.*}} to %[[V]][%{{.*}}] arrive %[[VFULL]]
// CHECK: tile.role "consumer" warps 8 registers 240 {
// CHECK: tile.pop %[[TILE]]
// CHECK: scf.while
// CHECK: tile.mbarrier_wait %[[QFULL]]
// CHECK: tile.mbarrier_wait %[[KFULL]]
// Scores of the first block, then those of each beside the product of the last,
// in turns of the two warpgroups.
// CHECK: tile.bar_sync %{{.*}} warps 8
// CHECK-NEXT: %[[P:.*]] = tile.wgmma %[[Q]][%{{.*}}], %[[K]][%{{.*}}] transpose
// CHECK: tile.bar_arrive %{{.*}} warps 8
// CHECK: tile.wgmma_wait 0, %[[P]]
// CHECK: tile.mbarrier_arrive %[[KEMPTY]]
// CHECK: scf.for
// CHECK: tile.bar_sync %{{.*}} warps 8
// CHECK-NEXT: %[[P:.*]] = tile.wgmma %[[Q]][%{{.*}}], %[[K]][%{{.*}}] transpose
// CHECK: tile.mbarrier_wait %[[VFULL]]
// CHECK: %[[O:.*]] = tile.wgmma %{{.*}}, %[[V]][%{{.*}}] acc(
// CHECK: tile.bar_arrive %{{.*}} warps 8
// CHECK: tile.wgmma_wait 1, %[[P]]
// CHECK: tile.any_above
// CHECK: tile.wgmma_wait 0, %[[O]]
// CHECK: tile.mbarrier_arrive %[[VEMPTY]]
// The output, warpgroup by warpgroup, through its part of the staging buffer.
// CHECK: tile.tma_store_wait 0
// CHECK-NEXT: tile.bar_sync %[[OWN:.*]] warps 4
// CHECK-NEXT: tile.store_matrix %{{.*}} to %[[S]]
// CHECK-NEXT: tile.fence_async
// CHECK-NEXT: tile.bar_sync %[[OWN]] warps 4
// CHECK: tile.tma_store %[[S]][%{{.*}}] to %[[OMAP]]
// CHECK: tile.store_row
// CHECK: tile.tma_store_wait 0

// Without a counter a block has one tile, and one warpgroup takes no turns;
// without overlap it waits for each product.
// CHECK-LABEL: tile.kernel @flash_wgmma_bf16_64_causal_lse_1(
// CHECK-NOT: counter
// CHECK: warps = 8 : i32
// CHECK: tile.mbarrier "key_empty" arrivals 4 : <2>
// CHECK: tile.queue "tile" readers 4 : <2x3>
// CHECK-NOT: tile.draw
// CHECK: tile.role "consumer" warps 4 registers 240 {
// CHECK-NOT: tile.bar_
// CHECK: %[[P:.*]] = tile.wgmma {{.*}} transpose
// CHECK-NEXT: tile.wgmma_wait 0, %[[P]]
// CHECK: scf.for
// CHECK: %[[O:.*]] = tile.wgmma {{.*}} acc(
// CHECK-NEXT: tile.wgmma_wait 0, %[[O]]
// CHECK: %[[P:.*]] = tile.wgmma {{.*}} transpose
// CHECK-NEXT: tile.wgmma_wait 0, %[[P]]
// CHECK-NOT: tile.wgmma_wait 1

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  // CHECK-LABEL: func.func @maps(
  // CHECK-SAME: %[[Q:[^:]*]]: memref<3x8x168x64xbf16>, %[[K:[^:]*]]: memref<3x2x200x64xbf16>, %[[V:[^:]*]]: memref<3x2x200x64xbf16>, %[[O:[^:]*]]: memref<3x8x168x64xbf16>, %[[L:[^:]*]]: memref<3x8x168xf32>)
  // CHECK: %[[COUNTER:.*]] = tile.counter : memref<1xi32>
  // CHECK: tile.launch @attn_kernels::@flash_wgmma_bf16_64_causal_lse grid(%c48, %c1, %c1) args(%[[Q]], %[[K]], %[[V]], %[[O]], %[[L]], %c0_i64, %c1344_i64, %c168_i64, %c1_i64, %[[COUNTER]], %c168_i32, %c200_i32, %c8_i32, %c3_i32, %c4_i32, %c0_i32, %cst)
  func.func @maps(%q: memref<3x8x168x64xbf16>, %k: memref<3x2x200x64xbf16>, %v: memref<3x2x200x64xbf16>, %o: memref<3x8x168x64xbf16>, %lse: memref<3x8x168xf32>) {
    attn.forward %q, %k, %v mask(causal) outs(%o, %lse : memref<3x8x168x64xbf16>, memref<3x8x168xf32>) {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 2, query_stages = 1, staging = 64, ping_pong = 1, overlap = 1, persistent = 1>}
        : memref<3x8x168x64xbf16>, memref<3x2x200x64xbf16>, memref<3x2x200x64xbf16>
    return
  }
  // CHECK-LABEL: func.func @grid(
  // CHECK-NOT: tile.counter
  // CHECK: tile.launch @attn_kernels::@flash_wgmma_bf16_64_causal_lse_1 grid(%c72, %c1, %c1) args(%{{[^:]*}}, %c1_i64, %c168_i32, %c200_i32, %c8_i32, %c3_i32, %c4_i32, %c0_i32, %cst)
  func.func @grid(%q: memref<3x8x168x64xbf16>, %k: memref<3x2x200x64xbf16>, %v: memref<3x2x200x64xbf16>, %o: memref<3x8x168x64xbf16>, %lse: memref<3x8x168xf32>) {
    attn.forward %q, %k, %v mask(causal) outs(%o, %lse : memref<3x8x168x64xbf16>, memref<3x8x168xf32>) {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, query_stages = 1, staging = 64, ping_pong = 0, overlap = 0, persistent = 0>}
        : memref<3x8x168x64xbf16>, memref<3x2x200x64xbf16>, memref<3x2x200x64xbf16>
    return
  }
}
