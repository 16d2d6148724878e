// Merges as text and back.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS
// RUN: attn-opt %s -canonicalize -cse | FileCheck %s --check-prefix=PURE

!b = tensor<1x2x?x8xbf16>
!f = tensor<1x2x?x8xf32>
!l = tensor<1x2x?xf32>

// CHECK-LABEL: @tensors(
// CHECK: attn.merge (%{{.*}}, %{{.*}}), (%{{.*}}, %{{.*}}) : (tensor<1x2x?x8xbf16>, tensor<1x2x?xf32>), (tensor<1x2x?x8xf32>, tensor<1x2x?xf32>) -> tensor<1x2x?x8xbf16>, tensor<1x2x?xf32>
// BUFFERS-LABEL: @tensors(
// BUFFERS-SAME: %[[O0:.*]]: memref<1x2x?x8xbf16>, %[[L0:.*]]: memref<1x2x?xf32>, %[[O1:.*]]: memref<1x2x?x8xf32>, %[[L1:.*]]: memref<1x2x?xf32>)
// BUFFERS: %[[ROWS:.*]] = memref.dim %[[O0]], %{{.*}}
// BUFFERS: %[[O:.*]] = memref.alloc(%[[ROWS]]) {{.*}} : memref<1x2x?x8xbf16>
// BUFFERS: %[[L:.*]] = memref.alloc(%{{.*}}) {{.*}} : memref<1x2x?xf32>
// BUFFERS: attn.merge (%[[O0]], %[[L0]]), (%[[O1]], %[[L1]]) outs(%[[O]], %[[L]] : memref<1x2x?x8xbf16>, memref<1x2x?xf32>) : (memref<1x2x?x8xbf16>, memref<1x2x?xf32>), (memref<1x2x?x8xf32>, memref<1x2x?xf32>)
func.func @tensors(%o0: !b, %l0: !l, %o1: !f, %l1: !l) -> (!b, !l) {
  %o, %lse = attn.merge (%o0, %l0), (%o1, %l1) : (!b, !l), (!f, !l) -> !b, !l
  return %o, %lse : !b, !l
}

// A destination is written in place.
// CHECK-LABEL: @one(
// CHECK: attn.merge (%{{.*}}, %{{.*}}) outs(%{{.*}} : tensor<1x2x?x8xbf16>) {alignment = 8 : i64} : (tensor<1x2x?x8xf32>, tensor<1x2x?xf32>) -> tensor<1x2x?x8xbf16>
// BUFFERS-LABEL: @one(
// BUFFERS-SAME: %[[O0:.*]]: memref<1x2x?x8xf32>, %[[L0:.*]]: memref<1x2x?xf32>, %[[O:.*]]: memref<1x2x?x8xbf16>)
// BUFFERS: attn.merge (%[[O0]], %[[L0]]) outs(%[[O]] : memref<1x2x?x8xbf16>)
// BUFFERS: return %[[O]]
func.func @one(%o0: !f, %l0: !l, %into: !b) -> !b {
  %o = attn.merge (%o0, %l0) outs(%into : !b) {alignment = 8} : (!f, !l) -> !b
  return %o : !b
}

// CHECK-LABEL: @gradients(
// CHECK: attn.merge_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} dlse(%{{.*}} : tensor<1x2x?xf32>) : tensor<1x2x?x8xbf16>, tensor<1x2x?x8xbf16>, tensor<1x2x?xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?xf32> -> tensor<1x2x?x8xf32>, tensor<1x2x?xf32>
// CHECK: attn.merge_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor
// PURE-LABEL: @gradients(
// PURE: attn.merge_backward
// PURE-NOT: attn.merge_backward
// PURE: return
func.func @gradients(%do: !b, %o: !b, %l: !l, %o0: !f, %l0: !l) -> (!f, !l) {
  %do0, %dl0 = attn.merge_backward %do, %o, %l, %o0, %l0 dlse(%l : !l) : !b, !b, !l, !f, !l -> !f, !l
  %unused:2 = attn.merge_backward %do, %o, %l, %o0, %l0 : !b, !b, !l, !f, !l -> !f, !l
  return %do0, %dl0 : !f, !l
}

// CHECK-LABEL: @memrefs(
// CHECK: attn.merge (%{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}} : memref<1x2x4x8xf16>, memref<1x2x4xf32>) : (memref<1x2x4x8xf16>, memref<1x2x4xf32>)
func.func @memrefs(%o0: memref<1x2x4x8xf16>, %l0: memref<1x2x4xf32>, %o: memref<1x2x4x8xf16>, %l: memref<1x2x4xf32>) {
  attn.merge (%o0, %l0) outs(%o, %l : memref<1x2x4x8xf16>, memref<1x2x4xf32>) : (memref<1x2x4x8xf16>, memref<1x2x4xf32>)
  return
}
