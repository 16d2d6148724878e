// Upstream's transform ops on attention: a tile is attention again.
// RUN: attn-opt %s -split-input-file --transform-interpreter -canonicalize -cse | FileCheck %s

// Batch entries and heads, whatever the mask; key heads are those of the group.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
!l = tensor<2x8x100xf32>
// CHECK-LABEL: func.func @heads(
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x100x64xbf16>, %[[K:.*]]: tensor<2x2x300x64xbf16>, %[[V:.*]]: tensor<2x2x300x64xbf16>)
// CHECK: scf.forall (%[[B:.*]], %[[I:.*]]) in (2, 2) shared_outs(%[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK: %[[H:.*]] = affine.apply
// CHECK: tensor.extract_slice %[[Q]][%[[B]], %[[H]], 0, 0] [1, 4, 100, 64]
// CHECK: %[[G:.*]] = arith.divui %[[H]], %{{.*}} : index
// CHECK: tensor.extract_slice %[[K]][%[[B]], %[[G]], 0, 0] [1, 1, 300, 64]
// CHECK: %[[T:.*]]:2 = attn.forward {{.*}} mask(causal) outs({{.*}}) {schedule = #attn.schedule<flash, query = 64, key = 64>} : {{.*}} -> tensor<1x4x100x64xbf16>, tensor<1x4x100xf32>
// CHECK: tensor.parallel_insert_slice %[[T]]#0 into %[[O]][%[[B]], %[[H]], 0, 0] [1, 4, 100, 64]
// CHECK: tensor.parallel_insert_slice %[[T]]#1 into %[[L]][%[[B]], %[[H]], 0] [1, 4, 100]
func.func @heads(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<flash, query = 64, key = 64>} : !q, !k, !k -> !q, !l
  return %o, %l : !q, !l
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_forall %a tile_sizes [1, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Queries, of which the last tile has fewer; into the destination that there is.
!q = tensor<?x8x100x64xf16>
!k = tensor<?x8x?x64xf16>
// CHECK-LABEL: func.func @queries(
// CHECK-SAME: %[[Q:.*]]: tensor<?x8x100x64xf16>, %[[K:.*]]: tensor<?x8x?x64xf16>, %[[TO:.*]]: tensor<?x8x100x64xf16>)
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[ALL:.*]] = %
// CHECK: %[[N:.*]] = affine.min
// CHECK: %[[T:.*]] = tensor.extract_slice %[[Q]][0, 0, %[[I]], 0] [%{{.*}}, 8, %[[N]], 64]
// CHECK: attn.forward %[[T]], %{{.*}}, %{{.*}} outs(%{{.*}} : tensor<?x8x?x64xf16>)
func.func @queries(%q: !q, %k: !k, %to: !q) -> !q {
  %o = attn.forward %q, %k, %k outs(%to : !q) : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [0, 0, 64] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// All queries are no tile of queries: a mask does not mind.
!q = tensor<2x8x?x64xbf16>
// CHECK-LABEL: func.func @all_queries(
// CHECK: scf.for
// CHECK: attn.forward {{.*}} mask(window<3, 0>) outs({{.*}}) : {{.*}} -> tensor<1x8x?x64xbf16>
func.func @all_queries(%q: !q, %k: !q) -> !q {
  %o = attn.forward %q, %k, %k mask(window<3, 0>) : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Attention is computed where a tile of it is read.
!q = tensor<2x8x128x64xf32>
!k = tensor<2x4x300x64xf32>
// CHECK-LABEL: func.func @fused(
// CHECK-NOT: attn.forward
// CHECK: scf.forall (%[[B:.*]], %[[I:.*]], %[[J:.*]]) in (2, 4, 4)
// CHECK: %[[T:.*]] = attn.forward %{{.*}}, %{{.*}}, %{{.*}} outs({{.*}}) : tensor<1x2x32x64xf32>, tensor<1x1x300x64xf32>, tensor<1x1x300x64xf32> -> tensor<1x2x32x64xf32>
// CHECK: linalg.exp ins(%[[T]] : tensor<1x2x32x64xf32>)
func.func @fused(%q: !q, %k: !k) -> !q {
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  %empty = tensor.empty() : !q
  %e = linalg.exp ins(%o : !q) outs(%empty : !q) -> !q
  return %e : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    %e = transform.structured.match ops{["linalg.exp"]} in %m : (!transform.any_op) -> !transform.any_op
    %t, %loop = transform.structured.tile_using_forall %e tile_sizes [1, 2, 32] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.structured.fuse_into_containing_op %a into %loop : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The other way: what makes Q is tiled with attention.
!q = tensor<1x4x128x64xbf16>
// CHECK-LABEL: func.func @producer(
// CHECK: scf.for
// CHECK: %[[Q:.*]] = linalg.exp {{.*}} -> tensor<1x4x32x64xbf16>
// CHECK: attn.forward %[[Q]]
func.func @producer(%x: !q, %k: !q) -> !q {
  %empty = tensor.empty() : !q
  %q = linalg.exp ins(%x : !q) outs(%empty : !q) -> !q
  %o = attn.forward %q, %k, %k : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.fuse %a tile_sizes [0, 0, 32] {tile_interchange = []} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Gradients have tiles of batch entries and heads.
!q = tensor<2x8x?x64xbf16>
!k = tensor<2x2x?x64xbf16>
!l = tensor<2x8x?xf32>
// CHECK-LABEL: func.func @gradients(
// CHECK: scf.forall
// CHECK: attn.backward {{.*}} mask(causal) outs({{.*}}) : {{.*}} -> tensor<2x4x?x64xbf16>, tensor<2x1x?x64xbf16>, tensor<2x1x?x64xbf16>
func.func @gradients(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %l dlse(%l : !l) mask(causal) : !q, !q, !k, !k, !q, !l -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.backward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_forall %a tile_sizes [0, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Keys: parts beside each other, and the merge of all.
!q = tensor<2x8x?x64xbf16>
!k = tensor<2x2x300x64xbf16>
// CHECK-LABEL: func.func @keys(
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x?x64xbf16>, %[[K:.*]]: tensor<2x2x300x64xbf16>)
// CHECK: %[[OS:.*]] = tensor.empty(%{{.*}}) : tensor<3x2x8x?x64xbf16>
// CHECK: %[[LS:.*]] = tensor.empty(%{{.*}}) : tensor<3x2x8x?xf32>
// CHECK: %[[PARTS:.*]]:2 = scf.forall (%[[I:.*]]) in (3) shared_outs(%[[O:.*]] = %[[OS]], %[[L:.*]] = %[[LS]])
// CHECK: %[[INTO:.*]] = tensor.extract_slice %[[O]][%[[I]], 0, 0, 0, 0] [1, 2, 8, %{{.*}}, 64] {{.*}} to tensor<2x8x?x64xbf16>
// CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} outs(%[[INTO]], %{{.*}} : tensor<2x8x?x64xbf16>, tensor<2x8x?xf32>) : {{.*}} tensor<2x2x100x64xbf16>, tensor<2x2x100x64xbf16>
// CHECK: %[[O0:.*]] = tensor.extract_slice %[[PARTS]]#0[0, 0, 0, 0, 0]
// CHECK: %[[L0:.*]] = tensor.extract_slice %[[PARTS]]#1[0, 0, 0, 0]
// CHECK: %[[M:.*]] = attn.merge (%[[O0]], %[[L0]]), (%{{.*}}, %{{.*}}), (%{{.*}}, %{{.*}}) : {{.*}} -> tensor<2x8x?x64xbf16>
// CHECK: return %[[M]]
func.func @keys(%q: !q, %k: !k) -> !q {
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_reduction_using_forall %a by num_threads = [0, 0, 0, 3] tile_sizes = [] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
