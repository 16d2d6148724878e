// Query heads as rows, interpreted, against fp64 of the heads as they are.  The
// keys that are seen are read once for all heads of a group.
// RUN: attn-run --on interpreter --function window --batch 2 --keys 200 --guard %s | FileCheck %s --check-prefixes=WINDOW,SEES31
// RUN: attn-run --on interpreter --function window --batch 2 --keys 31 --guard %s | FileCheck %s --check-prefixes=WINDOW,SEES31
// RUN: attn-run --on interpreter --function window --batch 2 --keys 5 --guard %s | FileCheck %s --check-prefixes=WINDOW,SEES5
// RUN: attn-run --on interpreter --function window --batch 2 --keys 200 --machine a100_80g --inputs large --guard %s | FileCheck %s --check-prefixes=WINDOW
// RUN: attn-run --on interpreter --function first --guard %s | FileCheck %s --check-prefix=FIRST
// RUN: attn-run --on interpreter --function last --guard %s | FileCheck %s --check-prefix=LAST
// RUN: attn-run --on interpreter --function last --inputs nan-key --machine l4 --guard %s | FileCheck %s --check-prefix=LAST
// RUN: attn-run --on interpreter --function several --batch 2 --queries 7 --keys 90 --guard %s | FileCheck %s --check-prefix=SEVERAL
// RUN: attn-run --on interpreter --function several --batch 1 --queries 1 --keys 90 --machine a100_80g --guard %s | FileCheck %s --check-prefix=SEVERAL
// RUN: attn-run --on interpreter --function single --guard %s | FileCheck %s --check-prefix=SINGLE
// RUN: attn-run --on interpreter --function bytes --guard %s | FileCheck %s --check-prefix=BYTES
// RUN: attn-run --on interpreter --function gradients --machine a100_80g --guard %s | FileCheck %s --check-prefix=GRADIENTS
// RUN: attn-run --on interpreter --function gradients --machine h100_sxm --guard %s | FileCheck %s --check-prefix=GRADIENTS
// RUN: attn-run --on interpreter --function of_several --guard %s | FileCheck %s --check-prefix=OFSEVERAL
// RUN: attn-run --on interpreter --function hidden --guard %s | FileCheck %s --check-prefix=HIDDEN

// 2 x 2 key heads: K and V of 31 keys of 64 columns of 2 bytes, once; Q and O of
// 4 rows, and LSE.
// WINDOW:      o         2x8x1x64xf16 {{.*}}relative error {{.*}} (limit 6e-04){{$}}
// WINDOW-NEXT: lse       2x8x1xf32 {{.*}}max error {{.*}} (limit {{.*}}){{$}}
// SEES31-NEXT: moved     35904 bytes of global memory
// SEES5-NEXT:  moved     9280 bytes of global memory
!q = memref<?x8x1x64xf16, strided<[?, 72, 72, 1]>>
!k = memref<?x2x?x64xf16, strided<[?, 64, 128, 1]>>
!l = memref<?x8x1xf32, strided<[?, 3, 1]>>
func.func @window(%q: !q, %k: !k, %v: !k, %o: !q, %lse: !l) {
  attn.forward %q, %k, %v mask(window<30, 7>) outs(%o, %lse : !q, !l) {alignment = 16 : i64} : !q, !k, !k
  return
}

// The first key's V is the result, exactly.
// FIRST: o         2x8x1x64xbf16 {{.*}}max error 0.00e+00
// FIRST: moved     5120 bytes of global memory
!q_first = tensor<2x8x1x64xbf16>
!k_first = tensor<2x2x77x64xbf16>
func.func @first(%q: !q_first, %k: !k_first, %v: !k_first) -> !q_first {
  %o = attn.forward %q, %k, %v mask(causal) : !q_first, !k_first, !k_first -> !q_first
  return %o : !q_first
}

// LAST: o         1x6x1x40xbf16 {{.*}}relative error {{.*}} (limit 4e-03){{$}}
func.func @last(%q: memref<1x6x1x24xbf16>, %k: memref<1x2x133x24xbf16>, %v: memref<1x2x133x40xbf16>,
                %o: memref<1x6x1x40xbf16>, %lse: memref<1x6x1xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right) scale(0.2)
      outs(%o, %lse : memref<1x6x1x40xbf16>, memref<1x6x1xf32>)
      : memref<1x6x1x24xbf16>, memref<1x2x133x24xbf16>, memref<1x2x133x40xbf16>
  return
}

