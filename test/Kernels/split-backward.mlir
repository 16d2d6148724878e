// RUN: attn-run %s --on interpreter --machine a100_80g --function grouped | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function odd | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function of_the_lse | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function negative_scale | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function single_precision | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function separate | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function one_buffer | FileCheck %s
// RUN: attn-opt %s -attn-to-tile -attn-check-traffic -attn-check-footprint -o /dev/null

// Gradients against fp64: heads that share keys, odd rows, every kind of mask, a
// gradient of the LSE; and the bytes that were promised.
// CHECK-NOT: WRONG
// CHECK: dq
// CHECK: dk
// CHECK: dv
// CHECK: moved

func.func @grouped(%do: memref<2x4x100x64xbf16>, %q: memref<2x4x100x64xbf16>, %k: memref<2x2x90x64xbf16>,
    %v: memref<2x2x90x64xbf16>, %o: memref<2x4x100x64xbf16>, %lse: memref<2x4x100xf32>,
    %dq: memref<2x4x100x64xbf16>, %dk: memref<2x2x90x64xbf16>, %dv: memref<2x2x90x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x100x64xbf16>, memref<2x2x90x64xbf16>, memref<2x2x90x64xbf16>)
      : memref<2x4x100x64xbf16>, memref<2x4x100x64xbf16>, memref<2x2x90x64xbf16>, memref<2x2x90x64xbf16>, memref<2x4x100x64xbf16>, memref<2x4x100xf32>
  return
}

func.func @odd(%do: memref<1x2x70x72xf16>, %q: memref<1x2x70x41xf16>, %k: memref<1x2x110x41xf16>,
    %v: memref<1x2x110x72xf16>, %o: memref<1x2x70x72xf16>, %lse: memref<1x2x70xf32>,
    %dq: memref<1x2x70x41xf16>, %dk: memref<1x2x110x41xf16>, %dv: memref<1x2x110x72xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<30, 5>)
      outs(%dq, %dk, %dv : memref<1x2x70x41xf16>, memref<1x2x110x41xf16>, memref<1x2x110x72xf16>)
      : memref<1x2x70x72xf16>, memref<1x2x70x41xf16>, memref<1x2x110x41xf16>, memref<1x2x110x72xf16>, memref<1x2x70x72xf16>, memref<1x2x70xf32>
  return
}

func.func @of_the_lse(%do: memref<1x2x60x32xbf16>, %q: memref<1x2x60x32xbf16>, %k: memref<1x1x40x32xbf16>,
    %v: memref<1x1x40x32xbf16>, %o: memref<1x2x60x32xbf16>, %lse: memref<1x2x60xf32>, %x: memref<1x2x60xf32>,
    %dq: memref<1x2x60x32xbf16>, %dk: memref<1x1x40x32xbf16>, %dv: memref<1x1x40x32xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%x : memref<1x2x60xf32>) mask(causal_bottom_right)
      outs(%dq, %dk, %dv : memref<1x2x60x32xbf16>, memref<1x1x40x32xbf16>, memref<1x1x40x32xbf16>)
      : memref<1x2x60x32xbf16>, memref<1x2x60x32xbf16>, memref<1x1x40x32xbf16>, memref<1x1x40x32xbf16>, memref<1x2x60x32xbf16>, memref<1x2x60xf32>
  return
}

func.func @negative_scale(%do: memref<1x1x60x48xf16>, %q: memref<1x1x60x48xf16>, %k: memref<1x1x70x48xf16>,
    %v: memref<1x1x70x48xf16>, %o: memref<1x1x60x48xf16>, %lse: memref<1x1x60xf32>,
    %dq: memref<1x1x60x48xf16>, %dk: memref<1x1x70x48xf16>, %dv: memref<1x1x70x48xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal) scale(-0.2)
      outs(%dq, %dk, %dv : memref<1x1x60x48xf16>, memref<1x1x70x48xf16>, memref<1x1x70x48xf16>)
      : memref<1x1x60x48xf16>, memref<1x1x60x48xf16>, memref<1x1x70x48xf16>, memref<1x1x70x48xf16>, memref<1x1x60x48xf16>, memref<1x1x60xf32>
  return
}

func.func @single_precision(%do: memref<1x2x50x64xf32>, %q: memref<1x2x50x64xf32>, %k: memref<1x1x60x64xf32>,
    %v: memref<1x1x60x64xf32>, %o: memref<1x2x50x64xf32>, %lse: memref<1x2x50xf32>,
    %dq: memref<1x2x50x64xf32>, %dk: memref<1x1x60x64xf32>, %dv: memref<1x1x60x64xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<1x2x50x64xf32>, memref<1x1x60x64xf32>, memref<1x1x60x64xf32>)
      : memref<1x2x50x64xf32>, memref<1x2x50x64xf32>, memref<1x1x60x64xf32>, memref<1x1x60x64xf32>, memref<1x2x50x64xf32>, memref<1x2x50xf32>
  return
}

func.func @separate(%do: memref<1x1x70x256xbf16>, %q: memref<1x1x70x256xbf16>, %k: memref<1x1x150x256xbf16>,
    %v: memref<1x1x150x256xbf16>, %o: memref<1x1x70x256xbf16>, %lse: memref<1x1x70xf32>,
    %dq: memref<1x1x70x256xbf16>, %dk: memref<1x1x150x256xbf16>, %dv: memref<1x1x150x256xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<1x1x70x256xbf16>, memref<1x1x150x256xbf16>, memref<1x1x150x256xbf16>)
      : memref<1x1x70x256xbf16>, memref<1x1x70x256xbf16>, memref<1x1x150x256xbf16>, memref<1x1x150x256xbf16>, memref<1x1x70x256xbf16>, memref<1x1x70xf32>
  return
}

func.func @one_buffer(%do: memref<1x2x70x128xbf16>, %q: memref<1x2x70x96xbf16>, %k: memref<1x1x90x96xbf16>,
    %v: memref<1x1x90x128xbf16>, %o: memref<1x2x70x128xbf16>, %lse: memref<1x2x70xf32>,
    %dq: memref<1x2x70x96xbf16>, %dk: memref<1x1x90x96xbf16>, %dv: memref<1x1x90x128xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<1x2x70x96xbf16>, memref<1x1x90x96xbf16>, memref<1x1x90x128xbf16>) {schedule = #attn.schedule<split_backward, query = 64, key_block = 32, query_warps = 4, key = 64, query_block = 32, key_warps = 4, stages = 1, separate = 1>}
      : memref<1x2x70x128xbf16>, memref<1x2x70x96xbf16>, memref<1x1x90x96xbf16>, memref<1x1x90x128xbf16>, memref<1x2x70x128xbf16>, memref<1x2x70xf32>
  return
}

// All there is, from a differentiated function: outputs, then gradients.
// RUN: attn-opt %s -attn-differentiate | attn-run /dev/stdin --on interpreter --function attention_vjp | FileCheck %s
func.func @attention(%q: tensor<1x2x50x48xf16>, %k: tensor<1x2x60x48xf16>, %v: tensor<1x2x60x48xf16>)
    -> tensor<1x2x50x48xf16> {
  %o = attn.forward %q, %k, %v mask(causal) : tensor<1x2x50x48xf16>, tensor<1x2x60x48xf16>, tensor<1x2x60x48xf16>
     -> tensor<1x2x50x48xf16>
  return %o : tensor<1x2x50x48xf16>
}
