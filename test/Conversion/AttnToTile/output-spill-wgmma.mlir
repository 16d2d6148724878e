// The kernel of output_spill on wgmma: what it reserves, its roles, and what is
// launched.  The pipeline checks its bytes and its footprint against the plan.
// RUN: attn-opt %s -attn-to-tile | FileCheck %s

// O of a block waits in scratch if there are more than 512 keys: none here.
// CHECK-LABEL: tile.kernel @output_spill_wgmma_bf16_576_causal_lse(
// CHECK-SAME: !tile.tensor_map<128x576xbf16> {tile.role = "q_map"}, {{[^:]*}}: !tile.tensor_map<128x576xbf16> {tile.role = "k_map"}, {{[^:]*}}: !tile.tensor_map<64x576xbf16> {tile.role = "v_map"}, {{[^:]*}}: !tile.tensor_map<64x576xbf16> {tile.role = "o_map"},
// CHECK-SAME: %[[COUNTER:[^:]*]]: !tile.ptr<i32> {tile.role = "counter"}, %[[O:[^:]*]]: !tile.ptr<i32> {tile.beyond_keys = 512 : i64, tile.per_block = 81920 : i64, tile.role = "scratch"}
// CHECK-SAME: warps = 12 : i32
// CHECK: %[[UNITS:.*]] = tile.alloc "ring" : <12x128x64xbf16, sw128>
// CHECK-NEXT: %[[PAIRS:.*]] = tile.alias %[[UNITS]] : <12x128x64xbf16, sw128> -> <6x256x64xbf16, sw128>
// CHECK-NEXT: %[[PIECES:.*]] = tile.alias %[[UNITS]] : <12x128x64xbf16, sw128> -> <12x64x128xbf16, sw128>
// CHECK-NEXT: tile.alloc "staging0" : <128x64xbf16, sw128>
// CHECK-NEXT: tile.alloc "staging1" : <128x64xbf16, sw128>
// CHECK-NEXT: %[[FULL:.*]] = tile.mbarrier "ring_full" arrivals 1 : <12>
// CHECK-NEXT: %[[EMPTY:.*]] = tile.mbarrier "ring_empty" arrivals 8 : <12>
// CHECK: tile.role "producer" warps 4 registers 24 single_lane {
// Both halves of a part, a panel of Q, and another one.
// CHECK: tile.tma_load %[[K:.*]][%{{.*}}] to %[[UNITS]]
// CHECK: tile.tma_load %[[K]][%{{.*}}] to %[[UNITS]]
// CHECK: tile.tma_load %[[Q:.*]][%{{.*}}] to %[[UNITS]]
// CHECK: tile.tma_load %[[Q]][%{{.*}}] to %[[UNITS]]
// Behind the last panel, of an odd number, a unit stays empty.
// CHECK: tile.tma_load %[[Q]][%{{.*}}] to %[[UNITS]]
// CHECK: tile.mbarrier_wait %[[EMPTY]]
// CHECK-NEXT: tile.mbarrier_arrive %[[FULL]]
// CHECK: to %[[PIECES]]
// CHECK: tile.draw %[[COUNTER]]
// CHECK: tile.role "consumer" warps 8 registers 240 {
// Scores of both halves are one product, which the next one starts beside.
// CHECK: %[[FIRST:.*]] = tile.wgmma %[[UNITS]][{{.*}}], %[[PAIRS]][{{.*}}] transpose
// CHECK: tile.wgmma %[[UNITS]][{{.*}}], %[[PAIRS]][{{.*}}] transpose acc(%[[FIRST]] : !tile.pending<16x256xf32>)
// CHECK-NEXT: tile.wgmma_wait 1
// CHECK-NEXT: tile.mbarrier_arrive %[[EMPTY]]
// CHECK: tile.bar_sync
// P as it is in registers.
// CHECK: tile.cast %{{.*}} : <16x64xf32, acc> -> <16x64xbf16, lhs>
// Those of parts before stand at a lower maximum.
// CHECK: tile.scale_rows
// O of strips before, and P V.
// CHECK: tile.load_registers %[[O]]{{.*}} {near}
// CHECK: tile.wgmma %{{.*}}, %[[PIECES]]
// CHECK: tile.tma_store
// CHECK: tile.store_registers %{{.*}} to %[[O]]{{.*}} {near}

// CHECK-LABEL: func.func @held
// CHECK: tile.scratch : memref<0xi32>
// Where nobody knows how many keys there are, that is found out before a launch.
// CHECK-LABEL: func.func @unknown
// CHECK: %[[MORE:.*]] = arith.cmpi sgt, %{{.*}}, %c512
// CHECK: %[[WORDS:.*]] = arith.select %[[MORE]], %c10813440, %c0
// CHECK: tile.scratch(%[[WORDS]]) : memref<?xi32>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @held(%q: memref<4x8x400x576xbf16>, %k: memref<4x8x400x576xbf16>, %v: memref<4x8x400x576xbf16>, %o: memref<4x8x400x576xbf16>, %l: memref<4x8x400xf32>) {
    attn.forward %q, %k, %v mask(causal) outs(%o, %l : memref<4x8x400x576xbf16>, memref<4x8x400xf32>) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 12>}
        : memref<4x8x400x576xbf16>, memref<4x8x400x576xbf16>, memref<4x8x400x576xbf16>
    return
  }
  func.func @unknown(%q: memref<4x8x?x576xbf16>, %k: memref<4x8x?x576xbf16>, %o: memref<4x8x?x576xbf16>, %l: memref<4x8x?xf32>) {
    attn.forward %q, %k, %k mask(causal) outs(%o, %l : memref<4x8x?x576xbf16>, memref<4x8x?xf32>) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 12>}
        : memref<4x8x?x576xbf16>, memref<4x8x?x576xbf16>, memref<4x8x?x576xbf16>
    return
  }
}