// SEVERAL: o         {{[12]}}x6x{{[17]}}x32xf16 {{.*}}(limit 6e-04){{$}}
// SEVERAL-NEXT: lse
func.func @several(%q: memref<?x6x?x32xf16>, %k: memref<?x2x?x32xf16>, %v: memref<?x2x?x32xf16>,
                   %o: memref<?x6x?x32xf16>, %lse: memref<?x6x?xf32>) {
  attn.forward %q, %k, %v outs(%o, %lse : memref<?x6x?x32xf16>, memref<?x6x?xf32>)
      : memref<?x6x?x32xf16>, memref<?x2x?x32xf16>, memref<?x2x?x32xf16>
  return
}

// SINGLE: o         1x4x1x48xf32 {{.*}}(limit 1e-05){{$}}
func.func @single(%q: memref<1x4x1x48xf32>, %k: memref<1x2x70x48xf32>, %o: memref<1x4x1x48xf32>) {
  attn.forward %q, %k, %k mask(window<40, 0>) outs(%o : memref<1x4x1x48xf32>)
      : memref<1x4x1x48xf32>, memref<1x2x70x48xf32>, memref<1x2x70x48xf32>
  return
}

// BYTES: o         1x8x1x64xbf16 {{.*}}(limit 5e-02){{$}}
func.func @bytes(%q: memref<1x8x1x64xf8E4M3FN>, %k: memref<1x2x200x64xf8E4M3FN>, %o: memref<1x8x1x64xbf16>) {
  attn.forward %q, %k, %k mask(window<150, 0>) outs(%o : memref<1x8x1x64xbf16>)
      : memref<1x8x1x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>
  return
}

// GRADIENTS:      dq        2x6x1x32xbf16 {{.*}}){{$}}
// GRADIENTS-NEXT: dk        2x2x90x32xbf16 {{.*}}){{$}}
// GRADIENTS-NEXT: dv        2x2x90x48xbf16 {{.*}}){{$}}
!dq = memref<2x6x1x32xbf16>
!do = memref<2x6x1x48xbf16>
!dk = memref<2x2x90x32xbf16>
!dv = memref<2x2x90x48xbf16>
!stat = memref<2x6x1xf32>
func.func @gradients(%do: !do, %q: !dq, %k: !dk, %v: !dv, %o: !do, %lse: !stat, %dlse: !stat,
                     %dq: !dq, %dk: !dk, %dv: !dv) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : !stat) mask(causal_bottom_right)
      outs(%dq, %dk, %dv : !dq, !dk, !dv) : !do, !dq, !dk, !dv, !do, !stat
  return
}

// OFSEVERAL:      dq        1x6x21x32xf16 {{.*}}){{$}}
// OFSEVERAL-NEXT: dk        1x2x50x32xf16 {{.*}}){{$}}
// OFSEVERAL-NEXT: dv        1x2x50x32xf16 {{.*}}){{$}}
!dqs = memref<1x6x21x32xf16>
!dks = memref<1x2x50x32xf16>
!lses = memref<1x6x21xf32>
func.func @of_several(%do: !dqs, %q: !dqs, %k: !dks, %v: !dks, %o: !dqs, %lse: !lses,
                      %dq: !dqs, %dk: !dks, %dv: !dks) {
  attn.backward %do, %q, %k, %v, %o, %lse outs(%dq, %dk, %dv : !dqs, !dks, !dks)
      : !dqs, !dqs, !dks, !dks, !dqs, !lses
  return
}

// Of keys that the mask hides, gradients of 0 are written.
// HIDDEN:      dq        1x6x1x32xf16 {{.*}}){{$}}
// HIDDEN-NEXT: dk        1x2x50x32xf16 {{.*}}){{$}}
// HIDDEN-NEXT: dv        1x2x50x32xf16 {{.*}}){{$}}
!dqh = memref<1x6x1x32xf16>
!lseh = memref<1x6x1xf32>
func.func @hidden(%do: !dqh, %q: !dqh, %k: !dks, %v: !dks, %o: !dqh, %lse: !lseh,
                  %dq: !dqh, %dk: !dks, %dv: !dks) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<20, 0>) outs(%dq, %dk, %dv : !dqh, !dks, !dks)
      : !dqh, !dqh, !dks, !dks, !dqh, !lseh
  return
}
