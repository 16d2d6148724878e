// Gradients without a GPU: two or three launches, interpreted, against fp64.
// RUN: attn-run --on interpreter --machine a100_80g --function memrefs --guard %s | FileCheck %s --check-prefix=TEXT
// RUN: attn-run --on interpreter --machine l4 --function strided --batch 2 --queries 5 --keys 40 --guard %s | FileCheck %s --check-prefix=STRIDED
// RUN: attn-run --on interpreter --machine a100_80g --function tensors --json %s | FileCheck %s --check-prefix=JSON
// RUN: attn-run --on interpreter --machine a100_80g --function masked --guard %s | FileCheck %s --check-prefix=MASKED
// RUN: attn-run --on interpreter --machine a100_80g --function low_word --guard %s | FileCheck %s --check-prefix=LOW
// RUN: attn-run --on interpreter --machine h100_sxm --function low_word --guard %s | FileCheck %s --check-prefix=LOW
// RUN: attn-run --on interpreter --machine a100_80g --function low_word_in --guard %s | FileCheck %s --check-prefix=LOW-IN
// RUN: attn-run --on interpreter --machine a100_80g --function single --guard %s | FileCheck %s --check-prefix=SINGLE

// TEXT:      problem   gradients, bf16, batch 1, heads 2 over 1, queries 20, keys 33, head dims 24 and 40, mask causal_bottom_right, scale 0.2, gradient of LSE, deterministic
// TEXT:      kernel    attn_kernels::split_backward_{{.*}}_dq
// TEXT-NEXT: kernel    attn_kernels::split_backward_{{.*}}_dk_dv
// TEXT-NEXT: dq        1x2x20x24xbf16 {{.*}}relative error {{.*}} (limit {{[0-9e-]+}}){{$}}
// TEXT-NEXT: dk        1x1x33x24xbf16 {{.*}}relative error {{.*}} (limit {{[0-9e-]+}}){{$}}
// TEXT-NEXT: dv        1x1x33x40xbf16 {{.*}}relative error {{.*}} (limit {{[0-9e-]+}}){{$}}
// TEXT-NEXT: moved     {{[0-9]+}} bytes of global memory
func.func @memrefs(%do: memref<1x2x20x40xbf16>, %q: memref<1x2x20x24xbf16>,
                   %k: memref<1x1x33x24xbf16>, %v: memref<1x1x33x40xbf16>,
                   %o: memref<1x2x20x40xbf16>, %lse: memref<1x2x20xf32>,
                   %dlse: memref<1x2x20xf32>, %dq: memref<1x2x20x24xbf16>,
                   %dk: memref<1x1x33x24xbf16>, %dv: memref<1x1x33x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : memref<1x2x20xf32>)
      mask(causal_bottom_right) scale(0.2)
      outs(%dq, %dk, %dv : memref<1x2x20x24xbf16>, memref<1x1x33x24xbf16>, memref<1x1x33x40xbf16>)
      {deterministic}
      : memref<1x2x20x40xbf16>, memref<1x2x20x24xbf16>, memref<1x1x33x24xbf16>,
        memref<1x1x33x40xbf16>, memref<1x2x20x40xbf16>, memref<1x2x20xf32>
  return
}

// [batch, rows, heads, d] in memory.
// STRIDED: dq        2x2x5x16xf16 {{.*}}){{$}}
// STRIDED: dk        2x2x40x16xf16 {{.*}}){{$}}
// STRIDED: dv        2x2x40x16xf16 {{.*}}){{$}}
!q = memref<?x2x?x16xf16, strided<[?, 16, 32, 1]>>
!l = memref<?x2x?xf32, strided<[?, ?, 1]>>
func.func @strided(%do: !q, %q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %dq: !q,
                   %dk: !q, %dv: !q) {
  attn.backward %do, %q, %k, %v, %o, %lse outs(%dq, %dk, %dv : !q, !q, !q)
      : !q, !q, !q, !q, !q, !l
  return
}

