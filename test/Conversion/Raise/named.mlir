// Named ops of other dialects, in generic form.
// RUN: attn-opt %s -attn-raise -canonicalize --allow-unregistered-dialect -split-input-file 2>/dev/null | FileCheck %s
// RUN: attn-opt %s -attn-raise --allow-unregistered-dialect -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// torch-mlir
//===----------------------------------------------------------------------===//

// CHECK-LABEL: @tm_tensor
// CHECK-SAME: %[[Q:.*]]: tensor<8x100x64xf16>, %[[K:.*]]: tensor<8x90x64xf16>
// CHECK: %[[Q4:.*]] = tensor.expand_shape %[[Q]] {{.*}} into tensor<8x1x100x64xf16>
// CHECK: %[[K4:.*]] = tensor.expand_shape %[[K]] {{.*}} into tensor<8x1x90x64xf16>
// CHECK: %[[O:.*]] = attn.forward %[[Q4]], %[[K4]], %{{.*}} : {{.*}} -> tensor<8x1x100x32xf16>
// CHECK: tensor.collapse_shape %[[O]] {{.*}} into tensor<8x100x32xf16>
func.func @tm_tensor(%q: tensor<8x100x64xf16>, %k: tensor<8x90x64xf16>, %v: tensor<8x90x32xf16>) -> tensor<8x100x32xf16> {
  %0 = tensor.empty() : tensor<8x100x32xf16>
  // expected-remark @+1 {{'tm_tensor.attention' becomes an attn.forward: mask none, scale 0.125, heads 1 over 1}}
  %o = "tm_tensor.attention"(%q, %k, %v, %0) <{operandSegmentSizes = array<i32: 3, 1>}> : (tensor<8x100x64xf16>, tensor<8x90x64xf16>, tensor<8x90x32xf16>, tensor<8x100x32xf16>) -> tensor<8x100x32xf16>
  return %o : tensor<8x100x32xf16>
}

// -----

