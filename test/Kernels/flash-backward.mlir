// RUN: attn-run %s --on interpreter --machine h100_sxm --function columns | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function rows | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function window | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function columns_beside | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function rows_beside | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function window_beside | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function of_the_lse_beside | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function first_stores | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function rows_first_stores | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function window_first_stores | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function ordered | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function short_first | FileCheck %s
// RUN: attn-opt %s -attn-to-tile -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm -o /dev/null

// Gradients against fp64, of dQ that a launch of its own finishes and of dQ that
// is finished beside the tiles, added up in any order, to zeros and to what the first
// tile stores, and in that of tiles; and the bytes that were promised.
// CHECK-NOT: WRONG
// CHECK: dq
// CHECK: dk
// CHECK: dv
// CHECK: moved

module attributes {attn.machine = #attn.machine<h100_sxm>} {
// Sums are dealt out by columns, two query heads share keys, two batch entries.
func.func @columns(%do: memref<2x4x150x40xbf16>, %q: memref<2x4x150x72xbf16>, %k: memref<2x2x300x72xbf16>,
    %v: memref<2x2x300x40xbf16>, %o: memref<2x4x150x40xbf16>, %lse: memref<2x4x150xf32>,
    %dq: memref<2x4x150x72xbf16>, %dk: memref<2x2x300x72xbf16>, %dv: memref<2x2x300x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 0, first_stores = 0>}
      : memref<2x4x150x40xbf16>, memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>, memref<2x4x150x40xbf16>, memref<2x4x150xf32>
  return
}

// By rows; most queries see no key.
func.func @rows(%do: memref<1x3x200x64xf16>, %q: memref<1x3x200x32xf16>, %k: memref<1x3x70x32xf16>,
    %v: memref<1x3x70x64xf16>, %o: memref<1x3x200x64xf16>, %lse: memref<1x3x200xf32>,
    %dq: memref<1x3x200x32xf16>, %dk: memref<1x3x70x32xf16>, %dv: memref<1x3x70x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal_bottom_right)
      outs(%dq, %dk, %dv : memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, first_stores = 0>}
      : memref<1x3x200x64xf16>, memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>, memref<1x3x200x64xf16>, memref<1x3x200xf32>
  return
}

// Most keys are seen by no query.
func.func @window(%do: memref<1x2x70x32xbf16>, %q: memref<1x2x70x64xbf16>, %k: memref<1x1x290x64xbf16>,
    %v: memref<1x1x290x32xbf16>, %o: memref<1x2x70x32xbf16>, %lse: memref<1x2x70xf32>,
    %dq: memref<1x2x70x64xbf16>, %dk: memref<1x1x290x64xbf16>, %dv: memref<1x1x290x32xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<20, 7>)
      outs(%dq, %dk, %dv : memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 64, query_block = 64, beside = 0, first_stores = 0>}
      : memref<1x2x70x32xbf16>, memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>, memref<1x2x70x32xbf16>, memref<1x2x70xf32>
  return
}

func.func @columns_beside(%do: memref<2x4x150x40xbf16>, %q: memref<2x4x150x72xbf16>, %k: memref<2x2x300x72xbf16>,
    %v: memref<2x2x300x40xbf16>, %o: memref<2x4x150x40xbf16>, %lse: memref<2x4x150xf32>,
    %dq: memref<2x4x150x72xbf16>, %dk: memref<2x2x300x72xbf16>, %dv: memref<2x2x300x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 1, first_stores = 0>}
      : memref<2x4x150x40xbf16>, memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>, memref<2x4x150x40xbf16>, memref<2x4x150xf32>
  return
}

func.func @rows_beside(%do: memref<1x3x200x64xf16>, %q: memref<1x3x200x32xf16>, %k: memref<1x3x70x32xf16>,
    %v: memref<1x3x70x64xf16>, %o: memref<1x3x200x64xf16>, %lse: memref<1x3x200xf32>,
    %dq: memref<1x3x200x32xf16>, %dk: memref<1x3x70x32xf16>, %dv: memref<1x3x70x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal_bottom_right)
      outs(%dq, %dk, %dv : memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 1, first_stores = 0>}
      : memref<1x3x200x64xf16>, memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>, memref<1x3x200x64xf16>, memref<1x3x200xf32>
  return
}

func.func @window_beside(%do: memref<1x2x70x32xbf16>, %q: memref<1x2x70x64xbf16>, %k: memref<1x1x290x64xbf16>,
    %v: memref<1x1x290x32xbf16>, %o: memref<1x2x70x32xbf16>, %lse: memref<1x2x70xf32>,
    %dq: memref<1x2x70x64xbf16>, %dk: memref<1x1x290x64xbf16>, %dv: memref<1x1x290x32xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<20, 7>)
      outs(%dq, %dk, %dv : memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 64, query_block = 64, beside = 1, first_stores = 0>}
      : memref<1x2x70x32xbf16>, memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>, memref<1x2x70x32xbf16>, memref<1x2x70xf32>
  return
}

