// Passes carry clauses, or refuse them: none is ever lost.
// RUN: attn-opt %s -split-input-file -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFER
// RUN: attn-opt %s -split-input-file -canonicalize | FileCheck %s --check-prefix=CANONICAL
// RUN: attn-opt %s -split-input-file -cse -canonicalize -loop-invariant-code-motion | FileCheck %s --check-prefix=CANONICAL
// RUN: attn-opt %s -split-input-file -attn-differentiate | FileCheck %s --check-prefix=GRADIENT

// Regions get the buffers of what they capture.
// BUFFER-LABEL: @captures(
// BUFFER-SAME: %[[Q:.*]]: memref<1x2x64x16xf16>, %[[X:.*]]: memref<?xi32>, %[[S:.*]]: memref<2xf32>, %[[T:.*]]: memref<2xf32>)
// BUFFER: attn.forward %[[Q]], %[[Q]], %[[Q]] captures(%[[S]] : memref<2xf32>) score (%[[Z:.*]]: f32, {{.*}}, %[[Y:.*]]) {
// BUFFER-NEXT: attn.read %[[Y]][%{{.*}}] : memref<2xf32>
// BUFFER: } document(%[[X]] : memref<?xi32>) sinks(%[[T]] : memref<2xf32>) outs(%{{.*}}, %{{.*}} : memref<1x2x64x16xf16>, memref<1x2x64xf32>) : memref

// An LSE that nobody uses goes, and clauses stay.
// CANONICAL-LABEL: @captures(
// CANONICAL: = attn.forward {{.*}} captures(%arg2 : tensor<2xf32>) score {{.*}} {
// CANONICAL: } document(%arg1 : tensor<?xi32>) sinks(%arg3 : tensor<2xf32>) : {{.*}} -> tensor<1x2x64x16xf16>{{$}}

// Gradients of what is captured are asked for, and of sinks; integers have none.
// GRADIENT-LABEL: func.func @captures_vjp(
// GRADIENT: %[[F:.*]]:3 = attn.forward {{.*}} captures({{.*}}) score
// GRADIENT: } document({{.*}}) sinks(
// GRADIENT: %[[G:.*]]:5 = attn.backward {{.*}} lse_low(%[[F]]#2 : {{.*}}) captures(%[[A:.*]] : tensor<2xf32>) score
// GRADIENT: } document({{.*}}) sinks(%[[B:.*]] : tensor<2xf32>) gradients(%[[A]], %[[B]]) : {{.*}} -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>, tensor<2xf32>
// GRADIENT: return %{{.*}}, %[[G]]#3, %[[G]]#4
!q = tensor<1x2x64x16xf16>
func.func @captures(%q: !q, %ids: tensor<?xi32>, %s: tensor<2xf32>, %t: tensor<2xf32>) -> !q {
  %o, %lse = attn.forward %q, %q, %q captures(%s : tensor<2xf32>)
    score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {
      %a = attn.read %x[%h] : tensor<2xf32>
      %m = arith.mulf %z, %a : f32
      attn.yield %m : f32
    } document(%ids : tensor<?xi32>) sinks(%t : tensor<2xf32>)
    : !q, !q, !q -> !q, tensor<1x2x64xf32>
  return %o : !q
}

// -----

// Short forms stay short: constants that are moved and shared change nothing.
// BUFFER-LABEL: @short(
// BUFFER: attn.forward {{.*}} softcap(2.000000e+01) alibi(%{{.*}} : memref<2xf32>) bias(%{{.*}} : memref<1x1x64x64xbf16>) blocks(partial %{{.*}}, %{{.*}}, size 64 x 64 : memref<1x1x1xi32>, memref<1x1x1x1xi32>) outs(
// CANONICAL-LABEL: @short(
// CANONICAL: attn.forward {{.*}} softcap(2.000000e+01) alibi(%{{.*}} : tensor<2xf32>) bias(%{{.*}} : tensor<1x1x64x64xbf16>) blocks(
// GRADIENT-LABEL: func.func @short_vjp(
// GRADIENT: attn.backward {{.*}} softcap(2.000000e+01) alibi(%[[A:.*]] : tensor<2xf32>) bias(%[[B:.*]] : tensor<1x1x64x64xbf16>) blocks({{.*}} gradients(%[[A]], %[[B]]) : {{.*}}, tensor<2xf32>, tensor<1x1x64x64xf32>
// GRADIENT: arith.truncf {{.*}} : tensor<1x1x64x64xf32> to tensor<1x1x64x64xbf16>
!q = tensor<1x2x64x16xf16>
func.func @short(%q: !q, %s: tensor<2xf32>, %x: tensor<1x1x64x64xbf16>, %c: tensor<1x1x1xi32>, %n: tensor<1x1x1x1xi32>) -> !q {
  %o = attn.forward %q, %q, %q softcap(20.0) alibi(%s : tensor<2xf32>) bias(%x : tensor<1x1x64x64xbf16>)
    blocks(partial %c, %n, size 64 x 64 : tensor<1x1x1xi32>, tensor<1x1x1x1xi32>)
    : !q, !q, !q -> !q
  return %o : !q
}

// -----

// Gradients that nobody uses are not asked for; destinations are written.
// CANONICAL-LABEL: @gradients(
// CANONICAL: attn.backward {{.*}} alibi(%[[S:.*]] : tensor<2xf32>) sinks(%[[T:.*]] : tensor<2xf32>) gradients(%[[T]]) : {{.*}} -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<2xf32>{{$}}
// CANONICAL: attn.backward {{.*}} alibi({{.*}}) : {{.*}} -> tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>, tensor<1x2x64x16xf16>{{$}}
// BUFFER-LABEL: @gradients(
// BUFFER: attn.backward {{.*}} gradients(%{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<1x2x64x16xf16>, memref<1x2x64x16xf16>, memref<1x2x64x16xf16>, memref<2xf32>, memref<2xf32>)
// GRADIENT-LABEL: @gradients(
!q = tensor<1x2x64x16xf16>
!lse = tensor<1x2x64xf32>
!g = tensor<2xf32>
func.func @gradients(%q: !q, %lse: !lse, %s: !g, %t: !g) -> (!q, !g, !q) {
  %0:5 = attn.backward %q, %q, %q, %q, %q, %lse alibi(%s : !g) sinks(%t : !g) gradients(%s, %t)
    : !q, !q, !q, !q, !q, !lse -> !q, !q, !q, !g, !g
  %1:4 = attn.backward %q, %q, %q, %q, %q, %lse alibi(%s : !g) gradients(%s)
    : !q, !q, !q, !q, !q, !lse -> !q, !q, !q, !g
  return %0#0, %0#4, %1#0 : !q, !g, !q
}
