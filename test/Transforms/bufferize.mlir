// Tensors become memrefs in every module, sums loops.
// RUN: attn-opt %s -attn-bufferize | FileCheck %s

// CHECK-LABEL: func.func @outer(
// CHECK-SAME: memref<1x2x64x64xbf16>
// CHECK: attn.forward {{.*}} outs(
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for
// CHECK: arith.addf {{.*}} : bf16
// Sizes that are known though a type does not say them.
// CHECK-LABEL: func.func @lists
// CHECK: memref.alloc() {{.*}} : memref<1x1x3xi32>
// CHECK: memref.alloc() {{.*}} : memref<1x1x3x11xi32>
// CHECK: attn.block_lists queries(%c300)
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
!open = tensor<1x1x?x?xi32>
func.func @lists() -> (tensor<1x1x?xi32>, !open, tensor<1x1x3xi32>, tensor<1x1x3x?xi32>) {
  %nq = arith.constant 300 : index
  %nk = arith.constant 700 : index
  %pc, %pi, %fc, %fi = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1)
      size 128 x 64 sees (%b, %h, %i, %j, %n, %m) {
        %r = arith.cmpi sge, %i, %j : index
        attn.yield %r : i1
      } : tensor<1x1x?xi32>, !open, tensor<1x1x3xi32>, tensor<1x1x3x?xi32>
  return %pc, %pi, %fc, %fi : tensor<1x1x?xi32>, !open, tensor<1x1x3xi32>, tensor<1x1x3x?xi32>
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
