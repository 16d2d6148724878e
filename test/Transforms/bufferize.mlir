// Tensors become memrefs in every module, sums loops.
// RUN: attn-opt %s -attn-bufferize | FileCheck %s

// CHECK-LABEL: func.func @outer(
// CHECK-SAME: memref<1x2x64x64xbf16>
// CHECK: attn.forward {{.*}} outs(
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK: arith.addf {{.*}} : bf16
// CHECK-LABEL: module @nested
// CHECK: func.func @inner(
// CHECK-SAME: memref<1x2x64x64xbf16>
// CHECK: attn.forward {{.*}} outs(
// CHECK-LABEL: module @deeper
// CHECK: attn.forward {{.*}} outs(
// CHECK-NOT: tensor<
!t = tensor<1x2x64x64xbf16>
func.func @outer(%q: !t, %k: !t) -> !t {
  %o = attn.forward %q, %k, %k : !t, !t, !t -> !t
  return %o : !t
}
func.func @sum(%a: !t, %b: !t) -> !t {
  %s = arith.addf %a, %b : !t
  return %s : !t
}
module @nested {
  func.func @inner(%q: !t, %k: !t) -> !t {
    %o = attn.forward %q, %k, %k : !t, !t, !t -> !t
    return %o : !t
  }
  module @deeper {
    func.func @innermost(%q: !t) -> !t {
      %o = attn.forward %q, %q, %q : !t, !t, !t -> !t
      return %o : !t
    }
  }
}
