// What upstream's one-shot bufferization makes of the ops.
// RUN: attn-opt %s -split-input-file -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s
// RUN: attn-opt %s -split-input-file -verify-diagnostics -one-shot-bufferize="bufferize-function-boundaries" | FileCheck %s --check-prefix=UNKNOWN

// Results without destination become new buffers.
// CHECK-LABEL: @results(
// CHECK-SAME: %[[Q:.*]]: memref<2x4x128x64xbf16>, %[[K:.*]]: memref<2x4x96x64xbf16>, %[[V:.*]]: memref<2x4x96x32xbf16>)
// CHECK-DAG: %[[O:.*]] = memref.alloc() {{.*}} : memref<2x4x128x32xbf16>
// CHECK-DAG: %[[LSE:.*]] = memref.alloc() {{.*}} : memref<2x4x128xf32>
// CHECK: attn.forward %[[Q]], %[[K]], %[[V]] mask(causal) scale(5.000000e-01) outs(%[[O]], %[[LSE]] : memref<2x4x128x32xbf16>, memref<2x4x128xf32>)
// CHECK: return %[[O]], %[[LSE]]

// A layout of which nothing is known is copied, and said so.
// UNKNOWN-LABEL: @results(
// UNKNOWN-COUNT-3: memref.copy {{.*}}strided<[?, ?, ?, ?], offset: ?>> to memref
// UNKNOWN: attn.forward
// UNKNOWN-NOT: memref.copy
// UNKNOWN: return
func.func @results(%q: tensor<2x4x128x64xbf16>, %k: tensor<2x4x96x64xbf16>, %v: tensor<2x4x96x32xbf16>)
    -> (tensor<2x4x128x32xbf16>, tensor<2x4x128xf32>) {
  // expected-warning @below {{copies 3 buffers, because an innermost stride is not known to be 1}}
  // expected-note @below {{function arguments keep it with function-boundary-type-conversion=identity-layout-map}}
  %o, %lse = attn.forward %q, %k, %v mask(causal) scale(0.5)
      : tensor<2x4x128x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x32xbf16>
     -> tensor<2x4x128x32xbf16>, tensor<2x4x128xf32>
  return %o, %lse : tensor<2x4x128x32xbf16>, tensor<2x4x128xf32>
}

// -----

// CHECK-LABEL: @dynamic(
// CHECK-SAME: %[[Q:.*]]: memref<?x4x?x64xbf16>, %[[K:.*]]: memref<?x4x?x64xbf16>)
// CHECK: %[[BATCH:.*]] = memref.dim %[[Q]], %c0
// CHECK: %[[ROWS:.*]] = memref.dim %[[Q]], %c2
// CHECK: %[[O:.*]] = memref.alloc(%[[BATCH]], %[[ROWS]]) {{.*}} : memref<?x4x?x64xbf16>
// CHECK: %[[LSE:.*]] = memref.alloc(%{{.*}}, %{{.*}}) {{.*}} : memref<?x4x?xf32>
// CHECK: attn.forward %[[Q]], %[[K]], %[[K]] outs(%[[O]], %[[LSE]] :
func.func @dynamic(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x4x?x64xbf16>)
    -> (tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>) {
  // One copy of K serves as K and V.
  // expected-warning @below {{copies 2 buffers}}
  // expected-note @below {{function arguments}}
  %o, %lse = attn.forward %q, %k, %k
      : tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>, tensor<?x4x?x64xbf16>
     -> tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>
  return %o, %lse : tensor<?x4x?x64xbf16>, tensor<?x4x?xf32>
}

// -----

// Destinations are written in place; the decision stays on the op.
// CHECK-LABEL: @destinations(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{.*}}, %[[O:[a-z0-9]*]]: {{.*}}, %[[LSE:[a-z0-9]*]]:
// CHECK-NEXT: attn.forward %[[Q]], %[[Q]], %[[Q]] outs(%[[O]], %[[LSE]] : memref<1x4x8x64xf16>, memref<1x4x8xf32>) {schedule = #attn.schedule<flash, query = 64>}
// CHECK-NEXT: return %[[O]], %[[LSE]]