// Heads that were transposed, repeated and collapsed come back, and the mask is
// known by its row numbers.
// CHECK-LABEL: @tm_tensor_heads
// CHECK-SAME: %[[Q:.*]]: tensor<2x100x8x64xf16>, %[[K:.*]]: tensor<2x100x2x64xf16>, %[[V:.*]]: tensor<2x100x2x64xf16>
// CHECK-DAG: %[[QT:.*]] = linalg.transpose ins(%[[Q]] {{.*}} permutation = [0, 2, 1, 3]
// CHECK-DAG: %[[KT:.*]] = linalg.transpose ins(%[[K]] {{.*}} permutation = [0, 2, 1, 3]
// CHECK-DAG: %[[VT:.*]] = linalg.transpose ins(%[[V]] {{.*}} permutation = [0, 2, 1, 3]
// CHECK-NOT: linalg.generic
// CHECK: %[[O:.*]] = attn.forward %[[QT]], %[[KT]], %[[VT]] mask(causal) : tensor<2x8x100x64xf16>, tensor<2x2x100x64xf16>, tensor<2x2x100x64xf16> -> tensor<2x8x100x64xf16>
// CHECK-NEXT: return %[[O]]
func.func @tm_tensor_heads(%q: tensor<2x100x8x64xf16>, %k: tensor<2x100x2x64xf16>, %v: tensor<2x100x2x64xf16>) -> tensor<2x8x100x64xf16> {
  %e = tensor.empty() : tensor<2x8x100x64xf16>
  %e2 = tensor.empty() : tensor<2x2x100x64xf16>
  %qt = linalg.transpose ins(%q : tensor<2x100x8x64xf16>) outs(%e : tensor<2x8x100x64xf16>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%k : tensor<2x100x2x64xf16>) outs(%e2 : tensor<2x2x100x64xf16>) permutation = [0, 2, 1, 3]
  %vt = linalg.transpose ins(%v : tensor<2x100x2x64xf16>) outs(%e2 : tensor<2x2x100x64xf16>) permutation = [0, 2, 1, 3]
  %k5 = tensor.expand_shape %kt [[0], [1, 2], [3], [4]] output_shape [2, 2, 1, 100, 64] : tensor<2x2x100x64xf16> into tensor<2x2x1x100x64xf16>
  %e5 = tensor.empty() : tensor<2x2x4x100x64xf16>
  %kb = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, 0, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%k5 : tensor<2x2x1x100x64xf16>) outs(%e5 : tensor<2x2x4x100x64xf16>) {
  ^bb0(%in: f16, %out: f16):
    linalg.yield %in : f16
  } -> tensor<2x2x4x100x64xf16>
  %vb = linalg.broadcast ins(%vt : tensor<2x2x100x64xf16>) outs(%e5 : tensor<2x2x4x100x64xf16>) dimensions = [2]
  %kr = tensor.collapse_shape %kb [[0], [1, 2], [3], [4]] : tensor<2x2x4x100x64xf16> into tensor<2x8x100x64xf16>
  %vr = tensor.collapse_shape %vb [[0], [1, 2], [3], [4]] : tensor<2x2x4x100x64xf16> into tensor<2x8x100x64xf16>
  %qc = tensor.collapse_shape %qt [[0, 1], [2], [3]] : tensor<2x8x100x64xf16> into tensor<16x100x64xf16>
  %kc = tensor.collapse_shape %kr [[0, 1], [2], [3]] : tensor<2x8x100x64xf16> into tensor<16x100x64xf16>
  %vc = tensor.collapse_shape %vr [[0, 1], [2], [3]] : tensor<2x8x100x64xf16> into tensor<16x100x64xf16>
  %zero = arith.constant 0.0 : f16
  %inf = arith.constant 0xFC00 : f16
  %m0 = tensor.empty() : tensor<2x8x100x100xf16>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%m0 : tensor<2x8x100x100xf16>) {
  ^bb0(%out: f16):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %c = arith.cmpi sge, %i, %j : index
    %s = arith.select %c, %zero, %inf : f16
    linalg.yield %s : f16
  } -> tensor<2x8x100x100xf16>
  %mc = tensor.collapse_shape %m [[0, 1], [2], [3]] : tensor<2x8x100x100xf16> into tensor<16x100x100xf16>
  %0 = tensor.empty() : tensor<16x100x64xf16>
  // expected-remark @+1 {{mask causal, scale 0.125, heads 8 over 2}}
  %o = "tm_tensor.attention"(%qc, %kc, %vc, %mc, %0) <{operandSegmentSizes = array<i32: 4, 1>}> : (tensor<16x100x64xf16>, tensor<16x100x64xf16>, tensor<16x100x64xf16>, tensor<16x100x100xf16>, tensor<16x100x64xf16>) -> tensor<16x100x64xf16>
  %o4 = tensor.expand_shape %o [[0, 1], [2], [3]] output_shape [2, 8, 100, 64] : tensor<16x100x64xf16> into tensor<2x8x100x64xf16>
  return %o4 : tensor<2x8x100x64xf16>
}

// -----

//===----------------------------------------------------------------------===//
// StableHLO
//===----------------------------------------------------------------------===//

