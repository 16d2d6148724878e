// Lists of blocks: the kernel takes both, and walks what they name.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// One list for all heads: no stride.  A tile's counts are read when it is drawn
// and told with it, in a message of four numbers; partial blocks have mask code,
// full ones have none but for a ragged end.
// CHECK-LABEL: tile.kernel @flash_wgmma_bf16_64_causal_blocks_128x128_lse(
// CHECK-SAME: !tile.ptr<i32> {tile.role = "partial_counts"}
// CHECK-SAME: i64 {tile.role = "partial_counts_stride_head"}
// CHECK-SAME: !tile.ptr<i32> {tile.role = "partial_blocks"}
// CHECK-SAME: !tile.ptr<i32> {tile.role = "full_counts"}
// CHECK-SAME: !tile.ptr<i32> {tile.role = "full_blocks"}
// CHECK: tile.queue "tile" readers 8 : <2x4>
// CHECK: tile.load_number %{{.*}} : <i32>, i64
// CHECK-LABEL: func.func @shared
// CHECK: tile.launch @attn_kernels::@flash_wgmma_bf16_64_causal_blocks_128x128_lse
// CHECK-SAME: %arg5, %c0_i64, %c0_i64, %c0_i64, %c1_i64, %arg6, %c0_i64, %c0_i64, %c0_i64, %c8_i64, %arg7,
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @shared(%q: memref<2x8x1000x64xbf16>, %k: memref<2x2x1000x64xbf16>, %v: memref<2x2x1000x64xbf16>, %o: memref<2x8x1000x64xbf16>, %lse: memref<2x8x1000xf32>,
                    %pc: memref<1x1x8xi32>, %pb: memref<1x1x8x8xi32>, %fc: memref<1x1x8xi32>, %fb: memref<1x1x8x8xi32>) {
    attn.forward %q, %k, %v mask(causal) blocks(partial %pc, %pb, full %fc, %fb, size 128 x 128 : memref<1x1x8xi32>, memref<1x1x8x8xi32>, memref<1x1x8xi32>, memref<1x1x8x8xi32>)
        outs(%o, %lse : memref<2x8x1000x64xbf16>, memref<2x8x1000xf32>)
        {schedule = #attn.schedule<flash, query = 128, key = 128, stages = 2, query_stages = 2, staging = 64, ping_pong = 1, overlap = 1, persistent = 1>}
        : memref<2x8x1000x64xbf16>, memref<2x2x1000x64xbf16>, memref<2x2x1000x64xbf16>
    return
  }
}

// -----

// A list that is absent has no block anywhere.
// CHECK-LABEL: tile.kernel @flash_mma_sync_f16_32_blocks_64x64(
// CHECK-LABEL: func.func @full_only
// CHECK: %[[COUNT:.*]] = tile.counter : memref<1xi32>
// CHECK: tile.launch {{.*}}%[[COUNT]], %c0_i64, %c0_i64, %c0_i64, %c0_i64, %{{.*}}, %arg4, %c0_i64, %c0_i64, %c2_i64, %c1_i64, %arg5, %c0_i64, %c0_i64, %c4_i64, %c2_i64,
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @full_only(%q: memref<1x2x100x32xf16>, %k: memref<1x2x100x32xf16>, %v: memref<1x2x100x32xf16>, %o: memref<1x2x100x32xf16>, %fc: memref<1x2x2xi32>, %fb: memref<1x2x2x2xi32>) {
    attn.forward %q, %k, %v blocks(full %fc, %fb, size 64 x 64 : memref<1x2x2xi32>, memref<1x2x2x2xi32>)
        outs(%o : memref<1x2x100x32xf16>)
        {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 1, warps = 4>}
        : memref<1x2x100x32xf16>, memref<1x2x100x32xf16>, memref<1x2x100x32xf16>
    return
  }
}

// -----

// Gradients: tiles of keys walk transposed lists, which are behind those of
// queries.  The producer alone reads them, and tells of every step.
// CHECK-LABEL: tile.kernel @flash_backward_wgmma_bf16_64_blocks_128x128(
// CHECK-NOT: "partial_counts"
// CHECK: !tile.ptr<i32> {tile.role = "transposed_partial_counts"}
// CHECK: tile.queue "tile" readers 9 : <2x4>
// CHECK: tile.queue "step" readers 9 : <4x4>
// CHECK: tile.role "producer"
// CHECK: tile.load_number
// CHECK: tile.role "writer"
// CHECK-NOT: tile.load_number
// CHECK-LABEL: func.func @gradients
// CHECK: tile.launch @attn_kernels::@flash_backward_wgmma_bf16_64_blocks_128x128 {{.*}}%arg13, %c0_i64, %c0_i64, %c8_i64, %c1_i64, %arg14, %c0_i64, %c0_i64, %c64_i64, %c8_i64,
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @gradients(%do: memref<1x8x1000x64xbf16>, %q: memref<1x8x1000x64xbf16>, %k: memref<1x2x1000x64xbf16>, %v: memref<1x2x1000x64xbf16>, %o: memref<1x8x1000x64xbf16>, %lse: memref<1x8x1000xf32>,
                       %dq: memref<1x8x1000x64xbf16>, %dk: memref<1x2x1000x64xbf16>, %dv: memref<1x2x1000x64xbf16>,
                       %pc: memref<1x8x8xi32>, %pb: memref<1x8x8x8xi32>, %fc: memref<1x8x8xi32>, %fb: memref<1x8x8x8xi32>,
                       %tpc: memref<1x8x8xi32>, %tpb: memref<1x8x8x8xi32>, %tfc: memref<1x8x8xi32>, %tfb: memref<1x8x8x8xi32>) {
    attn.backward %do, %q, %k, %v, %o, %lse
        blocks(partial %pc, %pb, full %fc, %fb, size 128 x 128 : memref<1x8x8xi32>, memref<1x8x8x8xi32>, memref<1x8x8xi32>, memref<1x8x8x8xi32>)
        transposed(partial %tpc, %tpb, full %tfc, %tfb : memref<1x8x8xi32>, memref<1x8x8x8xi32>, memref<1x8x8xi32>, memref<1x8x8x8xi32>)
        outs(%dq, %dk, %dv : memref<1x8x1000x64xbf16>, memref<1x2x1000x64xbf16>, memref<1x2x1000x64xbf16>)
        {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 2, overlap = 0, stages = 2, ordered = 0, short_first = 0, first_stores = 0, persistent = 1>}
        : memref<1x8x1000x64xbf16>, memref<1x8x1000x64xbf16>, memref<1x2x1000x64xbf16>, memref<1x2x1000x64xbf16>, memref<1x8x1000x64xbf16>, memref<1x8x1000xf32>
    return
  }
}
