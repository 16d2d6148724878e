// RUN: attn-run %s --on interpreter --machine a100_80g --function rounds | FileCheck %s
// RUN: attn-run %s --on interpreter --machine rtx_a6000 --function single | FileCheck %s
// RUN: attn-run %s --on interpreter --machine l4 --function one_round | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function of_the_lse | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function window | FileCheck %s
// RUN: attn-opt %s -attn-to-tile=machine=a100_80g -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm=machine=l4 -o /dev/null

// Gradients against fp64, of several key heads and strips of keys and of one, in
// 16 bits and in f32; and the bytes that were promised.
// CHECK-NOT: WRONG
// CHECK: dq
// CHECK: dk
// CHECK: dv
// CHECK: moved

// Three key heads, two at once; 600 keys, 256 at once.
func.func @rounds(%do: memref<1x3x150x72xbf16>, %q: memref<1x3x150x264xbf16>, %k: memref<1x3x600x264xbf16>,
    %v: memref<1x3x600x72xbf16>, %o: memref<1x3x150x72xbf16>, %lse: memref<1x3x150xf32>,
    %dq: memref<1x3x150x264xbf16>, %dk: memref<1x3x600x264xbf16>, %dv: memref<1x3x600x72xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal_bottom_right)
      outs(%dq, %dk, %dv : memref<1x3x150x264xbf16>, memref<1x3x600x264xbf16>, memref<1x3x600x72xbf16>)
      {schedule = #attn.schedule<spill_backward, column = 128, strip = 256, heads = 2, warps = 4>}
      : memref<1x3x150x72xbf16>, memref<1x3x150x264xbf16>, memref<1x3x600x264xbf16>, memref<1x3x600x72xbf16>, memref<1x3x150x72xbf16>, memref<1x3x150xf32>
  return
}

// Rows at any address, of two query heads that share keys.
func.func @single(%do: memref<1x2x140x33xf32>, %q: memref<1x2x140x165xf32>, %k: memref<1x1x200x165xf32>,
    %v: memref<1x1x200x33xf32>, %o: memref<1x2x140x33xf32>, %lse: memref<1x2x140xf32>,
    %dq: memref<1x2x140x165xf32>, %dk: memref<1x1x200x165xf32>, %dv: memref<1x1x200x33xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<1x2x140x165xf32>, memref<1x1x200x165xf32>, memref<1x1x200x33xf32>)
      {schedule = #attn.schedule<spill_backward, strip = 128>}
      : memref<1x2x140x33xf32>, memref<1x2x140x165xf32>, memref<1x1x200x165xf32>, memref<1x1x200x33xf32>, memref<1x2x140x33xf32>, memref<1x2x140xf32>
  return
}

// Nothing else takes such heads.
func.func @one_round(%do: memref<1x2x100x320xf16>, %q: memref<1x2x100x320xf16>, %k: memref<1x1x200x320xf16>,
    %v: memref<1x1x200x320xf16>, %o: memref<1x2x100x320xf16>, %lse: memref<1x2x100xf32>,
    %dq: memref<1x2x100x320xf16>, %dk: memref<1x1x200x320xf16>, %dv: memref<1x1x200x320xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<50, 20>)
      outs(%dq, %dk, %dv : memref<1x2x100x320xf16>, memref<1x1x200x320xf16>, memref<1x1x200x320xf16>)
      : memref<1x2x100x320xf16>, memref<1x2x100x320xf16>, memref<1x1x200x320xf16>, memref<1x1x200x320xf16>, memref<1x2x100x320xf16>, memref<1x2x100xf32>
  return
}

// In f32 a window takes no more registers than other masks.
func.func @window(%do: memref<1x2x300x40xf32>, %q: memref<1x2x300x200xf32>, %k: memref<1x2x260x200xf32>,
    %v: memref<1x2x260x40xf32>, %o: memref<1x2x300x40xf32>, %lse: memref<1x2x300xf32>,
    %dq: memref<1x2x300x200xf32>, %dk: memref<1x2x260x200xf32>, %dv: memref<1x2x260x40xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<60, 15>)
      outs(%dq, %dk, %dv : memref<1x2x300x200xf32>, memref<1x2x260x200xf32>, memref<1x2x260x40xf32>)
      : memref<1x2x300x40xf32>, memref<1x2x300x200xf32>, memref<1x2x260x200xf32>, memref<1x2x260x40xf32>, memref<1x2x300x40xf32>, memref<1x2x300xf32>
  return
}

func.func @of_the_lse(%do: memref<1x2x160x40xf32>, %q: memref<1x2x160x320xf32>, %k: memref<1x1x140x320xf32>,
    %v: memref<1x1x140x40xf32>, %o: memref<1x2x160x40xf32>, %lse: memref<1x2x160xf32>, %x: memref<1x2x160xf32>,
    %dq: memref<1x2x160x320xf32>, %dk: memref<1x1x140x320xf32>, %dv: memref<1x1x140x40xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%x : memref<1x2x160xf32>) mask(causal_bottom_right) scale(-0.2)
      outs(%dq, %dk, %dv : memref<1x2x160x320xf32>, memref<1x1x140x320xf32>, memref<1x1x140x40xf32>)
      : memref<1x2x160x40xf32>, memref<1x2x160x320xf32>, memref<1x1x140x320xf32>, memref<1x1x140x40xf32>, memref<1x2x160x40xf32>, memref<1x2x160xf32>
  return
}
