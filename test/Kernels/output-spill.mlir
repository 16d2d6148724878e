// RUN: attn-run %s --on interpreter --machine a100_80g --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function single | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function negative_scale | FileCheck %s

// O in scratch memory between blocks of keys, against fp64.
// CHECK: kernel {{.*}}output_spill_mma_sync
// CHECK-NOT: WRONG
// CHECK: moved

func.func @wide(%q: tensor<1x4x40x320xbf16>,
    %k: tensor<1x2x150x320xbf16>, %v: tensor<1x2x150x320xbf16>)
    -> (tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<output_spill, query = 32, key = 64, column = 64, slice = 64, stages = 2, warps = 2>}
      : tensor<1x4x40x320xbf16>, tensor<1x2x150x320xbf16>, tensor<1x2x150x320xbf16>
     -> tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
  return %o, %lse : tensor<1x4x40x320xbf16>, tensor<1x4x40xf32>
}

func.func @odd(%q: tensor<1x2x40x177xf16>,
    %k: tensor<1x2x190x177xf16>, %v: tensor<1x2x190x123xf16>)
    -> (tensor<1x2x40x123xf16>, tensor<1x2x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(window<60, 10>) {schedule = #attn.schedule<output_spill, query = 64, key = 32, column = 32, slice = 16, stages = 3, warps = 4>}
      : tensor<1x2x40x177xf16>, tensor<1x2x190x177xf16>, tensor<1x2x190x123xf16>
     -> tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
  return %o, %lse : tensor<1x2x40x123xf16>, tensor<1x2x40xf32>
}

func.func @single(%q: tensor<1x2x50x320xf32>,
    %k: tensor<1x2x150x320xf32>, %v: tensor<1x2x150x200xf32>)
    -> (tensor<1x2x50x200xf32>, tensor<1x2x50xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<output_spill, query = 32, key = 64, column = 64, slice = 32, stages = 2, warps = 2>}
      : tensor<1x2x50x320xf32>, tensor<1x2x150x320xf32>, tensor<1x2x150x200xf32>
     -> tensor<1x2x50x200xf32>, tensor<1x2x50xf32>
  return %o, %lse : tensor<1x2x50x200xf32>, tensor<1x2x50xf32>
}

func.func @negative_scale(%q: tensor<1x1x40x64xbf16>,
    %k: tensor<1x1x150x64xbf16>, %v: tensor<1x1x150x64xbf16>)
    -> (tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v scale(-0.25) {schedule = #attn.schedule<output_spill, query = 16, key = 32, column = 64, slice = 32, stages = 1, warps = 1>}
      : tensor<1x1x40x64xbf16>, tensor<1x1x150x64xbf16>, tensor<1x1x150x64xbf16>
     -> tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
  return %o, %lse : tensor<1x1x40x64xbf16>, tensor<1x1x40xf32>
}
