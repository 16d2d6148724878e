// Gradients are attention like any other: they bufferize with their function.
// RUN: attn-opt %s -attn-differentiate -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// CHECK-LABEL: func.func @bufferized_vjp(
// CHECK: attn.forward {{.*}} outs(%[[O:[a-z0-9_]*]], %[[LSE:[a-z0-9_]*]], %[[LOW:[a-z0-9_]*]] :
// CHECK: attn.backward {{.*}}, %[[O]], %[[LSE]] lse_low(%[[LOW]] : memref<1x2x8xf32>) outs(
func.func @bufferized(%q: tensor<1x2x8x8xf16>, %k: tensor<1x1x8x8xf16>, %v: tensor<1x1x8x8xf16>) -> tensor<1x2x8x8xf16> {
  %o = attn.forward %q, %k, %v : tensor<1x2x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x2x8x8xf16>
  return %o : tensor<1x2x8x8xf16>
}
