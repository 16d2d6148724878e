// Masks that are bands, however they are written.
// RUN: attn-opt %s -attn-raise -canonicalize --allow-unregistered-dialect 2>/dev/null | FileCheck %s

!t = tensor<1x4x8xf16>
!m = tensor<1x4x4xi1>

// A boolean constant, the same for all.
// CHECK-LABEL: @constant
// CHECK: attn.forward {{.*}} mask(window<1, 0>)
func.func @constant(%q: !t) -> !t {
  %m = arith.constant dense<[[[true, false, false, false], [true, true, false, false], [false, true, true, false], [false, false, true, true]]]> : !m
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}

// Everything is visible.
// CHECK-LABEL: @all
// CHECK-NOT: mask
// CHECK: return
func.func @all(%q: !t) -> !t {
  %m = arith.constant dense<true> : !m
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}

// Both of two conditions, one of them turned around, of row numbers that are
// constants.
// CHECK-LABEL: @both
// CHECK: attn.forward {{.*}} mask(window<2, 1>)
func.func @both(%q: !t) -> !t {
  %true = arith.constant true
  %rows = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %m0 = tensor.empty() : !m
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i)>, affine_map<(b, i, j) -> (j)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%rows, %rows : tensor<4xi64>, tensor<4xi64>) outs(%m0 : !m) {
  ^bb0(%i: i64, %j: i64, %out: i1):
    %c1 = arith.constant 1 : i64
    %c2 = arith.constant 2 : i64
    %last = arith.addi %i, %c1 : i64
    %behind = arith.cmpi sgt, %j, %last : i64
    %see = arith.xori %behind, %true : i1
    %d = arith.subi %i, %j : i64
    %near = arith.cmpi sle, %d, %c2 : i64
    %r = arith.andi %see, %near : i1
    linalg.yield %r : i1
  } -> !m
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}

// Hidden where one of two holds; a query sees at most itself.
// CHECK-LABEL: @either
// CHECK: attn.forward {{.*}} mask(window<0, 0>)
func.func @either(%q: !t) -> !t {
  %zero = arith.constant 0.0 : f16
  %inf = arith.constant 0xFC00 : f16
  %m0 = tensor.empty() : tensor<1x4x4xf16>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : tensor<1x4x4xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %a = arith.cmpi slt, %i, %j : index
    %b = arith.cmpi ugt, %i, %j : index
    %c = arith.ori %a, %b : i1
    %r = arith.select %c, %inf, %zero : f16
    linalg.yield %r : f16
  } -> tensor<1x4x4xf16>
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, tensor<1x4x4xf16>, !t) -> !t
  return %o : !t
}

// A causal mask of fewer keys than queries, and of more: the corner is the top
// left one.
// CHECK-LABEL: @few
// CHECK: attn.forward {{.*}} mask(causal) : tensor<1x1x4x8xf16>, tensor<1x1x2x8xf16>
// CHECK-LABEL: @many
// CHECK: attn.forward {{.*}} mask(causal) : tensor<1x1x4x8xf16>, tensor<1x1x6x8xf16>
func.func @few(%q: !t, %k: tensor<1x2x8xf16>) -> !t {
  %m = arith.constant dense<[[[true, false], [true, true], [true, true], [true, true]]]> : tensor<1x4x2xi1>
  %o = "tm_tensor.attention"(%q, %k, %k, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, tensor<1x2x8xf16>, tensor<1x2x8xf16>, tensor<1x4x2xi1>, !t) -> !t
  return %o : !t
}
func.func @many(%q: !t, %k: tensor<1x6x8xf16>) -> !t {
  %m = arith.constant dense<[[[true, false, false, false, false, false], [true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false]]]> : tensor<1x4x6xi1>
  %o = "tm_tensor.attention"(%q, %k, %k, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, tensor<1x6x8xf16>, tensor<1x6x8xf16>, tensor<1x4x6xi1>, !t) -> !t
  return %o : !t
}

// Keys that no query sees are cut off, which gives the mask a name.
// CHECK-LABEL: @cut
// CHECK: tensor.extract_slice {{.*}} to tensor<1x1x5x8xf16>
// CHECK: attn.forward {{.*}} mask(causal_bottom_right) : tensor<1x1x4x8xf16>, tensor<1x1x5x8xf16>
func.func @cut(%q: !t, %k: tensor<1x6x8xf16>) -> !t {
  %m = arith.constant dense<[[[true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false]]]> : tensor<1x4x6xi1>
  %o = "tm_tensor.attention"(%q, %k, %k, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, tensor<1x6x8xf16>, tensor<1x6x8xf16>, tensor<1x4x6xi1>, !t) -> !t
  return %o : !t
}
