// RUN: attn-run %s --on interpreter --machine a100_80g --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function negative_scale | FileCheck %s

// Two products with P between them in scratch memory, against fp64.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @wide(%q: tensor<1x4x40x320xbf16>,
    %k: tensor<1x2x150x320xbf16>, %v: tensor<1x2x150x320xbf16>)
    -> (tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<score_spill, query = 32, key = 64, column = 64, slice = 64, warps = 2, strip = 64, stages = 2>}
      : tensor<1x4x40x320xbf16>, tensor<1x2x150x320xbf16>, tensor<1x2x150x320xbf16>
     -> tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
  return %o, %lse : tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
}

func.func @odd(%q: tensor<1x2x40x177xf16>,
    %k: tensor<1x2x190x177xf16>, %v: tensor<1x2x190x123xf16>)
    -> (tensor<1x2x40x123xf16>, tensor<1x2x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v {schedule = #attn.schedule<score_spill, query = 64, key = 32, column = 32, slice = 16, warps = 4, strip = 128, stages = 3>}
      : tensor<1x2x40x177xf16>, tensor<1x2x190x177xf16>, tensor<1x2x190x123xf16>
     -> tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
  return %o, %lse : tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
}

func.func @negative_scale(%q: tensor<1x1x40x64xbf16>,
    %k: tensor<1x1x150x64xbf16>, %v: tensor<1x1x150x64xbf16>)
    -> (tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v scale(-0.25) {schedule = #attn.schedule<score_spill, query = 16, key = 32, column = 64, slice = 32, warps = 1, strip = 64, stages = 2>}
      : tensor<1x1x40x64xbf16>, tensor<1x1x150x64xbf16>, tensor<1x1x150x64xbf16>
     -> tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
  return %o, %lse : tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
}
