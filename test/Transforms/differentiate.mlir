// RUN: attn-opt %s -attn-differentiate -split-input-file | FileCheck %s

// The function stays as it is; its gradients stand behind it.
// CHECK-LABEL: func.func @f(
// CHECK: %[[O:.*]] = attn.forward
// CHECK-NEXT: return %[[O]]
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x100x64xbf16>, %[[K:.*]]: tensor<2x2x60x64xbf16>, %[[V:.*]]: tensor<2x2x60x32xbf16>, %[[DO:.*]]: tensor<2x4x100x32xbf16>) -> (tensor<2x4x100x64xbf16>, tensor<2x2x60x64xbf16>, tensor<2x2x60x32xbf16>)
// CHECK-NEXT: %[[F:.*]]:3 = attn.forward %[[Q]], %[[K]], %[[V]] mask(causal) scale(2.500000e-01) {alignment = 8 : i64, schedule = #attn.schedule<flash, query = 64>} : {{.*}} -> tensor<2x4x100x32xbf16>, tensor<2x4x100xf32>, tensor<2x4x100xf32>
// CHECK-NEXT: %[[G:.*]]:3 = attn.backward %[[DO]], %[[Q]], %[[K]], %[[V]], %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<2x4x100xf32>) mask(causal) scale(2.500000e-01) {alignment = 8 : i64} :
// CHECK-NEXT: return %[[G]]#0, %[[G]]#1, %[[G]]#2
func.func @f(%q: tensor<2x4x100x64xbf16>, %k: tensor<2x2x60x64xbf16>, %v: tensor<2x2x60x32xbf16>) -> tensor<2x4x100x32xbf16> {
  %o = attn.forward %q, %k, %v mask(causal) scale(0.25) {alignment = 8 : i64, schedule = #attn.schedule<flash, query = 64>}
      : tensor<2x4x100x64xbf16>, tensor<2x2x60x64xbf16>, tensor<2x2x60x32xbf16> -> tensor<2x4x100x32xbf16>
  return %o : tensor<2x4x100x32xbf16>
}

// Nothing to differentiate, nothing added.
// CHECK-LABEL: func.func @other(
// CHECK-NOT: _vjp
func.func @other(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

// A gradient of LSE goes in beside that of O; one tensor as K and V gets both
// gradients; an unused tensor gets zeros, and what is no tensor of numbers gets
// none.
!q = tensor<1x4x8x64xf32>
!lse = tensor<1x4x8xf32>
// CHECK-LABEL: func.func private @both_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %{{.*}}: index, %[[UNUSED:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}}, %[[DLSE:[a-z0-9]*]]: tensor<1x4x8xf32>) -> (tensor<1x4x8x64xf32>, tensor<1x4x8x64xf32>, tensor<3xf16>)
// CHECK: %[[F:.*]]:3 = attn.forward %[[Q]], %[[K]], %[[K]] precision(tf32)
// CHECK: %[[G:.*]]:3 = attn.backward %[[DO]], %[[Q]], %[[K]], %[[K]], %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<1x4x8xf32>) dlse(%[[DLSE]] : tensor<1x4x8xf32>) precision(tf32)
// CHECK: %[[SUM:.*]] = arith.addf %[[G]]#1, %[[G]]#2
// CHECK: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<3xf16>
// CHECK: return %[[G]]#0, %[[SUM]], %[[ZEROS]]
func.func private @both(%q: !q, %k: !q, %n: index, %unused: tensor<3xf16>) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k precision(tf32) : !q, !q, !q -> !q, !lse
  return %o, %lse : !q, !lse
}

// Where only LSE is a result, the gradient of O is zero.
// CHECK-LABEL: func.func @only_lse_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[DLSE:[a-z0-9]*]]: tensor<1x4x8xf32>)
// CHECK: %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : tensor<1x4x8x64xf32>
// CHECK: attn.backward %[[ZEROS]], %[[Q]], {{.*}} dlse(%[[DLSE]] :
func.func @only_lse(%q: !q) -> !lse {
  %o, %lse = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse
  return %lse : !lse
}

// -----

// The chain rule, last op first: the gradient of the first output is that of
// the second op's Q, and K is used by both.
!q = tensor<?x4x?x64xbf16>
// CHECK-LABEL: func.func @chain_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[D:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}})
// CHECK: %[[F:.*]]:3 = attn.forward %[[Q]], %[[K]], %[[K]] :
// CHECK: %[[S:.*]]:3 = attn.forward %[[F]]#0, %[[Q]], %[[K]] mask(causal) :
// CHECK: %[[GS:.*]]:3 = attn.backward %[[DO]], %[[F]]#0, %[[Q]], %[[K]], %[[S]]#0, %[[S]]#1 lse_low(%[[S]]#2 : tensor<?x4x?xf32>) mask(causal)
// CHECK: %[[GF:.*]]:3 = attn.backward %[[GS]]#0, %[[Q]], %[[K]], %[[K]], %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<?x4x?xf32>) :
// CHECK: %[[DQ:.*]] = arith.addf %[[GS]]#1, %[[GF]]#0
// CHECK: %[[DK:.*]] = arith.addf %[[GS]]#2, %[[GF]]#1
// CHECK: %[[DKV:.*]] = arith.addf %[[DK]], %[[GF]]#2
// A destination is not read, so it gets zeros.
// CHECK: %[[ZEROS:.*]] = tensor.splat %{{.*}}[%{{.*}}, %{{.*}}] : tensor<?x4x?x64xbf16>
// CHECK: return %[[DQ]], %[[DKV]], %[[ZEROS]]
func.func @chain(%q: !q, %k: !q, %destination: !q) -> !q {
  %a = attn.forward %q, %k, %k outs(%destination : !q) : !q, !q, !q -> !q
  %o = attn.forward %a, %q, %k mask(causal) : !q, !q, !q -> !q
  return %o : !q
}

// An output that is both a result and used gets both gradients, and so does an
// argument that is returned.
// CHECK-LABEL: func.func @returned_twice_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[DA:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}}, %[[DQ:[a-z0-9]*]]: {{[^,]*}})
// CHECK: %[[GO:.*]]:3 = attn.backward %[[DO]],
// CHECK: %[[SUM:.*]] = arith.addf %[[DA]], %[[GO]]#0
// CHECK: arith.addf %[[DQ]], %[[GO]]#1
// CHECK: attn.backward %[[SUM]], %[[Q]],
func.func @returned_twice(%q: !q) -> (!q, !q, !q) {
  %a = attn.forward %q, %q, %q : !q, !q, !q -> !q
  %o = attn.forward %a, %q, %q : !q, !q, !q -> !q
  return %a, %o, %q : !q, !q, !q
}

// -----

// What depends on no argument has no gradient, and what no gradient needs is
// not computed.
!q = tensor<1x1x8x8xf16>
// CHECK-LABEL: func.func @constants_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}})
// CHECK-NEXT: %[[K:.*]] = arith.constant dense<1.0
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[K]]
// CHECK-NEXT: attn.forward %[[Q]], %[[N]], %[[N]]
// CHECK-NEXT: %[[G:.*]]:3 = attn.backward %[[DO]], %[[Q]], %[[N]], %[[N]],
// CHECK-NEXT: return %[[G]]#0
func.func @constants(%q: !q) -> !q {
  %k = arith.constant dense<1.0> : !q
  %n = arith.negf %k : !q
  %unused = attn.forward %k, %q, %q : !q, !q, !q -> !q
  %squared = arith.mulf %q, %q : !q
  %o = attn.forward %q, %n, %n : !q, !q, !q -> !q
  return %o : !q
}

