// Query heads that share their keys become rows of one, by views alone: what is
// built and launched is the packed problem.
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize -cse -split-input-file | FileCheck %s

#s = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>

// One query: the rows' stride is that of the heads.  A window is a range of
// keys, from keys - 1 - 30 on.
// CHECK-LABEL: attn.machine = #attn.machine<h100_sxm>
// CHECK: tile.kernel @flash_mma_sync_bf16_64_lse(
// CHECK-SAME: problem = {batch = 3 : i64, dtype = "bf16", head_dim = 64 : i64, head_dim_v = 64 : i64, heads = 2 : i64, keys = 31 : i64, kv_heads = 2 : i64, lse = true, mask = "none", queries = 4 : i64}
// CHECK-LABEL: func.func @one_query(
// CHECK-SAME: %[[Q:[^:]*]]: memref<3x8x1x64xbf16, strided<[5120, 640, 64, 1]>>, %[[K:[^:]*]]: memref<3x2x?x64xbf16>, %[[L:[^:]*]]: memref<3x8x1xf32>)
// CHECK: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: arith.addi %[[KEYS]], %c-31
// CHECK: %[[BEGIN:.*]] = arith.maxsi %{{.*}}, %c0 : index
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[KEYS]]
// CHECK: %[[SPAN:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK: %[[COUNT:.*]] = arith.maxsi %[[SPAN]], %c0
// CHECK: %[[ROWS:.*]] = memref.reinterpret_cast %[[Q]] to offset: [0], sizes: [3, 2, 4, 64], strides: [5120, 2560, 640, 1]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[BEGIN]], %c64
// CHECK: %[[SEEN:.*]] = memref.reinterpret_cast %[[K]] to offset: [%[[OFFSET]]], sizes: [3, 2, %[[COUNT]], 64], strides: [{{.*}}, {{.*}}, 64, 1]
// CHECK: memref.reinterpret_cast %[[L]] to offset: [0], sizes: [3, 2, 4], strides: [8, 4, 1]
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_bf16_64_lse grid(%c6, %c1, %c1) args(%[[ROWS]],
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @one_query(%q: memref<3x8x1x64xbf16, strided<[5120, 640, 64, 1]>>, %k: memref<3x2x?x64xbf16>, %l: memref<3x8x1xf32>) {
    %o = memref.alloc() : memref<3x8x1x64xbf16>
    attn.forward %q, %k, %k mask(window<30, 5>) outs(%o, %l : memref<3x8x1x64xbf16>, memref<3x8x1xf32>) {schedule = #s}
        : memref<3x8x1x64xbf16, strided<[5120, 640, 64, 1]>>, memref<3x2x?x64xbf16>, memref<3x2x?x64xbf16>
    return
  }
}

// -----

// From the top left the only query sees the first key; from the bottom right it
// sees all, and nothing is cut.
// CHECK-LABEL: func.func @corners(
// CHECK-SAME: %[[Q:[^:]*]]: memref<1x8x1x64xf16>, %[[K:[^:]*]]: memref<1x2x100x64xf16>
// CHECK: %[[FIRST:.*]] = memref.reinterpret_cast %[[K]] to offset: [0], sizes: [1, 2, 1, 64], strides: [12800, 6400, 64, 1]
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64 grid(%c2, %c1, %c1) args({{.*}}, %[[FIRST]],
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64 grid(%c2, %c1, %c1) args({{.*}}, %[[K]],
#s = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @corners(%q: memref<1x8x1x64xf16>, %k: memref<1x2x100x64xf16>, %o: memref<1x8x1x64xf16>) {
    attn.forward %q, %k, %k mask(causal) outs(%o : memref<1x8x1x64xf16>) {schedule = #s}
        : memref<1x8x1x64xf16>, memref<1x2x100x64xf16>, memref<1x2x100x64xf16>
    attn.forward %q, %k, %k mask(causal_bottom_right) outs(%o : memref<1x8x1x64xf16>) {schedule = #s}
        : memref<1x8x1x64xf16>, memref<1x2x100x64xf16>, memref<1x2x100x64xf16>
    return
  }
}

// -----

// Several queries without a mask: heads whose rows follow each other.  Where
// only a run could tell, or strides do not compose, or the mask moves with the
// rows, there are 8 heads.
// CHECK-LABEL: func.func @several(
// CHECK: memref.reinterpret_cast %arg0 to offset: [0], sizes: [2, 2, 400, 64], strides: [51200, 25600, 64, 1]
// CHECK: tile.launch {{.*}} grid(%c28, %c1, %c1)
// CHECK: %[[ROWS:.*]] = arith.muli %{{.*}}, %c4 : index
// CHECK: memref.reinterpret_cast %arg2 to offset: [0], sizes: [%{{.*}}, 2, %[[ROWS]], 64], strides: [%{{.*}}, %{{.*}}, 64, 1]
// CHECK: tile.launch {{.*}} grid(%{{.*}}, %c1, %c1)
// CHECK: memref.reinterpret_cast %arg4 to offset: [0], sizes: [2, 2, 400, 64], strides: [70000, 32000, 80, 1]
// CHECK: tile.launch {{.*}} grid(%c28, %c1, %c1)
// CHECK-NOT: memref.reinterpret_cast
// CHECK: tile.launch {{.*}} grid(%c32, %c1, %c1)
// CHECK: tile.launch {{.*}} grid(%{{.*}}, %c1, %c1)
// CHECK: tile.launch {{.*}}_causal grid(%c32, %c1, %c1)
#s = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>
!q = memref<2x8x100x64xbf16>
!k = memref<2x2x300x64xbf16>
!q_any = memref<?x8x?x64xbf16>
!k_any = memref<?x2x?x64xbf16>
!q_gaps = memref<2x8x100x64xbf16, strided<[70000, 8000, 80, 1]>>
!q_rows_first = memref<2x8x100x64xbf16, strided<[51200, 64, 512, 1]>>
!q_open = memref<?x8x?x64xbf16, strided<[?, ?, ?, 1]>>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @several(%q: !q, %k: !k, %q_any: !q_any, %k_any: !k_any, %q_gaps: !q_gaps,
                     %q_rows_first: !q_rows_first, %q_open: !q_open) {
    %o = memref.alloc() : !q
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %batch = memref.dim %q_any, %c0 : !q_any
    %rows = memref.dim %q_any, %c2 : !q_any
    %o_any = memref.alloc(%batch, %rows) : !q_any
    attn.forward %q, %k, %k outs(%o : !q) {schedule = #s} : !q, !k, !k
    attn.forward %q_any, %k_any, %k_any outs(%o_any : !q_any) {schedule = #s} : !q_any, !k_any, !k_any
    attn.forward %q_gaps, %k, %k outs(%o : !q) {schedule = #s} : !q_gaps, !k, !k
    attn.forward %q_rows_first, %k, %k outs(%o : !q) {schedule = #s} : !q_rows_first, !k, !k
    attn.forward %q_open, %k_any, %k_any outs(%o_any : !q_any) {schedule = #s} : !q_open, !k_any, !k_any
    attn.forward %q, %k, %k mask(causal) outs(%o : !q) {schedule = #s} : !q, !k, !k
    return
  }
}

// -----

// Gradients: every array with rows of queries is packed, and sums over the heads
// of a group are sums over rows.  Keys that the mask hides have gradients too.
// CHECK-LABEL: func.func @gradients(
// CHECK-DAG: memref.reinterpret_cast %arg0 to offset: [0], sizes: [1, 2, 4, 64], strides: [512, 256, 64, 1]
// CHECK-DAG: memref.reinterpret_cast %arg1 to offset: [0], sizes: [1, 2, 4, 64], strides: [512, 256, 64, 1]
// CHECK-DAG: memref.reinterpret_cast %arg4 to offset: [0], sizes: [1, 2, 4, 64], strides: [512, 256, 64, 1]
// CHECK-DAG: memref.reinterpret_cast %arg5 to offset: [0], sizes: [1, 2, 4], strides: [8, 4, 1]
// CHECK-DAG: memref.reinterpret_cast %arg6 to offset: [0], sizes: [1, 2, 4], strides: [8, 4, 1]
// CHECK-DAG: memref.reinterpret_cast %arg7 to offset: [0], sizes: [1, 2, 4, 64], strides: [512, 256, 64, 1]
// CHECK: tile.scratch : memref<1x2x4xf32>
// CHECK: tile.launch {{.*}}dq_dlse grid(%c2, %c1, %c1)
// CHECK: tile.launch {{.*}}dk_dv_dlse grid(%c4, %c1, %c1)
// CHECK: tile.scratch : memref<1x8x1xf32>
// CHECK: tile.launch {{.*}}causal_dq_dlse grid(%c8, %c1, %c1)
#s = #attn.schedule<split_backward, query = 64, key_block = 64, query_warps = 4, key = 64, query_block = 16, key_warps = 4, stages = 2, separate = 0>
!q = memref<1x8x1x64xbf16>
!k = memref<1x2x100x64xbf16>
!l = memref<1x8x1xf32>
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @gradients(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %dlse: !l, %dq: !q, %dk: !k, %dv: !k) {
    attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : !l) mask(causal_bottom_right)
        outs(%dq, %dk, %dv : !q, !k, !k) {schedule = #s} : !q, !q, !k, !k, !q, !l
    attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : !l) mask(causal)
        outs(%dq, %dk, %dv : !q, !k, !k) {schedule = #s} : !q, !q, !k, !k, !q, !l
    return
  }
}
