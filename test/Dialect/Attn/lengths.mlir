// Where the device says that rows lie: what is printed is parsed again.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>

// CHECK-LABEL: @lengths
// CHECK: attn.forward %{{.*}} mask(causal_bottom_right) lengths(k %{{.*}} : tensor<2xi32>) : tensor<2x8x3x64xbf16>
func.func @lengths(%q: !q, %k: !k, %n: tensor<2xi32>) -> !q {
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<2xi32>) mask(causal_bottom_right) : !q, !k, !k -> !q
  return %o : !q
}

// Beside other clauses, with numbers of 64 bits of any count.
// CHECK-LABEL: @beside
// CHECK: attn.forward %{{.*}} softcap(3.000000e+01) sinks(%{{.*}} : tensor<8xf32>) lengths(k %{{.*}} : tensor<?xi64>) : tensor<2x8x3x64xbf16>
func.func @beside(%q: !q, %k: !k, %s: tensor<8xf32>, %n: tensor<?xi64>) -> !q {
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<?xi64>) sinks(%s : tensor<8xf32>) softcap(30.0) : !q, !k, !k -> !q
  return %o : !q
}

// As many queries as keys: causal counts from the first of both.
// CHECK-LABEL: @square
// CHECK: mask(causal) lengths(k
func.func @square(%q: tensor<2x8x400x64xbf16>, %k: !k, %n: tensor<2xi32>) -> tensor<2x8x400x64xbf16> {
  %o = attn.forward %q, %k, %k mask(causal) lengths(k %n : tensor<2xi32>) : tensor<2x8x400x64xbf16>, !k, !k -> tensor<2x8x400x64xbf16>
  return %o : tensor<2x8x400x64xbf16>
}

// A pool has any number of pages, and keys are those of the table.
// CHECK-LABEL: @pages
// CHECK: attn.forward %{{.*}} lengths(k %{{.*}} : tensor<2xi32>) pages(%{{.*}} : tensor<2x25xi32>) : tensor<2x8x3x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x32xbf16>
func.func @pages(%q: !q, %k: tensor<?x2x16x64xbf16>, %v: tensor<?x2x16x32xbf16>, %n: tensor<2xi32>, %t: tensor<2x25xi32>) -> tensor<2x8x3x32xbf16> {
  %o = attn.forward %q, %k, %v pages(%t : tensor<2x25xi32>) lengths(k %n : tensor<2xi32>) : !q, tensor<?x2x16x64xbf16>, tensor<?x2x16x32xbf16> -> tensor<2x8x3x32xbf16>
  return %o : tensor<2x8x3x32xbf16>
}
