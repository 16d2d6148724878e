// Scales of operands at run time: what is printed is parsed again.
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

!q = tensor<2x8x3x64xf8E4M3FN>
!k = tensor<2x2x400x64xf8E4M3FN>
!o = tensor<2x8x3x64xbf16>
!one = tensor<1x1xf32>
!each = tensor<2x2xf32>

// CHECK-LABEL: @all
// CHECK: attn.forward %{{.*}} scales(q %[[Q:.*]], k %[[K:.*]], v %[[V:.*]] : tensor<1x1xf32>, tensor<2x2xf32>, tensor<2x1xf32>) : tensor<2x8x3x64xf8E4M3FN>
func.func @all(%q: !q, %k: !k, %sq: !one, %sk: !each, %sv: tensor<2x1xf32>) -> !o {
  %o = attn.forward %q, %k, %k scales(v %sv, q %sq, k %sk : tensor<2x1xf32>, !one, !each) : !q, !k, !k -> !o
  return %o : !o
}

// Each is optional, of any type of operands, and beside other clauses.
// CHECK-LABEL: @some
// CHECK: attn.forward %{{.*}} sinks(%{{.*}} : tensor<8xf32>) lengths(k %{{.*}} : tensor<2xi32>) scales(v %{{.*}} : tensor<?x?xf32>) : tensor<2x8x3x64xbf16>
func.func @some(%q: !o, %k: tensor<2x2x400x64xbf16>, %s: tensor<8xf32>, %n: tensor<2xi32>, %sv: tensor<?x?xf32>) -> !o {
  %o = attn.forward %q, %k, %k scales(v %sv : tensor<?x?xf32>) lengths(k %n : tensor<2xi32>) sinks(%s : tensor<8xf32>)
      : !o, tensor<2x2x400x64xbf16>, tensor<2x2x400x64xbf16> -> !o
  return %o : !o
}

// One value may scale several.
// CHECK-LABEL: @same
// CHECK: scales(q %[[S:.*]], k %[[S]] : tensor<1x1xf32>, tensor<1x1xf32>)
func.func @same(%q: !q, %k: !k, %s: !one) -> !o {
  %o = attn.forward %q, %k, %k scales(k %s, q %s : !one, !one) : !q, !k, !k -> !o
  return %o : !o
}
