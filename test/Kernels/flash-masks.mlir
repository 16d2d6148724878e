// RUN: attn-run %s --on interpreter --function open | FileCheck %s
// RUN: attn-run %s --on interpreter --function causal | FileCheck %s
// RUN: attn-run %s --on interpreter --function bottom_right | FileCheck %s
// RUN: attn-run %s --on interpreter --function window | FileCheck %s
// RUN: attn-run %s --on interpreter --function left_window | FileCheck %s
// RUN: attn-run %s --on interpreter --function bottom_right --schedule="flash, query = 64, key = 32, stages = 1, warps = 4" | FileCheck %s
// RUN: attn-run %s --on interpreter --function window --schedule="flash, query = 32, key = 16, stages = 3, warps = 2" | FileCheck %s

// Every mask on ragged rows, against fp64; attn-run fails when they differ.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @open(%q: tensor<1x2x150x32xbf16>,
    %k: tensor<1x2x110x32xbf16>, %v: tensor<1x2x110x32xbf16>)
    -> (tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>) {
  %o, %lse = attn.forward %q, %k, %v
      : tensor<1x2x150x32xbf16>, tensor<1x2x110x32xbf16>, tensor<1x2x110x32xbf16>
     -> tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
  return %o, %lse : tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
}

func.func @causal(%q: tensor<1x2x150x32xbf16>,
    %k: tensor<1x2x110x32xbf16>, %v: tensor<1x2x110x32xbf16>)
    -> (tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<1x2x150x32xbf16>, tensor<1x2x110x32xbf16>, tensor<1x2x110x32xbf16>
     -> tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
  return %o, %lse : tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
}

func.func @bottom_right(%q: tensor<1x2x150x32xbf16>,
    %k: tensor<1x2x110x32xbf16>, %v: tensor<1x2x110x32xbf16>)
    -> (tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      : tensor<1x2x150x32xbf16>, tensor<1x2x110x32xbf16>, tensor<1x2x110x32xbf16>
     -> tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
  return %o, %lse : tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
}

func.func @window(%q: tensor<1x2x150x32xbf16>,
    %k: tensor<1x2x110x32xbf16>, %v: tensor<1x2x110x32xbf16>)
    -> (tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(window<37, 11>)
      : tensor<1x2x150x32xbf16>, tensor<1x2x110x32xbf16>, tensor<1x2x110x32xbf16>
     -> tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
  return %o, %lse : tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
}

func.func @left_window(%q: tensor<1x2x150x32xbf16>,
    %k: tensor<1x2x110x32xbf16>, %v: tensor<1x2x110x32xbf16>)
    -> (tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(window<1073741824, 3>)
      : tensor<1x2x150x32xbf16>, tensor<1x2x110x32xbf16>, tensor<1x2x110x32xbf16>
     -> tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
  return %o, %lse : tensor<1x2x150x32xbf16>, tensor<1x2x150xf32>
}
