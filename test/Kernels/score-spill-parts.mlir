// RUN: attn-run %s --on interpreter --machine h100_sxm --function rounds | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function shared_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function derived | FileCheck %s --check-prefixes=CHECK,DERIVED
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm=machine=h100_sxm -o /dev/null

// Two products of f32 in two parts of f16, against fp64; and the bytes that
// were promised.
// DERIVED: score_spill_wgmma_f32_520_tf32x3_split_queries
// CHECK-NOT: WRONG
// CHECK: moved

// Three key heads, two at once; 300 queries, 128 at once.
func.func @rounds(%q: tensor<1x3x300x264xf32>,
    %k: tensor<1x3x290x264xf32>, %v: tensor<1x3x290x72xf32>)
    -> (tensor<1x3x300x72xf32>, tensor<1x3x300xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<score_spill, query = 128, key_block = 128, column = 128, strip = 128, heads = 2, parts = 2, stages = 6, persistent = 1>}
      : tensor<1x3x300x264xf32>, tensor<1x3x290x264xf32>, tensor<1x3x290x72xf32>
     -> tensor<1x3x300x72xf32>, tensor<1x3x300xf32>
  return %o, %lse : tensor<1x3x300x72xf32>, tensor<1x3x300xf32>
}

// Two heads of queries for one of keys; rows of any length; larger scores are
// the lighter ones.
func.func @shared_keys(%q: tensor<2x2x200x131xf32>,
    %k: tensor<2x1x330x131xf32>, %v: tensor<2x1x330x77xf32>)
    -> tensor<2x2x200x77xf32> {
  %o = attn.forward %q, %k, %v mask(causal) scale(-0.25) {schedule = #attn.schedule<score_spill, key_block = 128, column = 64, strip = 256, heads = 1, parts = 2>}
      : tensor<2x2x200x131xf32>, tensor<2x1x330x131xf32>, tensor<2x1x330x77xf32>
     -> tensor<2x2x200x77xf32>
  return %o : tensor<2x2x200x77xf32>
}

func.func @derived(%q: tensor<1x2x300x520xf32>,
    %k: tensor<1x1x200x520xf32>, %v: tensor<1x1x200x520xf32>)
    -> (tensor<1x2x300x520xf32>, tensor<1x2x300xf32>) {
  %o, %lse = attn.forward %q, %k, %v {schedule = #attn.schedule<score_spill, parts = 2>}
      : tensor<1x2x300x520xf32>, tensor<1x1x200x520xf32>, tensor<1x1x200x520xf32>
     -> tensor<1x2x300x520xf32>, tensor<1x2x300xf32>
  return %o, %lse : tensor<1x2x300x520xf32>, tensor<1x2x300xf32>
}
