// Gradients: a launch for dQ that leaves D to the one for dK and dV, or for each
// of them.
// RUN: attn-opt %s -attn-to-tile="machine=a100_80g schedule=split_backward,stages=2" -attn-check-traffic -attn-check-footprint | FileCheck %s
// RUN: attn-opt %s -attn-to-tile="machine=a100_80g schedule=split_backward,separate=1" | FileCheck %s --check-prefix=SEPARATE

// CHECK-LABEL: tile.kernel @split_backward_mma_sync_bf16_64_causal_dq(
// CHECK-NOT: "dk"
// CHECK-SAME: launch = 0 : i64
// D, and the LSE of own queries.
// CHECK: %[[D:.*]] = tile.row_dot
// CHECK: tile.store_row %[[D]]
// CHECK: tile.load_row
// CHECK: scf.for
// CHECK: %[[W:.*]] = tile.map
// CHECK: math.exp2

// CHECK-LABEL: tile.kernel @split_backward_mma_sync_bf16_64_causal_dk_dv(
// CHECK-SAME: launch = 1 : i64
// CHECK-DAG: %[[Q:.*]] = tile.alloc "q" : <2x
// CHECK-DAG: %[[O:.*]] = tile.alloc "do" : <2x
// CHECK-DAG: %[[L:.*]] = tile.alloc "lse" : <2x1x
// CHECK-DAG: %[[DELTA:.*]] = tile.alloc "delta" : <2x1x
// The heads that share keys, then the queries that see them.
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: scf.for
// CHECK: tile.copy_async %{{.*}} to %[[Q]]{{.*}} rolled
// CHECK: tile.copy_async %{{.*}} to %[[L]]
// CHECK: tile.load_matrix %[[Q]]{{.*}} transpose
// CHECK: tile.get_columns %[[L]]
// CHECK: tile.load_matrix %[[O]]{{.*}} -> <16x64xbf16, rhs>
// CHECK: tile.get_columns %[[DELTA]]

// CHECK-LABEL: func.func @gradients
// CHECK: %[[SCRATCH:.*]] = tile.scratch(%{{.*}}) : memref<2x8x?xf32>
// CHECK: tile.launch @attn_kernels::@split_backward_mma_sync_bf16_64_causal_dq grid(%{{.*}}, %c1, %c1) args({{.*}}%[[SCRATCH]]
// CHECK: tile.launch @attn_kernels::@split_backward_mma_sync_bf16_64_causal_dk_dv grid(%{{.*}}, %c1, %c1) args({{.*}}%[[SCRATCH]]

// SEPARATE: tile.kernel @{{.*}}_dq(
// SEPARATE: tile.kernel @{{.*}}_dk(
// SEPARATE: tile.kernel @{{.*}}_dv(
// SEPARATE-NOT: "delta"
// SEPARATE: func.func
// SEPARATE-COUNT-3: tile.launch
func.func @gradients(%do: memref<2x8x?x64xbf16>, %q: memref<2x8x?x64xbf16>,
    %k: memref<2x2x?x64xbf16>, %v: memref<2x2x?x64xbf16>,
    %o: memref<2x8x?x64xbf16>, %lse: memref<2x8x?xf32>,
    %dq: memref<2x8x?x64xbf16>, %dk: memref<2x2x?x64xbf16>, %dv: memref<2x2x?x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>, memref<2x2x?x64xbf16>)
      : memref<2x8x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x2x?x64xbf16>,
        memref<2x2x?x64xbf16>, memref<2x8x?x64xbf16>, memref<2x8x?xf32>
  return
}