// -----

// Weights that are kept go to the gradients.
!q = tensor<1x4x300x64xbf16>
!lse = tensor<1x4x300xf32>
!w = tensor<1x4x300x300xbf16>
!r = tensor<1x4x4x300xf32>
// CHECK-LABEL: func.func @kept_vjp(
// CHECK: %[[F:.*]]:5 = attn.forward
// CHECK: attn.backward %{{.*}}, %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<1x4x300xf32>) weights(%[[F]]#3, %[[F]]#4 : tensor<1x4x300x300xbf16>, tensor<1x4x4x300xf32>) :
func.func @kept(%q: !q) -> !q {
  %o, %lse, %w, %r = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !w, !r
  return %o : !q
}

// -----

// LSE is its high word; its low word has no gradient.
!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
// CHECK-LABEL: func.func @low_word_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[DLSE:[a-z0-9]*]]: {{[^,]*}}, %{{[a-z0-9]*}}: tensor<1x1x8xf32>)
// CHECK: %[[F:.*]]:3 = attn.forward
// CHECK: attn.backward {{.*}} lse_low(%[[F]]#2 : tensor<1x1x8xf32>) dlse(%[[DLSE]] : tensor<1x1x8xf32>)
func.func @low_word(%q: !q) -> (!lse, !lse) {
  %o, %lse, %low = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !lse
  return %lse, %low : !lse, !lse
}