func.func @of_the_lse_beside(%do: memref<1x2x130x80xbf16>, %q: memref<1x2x130x80xbf16>, %k: memref<1x2x140x80xbf16>,
    %v: memref<1x2x140x80xbf16>, %o: memref<1x2x130x80xbf16>, %lse: memref<1x2x130xf32>, %x: memref<1x2x130xf32>,
    %dq: memref<1x2x130x80xbf16>, %dk: memref<1x2x140x80xbf16>, %dv: memref<1x2x140x80xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%x : memref<1x2x130xf32>) mask(none)
      outs(%dq, %dk, %dv : memref<1x2x130x80xbf16>, memref<1x2x140x80xbf16>, memref<1x2x140x80xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 1, first_stores = 0>}
      : memref<1x2x130x80xbf16>, memref<1x2x130x80xbf16>, memref<1x2x140x80xbf16>, memref<1x2x140x80xbf16>, memref<1x2x130x80xbf16>, memref<1x2x130xf32>
  return
}

// Of the keys behind the diagonal tiles make no step.
func.func @first_stores(%do: memref<2x4x150x40xbf16>, %q: memref<2x4x150x72xbf16>, %k: memref<2x2x300x72xbf16>,
    %v: memref<2x2x300x40xbf16>, %o: memref<2x4x150x40xbf16>, %lse: memref<2x4x150xf32>,
    %dq: memref<2x4x150x72xbf16>, %dk: memref<2x2x300x72xbf16>, %dv: memref<2x2x300x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 0, first_stores = 1>}
      : memref<2x4x150x40xbf16>, memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>, memref<2x4x150x40xbf16>, memref<2x4x150xf32>
  return
}

func.func @rows_first_stores(%do: memref<1x3x200x64xf16>, %q: memref<1x3x200x32xf16>, %k: memref<1x3x70x32xf16>,
    %v: memref<1x3x70x64xf16>, %o: memref<1x3x200x64xf16>, %lse: memref<1x3x200xf32>,
    %dq: memref<1x3x200x32xf16>, %dk: memref<1x3x70x32xf16>, %dv: memref<1x3x70x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal_bottom_right)
      outs(%dq, %dk, %dv : memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 1, first_stores = 1>}
      : memref<1x3x200x64xf16>, memref<1x3x200x32xf16>, memref<1x3x70x32xf16>, memref<1x3x70x64xf16>, memref<1x3x200x64xf16>, memref<1x3x200xf32>
  return
}

func.func @window_first_stores(%do: memref<1x2x70x32xbf16>, %q: memref<1x2x70x64xbf16>, %k: memref<1x1x290x64xbf16>,
    %v: memref<1x1x290x32xbf16>, %o: memref<1x2x70x32xbf16>, %lse: memref<1x2x70xf32>,
    %dq: memref<1x2x70x64xbf16>, %dk: memref<1x1x290x64xbf16>, %dv: memref<1x1x290x32xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<20, 7>)
      outs(%dq, %dk, %dv : memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 64, query_block = 64, beside = 1, first_stores = 1>}
      : memref<1x2x70x32xbf16>, memref<1x2x70x64xbf16>, memref<1x1x290x64xbf16>, memref<1x1x290x32xbf16>, memref<1x2x70x32xbf16>, memref<1x2x70xf32>
  return
}

// Of the keys behind the diagonal most are seen by none.
func.func @ordered(%do: memref<2x4x150x40xbf16>, %q: memref<2x4x150x72xbf16>, %k: memref<2x2x300x72xbf16>,
    %v: memref<2x2x300x40xbf16>, %o: memref<2x4x150x40xbf16>, %lse: memref<2x4x150xf32>,
    %dq: memref<2x4x150x72xbf16>, %dk: memref<2x2x300x72xbf16>, %dv: memref<2x2x300x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>)
      {deterministic, schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 1, short_first = 0>}
      : memref<2x4x150x40xbf16>, memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>, memref<2x4x150x40xbf16>, memref<2x4x150xf32>
  return
}

func.func @short_first(%do: memref<2x4x150x40xbf16>, %q: memref<2x4x150x72xbf16>, %k: memref<2x2x300x72xbf16>,
    %v: memref<2x2x300x40xbf16>, %o: memref<2x4x150x40xbf16>, %lse: memref<2x4x150xf32>,
    %dq: memref<2x4x150x72xbf16>, %dk: memref<2x2x300x72xbf16>, %dv: memref<2x2x300x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>)
      {deterministic, schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 0, short_first = 1>}
      : memref<2x4x150x40xbf16>, memref<2x4x150x72xbf16>, memref<2x2x300x72xbf16>, memref<2x2x300x40xbf16>, memref<2x4x150x40xbf16>, memref<2x4x150xf32>
  return
}
}
