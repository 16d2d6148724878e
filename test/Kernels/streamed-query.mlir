// RUN: attn-run %s --on interpreter --machine a100_80g --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function negative_scale | FileCheck %s

// Wide heads, one warp to a row and several, against fp64.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @wide(%q: tensor<1x4x40x320xbf16>,
    %k: tensor<1x2x90x320xbf16>, %v: tensor<1x2x90x320xbf16>)
    -> (tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<streamed_query, query = 32, key = 64, slice = 64, piece = 32, stages = 2, warps = 4, column_warps = 2>}
      : tensor<1x4x40x320xbf16>, tensor<1x2x90x320xbf16>, tensor<1x2x90x320xbf16>
     -> tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
  return %o, %lse : tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
}

func.func @odd(%q: tensor<1x2x40x177xf16>,
    %k: tensor<1x2x90x177xf16>, %v: tensor<1x2x90x123xf16>)
    -> (tensor<1x2x40x123xf16>, tensor<1x2x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v {schedule = #attn.schedule<streamed_query, query = 64, key = 32, slice = 32, piece = 16, stages = 3, warps = 4, column_warps = 1>}
      : tensor<1x2x40x177xf16>, tensor<1x2x90x177xf16>, tensor<1x2x90x123xf16>
     -> tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
  return %o, %lse : tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
}

func.func @negative_scale(%q: tensor<1x1x40x64xbf16>,
    %k: tensor<1x1x150x64xbf16>, %v: tensor<1x1x150x64xbf16>)
    -> (tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v scale(-0.25) {schedule = #attn.schedule<streamed_query, query = 16, key = 64, slice = 32, piece = 16, stages = 2, warps = 4, column_warps = 4>}
      : tensor<1x1x40x64xbf16>, tensor<1x1x150x64xbf16>, tensor<1x1x150x64xbf16>
     -> tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
  return %o, %lse : tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
}
