// What nobody uses is not computed.
// RUN: attn-opt %s -canonicalize | FileCheck %s

!t = tensor<1x2x?x16xf16>
!lse = tensor<1x2x?xf32>

// CHECK-LABEL: @lse_unused(
// CHECK: %[[O:.*]] = attn.forward %arg0, %arg1, %arg1 mask(causal) scale(5.000000e-01) {alignment = 2 : i64} : tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16> -> tensor<1x2x?x16xf16>
// CHECK: return %[[O]]
func.func @lse_unused(%q: !t, %k: !t) -> !t {
  %o, %lse = attn.forward %q, %k, %k mask(causal) scale(0.5) {alignment = 2 : i64} : !t, !t, !t -> !t, !lse
  return %o : !t
}

// CHECK-LABEL: @destination_unused(
// CHECK: attn.forward %{{.*}} outs(%arg1 : tensor<1x2x?x16xf16>) : {{.*}} -> tensor<1x2x?x16xf16>{{$}}
func.func @destination_unused(%q: !t, %to: !t, %sums: !lse) -> !t {
  %o, %lse = attn.forward %q, %q, %q outs(%to, %sums : !t, !lse) : !t, !t, !t -> !t, !lse
  return %o : !t
}

// CHECK-LABEL: @output_unused(
// CHECK: %{{.*}}:2 = attn.forward
func.func @output_unused(%q: !t) -> !lse {
  %o, %lse = attn.forward %q, %q, %q : !t, !t, !t -> !t, !lse
  return %lse : !lse
}

!whole = tensor<1x1x300x8xf16>
!sums = tensor<1x1x300xf32>
!weights = tensor<1x1x300x300xf16>
!blocks = tensor<1x1x4x300xf32>
// CHECK-LABEL: @weights_unused(
// CHECK: %{{.*}}:2 = attn.forward
func.func @weights_unused(%q: !whole) -> (!whole, !sums) {
  %0:4 = attn.forward %q, %q, %q : !whole, !whole, !whole -> !whole, !sums, !weights, !blocks
  return %0#0, %0#1 : !whole, !sums
}

// One of both arrays of weights comes with the other.
// CHECK-LABEL: @half_of_the_weights_unused(
// CHECK: %{{.*}}:4 = attn.forward
func.func @half_of_the_weights_unused(%q: !whole) -> !weights {
  %0:4 = attn.forward %q, %q, %q : !whole, !whole, !whole -> !whole, !sums, !weights, !blocks
  return %0#2 : !weights
}

// A low word goes by itself or behind LSE, and from between others too.
// CHECK-LABEL: @low_word_unused(
// CHECK: %[[O:.*]]:2 = attn.forward
// CHECK: return %[[O]]#0, %[[O]]#1
func.func @low_word_unused(%q: !whole) -> (!whole, !sums) {
  %0:3 = attn.forward %q, %q, %q : !whole, !whole, !whole -> !whole, !sums, !sums
  return %0#0, %0#1 : !whole, !sums
}

// CHECK-LABEL: @low_word_of_weights_unused(
// CHECK: %[[O:.*]]:4 = attn.forward %{{.*}} outs(%arg1, %arg2, %arg4, %arg5 :
// CHECK: return %[[O]]#3, %[[O]]#2, %[[O]]#1
func.func @low_word_of_weights_unused(%q: !whole, %o: !whole, %l: !sums, %low: !sums, %w: !weights, %r: !blocks) -> (!blocks, !weights, !sums) {
  %0:5 = attn.forward %q, %q, %q outs(%o, %l, %low, %w, %r : !whole, !sums, !sums, !weights, !blocks) : !whole, !whole, !whole -> !whole, !sums, !sums, !weights, !blocks
  return %0#4, %0#3, %0#1 : !blocks, !weights, !sums
}

// CHECK-LABEL: @weights_behind_a_low_word_unused(
// CHECK: %[[O:.*]]:3 = attn.forward
// CHECK: return %[[O]]#2
func.func @weights_behind_a_low_word_unused(%q: !whole) -> !sums {
  %0:5 = attn.forward %q, %q, %q : !whole, !whole, !whole -> !whole, !sums, !sums, !weights, !blocks
  return %0#2 : !sums
}

// CHECK-LABEL: @nothing_used(
// CHECK-NEXT: return
func.func @nothing_used(%q: !t, %lse: !lse) {
  %o = attn.forward %q, %q, %q : !t, !t, !t -> !t
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %o, %lse : !t, !t, !t, !t, !t, !lse -> !t, !t, !t
  return
}

// All gradients come together.
// CHECK-LABEL: @one_gradient(
// CHECK: %{{.*}}:3 = attn.backward
func.func @one_gradient(%q: !t, %lse: !lse) -> !t {
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %q, %lse : !t, !t, !t, !t, !t, !lse -> !t, !t, !t
  return %dq : !t
}

// Buffers have readers that nobody sees here.
// CHECK-LABEL: @buffers(
// CHECK: attn.forward {{.*}} outs(%{{.*}}, %{{.*}} :
func.func @buffers(%q: memref<1x2x?x16xf16>, %o: memref<1x2x?x16xf16>, %lse: memref<1x2x?xf32>) {
  attn.forward %q, %q, %q outs(%o, %lse : memref<1x2x?x16xf16>, memref<1x2x?xf32>) : memref<1x2x?x16xf16>, memref<1x2x?x16xf16>, memref<1x2x?x16xf16>
  return
}
