// Who allocates an array frees it, unless it gives it away.
// RUN: attn-opt %s -split-input-file -attn-bufferize -attn-deallocate-buffers | FileCheck %s

!t = tensor<1x2x64x64xbf16>

// CHECK-LABEL: func.func @two(
// CHECK: %[[A:.*]] = memref.alloc()
// CHECK: attn.forward {{.*}} outs(%[[A]] :
// CHECK: %[[B:.*]] = memref.alloc()
// CHECK: attn.forward %[[A]], {{.*}} outs(%[[B]] :
// CHECK: memref.dealloc %[[A]]
// CHECK-NOT: memref.dealloc
// CHECK: return %[[B]]
func.func @two(%q: !t, %k: !t) -> !t {
  %a = attn.forward %q, %k, %k : !t, !t, !t -> !t
  %b = attn.forward %a, %k, %k : !t, !t, !t -> !t
  return %b : !t
}

// A caller owns what it gets.
// CHECK-LABEL: func.func @caller(
// CHECK: %[[A:.*]] = call @two
// CHECK: %[[B:.*]] = call @two(%[[A]]
// CHECK: %[[BASE:[a-z0-9_]*]], {{.*}} = memref.extract_strided_metadata %[[A]]
// CHECK: scf.if
// CHECK-NEXT: memref.dealloc %[[BASE]]
// CHECK: return %[[B]]
func.func @caller(%q: !t) -> !t {
  %a = call @two(%q, %q) : (!t, !t) -> !t
  %b = call @two(%a, %q) : (!t, !t) -> !t
  return %b : !t
}

// Of a round's arrays one goes to the next round, which frees it: not the first
// one, which is the caller's.
// CHECK-LABEL: func.func @rounds(
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}, %[[OWNED:.*]] = %false)
// CHECK: %[[A:.*]] = memref.alloc()
// CHECK: attn.forward %[[X]],
// CHECK: scf.if %[[OWNED]]
// CHECK-NEXT: memref.dealloc
// CHECK: scf.yield %[[A]], %true
func.func @rounds(%q: !t, %k: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !t {
    %o = attn.forward %x, %k, %k : !t, !t, !t -> !t
    scf.yield %o : !t
  }
  return %last : !t
}

// A function without attention is left alone.
// CHECK-LABEL: func.func @other(
// CHECK: memref.alloc
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @other(%n: index) -> f32 {
  %a = memref.alloc(%n) : memref<?xf32>
  %v = memref.load %a[%n] : memref<?xf32>
  return %v : f32
}

// -----

// Who frees by itself is left alone, and so is what does unknown things.
!m = memref<1x2x64x64xbf16>

// CHECK-LABEL: func.func @frees(
// CHECK: %[[A:.*]] = memref.alloc
// CHECK: memref.dealloc %[[A]]
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @frees(%q: !m, %o: !m) {
  %a = memref.alloc() : !m
  %b = memref.alloc() : !m
  attn.forward %q, %q, %q outs(%a : !m) : !m, !m, !m
  attn.forward %a, %q, %q outs(%b : !m) : !m, !m, !m
  attn.forward %b, %q, %q outs(%o : !m) : !m, !m, !m
  memref.dealloc %a : !m
  return
}

// CHECK-LABEL: func.func @allocates_elsewhere(
// CHECK: gpu.alloc
// CHECK-NOT: dealloc
// CHECK: return
func.func @allocates_elsewhere(%q: !m) -> !m {
  %a = gpu.alloc () : !m
  attn.forward %q, %q, %q outs(%a : !m) : !m, !m, !m
  %b = memref.alloc() : !m
  attn.forward %a, %q, %q outs(%b : !m) : !m, !m, !m
  return %b : !m
}
