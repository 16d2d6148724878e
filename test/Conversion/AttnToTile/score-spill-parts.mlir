// The launches of score_spill for f32 on wgmma: inputs in parts, then rounds.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// Rows of 333 numbers are two parts of 384; those of V are parts of whole
// tiles of 128 columns.
// CHECK-LABEL: tile.kernel @score_spill_wgmma_f32_333_257_tf32x3_causal_split_queries_lse(
// CHECK-SAME: !tile.ptr<f16> {tile.role = "scratch_q"}
// CHECK-SAME: launch = 0 : i64
// CHECK: tile.split_view %{{.*}} to %{{.*}} : <?x333xf32, align = 4> to <?x768xf16, align = 16>
// CHECK-LABEL: tile.kernel @score_spill_wgmma_f32_333_257_tf32x3_causal_split_keys_lse(
// CHECK-SAME: launch = 1 : i64
// CHECK: tile.split_view %{{.*}} to %{{.*}} at_most 113 by %{{.*}} : <?x333xf32, align = 4> to <?x768xf16, align = 16>
// CHECK: tile.split_view %{{.*}} to %{{.*}} at_most 60 by %{{.*}} : <?x257xf32, align = 4> to <?x768xf16, align = 16>

// All three pairs of a slice are a sum, in a group for each part, which is added to
// the others outside of the tensor cores; P leaves in parts.
// CHECK-LABEL: tile.kernel @score_spill_wgmma_f32_333_257_tf32x3_causal_scores_lse(
// CHECK-SAME: !tile.tensor_map<128x768xf16> {tile.role = "scratch_q_map"}
// CHECK-SAME: !tile.tensor_map<128x768xf16> {tile.role = "scratch_k_map"}
// CHECK-SAME: !tile.tensor_map<64x256xf16> {tile.role = "scratch_p_map"}
// CHECK: tile.wgmma %{{.*}} transpose open :
// CHECK-NEXT: tile.wgmma %{{.*}}xf32>) :
// CHECK-NEXT: tile.wgmma %{{.*}}xf32>) :
// CHECK-NEXT: tile.wgmma_wait 1
// CHECK-NEXT: tile.mbarrier_arrive
// CHECK-NOT: tile.wgmma %
// CHECK: arith.addf
// The powers of two that Q and K of the tile were multiplied by.
// CHECK-COUNT-2: tile.load_number
// CHECK-NOT: tile.load_number
// CHECK: tile.split_f16
// CHECK-COUNT-2: tile.store_matrix %{{.*}} : <16x128xf16, lhs> to <128x128xf16, sw128>
// CHECK-LABEL: tile.kernel @score_spill_wgmma_f32_333_257_tf32x3_causal_outputs_lse(
// CHECK-SAME: !tile.tensor_map<128x256xf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: !tile.tensor_map<64x768xf16> {tile.role = "scratch_v_map"}
// CHECK: tile.store_fragment %{{.*}} : <16x128xf32, acc> to <?x257xf32, align = 4>

// CHECK-LABEL: func.func @parts
// CHECK: %[[Q:.*]] = tile.scratch : memref<2x8x1000x768xf16>
// CHECK: %[[K:.*]] = tile.scratch : memref<2x2x3000x768xf16>
// CHECK: %[[V:.*]] = tile.scratch : memref<2x2x3000x768xf16>
// CHECK: %[[P:.*]] = tile.scratch : memref<3x96x512x256xf16>
// CHECK-NEXT: %[[ROWS:.*]] = tile.scratch : memref<3x96x512x2xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_f32_333_257_tf32x3_causal_scores_lse grid(%c132, %c1, %c1) args(%[[Q]], %[[K]], %[[P]], %[[ROWS]],
// CHECK-NEXT: tile.launch @attn_kernels::@score_spill_wgmma_f32_333_257_tf32x3_causal_outputs_lse grid({{.*}}) args(%[[P]], %[[V]], %[[ROWS]],
// CHECK-NEXT: }
// CHECK-NEXT: }
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @parts(%q: memref<2x8x1000x333xf32>, %k: memref<2x2x3000x333xf32>,
    %v: memref<2x2x3000x257xf32>, %o: memref<2x8x1000x257xf32>,
    %lse: memref<2x8x1000xf32>) {
  attn.forward %q, %k, %v mask(causal)
      outs(%o, %lse : memref<2x8x1000x257xf32>, memref<2x8x1000xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 128, column = 128, strip = 512, heads = 3, parts = 2, stages = 6, merged = 0, persistent = 1>}
      : memref<2x8x1000x333xf32>, memref<2x2x3000x333xf32>, memref<2x2x3000x257xf32>
  return
}
}

// -----

// What is known only at run time: rows, keys and batch entries.
// CHECK-LABEL: func.func @dynamic
// CHECK: tile.scratch({{.*}}) : memref<?x2x?x640xf16>
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_f32_320_tf32x3_split_queries
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_f32_320_tf32x3_split_keys
// CHECK: scf.for
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_f32_320_tf32x3_scores
// CHECK-NEXT: tile.launch @attn_kernels::@score_spill_wgmma_f32_320_tf32x3_outputs
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @dynamic(%q: memref<?x2x?x320xf32>, %k: memref<?x2x?x320xf32>,
    %v: memref<?x2x?x320xf32>, %o: memref<?x2x?x320xf32>) {
  attn.forward %q, %k, %v outs(%o : memref<?x2x?x320xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 128, column = 64, strip = 512, heads = 3, parts = 2, stages = 6, merged = 0, persistent = 1>}
      : memref<?x2x?x320xf32>, memref<?x2x?x320xf32>, memref<?x2x?x320xf32>
  return
}
}
