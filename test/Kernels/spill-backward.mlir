// RUN: attn-run %s --on interpreter --machine h100_sxm --function rounds | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function ragged | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function one_round | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function of_the_lse | FileCheck %s
// RUN: attn-opt %s -attn-to-tile -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm -o /dev/null

// Gradients against fp64, of several key heads and strips of keys and of one; and
// the bytes that were promised.
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
      {schedule = #attn.schedule<spill_backward, key_block = 256, column = 256, strip = 256, heads = 2, stages = 4>}
      : memref<1x3x150x72xbf16>, memref<1x3x150x264xbf16>, memref<1x3x600x264xbf16>, memref<1x3x600x72xbf16>, memref<1x3x150x72xbf16>, memref<1x3x150xf32>
  return
}

// Two heads of queries for one of keys; the last tile has few rows.
func.func @ragged(%do: memref<2x2x300x40xf16>, %q: memref<2x2x300x136xf16>, %k: memref<2x1x300x136xf16>,
    %v: memref<2x1x300x40xf16>, %o: memref<2x2x300x40xf16>, %lse: memref<2x2x300xf32>,
    %dq: memref<2x2x300x136xf16>, %dk: memref<2x1x300x136xf16>, %dv: memref<2x1x300x40xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x2x300x136xf16>, memref<2x1x300x136xf16>, memref<2x1x300x40xf16>)
      {schedule = #attn.schedule<spill_backward, column = 128, strip = 256, heads = 1>}
      : memref<2x2x300x40xf16>, memref<2x2x300x136xf16>, memref<2x1x300x136xf16>, memref<2x1x300x40xf16>, memref<2x2x300x40xf16>, memref<2x2x300xf32>
  return
}

func.func @one_round(%do: memref<1x2x100x320xf16>, %q: memref<1x2x100x320xf16>, %k: memref<1x1x200x320xf16>,
    %v: memref<1x1x200x320xf16>, %o: memref<1x2x100x320xf16>, %lse: memref<1x2x100xf32>,
    %dq: memref<1x2x100x320xf16>, %dk: memref<1x1x200x320xf16>, %dv: memref<1x1x200x320xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<50, 20>)
      outs(%dq, %dk, %dv : memref<1x2x100x320xf16>, memref<1x1x200x320xf16>, memref<1x1x200x320xf16>)
      {schedule = #attn.schedule<spill_backward>}
      : memref<1x2x100x320xf16>, memref<1x2x100x320xf16>, memref<1x1x200x320xf16>, memref<1x1x200x320xf16>, memref<1x2x100x320xf16>, memref<1x2x100xf32>
  return
}

func.func @of_the_lse(%do: memref<1x2x160x40xbf16>, %q: memref<1x2x160x320xbf16>, %k: memref<1x1x140x320xbf16>,
    %v: memref<1x1x140x40xbf16>, %o: memref<1x2x160x40xbf16>, %lse: memref<1x2x160xf32>, %x: memref<1x2x160xf32>,
    %dq: memref<1x2x160x320xbf16>, %dk: memref<1x1x140x320xbf16>, %dv: memref<1x1x140x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%x : memref<1x2x160xf32>) mask(causal_bottom_right) scale(-0.2)
      outs(%dq, %dk, %dv : memref<1x2x160x320xbf16>, memref<1x1x140x320xbf16>, memref<1x1x140x40xbf16>)
      {schedule = #attn.schedule<spill_backward>}
      : memref<1x2x160x40xbf16>, memref<1x2x160x320xbf16>, memref<1x1x140x320xbf16>, memref<1x1x140x40xbf16>, memref<1x2x160x40xbf16>, memref<1x2x160xf32>
  return
}
