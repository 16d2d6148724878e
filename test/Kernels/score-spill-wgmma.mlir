// RUN: attn-run %s --on interpreter --machine h100_sxm --function rounds | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function shared_keys | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function one_round | FileCheck %s
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm=machine=h100_sxm -o /dev/null

// Two products with P between them in scratch memory, in rounds, against fp64;
// and the bytes that were promised.
// CHECK-NOT: WRONG
// CHECK: moved

// Three key heads, two at once; 300 queries, 128 at once.
func.func @rounds(%q: tensor<1x3x300x264xbf16>,
    %k: tensor<1x3x290x264xbf16>, %v: tensor<1x3x290x72xbf16>)
    -> (tensor<1x3x300x72xbf16>, tensor<1x3x300xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 128, heads = 2, stages = 4, persistent = 1, merged = 0>}
      : tensor<1x3x300x264xbf16>, tensor<1x3x290x264xbf16>, tensor<1x3x290x72xbf16>
     -> tensor<1x3x300x72xbf16>, tensor<1x3x300xf32>
  return %o, %lse : tensor<1x3x300x72xbf16>, tensor<1x3x300xf32>
}

// Two heads of queries for one of keys; larger scores are the lighter ones.
func.func @shared_keys(%q: tensor<2x2x200x136xf16>,
    %k: tensor<2x1x330x136xf16>, %v: tensor<2x1x330x320xf16>)
    -> tensor<2x2x200x320xf16> {
  %o = attn.forward %q, %k, %v mask(causal) scale(-0.25) {schedule = #attn.schedule<score_spill, key_block = 128, column = 64, strip = 256, heads = 1>}
      : tensor<2x2x200x136xf16>, tensor<2x1x330x136xf16>, tensor<2x1x330x320xf16>
     -> tensor<2x2x200x320xf16>
  return %o : tensor<2x2x200x320xf16>
}

func.func @one_round(%q: tensor<1x2x100x320xbf16>,
    %k: tensor<1x1x200x320xbf16>, %v: tensor<1x1x200x320xbf16>)
    -> (tensor<1x2x100x320xbf16>, tensor<1x2x100xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(window<50, 20>) {schedule = #attn.schedule<score_spill, key_block = 256>}
      : tensor<1x2x100x320xbf16>, tensor<1x1x200x320xbf16>, tensor<1x1x200x320xbf16>
     -> tensor<1x2x100x320xbf16>, tensor<1x2x100xf32>
  return %o, %lse : tensor<1x2x100x320xbf16>, tensor<1x2x100xf32>
}