// -----

// Each part of a merge gets gradients of its own, from O and LSE of the merge;
// a part that depends on no argument gets none.
!q = tensor<1x2x8x16xbf16>
!l = tensor<1x2x8xf32>
// CHECK-LABEL: func.func @split_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K0:[a-z0-9]*]]: {{[^,]*}}, %[[K1:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}}) ->
// CHECK: %[[A:.*]]:3 = attn.forward %[[Q]], %[[K0]], %[[K0]]
// CHECK: %[[B:.*]]:3 = attn.forward %[[Q]], %[[K1]], %[[K1]]
// CHECK: %[[M:.*]]:2 = attn.merge (%[[A]]#0, %[[A]]#1), (%[[B]]#0, %[[B]]#1), (%{{.*}}, %{{.*}}) {alignment = 8 : i64} :
// CHECK: %[[DA:.*]]:2 = attn.merge_backward %[[DO]], %[[M]]#0, %[[M]]#1, %[[A]]#0, %[[A]]#1 {alignment = 8 : i64} :
// CHECK: %[[DB:.*]]:2 = attn.merge_backward %[[DO]], %[[M]]#0, %[[M]]#1, %[[B]]#0, %[[B]]#1
// CHECK-NOT: attn.merge_backward
// CHECK: attn.backward %[[DB]]#0, %[[Q]], %[[K1]], %[[K1]], %[[B]]#0, %[[B]]#1 lse_low(%[[B]]#2 : tensor<1x2x8xf32>) dlse(%[[DB]]#1 : tensor<1x2x8xf32>)
// CHECK: attn.backward %[[DA]]#0, %[[Q]], %[[K0]], %[[K0]], %[[A]]#0, %[[A]]#1 lse_low(%[[A]]#2 : tensor<1x2x8xf32>) dlse(%[[DA]]#1 : tensor<1x2x8xf32>)
func.func @split(%q: !q, %k0: !q, %k1: !q) -> !q {
  %o0, %l0 = attn.forward %q, %k0, %k0 : !q, !q, !q -> !q, !l
  %o1, %l1 = attn.forward %q, %k1, %k1 : !q, !q, !q -> !q, !l
  %c = arith.constant dense<1.0> : !q
  %cl = arith.constant dense<1.0> : !l
  %o = attn.merge (%o0, %l0), (%o1, %l1), (%c, %cl) {alignment = 8} : (!q, !l), (!q, !l), (!q, !l) -> !q
  return %o : !q
}

// -----

// Sequences have gradients of their own; LSE of theirs is [heads, rows].
!q = tensor<?x4x16xbf16>
!k = tensor<?x2x16xbf16>
!n = tensor<5xi32>
// CHECK-LABEL: func.func @sequences_vjp(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^,]*}}, %[[K:[a-z0-9]*]]: {{[^,]*}}, %[[CQ:[a-z0-9]*]]: {{[^,]*}}, %[[CK:[a-z0-9]*]]: {{[^,]*}}, %[[DO:[a-z0-9]*]]: {{[^,]*}}) ->
// CHECK: %[[F:.*]]:3 = attn.forward %[[Q]], %[[K]], %[[K]] {{.*}}-> tensor<?x4x16xbf16>, tensor<4x?xf32>, tensor<4x?xf32>
// CHECK: attn.backward %[[DO]], %[[Q]], %[[K]], %[[K]], %[[F]]#0, %[[F]]#1 lse_low(%[[F]]#2 : tensor<4x?xf32>) mask(causal_bottom_right) ragged(%[[CQ]], %[[CK]], longest 9, 9 : tensor<5xi32>, tensor<5xi32>)
func.func @sequences(%q: !q, %k: !k, %cu_q: !n, %cu_k: !n) -> !q {
  %o = attn.forward %q, %k, %k mask(causal_bottom_right) ragged(%cu_q, %cu_k, longest 9, 9 : !n, !n) : !q, !k, !k -> !q
  return %o : !q
}
