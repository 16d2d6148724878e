// Attention that is the same in every round is computed before the loop.
// RUN: attn-opt %s -loop-invariant-code-motion | FileCheck %s

!t = tensor<1x2x64x64xf16>
!lse = tensor<1x2x64xf32>
!d = tensor<?x2x?x64xf16>
!m = memref<1x2x64x64xf16>

// The first op is, the second is not.
// CHECK-LABEL: func.func @layers(
// CHECK: %[[C:.*]]:2 = attn.forward %arg1, %arg1, %arg1
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] =
// CHECK-NEXT: attn.forward %[[X]], %[[C]]#0, %[[C]]#0
// CHECK-NEXT: scf.yield
func.func @layers(%q: !t, %k: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !t {
    %k2, %lse = attn.forward %k, %k, %k : !t, !t, !t -> !t, !lse
    %o = attn.forward %x, %k2, %k2 : !t, !t, !t -> !t
    scf.yield %o : !t
  }
  return %last : !t
}

// An op has no effect but its results, whatever its sizes are.
// CHECK-LABEL: func.func @unknown_sizes(
// CHECK: %[[O:.*]] = attn.forward
// CHECK: scf.for
// CHECK-NEXT: scf.yield %[[O]]
func.func @unknown_sizes(%q: !d, %k: !d, %v: !d, %n: index) -> !d {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !d {
    %o = attn.forward %q, %k, %v : !d, !d, !d -> !d
    scf.yield %o : !d
  }
  return %last : !d
}

// Somebody else may write the buffers.
// CHECK-LABEL: func.func @buffers(
// CHECK: scf.for
// CHECK-NEXT: attn.forward
func.func @buffers(%q: !m, %o: !m, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    attn.forward %q, %q, %q outs(%o : !m) : !m, !m, !m
  }
  return
}