// The function that the composite stands for goes with its last user.
// CHECK-LABEL: @composite
// CHECK: %[[O:.*]]:2 = attn.forward %{{.*}}, %{{.*}}, %{{.*}} mask(causal_bottom_right) scale(2.500000e-01)
// CHECK-NEXT: return %[[O]]#0, %[[O]]#1
// CHECK-NOT: @impl
func.func @composite(%q: tensor<1x8x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> (tensor<1x8x?x64xf16>, tensor<1x8x?xf32>) {
  // expected-remark @+1 {{'stablehlo.composite' becomes an attn.forward: mask causal_bottom_right, scale 0.25, heads 8 over 2}}
  %o:2 = "stablehlo.composite"(%q, %k, %v) <{name = "attn.forward", composite_attributes = {mask = "causal_bottom_right", scale = 0.25 : f32}, decomposition = @impl}> : (tensor<1x8x?x64xf16>, tensor<1x2x?x64xf16>, tensor<1x2x?x64xf16>) -> (tensor<1x8x?x64xf16>, tensor<1x8x?xf32>)
  return %o#0, %o#1 : tensor<1x8x?x64xf16>, tensor<1x8x?xf32>
}
func.func private @impl(%q: tensor<1x8x?x64xf16>, %k: tensor<1x2x?x64xf16>, %v: tensor<1x2x?x64xf16>) -> (tensor<1x8x?x64xf16>, tensor<1x8x?xf32>) {
  %o:2 = "stablehlo.something"() ({}) : () -> (tensor<1x8x?x64xf16>, tensor<1x8x?xf32>)
  return %o#0, %o#1 : tensor<1x8x?x64xf16>, tensor<1x8x?xf32>
}

// -----

// An integer scale is a scale, and rank 3 has one head.
// CHECK-LABEL: @tenstorrent
// CHECK: attn.forward {{.*}} mask(causal) scale(1.000000e+00) : tensor<2x1x50x64xbf16>
func.func @tenstorrent(%q: tensor<2x50x64xbf16>) -> tensor<2x50x64xbf16> {
  // expected-remark @+1 {{mask causal, scale 1, heads 1 over 1}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "tenstorrent.scaled_dot_product_attention", composite_attributes = {is_causal = true, scale = 1 : i64}}> : (tensor<2x50x64xbf16>, tensor<2x50x64xbf16>, tensor<2x50x64xbf16>) -> tensor<2x50x64xbf16>
  return %o : tensor<2x50x64xbf16>
}

// -----

// CHECK-LABEL: @custom_call
// CHECK: attn.forward {{.*}} mask(window<16, 0>)
// CHECK: attn.forward {{.*}} mask(window<1, 0>)
func.func @custom_call(%q: tensor<1x4x50x64xbf16>) -> (tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>) {
  // expected-remark @+1 {{'stablehlo.custom_call' becomes an attn.forward: mask window<16, 0>}}
  %o = "stablehlo.custom_call"(%q, %q, %q) <{call_target_name = "attn.forward", backend_config = {mask = "window<16, 0>"}}> : (tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>) -> tensor<1x4x50x64xbf16>
  // A mask that is added is -inf but for the band.
  %z = arith.constant 0.0 : bf16
  %n = arith.constant 0xFF80 : bf16
  %m0 = tensor.empty() : tensor<1x1x50x50xbf16>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%m0 : tensor<1x1x50x50xbf16>) {
  ^bb0(%out: bf16):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %d = arith.subi %i, %j : index
    %c1 = arith.constant 1 : index
    %far = arith.cmpi sgt, %d, %c1 : index
    %s = arith.select %far, %n, %z : bf16
    linalg.yield %s : bf16
  } -> tensor<1x1x50x50xbf16>
  // expected-remark @+1 {{mask window<1, 0>}}
  %p = "stablehlo.custom_call"(%q, %q, %q, %m) <{call_target_name = "tenstorrent.scaled_dot_product_attention"}> {tt.composite_attributes = {is_causal = true}} : (tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>, tensor<1x1x50x50xbf16>) -> tensor<1x4x50x64xbf16>
  return %o, %p : tensor<1x4x50x64xbf16>, tensor<1x4x50x64xbf16>
}

// -----

//===----------------------------------------------------------------------===//
// IREE
//===----------------------------------------------------------------------===//

// Query heads are a loop of their own, and keys come rows first.
// CHECK-LABEL: @iree
// CHECK-SAME: %[[Q:.*]]: tensor<8x4x1x128xf32>, %[[K:.*]]: tensor<?x8x128xf32>, %[[V:.*]]: tensor<8x?x64xf32>
// CHECK-DAG: linalg.transpose ins(%[[K]] {{.*}} permutation = [1, 0, 2]
// CHECK: attn.forward %[[Q]], %{{.*}}, %{{.*}} scale(5.000000e-01) : tensor<8x4x1x128xf32>, tensor<8x1x?x128xf32>, tensor<8x1x?x64xf32> -> tensor<8x4x1x64xf32>
func.func @iree(%q: tensor<8x4x1x128xf32>, %k: tensor<?x8x128xf32>, %v: tensor<8x?x64xf32>) -> tensor<8x4x1x64xf32> {
  %0 = tensor.empty() : tensor<8x4x1x64xf32>
  %s = arith.constant 0.5 : f32
  // expected-remark @+1 {{'iree_linalg_ext.attention' becomes an attn.forward: mask none, scale 0.5, heads 4 over 1, products in tf32x3}}
  %1 = "iree_linalg_ext.attention"(%q, %k, %v, %s, %0) <{indexing_maps = [
      affine_map<(b, g, m, n, k1, k2) -> (b, g, m, k1)>,
      affine_map<(b, g, m, n, k1, k2) -> (k2, b, k1)>,
      affine_map<(b, g, m, n, k1, k2) -> (b, k2, n)>,
      affine_map<(b, g, m, n, k1, k2) -> ()>,
      affine_map<(b, g, m, n, k1, k2) -> (b, g, m, n)>]}> ({
  ^bb0(%score: f32):
    "iree_linalg_ext.yield"(%score) : (f32) -> ()
  }) : (tensor<8x4x1x128xf32>, tensor<?x8x128xf32>, tensor<8x?x64xf32>, f32, tensor<8x4x1x64xf32>) -> tensor<8x4x1x64xf32>
  return %1 : tensor<8x4x1x64xf32>
}

