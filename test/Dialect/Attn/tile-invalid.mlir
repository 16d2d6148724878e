// Tiles that there are not, and why.  The transform op fails then, and says so
// too.
// RUN: not attn-opt %s -split-input-file --transform-interpreter 2>&1 | FileCheck %s

// Half a group of heads.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: expects tiles of heads in multiples of 4, which share a key head, but got 2
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [0, 2] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// The last tile would have fewer heads.
!q = tensor<2x12x100x64xbf16>
!k = tensor<2x3x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: expects tiles of as many heads each, but their number is not static: give one that divides 12
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [0, 8] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Queries under a mask.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: has mask(causal), which tells rows by their place in the whole: a tile of queries needs a mask that is shifted, and there is none yet
  %o = attn.forward %q, %k, %k mask(causal) : !q, !k, !k -> !q
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

// Keys are no loop of tiles.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: sums up over keys, so that a tile of them is a part of the result: split them with tile_reduction_using_forall
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [0, 0, 0, 64] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Keys under a mask.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: has mask(causal), which tells rows by their place in the whole: a tile of keys needs a mask that is shifted, and there is none yet
  %o = attn.forward %q, %k, %k mask(causal) : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_reduction_using_forall %a by num_threads = [0, 0, 0, 2] tile_sizes = [] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Parts one behind the other.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: has parts that are computed beside each other: split keys with tile_reduction_using_forall
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_reduction_using_for %a by tile_sizes = [0, 0, 0, 64] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// So many parts as nobody knows.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x?x64xbf16>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: expects a static number of parts of its keys: give num_threads, or a tile size of static keys
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_reduction_using_forall %a by tile_sizes = [0, 0, 0, 64] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// There is no merge of low words.
!q = tensor<2x8x100x64xbf16>
!k = tensor<2x2x300x64xbf16>
!l = tensor<2x8x100xf32>
func.func @f(%q: !q, %k: !k) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: expects O and LSE as results to split its keys, of which there is a merge, but has 3
  %o, %l, %low = attn.forward %q, %k, %k : !q, !k, !k -> !q, !l, !l
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_reduction_using_forall %a by num_threads = [0, 0, 0, 2] tile_sizes = [] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Memrefs.
!q = memref<2x8x100x64xbf16>
func.func @f(%q: !q, %k: !q, %o: !q) -> () {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: is tiled on tensors only, but has memrefs
  attn.forward %q, %k, %k outs(%o : !q) : !q, !q, !q
  return
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Regions, lists and sinks tell rows by their place in the whole.
!q = tensor<2x8x100x64xbf16>
func.func @f(%q: !q) -> !q {
  // CHECK: tile-invalid.mlir:[[#@LINE+1]]:{{[0-9]+}}: remark: has softcap(..), which tells batch entries, heads and rows by their place in the whole: a tile needs one that is shifted, and there is none yet
  %o = attn.forward %q, %q, %q softcap(50.0) : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.structured.tile_using_for %a tile_sizes [1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
