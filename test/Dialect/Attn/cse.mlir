// The same attention twice is computed once; what may differ is not.
// RUN: attn-opt %s -cse | FileCheck %s

!t = tensor<1x2x64x64xf16>
!lse = tensor<1x2x64xf32>
!m = memref<1x2x64x64xf16>

// CHECK-LABEL: func.func @same(
// CHECK: %[[O:.*]] = attn.forward
// CHECK-NOT: attn.forward
// CHECK: return %[[O]], %[[O]]
func.func @same(%q: !t, %k: !t) -> (!t, !t) {
  %a = attn.forward %q, %k, %k mask(causal) scale(0.5) : !t, !t, !t -> !t
  %b = attn.forward %q, %k, %k mask(causal) scale(0.5) : !t, !t, !t -> !t
  return %a, %b : !t, !t
}

// Another mask, scale, schedule, operand or result.
// CHECK-LABEL: func.func @different(
// CHECK-COUNT-6: attn.forward
func.func @different(%q: !t, %k: !t) -> (!t, !t, !t, !t, !t, !t) {
  %a = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
  %b = attn.forward %q, %k, %k : !t, !t, !t -> !t
  %c = attn.forward %q, %k, %k mask(causal) scale(0.5) : !t, !t, !t -> !t
  %d = attn.forward %q, %k, %k mask(causal) {schedule = #attn.schedule<flash, query = 64>} : !t, !t, !t -> !t
  %e = attn.forward %k, %q, %k mask(causal) : !t, !t, !t -> !t
  %f, %lse = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t, !lse
  return %a, %b, %c, %d, %e, %f : !t, !t, !t, !t, !t, !t
}

// CHECK-LABEL: func.func @gradients(
// CHECK: %[[D:.*]]:3 = attn.backward
// CHECK-NOT: attn.backward
// CHECK: return %[[D]]#0, %[[D]]#1
func.func @gradients(%q: !t, %lse: !lse) -> (!t, !t) {
  %a:3 = attn.backward %q, %q, %q, %q, %q, %lse : !t, !t, !t, !t, !t, !lse -> !t, !t, !t
  %b:3 = attn.backward %q, %q, %q, %q, %q, %lse : !t, !t, !t, !t, !t, !lse -> !t, !t, !t
  return %a#0, %b#1 : !t, !t
}

// Between two of the same on memrefs the inputs may have changed.
// CHECK-LABEL: func.func @buffers(
// CHECK-COUNT-2: attn.forward
func.func @buffers(%q: !m, %o: !m) {
  attn.forward %q, %q, %q outs(%o : !m) : !m, !m, !m
  attn.forward %q, %q, %q outs(%o : !m) : !m, !m, !m
  return
}
