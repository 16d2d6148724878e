// Parts made whole, on ragged rows and odd views, against fp64.  Inputs have
// rows of which some parts, or all, have seen nothing; those hold NaN.
// RUN: attn-run %s --on interpreter --function parts --queries 100 --guard | FileCheck %s --check-prefixes=CHECK,PARTS
// RUN: attn-run %s --on interpreter --function parts --queries 1 --guard --machine rtx_a6000 | FileCheck %s
// RUN: attn-run %s --on interpreter --function parts --queries 0 | FileCheck %s --check-prefix=EMPTY
// RUN: attn-run %s --on interpreter --function views --guard | FileCheck %s
// RUN: attn-run %s --on interpreter --function one --guard | FileCheck %s
// RUN: attn-run %s --on interpreter --function many --batch 2 --guard | FileCheck %s --check-prefixes=CHECK,MANY
// RUN: attn-run %s --on interpreter --function gradients --queries 70 --guard | FileCheck %s
// RUN: attn-run %s --on interpreter --function odd_gradients --guard | FileCheck %s
// CHECK-NOT: WRONG
// PARTS: problem   merge, bf16, parts bf16 f32, batch 2, heads 3, queries 100, head dim 72
// PARTS: kernel    attn_kernels::merge_2_bf16_72_of_f32_lse: 128 threads, 0 bytes
// PARTS: o         2x3x100x72xbf16 {{.*}} (limit 2e-03){{$}}
// PARTS: lse       2x3x100xf32     {{.*}} (limit 1e-06){{$}}
// MANY: kernel {{.*}}::merge_16_f32_8_of_f32_lse
// MANY: kernel {{.*}}::merge_3_f16_8_of_f32_lse
// CHECK: moved
// EMPTY: moved     0 bytes of global memory

!b = tensor<2x3x?x72xbf16>
!f = tensor<2x3x?x72xf32>
!l = tensor<2x3x?xf32>
func.func @parts(%o0: !b, %l0: !l, %o1: !f, %l1: !l) -> (!b, !l) {
  %o, %lse = attn.merge (%o0, %l0), (%o1, %l1) : (!b, !l), (!f, !l) -> !b, !l
  return %o, %lse : !b, !l
}

// Rows that begin at multiples of 2 bytes, [batch, rows, heads, d] in memory.
!part = memref<2x3x70x40xf16, strided<[12300, 41, 123, 1], offset: 3>>
!whole = memref<2x3x70x40xf16, strided<[12000, 40, 120, 1]>>
!lse = memref<2x3x70xf32>
func.func @views(%o0: !part, %l0: !lse, %o1: !part, %l1: !lse, %o2: !part, %l2: !lse, %o: !whole, %l: !lse) {
  attn.merge (%o0, %l0), (%o1, %l1), (%o2, %l2) outs(%o, %l : !whole, !lse) : (!part, !lse), (!part, !lse), (!part, !lse)
  return
}

func.func @one(%o0: memref<1x1x7x3xf32>, %l0: memref<1x1x7xf32>, %o: memref<1x1x7x3xf32>) {
  attn.merge (%o0, %l0) outs(%o : memref<1x1x7x3xf32>) : (memref<1x1x7x3xf32>, memref<1x1x7xf32>)
  return
}

// More than a kernel takes: 16 and 16 and 1 become 3.
!p = memref<?x1x9x8xf16>
!s = memref<?x1x9xf32>
func.func @many(%0: !p, %1: !p, %2: !p, %3: !p, %4: !p, %5: !p, %6: !p, %7: !p, %8: !p, %9: !p, %10: !p, %11: !p, %12: !p, %13: !p, %14: !p, %15: !p, %16: !p,
    %s0: !s, %s1: !s, %s2: !s, %s3: !s, %s4: !s, %s5: !s, %s6: !s, %o: !p, %l: !s) {
  attn.merge (%0, %s0), (%1, %s1), (%2, %s2), (%3, %s3), (%4, %s4), (%5, %s5), (%6, %s6), (%7, %s0), (%8, %s1), (%9, %s2), (%10, %s3), (%11, %s4), (%12, %s5), (%13, %s6), (%14, %s0), (%15, %s1),
      (%16, %s2), (%0, %s3), (%1, %s4), (%2, %s5), (%3, %s6), (%4, %s0), (%5, %s1), (%6, %s2), (%7, %s3), (%8, %s4), (%9, %s5), (%10, %s6), (%11, %s0), (%12, %s1), (%13, %s2), (%14, %s3), (%15, %s4) outs(%o, %l : !p, !s)
    : (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s),
      (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s), (!p, !s)
  return
}

func.func @gradients(%do: !b, %o: !b, %l: !l, %o0: !f, %l0: !l, %dl: !l) -> (!f, !l) {
  %do0, %dl0 = attn.merge_backward %do, %o, %l, %o0, %l0 dlse(%dl : !l) : !b, !b, !l, !f, !l -> !f, !l
  return %do0, %dl0 : !f, !l
}

func.func @odd_gradients(%do: !part, %o: !whole, %l: !lse, %o0: !part, %l0: !lse, %do0: !whole, %dl0: !lse) {
  attn.merge_backward %do, %o, %l, %o0, %l0 outs(%do0, %dl0 : !whole, !lse) : !part, !whole, !lse, !part, !lse
  return
}
