// RUN: attn-run %s --on interpreter --function small | FileCheck %s
// RUN: attn-run %s --on interpreter --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --function narrow_values | FileCheck %s
// RUN: attn-run %s --on interpreter --function wide_values | FileCheck %s
// RUN: attn-run %s --on interpreter --function without_lse | FileCheck %s
// RUN: attn-run %s --on interpreter --function one_row | FileCheck %s
// RUN: attn-run %s --on interpreter --function negative_scale | FileCheck %s

// Head dimensions, types and head counts, against fp64.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @small(%q: tensor<2x4x70x8xf16>,
    %k: tensor<2x4x90x8xf16>, %v: tensor<2x4x90x8xf16>)
    -> (tensor<2x4x70x8xf16>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x8xf16>, tensor<2x4x90x8xf16>, tensor<2x4x90x8xf16>
     -> tensor<2x4x70x8xf16>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x8xf16>, tensor<2x4x70xf32>
}

func.func @wide(%q: tensor<2x4x70x256xbf16>,
    %k: tensor<2x4x90x256xbf16>, %v: tensor<2x4x90x256xbf16>)
    -> (tensor<2x4x70x256xbf16>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x256xbf16>, tensor<2x4x90x256xbf16>, tensor<2x4x90x256xbf16>
     -> tensor<2x4x70x256xbf16>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x256xbf16>, tensor<2x4x70xf32>
}

func.func @odd(%q: tensor<2x4x70x17xf16>,
    %k: tensor<2x4x90x17xf16>, %v: tensor<2x4x90x33xf16>)
    -> (tensor<2x4x70x33xf16>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x17xf16>, tensor<2x4x90x17xf16>, tensor<2x4x90x33xf16>
     -> tensor<2x4x70x33xf16>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x33xf16>, tensor<2x4x70xf32>
}

func.func @narrow_values(%q: tensor<2x4x70x128xbf16>,
    %k: tensor<2x2x90x128xbf16>, %v: tensor<2x2x90x40xbf16>)
    -> (tensor<2x4x70x40xbf16>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x128xbf16>, tensor<2x2x90x128xbf16>, tensor<2x2x90x40xbf16>
     -> tensor<2x4x70x40xbf16>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x40xbf16>, tensor<2x4x70xf32>
}

func.func @wide_values(%q: tensor<2x4x70x40xbf16>,
    %k: tensor<2x1x90x40xbf16>, %v: tensor<2x1x90x128xbf16>)
    -> (tensor<2x4x70x128xbf16>, tensor<2x4x70xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<2x4x70x40xbf16>, tensor<2x1x90x40xbf16>, tensor<2x1x90x128xbf16>
     -> tensor<2x4x70x128xbf16>, tensor<2x4x70xf32>
  return %o, %lse : tensor<2x4x70x128xbf16>, tensor<2x4x70xf32>
}

func.func @without_lse(%q: tensor<1x1x70x64xf16>,
    %k: tensor<1x1x90x64xf16>, %v: tensor<1x1x90x64xf16>)
    -> tensor<1x1x70x64xf16> {
  %o = attn.forward %q, %k, %v
      : tensor<1x1x70x64xf16>, tensor<1x1x90x64xf16>, tensor<1x1x90x64xf16>
     -> tensor<1x1x70x64xf16>
  return %o : tensor<1x1x70x64xf16>
}

func.func @one_row(%q: tensor<3x2x1x64xbf16>,
    %k: tensor<3x1x300x64xbf16>, %v: tensor<3x1x300x64xbf16>)
    -> (tensor<3x2x1x64xbf16>, tensor<3x2x1xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      : tensor<3x2x1x64xbf16>, tensor<3x1x300x64xbf16>, tensor<3x1x300x64xbf16>
     -> tensor<3x2x1x64xbf16>, tensor<3x2x1xf32>
  return %o, %lse : tensor<3x2x1x64xbf16>, tensor<3x2x1xf32>
}

func.func @negative_scale(%q: tensor<1x1x40x32xbf16>,
    %k: tensor<1x1x50x32xbf16>, %v: tensor<1x1x50x32xbf16>)
    -> (tensor<1x1x40x32xbf16>, tensor<1x1x40xf32>) {
  %o, %lse = attn.forward %q, %k, %v scale(-0.25)
      : tensor<1x1x40x32xbf16>, tensor<1x1x50x32xbf16>, tensor<1x1x50x32xbf16>
     -> tensor<1x1x40x32xbf16>, tensor<1x1x40xf32>
  return %o, %lse : tensor<1x1x40x32xbf16>, tensor<1x1x40xf32>
}
