// Transposes that only attention reads or writes become views.
// RUN: attn-opt %s -attn-fold-transposes -split-input-file | FileCheck %s

// CHECK-LABEL: @input_and_output
// CHECK-SAME: %[[Q:.*]]: memref<2x100x8x64xf16>
// CHECK-DAG: %[[QV:.*]] = memref.transpose %[[Q]] (d0, d1, d2, d3) -> (d0, d2, d1, d3) : {{.*}} to memref<2x8x100x64xf16, strided<[51200, 64, 512, 1]>>
// CHECK-DAG: %[[R:.*]] = memref.alloc() : memref<2x100x8x64xf16>
// CHECK-DAG: %[[RV:.*]] = memref.transpose %[[R]] (d0, d1, d2, d3) -> (d0, d2, d1, d3)
// CHECK: attn.forward %[[QV]], %[[QV]], %[[QV]] outs(%[[RV]]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[R]]
func.func @input_and_output(%q: memref<2x100x8x64xf16>) -> memref<2x100x8x64xf16> {
  %a = memref.alloc() : memref<2x8x100x64xf16>
  linalg.transpose ins(%q : memref<2x100x8x64xf16>) outs(%a : memref<2x8x100x64xf16>) permutation = [0, 2, 1, 3]
  %o = memref.alloc() : memref<2x8x100x64xf16>
  attn.forward %a, %a, %a outs(%o : memref<2x8x100x64xf16>) : memref<2x8x100x64xf16>, memref<2x8x100x64xf16>, memref<2x8x100x64xf16>
  %r = memref.alloc() : memref<2x100x8x64xf16>
  linalg.transpose ins(%o : memref<2x8x100x64xf16>) outs(%r : memref<2x100x8x64xf16>) permutation = [0, 2, 1, 3]
  return %r : memref<2x100x8x64xf16>
}

// -----

// Views of what is transposed follow it, and so do copies.
// CHECK-LABEL: @views
// CHECK-SAME: %[[Q:.*]]: memref<100x8x64xf16>
// CHECK: %[[T:.*]] = memref.transpose %[[Q]]
// CHECK: %[[E:.*]] = memref.expand_shape %[[T]] {{.*}} into memref<1x8x100x64xf16, strided<[512, 64, 512, 1]>>
// CHECK: %[[S:.*]] = memref.subview %[[E]]{{.*}} to memref<1x8x50x64xf16, strided<[512, 64, 512, 1]>>
// CHECK: attn.forward %[[E]], %[[S]], %[[S]]
// CHECK: memref.copy %[[T]]
func.func @views(%q: memref<100x8x64xf16>, %o: memref<1x8x100x64xf16>) -> memref<8x100x64xf16> {
  %a = memref.alloc() : memref<8x100x64xf16>
  linalg.transpose ins(%q : memref<100x8x64xf16>) outs(%a : memref<8x100x64xf16>) permutation = [1, 0, 2]
  %e = memref.expand_shape %a [[0, 1], [2], [3]] output_shape [1, 8, 100, 64] : memref<8x100x64xf16> into memref<1x8x100x64xf16>
  %s = memref.subview %e[0, 0, 0, 0] [1, 8, 50, 64] [1, 1, 1, 1] : memref<1x8x100x64xf16> to memref<1x8x50x64xf16, strided<[51200, 6400, 64, 1]>>
  %p = memref.alloc() : memref<1x8x100x64xf16>
  attn.forward %e, %s, %s outs(%p : memref<1x8x100x64xf16>) : memref<1x8x100x64xf16>, memref<1x8x50x64xf16, strided<[51200, 6400, 64, 1]>>, memref<1x8x50x64xf16, strided<[51200, 6400, 64, 1]>>
  %c = memref.alloc() : memref<8x100x64xf16>
  memref.copy %a, %c : memref<8x100x64xf16> to memref<8x100x64xf16>
  return %c : memref<8x100x64xf16>
}

// -----

