// The kernel of wide heads: units of slices and pieces, and what warps on the
// same rows hand each other.
// RUN: attn-opt %s -attn-to-tile | FileCheck %s

// CHECK-LABEL: tile.kernel @streamed_query_mma_sync_bf16_520_512_lse(
// CHECK-SAME: warps = 8 : i32
// CHECK-DAG: %[[P:.*]] = tile.alloc "weight" : <64x128xbf16>
// CHECK-DAG: %[[Q:.*]] = tile.alloc "query" : <2x64x64xbf16>
// CHECK-DAG: %[[K:.*]] = tile.alloc "key" : <2x128x64xbf16>
// CHECK-DAG: %[[M:.*]] = tile.alloc "statistic" : <4x64xf32>
// CHECK-DAG: %[[V:.*]] = tile.alloc "value" : <2x32x512xbf16>

// The first slice comes before all; a step begins with the scores.
// CHECK: tile.copy_async %{{.*}} to %[[Q]]
// CHECK: tile.copy_async %{{.*}} to %[[K]]
// CHECK: tile.commit_group
// CHECK: scf.for
// CHECK: %[[S:.*]] = scf.for
// CHECK: tile.wait_group 0
// CHECK-NEXT: tile.barrier
// The last slice has 8 of its 64 columns; behind it comes the first piece.
// CHECK: tile.copy_async %{{.*}} to %[[Q]]{{.*}}: <?x8xbf16, align = 16>
// CHECK: tile.copy_async %{{.*}} to %[[Q]]{{.*}}: <?x64xbf16, align = 16>
// CHECK: tile.copy_async %{{.*}} to %[[V]]{{.*}}: <?x512xbf16, align = 16>
// CHECK: tile.commit_group
// CHECK: tile.load_matrix %[[Q]]{{.*}} -> <32x16xbf16, lhs>
// CHECK: tile.load_matrix %[[K]]{{.*}} transpose {{.*}} -> <16x32xbf16, rhs>

// Four warps have the same rows.  They agree on maxima, and pass P round.
// CHECK: tile.put_row %{{.*}} to %[[M]]
// CHECK: tile.bar_sync %{{.*}} warps 4
// CHECK-COUNT-4: tile.get_row %[[M]]
// CHECK: tile.store_matrix %{{.*}} to %[[P]][%{{.*}}, %{{.*}}] : <32x32xf32, acc>
// CHECK: scf.for
// CHECK: tile.barrier
// CHECK: tile.load_matrix %[[P]]{{.*}} -> <32x16xbf16, lhs>
// CHECK: tile.load_matrix %[[V]]{{.*}} -> <16x128xbf16, rhs>

// CHECK: tile.put_row
// CHECK: tile.store_fragment %{{.*}} : <32x128xf32, acc> to <?x512xbf16, align = 16>
// CHECK: tile.store_row
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @f(%q: memref<1x2x100x520xbf16>, %k: memref<1x2x300x520xbf16>, %v: memref<1x2x300x512xbf16>, %o: memref<1x2x100x512xbf16>, %l: memref<1x2x100xf32>) {
    attn.forward %q, %k, %v outs(%o, %l : memref<1x2x100x512xbf16>, memref<1x2x100xf32>) {schedule = #attn.schedule<streamed_query, query = 64, key = 128, slice = 64, piece = 32, stages = 2, warps = 8, column_warps = 4>}
        : memref<1x2x100x520xbf16>, memref<1x2x300x520xbf16>, memref<1x2x300x512xbf16>
    return
  }
}
