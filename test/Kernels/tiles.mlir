// What upstream's tiling makes of attention is the same attention, against fp64.
// RUN: attn-opt %s --transform-interpreter -o %t
// RUN: attn-run %t --on interpreter --function heads --reference causal --guard | FileCheck %s
// RUN: attn-run %t --on interpreter --function queries --reference all --guard --machine a100_80g | FileCheck %s
// RUN: attn-run %t --on interpreter --function keys --reference all --guard | FileCheck %s --check-prefixes=CHECK,MERGED
// RUN: attn-run %t --on interpreter --function more_parts_than_keys --reference few_keys --guard | FileCheck %s
// RUN: attn-run %t --on interpreter --function gradients --reference all_gradients --guard | FileCheck %s
// CHECK-NOT: WRONG
// MERGED: kernel    attn_kernels::merge_3_bf16_32_lse: 128 threads
// CHECK: moved

// No tile is copied: each is computed where it belongs.
// RUN: attn-opt %t -attn-to-tile | FileCheck %s --check-prefix=COPIES
// COPIES-NOT: memref.copy

!q = tensor<2x4x70x32xbf16>
!k = tensor<2x2x150x32xbf16>
!l = tensor<2x4x70xf32>
func.func @causal(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v mask(causal) : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}
func.func @all(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}
func.func @heads(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v mask(causal) : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}
func.func @queries(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}
func.func @keys(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}

// Of 5 keys for 4 threads the last has none.
!n = tensor<1x1x9x16xf16>
!f = tensor<1x1x5x16xf16>
func.func @few_keys(%q: !n, %k: !f, %v: !f) -> !n {
  %o = attn.forward %q, %k, %v : !n, !f, !f -> !n
  return %o : !n
}
func.func @more_parts_than_keys(%q: !n, %k: !f, %v: !f) -> !n {
  %o = attn.forward %q, %k, %v : !n, !f, !f -> !n
  return %o : !n
}

func.func @all_gradients(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %l mask(causal) : !q, !q, !k, !k, !q, !l -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
func.func @gradients(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %l mask(causal) : !q, !q, !k, !k, !q, !l -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}

!any = !transform.any_op
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !any {transform.readonly}) {
    %0 = transform.structured.match ops{["func.func"]} attributes {sym_name = "heads"} in %m : (!any) -> !any
    %1 = transform.structured.match ops{["attn.forward"]} in %0 : (!any) -> !any
    transform.structured.tile_using_forall %1 tile_sizes [1, 2] : (!any) -> (!any, !any)
    %2 = transform.structured.match ops{["func.func"]} attributes {sym_name = "queries"} in %m : (!any) -> !any
    %3 = transform.structured.match ops{["attn.forward"]} in %2 : (!any) -> !any
    transform.structured.tile_using_for %3 tile_sizes [0, 0, 48] : (!any) -> (!any, !any)
    %4 = transform.structured.match ops{["func.func"]} attributes {sym_name = "keys"} in %m : (!any) -> !any
    %5 = transform.structured.match ops{["attn.forward"]} in %4 : (!any) -> !any
    transform.structured.tile_reduction_using_forall %5 by tile_sizes = [0, 0, 0, 64] : (!any) -> (!any, !any, !any, !any, !any)
    %6 = transform.structured.match ops{["func.func"]} attributes {sym_name = "more_parts_than_keys"} in %m : (!any) -> !any
    %7 = transform.structured.match ops{["attn.forward"]} in %6 : (!any) -> !any
    transform.structured.tile_reduction_using_forall %7 by num_threads = [0, 0, 0, 4] tile_sizes = [] : (!any) -> (!any, !any, !any, !any, !any)
    %8 = transform.structured.match ops{["func.func"]} attributes {sym_name = "gradients"} in %m : (!any) -> !any
    %9 = transform.structured.match ops{["attn.backward"]} in %8 : (!any) -> !any
    transform.structured.tile_using_forall %9 tile_sizes [1, 2] : (!any) -> (!any, !any)
    transform.yield
  }
}