// -----

// V whose rows are columns is moved, and the remark says so.
// CHECK-LABEL: @iree_columns
// CHECK-SAME: %[[Q:.*]]: tensor<8x4x1x128xf32>, %[[K:.*]]: tensor<?x8x128xf32>, %[[V:.*]]: tensor<8x64x?xf32>
// CHECK-DAG: linalg.transpose ins(%[[K]] {{.*}} permutation = [1, 0, 2]
// CHECK-DAG: linalg.transpose ins(%[[V]] {{.*}} permutation = [0, 2, 1]
// CHECK: attn.forward %[[Q]], %{{.*}}, %{{.*}} scale(5.000000e-01) : tensor<8x4x1x128xf32>, tensor<8x1x?x128xf32>, tensor<8x1x?x64xf32> -> tensor<8x4x1x64xf32>
func.func @iree_columns(%q: tensor<8x4x1x128xf32>, %k: tensor<?x8x128xf32>, %v: tensor<8x64x?xf32>) -> tensor<8x4x1x64xf32> {
  %0 = tensor.empty() : tensor<8x4x1x64xf32>
  %s = arith.constant 0.5 : f32
  // expected-remark @+1 {{'iree_linalg_ext.attention' becomes an attn.forward: mask none, scale 0.5, heads 4 over 1, products in tf32x3; v is transposed, which moves it}}
  %1 = "iree_linalg_ext.attention"(%q, %k, %v, %s, %0) <{indexing_maps = [
      affine_map<(b, g, m, n, k1, k2) -> (b, g, m, k1)>,
      affine_map<(b, g, m, n, k1, k2) -> (k2, b, k1)>,
      affine_map<(b, g, m, n, k1, k2) -> (b, n, k2)>,
      affine_map<(b, g, m, n, k1, k2) -> ()>,
      affine_map<(b, g, m, n, k1, k2) -> (b, g, m, n)>]}> ({
  ^bb0(%score: f32):
    "iree_linalg_ext.yield"(%score) : (f32) -> ()
  }) : (tensor<8x4x1x128xf32>, tensor<?x8x128xf32>, tensor<8x64x?xf32>, f32, tensor<8x4x1x64xf32>) -> tensor<8x4x1x64xf32>
  return %1 : tensor<8x4x1x64xf32>
}

// -----

// The map of the scale may be absent.
// CHECK-LABEL: @iree_old
// CHECK: attn.forward {{.*}} scale(1.250000e-01) : tensor<2x10x64x64xf16>
func.func @iree_old(%q: tensor<2x10x64x64xf16>) -> tensor<2x10x64x64xf16> {
  %0 = tensor.empty() : tensor<2x10x64x64xf16>
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{heads 10 over 10}}
  %1 = "iree_linalg_ext.attention"(%q, %q, %q, %s, %0) <{indexing_maps = [
      affine_map<(b, h, m, n, k1, k2) -> (b, h, m, k1)>,
      affine_map<(b, h, m, n, k1, k2) -> (b, h, k2, k1)>,
      affine_map<(b, h, m, n, k1, k2) -> (b, h, k2, n)>,
      affine_map<(b, h, m, n, k1, k2) -> (b, h, m, n)>]}> : (tensor<2x10x64x64xf16>, tensor<2x10x64x64xf16>, tensor<2x10x64x64xf16>, f16, tensor<2x10x64x64xf16>) -> tensor<2x10x64x64xf16>
  return %1 : tensor<2x10x64x64xf16>
}

// -----

//===----------------------------------------------------------------------===//
// ONNX
//===----------------------------------------------------------------------===//

