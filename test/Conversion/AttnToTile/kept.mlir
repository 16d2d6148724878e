// Weights that are kept: arrays of the caller instead of scratch.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// P leaves by warpgroups to an array of any number of keys, and comes from there.
// CHECK-LABEL: tile.kernel @score_spill_wgmma_bf16_512_320_causal_scores_kept_lse(
// CHECK-SAME: !tile.tensor_map<64x?xbf16> {tile.role = "weights_map"}
// CHECK-SAME: !tile.ptr<f32> {tile.role = "block_rows"}
// CHECK-NOT: scratch
// CHECK-SAME: keeps_weights = true
// CHECK-LABEL: tile.kernel @score_spill_wgmma_bf16_512_320_causal_outputs_kept_lse(
// CHECK-SAME: !tile.tensor_map<128x?xbf16> {tile.role = "weights_map"}
// CHECK-LABEL: func.func @forward
// CHECK-NOT: tile.scratch
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_bf16_512_320_causal_scores_kept_lse
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @forward(%q: memref<2x8x1000x512xbf16>, %k: memref<2x2x1000x512xbf16>, %v: memref<2x2x1000x320xbf16>, %o: memref<2x8x1000x320xbf16>, %lse: memref<2x8x1000xf32>, %w: memref<2x8x1000x1000xbf16>, %r: memref<2x8x8x1000xf32>) {
    attn.forward %q, %k, %v mask(causal) outs(%o, %lse, %w, %r : memref<2x8x1000x320xbf16>, memref<2x8x1000xf32>, memref<2x8x1000x1000xbf16>, memref<2x8x8x1000xf32>)
        {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 1024, heads = 2, kept = 1, stages = 3, merged = 0, persistent = 1>}
        : memref<2x8x1000x512xbf16>, memref<2x2x1000x512xbf16>, memref<2x2x1000x320xbf16>
    return
  }
}

// -----

// Backward no Q and no K come to scores, but weights through the ring.
// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_scores_kept(
// CHECK-NOT: tile.role = "q_map"
// CHECK-SAME: !tile.tensor_map<128x?xbf16> {tile.role = "weights_map"}
// CHECK-SAME: !tile.ptr<f32> {tile.role = "block_rows"}
// CHECK-COUNT-5: tile.wgmma {{.*}} -> <16x256xf32>
// CHECK-NOT: tile.wgmma {{.*}} -> <16x256xf32>
// CHECK-COUNT-4: tile.load_matrix {{.*}} -> <16x64xbf16, lhs>
// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_dk_dv_kept(
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @backward(%do: memref<2x8x1000x320xbf16>, %q: memref<2x8x1000x512xbf16>, %k: memref<2x2x1000x512xbf16>, %v: memref<2x2x1000x320xbf16>, %o: memref<2x8x1000x320xbf16>, %lse: memref<2x8x1000xf32>, %w: memref<2x8x1000x1000xbf16>, %r: memref<2x8x8x1000xf32>,
                      %dq: memref<2x8x1000x512xbf16>, %dk: memref<2x2x1000x512xbf16>, %dv: memref<2x2x1000x320xbf16>) {
    attn.backward %do, %q, %k, %v, %o, %lse weights(%w, %r : memref<2x8x1000x1000xbf16>, memref<2x8x8x1000xf32>)
        outs(%dq, %dk, %dv : memref<2x8x1000x512xbf16>, memref<2x2x1000x512xbf16>, memref<2x2x1000x320xbf16>)
        {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 256, query_block = 64, strip = 1024, heads = 2, kept = 1, stages = 3, merged = 0, persistent = 1>}
        : memref<2x8x1000x320xbf16>, memref<2x8x1000x512xbf16>, memref<2x2x1000x512xbf16>, memref<2x2x1000x320xbf16>, memref<2x8x1000x320xbf16>, memref<2x8x1000xf32>
    return
  }
}
