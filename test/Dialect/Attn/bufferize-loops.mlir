// Upstream's one-shot bufferization of loops over tensors, with functions and
// without.
// RUN: attn-opt %s -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops" | FileCheck %s
// RUN: attn-opt %s -one-shot-bufferize="allow-return-allocs-from-loops unknown-type-conversion=identity-layout-map" -verify-diagnostics -canonicalize | FileCheck %s --check-prefix=INSIDE
// An array that a loop makes is refused unless one asks for it, as upstream says;
// -attn-bufferize asks.
// RUN: not attn-opt %s -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: attn-opt %s -attn-bufferize | FileCheck %s --check-prefix=OURS
// REFUSED: error: Yield operand #0 is not equivalent to the corresponding iter bbArg

!t = tensor<1x2x64x64xf16>

// CHECK-LABEL: func.func @made(
// CHECK-SAME: %[[Q:.*]]: memref<1x2x64x64xf16>, %[[K:.*]]: memref<1x2x64x64xf16>
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %[[Q]]) -> (memref<1x2x64x64xf16>)
// CHECK-NEXT: %[[O:.*]] = memref.alloc()
// CHECK-NEXT: attn.forward %[[X]], %[[K]], %[[K]] outs(%[[O]] :
// CHECK-NEXT: scf.yield %[[O]]

// OURS-LABEL: func.func @made(
// OURS: scf.for {{.*}} iter_args(
// OURS-NEXT: %[[O:.*]] = memref.alloc()
// OURS-NEXT: attn.forward {{.*}} outs(%[[O]] :

// Arrays of the function's boundary stay tensors.
// INSIDE-LABEL: func.func @made(
// INSIDE-SAME: %[[Q:.*]]: tensor<1x2x64x64xf16>
// INSIDE: scf.for
// INSIDE: attn.forward {{.*}} outs({{.*}} : memref<1x2x64x64xf16>)
// INSIDE: bufferization.to_tensor
// INSIDE: return
func.func @made(%q: !t, %k: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !t {
    %o = attn.forward %x, %k, %k : !t, !t, !t -> !t
    scf.yield %o : !t
  }
  return %last : !t
}

// A destination that a loop carries is written in place in every round.
// CHECK-LABEL: func.func @carried(
// CHECK-SAME: %[[Q:[^:]*]]: memref{{.*}}, %[[TO:[^:]*]]: memref
// CHECK-NOT: memref.alloc
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %[[TO]])
// CHECK-NEXT: attn.forward %[[Q]], %[[Q]], %[[Q]] outs(%[[X]] :
// CHECK-NEXT: scf.yield %[[X]]
// CHECK: return

// OURS-LABEL: func.func @carried(
// OURS-SAME: %[[Q:[^:]*]]: memref{{.*}}, %[[TO:[^:]*]]: memref
// OURS: scf.for
// OURS-NEXT: attn.forward %[[Q]], %[[Q]], %[[Q]] outs(%[[TO]] :
// OURS: return %[[TO]]
func.func @carried(%q: !t, %to: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %to) -> !t {
    %o = attn.forward %q, %q, %q outs(%x : !t) : !t, !t, !t -> !t
    scf.yield %o : !t
  }
  return %last : !t
}

// Batch entries one after the other, in slices of the whole.
// CHECK-LABEL: func.func @slices(
// CHECK-SAME: %[[Q:[^:]*]]: memref<8x2x64x64xf16>, %[[TO:[^:]*]]: memref<8x2x64x64xf16>
// CHECK-NOT: memref.alloc
// CHECK: scf.for %[[I:[^ ]*]] = {{.*}} iter_args(%[[X:.*]] = %[[TO]])
// CHECK-DAG: %[[PART:.*]] = memref.subview %[[Q]][%[[I]], 0, 0, 0]
// CHECK-DAG: %[[PLACE:.*]] = memref.subview %[[X]][%[[I]], 0, 0, 0]
// CHECK: attn.forward %[[PART]], %[[PART]], %[[PART]] outs(%[[PLACE]] :
// CHECK: scf.yield %[[X]]

// OURS-LABEL: func.func @slices(
// OURS-COUNT-2: memref.subview
// OURS-NEXT: attn.forward
// OURS-NEXT: }
!all = tensor<8x2x64x64xf16>
func.func @slices(%q: !all, %to: !all) -> !all {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %to) -> !all {
    %part = tensor.extract_slice %q[%i, 0, 0, 0] [1, 2, 64, 64] [1, 1, 1, 1] : !all to !t
    %place = tensor.extract_slice %x[%i, 0, 0, 0] [1, 2, 64, 64] [1, 1, 1, 1] : !all to !t
    %o = attn.forward %part, %part, %part outs(%place : !t) : !t, !t, !t -> !t
    %next = tensor.insert_slice %o into %x[%i, 0, 0, 0] [1, 2, 64, 64] [1, 1, 1, 1] : !t into !all
    scf.yield %next : !all
  }
  return %last : !all
}