// Rank 3 is [batch, rows, heads x columns].  Keys behind the last that a query
// sees are cut off, where the window then has a name.
// CHECK-LABEL: @onnx
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x72xf32>
// CHECK-NOT: onnx
// CHECK: tensor.expand_shape %[[Q]] {{.*}} into tensor<2x4x9x8xf32>
// CHECK: tensor.extract_slice {{.*}} to tensor<2x3x4x8xf32>
// CHECK: attn.forward {{.*}} mask(window<2, 0>) : tensor<2x9x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x10xf32>
// CHECK: tensor.collapse_shape {{.*}} into tensor<2x4x90xf32>
func.func @onnx(%q: tensor<2x4x72xf32>, %k: tensor<2x6x24xf32>, %v: tensor<2x6x30xf32>) -> tensor<2x4x90xf32> {
  %n = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{'onnx.Attention' becomes an attn.forward: mask window<2, 0>, scale 0.353553, heads 9 over 3, products in tf32x3}}
  %y:4 = "onnx.Attention"(%q, %k, %v, %n, %n, %n, %n) {q_num_heads = 9 : si64, kv_num_heads = 3 : si64, is_causal = 1 : si64, left_window_size = 2 : si64} : (tensor<2x4x72xf32>, tensor<2x6x24xf32>, tensor<2x6x30xf32>, none, none, none, none) -> (tensor<2x4x90xf32>, none, none, none)
  return %y#0 : tensor<2x4x90xf32>
}

// -----

// The past and what is new are joined, and are the present.
// CHECK-LABEL: @onnx_past
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<2x3x4x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x3x4x8xf32>, %{{[a-z0-9]+}}: tensor<2x3x4x8xf32>, %[[P:[a-z0-9]+]]: tensor<2x3x3x8xf32>
// CHECK: %[[A:.*]] = tensor.insert_slice %[[P]] into %{{.*}}[0, 0, 0, 0] [2, 3, 3, 8]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[K]] into %[[A]][0, 0, 3, 0] [2, 3, 4, 8]
// CHECK: %[[O:.*]] = attn.forward %{{.*}}, %[[B]], %[[V:.*]] mask(causal_bottom_right)
// CHECK: return %[[O]], %[[B]], %[[V]]
func.func @onnx_past(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %pk: tensor<2x3x3x8xf32>, %pv: tensor<2x3x3x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>) {
  %n = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{mask causal_bottom_right}}
  %y:3 = "onnx.Attention"(%q, %k, %v, %n, %pk, %pv) {is_causal = 1 : si64} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, none, tensor<2x3x3x8xf32>, tensor<2x3x3x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>)
  return %y#0, %y#1, %y#2 : tensor<2x3x4x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x8xf32>
}

// -----

// Lengths of a cache are those of the op, whose masks count from its last key.
// CHECK-LABEL: @onnx_lengths
// CHECK: attn.forward {{.*}} mask(causal_bottom_right) lengths(k %{{.*}} : tensor<2xi64>) :
// CHECK: attn.forward {{.*}} mask(window<3, 0>) lengths(k %{{.*}} : tensor<2xi64>) :
!q = tensor<2x3x4x8xf32>
!k = tensor<2x3x4x8xf32>
func.func @onnx_lengths(%q: !q, %k: !k, %n: tensor<2xi64>) -> (!q, !q) {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{becomes an attn.forward: mask causal_bottom_right, scale 0.353553}}
  %x = "onnx.Attention"(%q, %k, %k, %z, %z, %z, %n) {is_causal = 1 : si64} : (!q, !k, !k, none, none, none, tensor<2xi64>) -> !q
  // expected-remark @+1 {{becomes an attn.forward: mask window<3, 0>, scale 0.353553}}
  %y = "onnx.Attention"(%q, %k, %k, %z, %z, %z, %n) {is_causal = 1 : si64, left_window_size = 3 : si64} : (!q, !k, !k, none, none, none, tensor<2xi64>) -> !q
  return %x, %y : !q, !q
}

// -----

