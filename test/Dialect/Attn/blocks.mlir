// Lists of blocks from a region, and by keys.
// RUN: attn-opt %s -split-input-file | attn-opt -split-input-file | FileCheck %s
// RUN: attn-opt %s -split-input-file -mlir-print-op-generic | attn-opt -split-input-file | FileCheck %s
// RUN: attn-opt %s -split-input-file -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFER
// RUN: attn-opt %s -split-input-file -canonicalize | FileCheck %s --check-prefix=USED

// CHECK-LABEL: @lists
// CHECK: %[[L:.*]]:4 = attn.block_lists queries(%{{.*}}) keys(%{{.*}}) batch(2) heads(1) size 64 x 128 captures(%{{.*}} : tensor<2x?xi32>) sees (%[[B:.*]], %{{.*}}, %[[I:.*]], %[[J:.*]], %{{.*}}, %{{.*}}, %[[D:.*]]) {
// CHECK-NEXT: attn.read %[[D]][%[[B]], %[[I]]] : tensor<2x?xi32>
// CHECK: } : tensor<2x1x?xi32>, tensor<2x1x?x?xi32>, tensor<2x1x?xi32>, tensor<2x1x?x?xi32>
// CHECK: attn.transpose_blocks %[[L]]#0, %[[L]]#1, %[[L]]#2, %[[L]]#3 : tensor<2x1x?xi32>, tensor<2x1x?x?xi32>, tensor<2x1x?xi32>, tensor<2x1x?x?xi32> -> tensor<2x1x?xi32>,

// BUFFER-LABEL: @lists(
// BUFFER-SAME: %[[IDS:.*]]: memref<2x?xi32>, %[[NQ:.*]]: index, %[[NK:.*]]: index
// BUFFER: arith.ceildivsi %[[NQ]], %{{.*}} : index
// BUFFER: attn.block_lists queries(%[[NQ]]) keys(%[[NK]]) batch(2) heads(1) size 64 x 128 captures(%[[IDS]] : memref<2x?xi32>) sees ({{.*}}, %[[D:.*]]) {
// BUFFER-NEXT: attn.read %[[D]][{{.*}}] : memref<2x?xi32>
// BUFFER: } outs(%{{.*}} : memref<2x1x?xi32>, memref<2x1x?x?xi32>, memref<2x1x?xi32>, memref<2x1x?x?xi32>)
// BUFFER: attn.transpose_blocks %{{.*}} outs(%{{.*}} : memref<2x1x?xi32>, memref<2x1x?x?xi32>, memref<2x1x?xi32>, memref<2x1x?x?xi32>) : memref
!ids = tensor<2x?xi32>
!c = tensor<2x1x?xi32>
!n = tensor<2x1x?x?xi32>
func.func @lists(%ids: !ids, %nq: index, %nk: index) -> (!c, !n, !c, !n) {
  %pc, %pi, %fc, %fi = attn.block_lists queries(%nq) keys(%nk) batch(2) heads(1) size 64 x 128
    captures(%ids : !ids) sees (%b, %h, %i, %j, %n, %m, %d) {
      %x = attn.read %d[%b, %i] : !ids
      %y = attn.read %d[%b, %j] : !ids
      %r = arith.cmpi eq, %x, %y : i32
      attn.yield %r : i1
    } : !c, !n, !c, !n
  %tc, %ti, %tfc, %tfi = attn.transpose_blocks %pc, %pi, %fc, %fi : !c, !n, !c, !n -> !c, !n, !c, !n
  return %tc, %ti, %tfc, %tfi : !c, !n, !c, !n
}

// -----

// What nobody uses is not made.
// CHECK-LABEL: @unused
// USED-LABEL: @unused
// USED-NEXT: return
// BUFFER-LABEL: @unused
!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @unused(%nk: index) {
  %nq = arith.constant 200 : index
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 128
    sees (%b, %h, %i, %j, %n, %m) {
      %r = arith.cmpi sle, %j, %i : index
      attn.yield %r : i1
    } : !c, !n, !c, !n
  return
}

// -----

// CHECK-LABEL: @memrefs
// CHECK: attn.block_lists {{.*}} size 64 x 128 sees
// CHECK: } outs(%{{.*}} : memref<1x1x4xi32>, memref<1x1x4x8xi32>, memref<1x1x4xi32>, memref<1x1x4x8xi32>){{$}}
// USED-LABEL: @memrefs
// USED: attn.block_lists
// BUFFER-LABEL: @memrefs
!c = memref<1x1x4xi32>
!n = memref<1x1x4x8xi32>
func.func @memrefs(%nq: index, %nk: index, %a: !c, %b: !n, %c: !c, %d: !n) {
  attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 128
    sees (%x, %h, %i, %j, %n, %m) {
      %r = arith.cmpi sle, %j, %i : index
      attn.yield %r : i1
    } outs(%a, %b, %c, %d : !c, !n, !c, !n)
  return
}
