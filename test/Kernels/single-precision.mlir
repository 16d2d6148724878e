// RUN: attn-run %s --on interpreter --function split | FileCheck %s
// RUN: attn-run %s --on interpreter --function rounded | FileCheck %s
// RUN: attn-run %s --on interpreter --machine l4 --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --machine l4 --function rounded_wide | FileCheck %s

// f32 in the tiles that the compiler derives, against fp64; the tolerance is
// that of the precision.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @split(%q: tensor<2x4x70x64xf32>,
    %k: tensor<2x2x90x64xf32>, %v: tensor<2x2x90x64xf32>)
    -> (tensor<2x4x70x64xf32>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x64xf32>, tensor<2x2x90x64xf32>, tensor<2x2x90x64xf32>
     -> tensor<2x4x70x64xf32>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x64xf32>, tensor<2x4x70xf32>
}

func.func @rounded(%q: tensor<1x2x70x128xf32>,
    %k: tensor<1x1x90x128xf32>, %v: tensor<1x1x90x128xf32>)
    -> (tensor<1x2x70x128xf32>, tensor<1x2x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(window<40, 3>) precision(tf32)
      : tensor<1x2x70x128xf32>, tensor<1x1x90x128xf32>, tensor<1x1x90x128xf32>
     -> tensor<1x2x70x128xf32>, tensor<1x2x70xf32>
  return %o, %lse : tensor<1x2x70x128xf32>, tensor<1x2x70xf32>
}

func.func @odd(%q: tensor<1x2x50x17xf32>,
    %k: tensor<1x2x90x17xf32>, %v: tensor<1x2x90x33xf32>)
    -> (tensor<1x2x50x33xf32>, tensor<1x2x50xf32>) {
  %o, %lse = attn.forward %q, %k, %v precision(tf32x3)
      : tensor<1x2x50x17xf32>, tensor<1x2x90x17xf32>, tensor<1x2x90x33xf32>
     -> tensor<1x2x50x33xf32>, tensor<1x2x50xf32>
  return %o, %lse : tensor<1x2x50x33xf32>, tensor<1x2x50xf32>
}

func.func @wide(%q: tensor<1x1x20x1024xf32>,
    %k: tensor<1x1x50x1024xf32>, %v: tensor<1x1x50x1024xf32>)
    -> (tensor<1x1x20x1024xf32>, tensor<1x1x20xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      : tensor<1x1x20x1024xf32>, tensor<1x1x50x1024xf32>, tensor<1x1x50x1024xf32>
     -> tensor<1x1x20x1024xf32>, tensor<1x1x20xf32>
  return %o, %lse : tensor<1x1x20x1024xf32>, tensor<1x1x20xf32>
}

func.func @rounded_wide(%q: tensor<1x1x20x512xf32>,
    %k: tensor<1x1x50x512xf32>, %v: tensor<1x1x50x512xf32>)
    -> (tensor<1x1x20x512xf32>, tensor<1x1x20xf32>) {
  %o, %lse = attn.forward %q, %k, %v precision(tf32)
      : tensor<1x1x20x512xf32>, tensor<1x1x50x512xf32>, tensor<1x1x50x512xf32>
     -> tensor<1x1x20x512xf32>, tensor<1x1x20xf32>
  return %o, %lse : tensor<1x1x20x512xf32>, tensor<1x1x20xf32>
}