// What is no band is read, and caps come in front of what is added.
// CHECK-LABEL: @onnx_clauses
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<4x6xi1>, %[[B:[a-z0-9]*]]: tensor<2x1x1x6xf32>, %[[K:[a-z0-9]*]]: tensor<6xf32>
// CHECK: attn.forward {{.*}} mask(causal) captures(%[[M]] : tensor<4x6xi1>) sees ({{.*}}) {
// CHECK-NEXT: attn.read %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x6xi1>
// CHECK-NEXT: attn.yield
// CHECK-NEXT: } softcap(2.000000e+00) : tensor
// CHECK: attn.forward {{.*}} softcap(3.000000e+00) bias(%[[B]] : tensor<2x1x1x6xf32>) :
// CHECK: %[[W:.*]] = tensor.expand_shape %[[K]] {{.*}} into tensor<1x6xf32>
// CHECK: attn.forward {{.*}} bias(%[[W]] : tensor<1x6xf32>) :
!q = tensor<2x3x4x8xf32>
!k = tensor<2x3x6x8xf32>
func.func @onnx_clauses(%q: !q, %k: !k, %m: tensor<4x6xi1>, %b: tensor<2x1x1x6xf32>, %r: tensor<6xf32>) -> (!q, !q, !q) {
  // expected-remark @+1 {{becomes an attn.forward: mask causal, scale 0.353553, heads 3 over 3}}
  %x = "onnx.Attention"(%q, %k, %k, %m) {softcap = 2.0 : f32, is_causal = 1 : si64} : (!q, !k, !k, tensor<4x6xi1>) -> !q
  // expected-remark @+1 {{becomes an attn.forward: mask none, scale 0.353553, heads 3 over 3}}
  %y = "onnx.Attention"(%q, %k, %k, %b) {softcap = 3.0 : f32} : (!q, !k, !k, tensor<2x1x1x6xf32>) -> !q
  // expected-remark @+1 {{becomes an attn.forward: mask none, scale 0.353553, heads 3 over 3}}
  %z = "onnx.Attention"(%q, %k, %k, %r) : (!q, !k, !k, tensor<6xf32>) -> !q
  return %x, %y, %z : !q, !q, !q
}

// -----

// Scores in four modes are linalg ops of queries x keys beside the attention.
// CHECK-LABEL: @onnx_scaled
// CHECK: attn.forward
// CHECK: %[[S:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]
// CHECK: arith.mulf {{.*}} %{{.*}} : f32
// CHECK: return %{{.*}}, %{{.*}} : tensor<2x3x4x8xf32>, tensor<2x3x4x6xf32>
// CHECK-LABEL: @onnx_weights
// CHECK: attn.forward {{.*}} mask(causal) softcap
// CHECK: math.tanh
// CHECK: linalg.index 3
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: arith.truncf {{.*}} : f32 to f16
!q = tensor<2x3x4x8xf32>
!k = tensor<2x3x6x8xf32>
!h = tensor<2x3x4x8xf16>
func.func @onnx_scaled(%q: !q, %k: !k) -> (!q, tensor<2x3x4x6xf32>) {
  // expected-remark @+1 {{scores are multiplied once more, in memory for every query and key}}
  %y:4 = "onnx.Attention"(%q, %k, %k) : (!q, !k, !k) -> (!q, none, none, tensor<2x3x4x6xf32>)
  return %y#0, %y#3 : !q, tensor<2x3x4x6xf32>
}
func.func @onnx_weights(%q: !h) -> (!h, tensor<2x3x4x4xf16>) {
  // expected-remark @+1 {{scores are multiplied once more}}
  %y:4 = "onnx.Attention"(%q, %q, %q) {qk_matmul_output_mode = 3 : si64, is_causal = 1 : si64, softcap = 2.0 : f32} : (!h, !h, !h) -> (!h, none, none, tensor<2x3x4x4xf16>)
  return %y#0, %y#3 : !h, tensor<2x3x4x4xf16>
}

// -----

// Keys behind the last column of a mask are not read, or where masks count from
// the last used key hidden by more columns.
// CHECK-LABEL: @onnx_columns
// CHECK: %[[N:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[K:.*]] = tensor.extract_slice %{{.*}} to tensor<2x3x4x8xf32>
// CHECK: attn.forward %{{.*}}, %[[K]], {{.*}} bias(%{{.*}} : tensor<4x4xf32>)
// CHECK: %[[F:.*]] = linalg.fill ins(%[[N]] : f32)
// CHECK: %[[M:.*]] = tensor.insert_slice %{{.*}} into %[[F]][0, 0] [4, 4]
// CHECK: attn.forward {{.*}} bias(%[[M]] : tensor<4x6xf32>){{.*}} lengths(
!q = tensor<2x3x4x8xf32>
!k = tensor<2x3x6x8xf32>
func.func @onnx_columns(%q: !q, %k: !k, %m: tensor<4x4xf32>, %n: tensor<2xi64>) -> (!q, !q) {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{becomes an attn.forward}}
  %x = "onnx.Attention"(%q, %k, %k, %m) : (!q, !k, !k, tensor<4x4xf32>) -> !q
  // expected-remark @+1 {{becomes an attn.forward}}
  %y = "onnx.Attention"(%q, %k, %k, %m, %z, %z, %n) : (!q, !k, !k, tensor<4x4xf32>, none, none, tensor<2xi64>) -> !q
  return %x, %y : !q, !q
}