// A reshape between the attention and the transpose is undone in front of it.
// CHECK-LABEL: @reshaped_output
// CHECK: %[[R:.*]] = memref.alloc() : memref<100x8x64xf16>
// CHECK: %[[T:.*]] = memref.transpose %[[R]]
// CHECK: %[[E:.*]] = memref.expand_shape %[[T]]
// CHECK: attn.forward {{.*}} outs(%[[E]]
// CHECK-NOT: linalg.transpose
func.func @reshaped_output(%q: memref<1x8x100x64xf16>) -> memref<100x8x64xf16> {
  %o = memref.alloc() : memref<1x8x100x64xf16>
  attn.forward %q, %q, %q outs(%o : memref<1x8x100x64xf16>) : memref<1x8x100x64xf16>, memref<1x8x100x64xf16>, memref<1x8x100x64xf16>
  %c = memref.collapse_shape %o [[0, 1], [2], [3]] : memref<1x8x100x64xf16> into memref<8x100x64xf16>
  %r = memref.alloc() : memref<100x8x64xf16>
  linalg.transpose ins(%c : memref<8x100x64xf16>) outs(%r : memref<100x8x64xf16>) permutation = [1, 0, 2]
  return %r : memref<100x8x64xf16>
}

// -----

// What is not safe, or gives no rows, stays: an array that is written later, one
// that somebody else reads, and columns that become rows.
// CHECK-LABEL: @written_later
// CHECK: linalg.transpose
// CHECK-LABEL: @read_otherwise
// CHECK: linalg.transpose
// CHECK-LABEL: @columns
// CHECK: linalg.transpose
// CHECK-LABEL: @output_read_twice
// CHECK: linalg.transpose
func.func @written_later(%q: memref<1x4x2x16xf16>, %o: memref<1x2x4x16xf16>) {
  %a = memref.alloc() : memref<1x2x4x16xf16>
  linalg.transpose ins(%q : memref<1x4x2x16xf16>) outs(%a : memref<1x2x4x16xf16>) permutation = [0, 2, 1, 3]
  %zero = arith.constant 0.0 : f16
  linalg.fill ins(%zero : f16) outs(%q : memref<1x4x2x16xf16>)
  attn.forward %a, %a, %a outs(%o : memref<1x2x4x16xf16>) : memref<1x2x4x16xf16>, memref<1x2x4x16xf16>, memref<1x2x4x16xf16>
  return
}
func.func @read_otherwise(%q: memref<1x4x2x16xf16>) -> memref<1x2x4x16xf16> {
  %a = memref.alloc() : memref<1x2x4x16xf16>
  linalg.transpose ins(%q : memref<1x4x2x16xf16>) outs(%a : memref<1x2x4x16xf16>) permutation = [0, 2, 1, 3]
  %o = memref.alloc() : memref<1x2x4x16xf16>
  attn.forward %a, %a, %a outs(%o : memref<1x2x4x16xf16>) : memref<1x2x4x16xf16>, memref<1x2x4x16xf16>, memref<1x2x4x16xf16>
  return %a : memref<1x2x4x16xf16>
}
func.func @columns(%k: memref<1x2x16x4xf16>) -> memref<1x2x4x16xf16> {
  %a = memref.alloc() : memref<1x2x4x16xf16>
  linalg.transpose ins(%k : memref<1x2x16x4xf16>) outs(%a : memref<1x2x4x16xf16>) permutation = [0, 1, 3, 2]
  %o = memref.alloc() : memref<1x2x4x16xf16>
  attn.forward %a, %a, %a outs(%o : memref<1x2x4x16xf16>) : memref<1x2x4x16xf16>, memref<1x2x4x16xf16>, memref<1x2x4x16xf16>
  return %o : memref<1x2x4x16xf16>
}
func.func @output_read_twice(%q: memref<1x2x4x16xf16>) -> (memref<1x4x2x16xf16>, memref<1x2x4x16xf16>) {
  %o = memref.alloc() : memref<1x2x4x16xf16>
  attn.forward %q, %q, %q outs(%o : memref<1x2x4x16xf16>) : memref<1x2x4x16xf16>, memref<1x2x4x16xf16>, memref<1x2x4x16xf16>
  %r = memref.alloc() : memref<1x4x2x16xf16>
  linalg.transpose ins(%o : memref<1x2x4x16xf16>) outs(%r : memref<1x4x2x16xf16>) permutation = [0, 2, 1, 3]
  return %r, %o : memref<1x4x2x16xf16>, memref<1x2x4x16xf16>
}
