// Masks that are no bands.
// RUN: attn-opt %s -attn-raise --allow-unregistered-dialect -verify-diagnostics
// RUN: attn-opt %s --allow-unregistered-dialect > %t.before
// RUN: attn-opt %s -attn-raise --allow-unregistered-dialect 2>/dev/null > %t.after
// RUN: diff %t.before %t.after

!t = tensor<2x4x8xf16>
!m = tensor<2x4x4xi1>

func.func @differs(%q: !t) -> !t {
  %m = arith.constant dense<[[[true, false, false, false], [true, true, false, false], [true, true, true, false], [true, true, true, true]], [[true, true, true, true], [true, true, true, true], [true, true, true, true], [true, true, true, true]]]> : !m
  // expected-remark @+1 {{is not raised: the mask differs between heads or batch entries}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
func.func @padding(%q: !t) -> !t {
  %m0 = tensor.empty() : !m
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : !m) {
  ^bb0(%out: i1):
    %j = linalg.index 2 : index
    %c3 = arith.constant 3 : index
    %r = arith.cmpi slt, %j, %c3 : index
    linalg.yield %r : i1
  } -> !m
  // expected-remark @+1 {{is not raised: the mask hides other keys than those beyond two offsets from the diagonal}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
func.func @either_sees(%q: !t) -> !t {
  %m0 = tensor.empty() : !m
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : !m) {
  ^bb0(%out: i1):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %a = arith.cmpi slt, %i, %j : index
    %b = arith.cmpi sgt, %i, %j : index
    %r = arith.ori %a, %b : i1
    linalg.yield %r : i1
  } -> !m
  // expected-remark @+1 {{is not raised: the mask is neither a constant nor made of row numbers}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
func.func @heads(%q: !t) -> !t {
  %m0 = tensor.empty() : !m
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : !m) {
  ^bb0(%out: i1):
    %b = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %s = arith.addi %i, %b : index
    %r = arith.cmpi sge, %s, %j : index
    linalg.yield %r : i1
  } -> !m
  // expected-remark @+1 {{is not raised: the mask hides other keys}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
func.func @nothing(%q: !t) -> !t {
  %m = arith.constant dense<false> : !m
  // expected-remark @+1 {{is not raised: the mask hides every key}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
func.func @constant_addend(%q: !t) -> !t {
  %m = arith.constant dense<1.0> : tensor<2x4x4xf16>
  // expected-remark @+1 {{is not raised: the mask adds the same number to all scores}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, tensor<2x4x4xf16>, !t) -> !t
  return %o : !t
}
// Finite numbers that hide all keys of a query leave a mean, which -inf does not.
func.func @finite_row(%q: !t) -> !t {
  %zero = arith.constant 0.0 : f16
  %low = arith.constant -65504.0 : f16
  %m0 = tensor.empty() : tensor<2x4x4xf16>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : tensor<2x4x4xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c = arith.cmpi sgt, %i, %j : index
    %r = arith.select %c, %zero, %low : f16
    linalg.yield %r : f16
  } -> tensor<2x4x4xf16>
  // expected-remark @+1 {{is not raised: the mask may hide every key of a query by finite numbers, whose softmax is not 0}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, tensor<2x4x4xf16>, !t) -> !t
  return %o : !t
}
// A window of rows whose number is open.
func.func @open(%q: tensor<2x?x8xf16>, %n: index) -> tensor<2x?x8xf16> {
  %m0 = tensor.empty(%n, %n) : tensor<2x?x?xi1>
  %m = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%m0 : tensor<2x?x?xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c1 = arith.constant 1 : index
    %s = arith.addi %i, %c1 : index
    %r = arith.cmpi sge, %s, %j : index
    linalg.yield %r : i1
  } -> tensor<2x?x?xi1>
  // expected-remark @+1 {{is not raised: a window of rows whose number is not static has no name}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (tensor<2x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x8xf16>, tensor<2x?x?xi1>, tensor<2x?x8xf16>) -> tensor<2x?x8xf16>
  return %o : tensor<2x?x8xf16>
}
// Its keys begin behind the diagonal of the last query and key.
func.func @behind(%q: !t) -> !t {
  %m = arith.constant dense<[[false, true, true, true], [false, false, true, true], [false, false, false, true], [false, false, false, false]]> : tensor<4x4xi1>
  %m0 = tensor.empty() : !m
  %mb = linalg.broadcast ins(%m : tensor<4x4xi1>) outs(%m0 : !m) dimensions = [0]
  // expected-remark @+1 {{is not raised: a window that begins right of the diagonal of the last query and key has no name}}
  %o = "tm_tensor.attention"(%q, %q, %q, %mb, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, !m, !t) -> !t
  return %o : !t
}
