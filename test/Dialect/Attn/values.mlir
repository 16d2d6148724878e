// V as the first columns of K: what is printed is parsed again.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
!o = tensor<2x8x3x40xbf16>

// CHECK-LABEL: @first
// CHECK: attn.forward %{{[^,]*}}, %{{[^ ]*}} mask(causal_bottom_right) values(keys, first 40) : tensor<2x8x3x64xbf16>, tensor<2x1x400x64xbf16> -> tensor<2x8x3x40xbf16>
func.func @first(%q: !q, %k: !k) -> !o {
  %o = attn.forward %q, %k values(keys, first 40) mask(causal_bottom_right) : !q, !k -> !o
  return %o : !o
}

// Beside other clauses, and all columns.
// CHECK-LABEL: @beside
// CHECK: softcap(3.000000e+01) values(keys, first 64) lengths(k %{{.*}} : tensor<2xi32>) : tensor<2x8x3x64xbf16>, tensor<2x1x400x64xbf16> -> tensor<2x8x3x64xbf16>
func.func @beside(%q: !q, %k: !k, %n: tensor<2xi32>) -> !q {
  %o = attn.forward %q, %k softcap(30.0) lengths(k %n : tensor<2xi32>) values(keys, first 64) : !q, !k -> !q
  return %o : !q
}

// A value that is given twice is two arrays.
// CHECK-LABEL: @twice
// CHECK: attn.forward %[[Q:.*]], %[[K:.*]], %[[K]] :
func.func @twice(%q: !q, %k: !k) -> !q {
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}

// Rows of memory keep their strides.
// CHECK-LABEL: @memory
// CHECK: values(keys, first 40) outs(%{{.*}} : memref<2x8x3x40xbf16>)
func.func @memory(%q: memref<2x8x3x64xbf16>, %k: memref<2x1x400x64xbf16>, %o: memref<2x8x3x40xbf16>) {
  attn.forward %q, %k values(keys, first 40) outs(%o : memref<2x8x3x40xbf16>) : memref<2x8x3x64xbf16>, memref<2x1x400x64xbf16>
  return
}
