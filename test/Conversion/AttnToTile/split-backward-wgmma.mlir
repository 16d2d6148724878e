// The launches of split_backward for Hopper: statistics, then both sides.
// RUN: attn-opt %s -split-input-file -attn-to-tile -attn-check-traffic -attn-check-footprint | FileCheck %s

// CHECK-LABEL: tile.kernel @split_backward_wgmma_bf16_64_causal_prepare(
// CHECK-SAME: {tile.per_strip = 128 : i64, tile.role = "scratch_statistics"}
// CHECK-SAME: launch = 0 : i64
// CHECK-NOT: tile.store_registers

// Statistics of own queries are in registers.
// CHECK-LABEL: tile.kernel @split_backward_wgmma_bf16_64_causal_dq(
// CHECK-SAME: !tile.tensor_map<128x64xbf16> {tile.role = "q_map"}
// CHECK-SAME: !tile.tensor_map<128x64xbf16> {tile.role = "do_map"}
// CHECK-SAME: !tile.tensor_map<64x64xbf16> {tile.role = "k_map"}
// CHECK-SAME: !tile.tensor_map<64x64xbf16> {tile.role = "v_map"}
// CHECK-SAME: !tile.tensor_map<64x64xbf16> {tile.role = "dq_map"}
// CHECK-SAME: launch = 1 : i64
// CHECK-DAG: %[[Q:.*]] = tile.alloc "q" : <128x64x
// CHECK-DAG: tile.alloc "k" : <3x64x64x
// CHECK-DAG: tile.alloc "v" : <64x64x
// CHECK-NOT: tile.alloc
// CHECK: tile.tma_store %[[Q]]
// CHECK-COUNT-2: tile.load_row
// CHECK: scf.for
// CHECK-COUNT-3: tile.wgmma %
// CHECK: tile.store_matrix %{{.*}} to %[[Q]]

// On the side of the keys they stream beside Q, and dK and dV leave from where K
// and V were.
// CHECK-LABEL: tile.kernel @split_backward_wgmma_bf16_64_causal_dk_dv(
// CHECK-SAME: launch = 2 : i64
// CHECK-DAG: %[[K:.*]] = tile.alloc "k" : <128x64x
// CHECK-DAG: %[[V:.*]] = tile.alloc "v" : <128x64x
// CHECK-DAG: %[[STATISTICS:.*]] = tile.alloc "statistics" : <3x1x128x
// CHECK-DAG: tile.alloc "do" : <3x64x64x
// CHECK-DAG: tile.tma_store %[[K]]
// CHECK-DAG: tile.tma_store %[[V]]
// CHECK: tile.get_columns %[[STATISTICS]]
// CHECK-COUNT-4: tile.wgmma %

// 1000 queries are 16 strips and, of 8 heads of 2 batches, 128 tiles.
// CHECK-LABEL: func.func @both
// CHECK: %[[SCRATCH:.*]] = tile.scratch : memref<2x8x16x128xf32>
// CHECK: tile.launch @attn_kernels::@split_backward_wgmma_bf16_64_causal_prepare grid(%c256{{.*}}, %c1{{.*}}, %c1{{.*}}) args({{.*}}%[[SCRATCH]]
// CHECK: %[[FIRST:.*]] = tile.counter
// CHECK: tile.launch @attn_kernels::@split_backward_wgmma_bf16_64_causal_dq grid(%c128{{.*}}, %c1{{.*}}, %c1{{.*}}) args({{.*}}%[[SCRATCH]], %[[FIRST]]
// CHECK: %[[SECOND:.*]] = tile.counter
// CHECK: tile.launch @attn_kernels::@split_backward_wgmma_bf16_64_causal_dk_dv grid(%c16{{.*}}, %c1{{.*}}, %c1{{.*}}) args({{.*}}%[[SCRATCH]], %[[SECOND]]
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @both(%do: memref<2x8x1000x64xbf16>, %q: memref<2x8x1000x64xbf16>,
    %k: memref<2x2x500x64xbf16>, %v: memref<2x2x500x64xbf16>,
    %o: memref<2x8x1000x64xbf16>, %lse: memref<2x8x1000xf32>,
    %dq: memref<2x8x1000x64xbf16>, %dk: memref<2x2x500x64xbf16>,
    %dv: memref<2x2x500x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x8x1000x64xbf16>, memref<2x2x500x64xbf16>, memref<2x2x500x64xbf16>)
      {schedule = #attn.schedule<split_backward, query = 128, key_block = 64, key = 128, query_block = 64, separate = 0, stages = 3, value_stages = 1, persistent = 1>}
      : memref<2x8x1000x64xbf16>, memref<2x8x1000x64xbf16>, memref<2x2x500x64xbf16>,
        memref<2x2x500x64xbf16>, memref<2x8x1000x64xbf16>, memref<2x8x1000xf32>
  return
}

}

// -----

// At d = 256 dK and dV have a launch each.  Without V the place of K holds dV,
// which is wider here; on this launch dO is needed to the end of a step.
// CHECK-LABEL: tile.kernel @split_backward_wgmma_f16_136_256_dk_dlse(
// CHECK-DAG: tile.alloc "do" : <64x256x
// CHECK-LABEL: tile.kernel @split_backward_wgmma_f16_136_256_dv_dlse(
// CHECK-NOT: "v_map"
// CHECK-SAME: launch = 3 : i64
// CHECK: %[[PLACE:.*]] = tile.alloc "k" : <128x256x
// CHECK: %[[K:.*]] = tile.alias %[[PLACE]]
// CHECK-NOT: tile.alloc "v"
// CHECK: tile.alloc "do" : <2x64x256x
// CHECK: tile.tma_load {{.*}}%[[K]]
// CHECK: tile.tma_store %[[PLACE]]
// CHECK-COUNT-2: tile.wgmma %
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: tile.launch
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @apart(%do: memref<?x3x?x256xf16>, %q: memref<?x3x?x136xf16>,
    %k: memref<?x3x?x136xf16>, %v: memref<?x3x?x256xf16>,
    %o: memref<?x3x?x256xf16>, %lse: memref<?x3x?xf32>, %dlse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x136xf16>, %dk: memref<?x3x?x136xf16>, %dv: memref<?x3x?x256xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : memref<?x3x?xf32>)
      outs(%dq, %dk, %dv : memref<?x3x?x136xf16>, memref<?x3x?x136xf16>, memref<?x3x?x256xf16>)
      {schedule = #attn.schedule<split_backward, query = 128, key_block = 64, key = 128, query_block = 64, separate = 1, stages = 2, value_stages = 1, persistent = 1>}
      : memref<?x3x?x256xf16>, memref<?x3x?x136xf16>, memref<?x3x?x136xf16>,
        memref<?x3x?x256xf16>, memref<?x3x?x256xf16>, memref<?x3x?xf32>
  return
}
}