// What is not known to be contiguous is written through a copy.
// UNKNOWN-LABEL: @destinations(
// UNKNOWN-SAME: %[[Q:[a-z0-9]*]]: {{.*}}, %[[O:[a-z0-9]*]]: {{.*}}, %[[LSE:[a-z0-9]*]]:
// UNKNOWN: attn.forward {{.*}} outs(%[[O2:[a-z0-9_]*]], %[[LSE2:[a-z0-9_]*]] :
// UNKNOWN-NEXT: memref.copy %[[O2]], %[[O]]
// UNKNOWN-NEXT: memref.copy %[[LSE2]], %[[LSE]]
// UNKNOWN-NEXT: return %[[O]], %[[LSE]]
func.func @destinations(%q: tensor<1x4x8x64xf16>, %o: tensor<1x4x8x64xf16>, %lse: tensor<1x4x8xf32>)
    -> (tensor<1x4x8x64xf16>, tensor<1x4x8xf32>) {
  // expected-warning @below {{copies 3 buffers}}
  // expected-note @below {{function arguments}}
  %0:2 = attn.forward %q, %q, %q outs(%o, %lse : tensor<1x4x8x64xf16>, tensor<1x4x8xf32>)
      {schedule = #attn.schedule<flash, query = 64>}
      : tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16>
     -> tensor<1x4x8x64xf16>, tensor<1x4x8xf32>
  return %0#0, %0#1 : tensor<1x4x8x64xf16>, tensor<1x4x8xf32>
}

// -----

// Q is still read while O is written, so it cannot be overwritten.
// CHECK-LABEL: @query_is_destination(
// CHECK-SAME: %[[Q:.*]]: memref
// CHECK: %[[O:.*]] = memref.alloc()
// CHECK-NOT: memref.copy
// CHECK: attn.forward %[[Q]], %[[Q]], %[[Q]] outs(%[[O]] :
func.func @query_is_destination(%q: tensor<1x4x8x64xf16>) -> tensor<1x4x8x64xf16> {
  // expected-warning @below {{copies 1 buffer,}}
  // expected-note @below {{function arguments}}
  %0 = attn.forward %q, %q, %q outs(%q : tensor<1x4x8x64xf16>)
      : tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16> -> tensor<1x4x8x64xf16>
  return %0 : tensor<1x4x8x64xf16>
}

// -----

// A slice is read in place, through its strides.
// CHECK-LABEL: @slice(
// CHECK: %[[S:.*]] = memref.subview
// CHECK-NOT: memref.copy
// CHECK: attn.forward %[[S]], %[[S]], %[[S]] {{.*}}strided<[2048, 512, 64, 1], offset: ?>>
func.func @slice(%q: tensor<8x4x8x64xf16>, %b: index) -> tensor<1x4x8x64xf16> {
  %s = tensor.extract_slice %q[%b, 0, 0, 0] [1, 4, 8, 64] [1, 1, 1, 1] : tensor<8x4x8x64xf16> to tensor<1x4x8x64xf16>
  // expected-warning @below {{copies 1 buffer,}}
  // expected-note @below {{function arguments}}
  %0 = attn.forward %s, %s, %s
      : tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16>, tensor<1x4x8x64xf16> -> tensor<1x4x8x64xf16>
  return %0 : tensor<1x4x8x64xf16>
}

// -----

// Gradients become buffers of the shapes of what they are gradients of.
// CHECK-LABEL: @gradients(
// CHECK-SAME: %[[DO:[a-z0-9]*]]: memref<1x4x?x32xf16>, %[[Q:[a-z0-9]*]]: memref<1x4x?x64xf16>, %[[K:[a-z0-9]*]]: memref<1x2x?x64xf16>, %[[V:[a-z0-9]*]]: memref<1x2x?x32xf16>, %[[O:[a-z0-9]*]]: memref<1x4x?x32xf16>, %[[LSE:[a-z0-9]*]]: memref<1x4x?xf32>)
// CHECK: %[[QUERIES:.*]] = memref.dim %[[DO]], %c2
// CHECK: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: %[[DQ:.*]] = memref.alloc(%[[QUERIES]]) {{.*}} : memref<1x4x?x64xf16>
// CHECK: %[[DK:.*]] = memref.alloc(%[[KEYS]]) {{.*}} : memref<1x2x?x64xf16>
// CHECK: %[[DV:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<1x2x?x32xf16>
// CHECK: attn.backward %[[DO]], %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]] dlse(%[[LSE]] : memref<1x4x?xf32>) mask(causal) outs(%[[DQ]], %[[DK]], %[[DV]] :
// CHECK-SAME: {deterministic}
// CHECK: return %[[DQ]], %[[DK]], %[[DV]]
func.func @gradients(%do: tensor<1x4x?x32xf16>, %q: tensor<1x4x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x32xf16>,
    %o: tensor<1x4x?x32xf16>, %lse: tensor<1x4x?xf32>) -> (tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x32xf16>) {
  // expected-warning @below {{copies 6 buffers}}
  // expected-note @below {{function arguments}}
  %0:3 = attn.backward %do, %q, %k, %v, %o, %lse dlse(%lse : tensor<1x4x?xf32>) mask(causal) {deterministic}
      : tensor<1x4x?x32xf16>, tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x32xf16>, tensor<1x4x?x32xf16>, tensor<1x4x?xf32>
     -> tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x32xf16>
  return %0#0, %0#1, %0#2 : tensor<1x4x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x32xf16>
}

// -----

// CHECK-LABEL: @low_word(
// CHECK: attn.forward {{.*}} outs(%[[O:[a-z0-9_]*]], %[[LSE:[a-z0-9_]*]], %[[LOW:[a-z0-9_]*]] :
// CHECK: attn.backward {{.*}}, %[[O]], %[[LSE]] lse_low(%[[LOW]] : memref<1x1x8xf32>) outs(
!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @low_word(%a: !q) -> (!q, !q, !q) {
  %q = tensor.empty() : !q
  %o, %lse, %low = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !lse
  %0:3 = attn.backward %q, %q, %q, %q, %o, %lse lse_low(%low : !lse) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

// Gradients are written in place where there is a destination.
// CHECK-LABEL: @gradients_in_place(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{.*}}, %[[LSE:[a-z0-9]*]]: {{.*}}, %[[DQ:[a-z0-9]*]]: {{.*}}, %[[DK:[a-z0-9]*]]: {{.*}}, %[[DV:[a-z0-9]*]]:
// CHECK-NEXT: attn.backward %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[Q]], %[[LSE]] outs(%[[DQ]], %[[DK]], %[[DV]] :
// CHECK-NEXT: return %[[DQ]], %[[DK]], %[[DV]]
!q = tensor<1x4x8x64xf16>
func.func @gradients_in_place(%q: !q, %lse: tensor<1x4x8xf32>, %dq: !q, %dk: !q, %dv: !q) -> (!q, !q, !q) {
  // expected-warning @below {{copies 5 buffers}}
  // expected-note @below {{function arguments}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse outs(%dq, %dk, %dv : !q, !q, !q)
      : !q, !q, !q, !q, !q, tensor<1x4x8xf32> -> !q, !q, !q
  return %0#0, %0#1, %0#2 : !q, !q, !q
}

// -----

// Rows of what weights stand at follow from the keys.
// CHECK-LABEL: @weights_that_are_kept(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: memref<1x4x?x64xf16>, %[[K:[a-z0-9]*]]: memref<1x2x?x64xf16>)
// CHECK: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c256
// CHECK: arith.muli %[[BLOCKS]], %c2
// CHECK: attn.forward {{.*}} outs(%{{.*}} : memref<1x4x?x64xf16>, memref<1x4x?xf32>, memref<1x4x?x?xf16>, memref<1x4x?x?xf32>)
// CHECK: attn.backward {{.*}} weights(%{{.*}}, %{{.*}} : memref<1x4x?x?xf16>, memref<1x4x?x?xf32>) outs(
!q = tensor<1x4x?x64xf16>
!k = tensor<1x2x?x64xf16>
!lse = tensor<1x4x?xf32>
!w = tensor<1x4x?x?xf16>
!r = tensor<1x4x?x?xf32>
func.func @weights_that_are_kept(%q: !q, %k: !k) -> (!q, !k, !k) {
  // expected-warning @below {{copies 2 buffers,}}
  // expected-note @below {{function arguments}}
  %o, %lse, %w, %r = attn.forward %q, %k, %k : !q, !k, !k -> !q, !lse, !w, !r
  // expected-warning @below {{copies 2 buffers,}}
  // expected-note @below {{function arguments}}
  %0:3 = attn.backward %q, %q, %k, %k, %o, %lse weights(%w, %r : !w, !r) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return %0#0, %0#1, %0#2 : !q, !k, !k
}