// JSON: "problems":["f16, {{.*}}","gradients, f16, batch 1,
// JSON-SAME: "outputs":[{"name":"dq","type":"1x1x18x16xf16","ok":true
// JSON-SAME: "ok":true}
!t = tensor<1x1x18x16xf16>
func.func @tensors(%q: !t, %k: !t, %v: !t, %do: !t) -> (!t, !t, !t) {
  %o, %lse = attn.forward %q, %k, %v mask(causal) : !t, !t, !t -> !t, tensor<1x1x18xf32>
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      : !t, !t, !t, !t, !t, tensor<1x1x18xf32> -> !t, !t, !t
  return %dq, %dk, %dv : !t, !t, !t
}

// A window that most queries see nothing through: their gradients are 0.
// MASKED: dq        {{.*}}){{$}}
// MASKED-NEXT: dk   {{.*}}){{$}}
// MASKED-NEXT: dv   {{.*}}){{$}}
!r = memref<1x1x40x16xbf16>
!c = memref<1x1x4x16xbf16>
func.func @masked(%do: !r, %q: !r, %k: !c, %v: !c, %o: !r,
                  %lse: memref<1x1x40xf32>, %dq: !r, %dk: !c, %dv: !c) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<1, 0>)
      outs(%dq, %dk, %dv : !r, !c, !c) : !r, !r, !c, !c, !r, memref<1x1x40xf32>
  return
}

// SINGLE: problem   gradients, f32 as tf32x3
// SINGLE: dq        {{.*}} (limit 2e-05){{$}}
// SINGLE-NEXT: dk   {{.*}} (limit 2e-05){{$}}
// SINGLE-NEXT: dv   {{.*}} (limit 2e-05){{$}}
!f = memref<1x1x20x16xf32>
func.func @single(%do: !f, %q: !f, %k: !f, %v: !f, %o: !f,
                  %lse: memref<1x1x20xf32>, %dq: !f, %dk: !f, %dv: !f) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : !f, !f, !f) : !f, !f, !f, !f, !f, memref<1x1x20xf32>
  return
}

// LOW: problem   bf16, {{.*}}, LSE in two words
// LOW: problem   gradients, bf16, {{.*}}, LSE in two words
// LOW: lse       1x2x40xf32 {{.*}}){{$}}
// LOW: lse_low   1x2x40xf32 {{.*}}){{$}}
// LOW: dv        1x2x24x16xbf16 {{.*}}){{$}}
!w = memref<1x2x40x16xbf16>
!x = memref<1x2x24x16xbf16>
!y = memref<1x2x40xf32>
func.func @low_word(%q: !w, %k: !x, %v: !x, %do: !w, %o: !w, %lse: !y, %low: !y,
                    %dq: !w, %dk: !x, %dv: !x) {
  attn.forward %q, %k, %v mask(causal_bottom_right) scale(3.0)
      outs(%o, %lse, %low : !w, !y, !y) : !w, !x, !x
  attn.backward %do, %q, %k, %v, %o, %lse lse_low(%low : !y) mask(causal_bottom_right) scale(3.0)
      outs(%dq, %dk, %dv : !w, !x, !x) : !w, !w, !x, !x, !w, !y
  return
}

// What it is given belongs to the LSE that it is given.
// LOW-IN: problem   gradients, bf16, {{.*}}, LSE in two words
// LOW-IN: dv        1x2x24x16xbf16 {{.*}}){{$}}
func.func @low_word_in(%q: !w, %k: !x, %v: !x, %do: !w, %o: !w, %lse: !y, %low: !y,
                       %dq: !w, %dk: !x, %dv: !x) {
  attn.backward %do, %q, %k, %v, %o, %lse lse_low(%low : !y) mask(causal_bottom_right) scale(50.0)
      outs(%dq, %dk, %dv : !w, !x, !x) : !w, !w, !x, !x, !w, !y
  return
}
