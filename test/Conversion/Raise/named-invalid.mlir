// What is no attention that attn.forward expresses stays, and a remark says why.
// RUN: attn-opt %s -attn-raise --allow-unregistered-dialect -split-input-file -verify-diagnostics
// RUN: attn-opt %s --allow-unregistered-dialect -split-input-file > %t.before
// RUN: attn-opt %s -attn-raise --allow-unregistered-dialect -split-input-file 2>/dev/null > %t.after
// RUN: diff %t.before %t.after

!t = tensor<8x100x64xf16>

func.func @tm_rank(%q: tensor<2x8x100x64xf16>) -> tensor<2x8x100x64xf16> {
  // expected-remark @+1 {{'tm_tensor.attention' is not raised: expects q of rank 3, but got tensor<2x8x100x64xf16>}}
  %o = "tm_tensor.attention"(%q, %q, %q, %q) <{operandSegmentSizes = array<i32: 3, 1>}> : (tensor<2x8x100x64xf16>, tensor<2x8x100x64xf16>, tensor<2x8x100x64xf16>, tensor<2x8x100x64xf16>) -> tensor<2x8x100x64xf16>
  return %o : tensor<2x8x100x64xf16>
}
func.func @tm_segments(%q: !t) -> !t {
  // expected-remark @+1 {{is not raised: expects q, k, v, perhaps a mask, and one output in operandSegmentSizes}}
  %o = "tm_tensor.attention"(%q, %q, %q, %q) <{operandSegmentSizes = array<i32: 2, 2>}> : (!t, !t, !t, !t) -> !t
  return %o : !t
}
func.func @tm_sizes(%q: !t, %k: tensor<8x100x32xf16>) -> !t {
  // expected-remark @+1 {{is not raised: expects k of size 64 in dimension 2, but got 32}}
  %o = "tm_tensor.attention"(%q, %k, %q, %q) <{operandSegmentSizes = array<i32: 3, 1>}> : (!t, tensor<8x100x32xf16>, !t, !t) -> !t
  return %o : !t
}
func.func @tm_batch(%q: !t, %k: tensor<4x100x64xf16>) -> !t {
  // expected-remark @+1 {{is not raised: expects q and k of the same size in dimension 0, but got 8 and 4}}
  %o = "tm_tensor.attention"(%q, %k, %k, %q) <{operandSegmentSizes = array<i32: 3, 1>}> : (!t, tensor<4x100x64xf16>, tensor<4x100x64xf16>, !t) -> !t
  return %o : !t
}
func.func @tm_type(%q: tensor<8x100x64xf64>) -> tensor<8x100x64xf64> {
  // expected-remark @+1 {{is not raised: attn.forward expects a supported element type, but got 'f64'}}
  %o = "tm_tensor.attention"(%q, %q, %q, %q) <{operandSegmentSizes = array<i32: 3, 1>}> : (tensor<8x100x64xf64>, tensor<8x100x64xf64>, tensor<8x100x64xf64>, tensor<8x100x64xf64>) -> tensor<8x100x64xf64>
  return %o : tensor<8x100x64xf64>
}
func.func @tm_mask(%q: !t, %m: tensor<8x100x100xf16>) -> !t {
  // expected-remark @+1 {{is not raised: the mask is neither a constant nor made of row numbers, so it may be no band}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, tensor<8x100x100xf16>, !t) -> !t
  return %o : !t
}
func.func @tm_mask_type(%q: !t, %m: tensor<8x100x100xi32>) -> !t {
  // expected-remark @+1 {{is not raised: expects a mask of booleans or of floating-point numbers, but got i32}}
  %o = "tm_tensor.attention"(%q, %q, %q, %m, %q) <{operandSegmentSizes = array<i32: 4, 1>}> : (!t, !t, !t, tensor<8x100x100xi32>, !t) -> !t
  return %o : !t
}

// -----

!q = tensor<1x8x100x64xf16>

func.func @composite_rank(%q: tensor<100x64xf16>) -> tensor<100x64xf16> {
  // expected-remark @+1 {{'stablehlo.composite' is not raised: expects q of rank 3 or 4, but got tensor<100x64xf16>}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward"}> : (tensor<100x64xf16>, tensor<100x64xf16>, tensor<100x64xf16>) -> tensor<100x64xf16>
  return %o : tensor<100x64xf16>
}
func.func @composite_operands(%q: !q) -> !q {
  // expected-remark @+1 {{is not raised: expects q, k and v, but got 4 operands}}
  %o = "stablehlo.composite"(%q, %q, %q, %q) <{name = "attn.forward"}> : (!q, !q, !q, !q) -> !q
  return %o : !q
}
func.func @composite_heads(%q: !q, %k: tensor<1x3x100x64xf16>) -> !q {
  // expected-remark @+1 {{is not raised: expects the head count of q to be a multiple of that of k, but got 8 and 3}}
  %o = "stablehlo.composite"(%q, %k, %k) <{name = "attn.forward"}> : (!q, tensor<1x3x100x64xf16>, tensor<1x3x100x64xf16>) -> !q
  return %o : !q
}
func.func @composite_name(%q: !q) -> (!q, !q, !q) {
  // expected-remark @+1 {{'stablehlo.composite' is not raised: expects the name attn.forward or tenstorrent.scaled_dot_product_attention, but got atn.forward}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "atn.forward"}> : (!q, !q, !q) -> !q
  // expected-remark @+1 {{'stablehlo.custom_call' is not raised: expects the name attn.forward or tenstorrent.scaled_dot_product_attention, but got attn.backward}}
  %p = "stablehlo.custom_call"(%q, %q, %q) <{call_target_name = "attn.backward"}> : (!q, !q, !q) -> !q
  // Of others nothing is said.
  %r = "stablehlo.composite"(%q, %q, %q) <{name = "mlir.forward"}> : (!q, !q, !q) -> !q
  return %o, %p, %r : !q, !q, !q
}
func.func @composite_mask(%q: !q) -> !q {
  // expected-remark @+1 {{is not raised: expects a mask of none, causal, causal_bottom_right, window, prefix, but got}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward", composite_attributes = {mask = "triangle"}}> : (!q, !q, !q) -> !q
  return %o : !q
}
func.func @composite_scale(%q: !q) -> !q {
  // expected-remark @+1 {{is not raised: expects a scale that is a number}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward", composite_attributes = {scale = "half"}}> : (!q, !q, !q) -> !q
  return %o : !q
}
func.func @composite_infinite(%q: !q) -> !q {
  // expected-remark @+1 {{is not raised: attn.forward expects a finite scale, but got}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward", composite_attributes = {scale = 0x7F800000 : f32}}> : (!q, !q, !q) -> !q
  return %o : !q
}
func.func @composite_unknown(%q: !q) -> !q {
  // expected-remark @+1 {{is not raised: expects the attributes mask, scale, but got dropout}}
  %o = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward", composite_attributes = {dropout = 0.1 : f32}}> : (!q, !q, !q) -> !q
  return %o : !q
}
func.func @composite_lse(%q: !q) -> (!q, tensor<1x8x100x1xf32>) {
  // expected-remark @+1 {{is not raised: expects a result of tensor<1x8x100xf32>, but got tensor<1x8x100x1xf32>}}
  %o:2 = "stablehlo.composite"(%q, %q, %q) <{name = "attn.forward"}> : (!q, !q, !q) -> (!q, tensor<1x8x100x1xf32>)
  return %o#0, %o#1 : !q, tensor<1x8x100x1xf32>
}
func.func @tenstorrent_causal(%q: !q) -> !q {
  // expected-remark @+1 {{'stablehlo.custom_call' is not raised: expects is_causal}}
  %o = "stablehlo.custom_call"(%q, %q, %q) <{call_target_name = "tenstorrent.scaled_dot_product_attention"}> : (!q, !q, !q) -> !q
  return %o : !q
}

// A composite of another name is nobody's attention, and no remark tells of it.
func.func @other(%q: tensor<4xf32>) -> tensor<4xf32> {
  %o = "stablehlo.composite"(%q) <{name = "chlo.erf", decomposition = @erf}> : (tensor<4xf32>) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
func.func private @erf(%q: tensor<4xf32>) -> tensor<4xf32> {
  return %q : tensor<4xf32>
}

// -----

#q = affine_map<(b, m, n, k1, k2) -> (b, m, k1)>
#k = affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>
#v = affine_map<(b, m, n, k1, k2) -> (b, k2, n)>
#s = affine_map<(b, m, n, k1, k2) -> ()>
#o = affine_map<(b, m, n, k1, k2) -> (b, m, n)>
!t = tensor<8x100x64xf16>

func.func @iree_scale(%q: !t, %s: f16) -> !t {
  // expected-remark @+1 {{'iree_linalg_ext.attention' is not raised: the scale is not a constant}}
  %o = "iree_linalg_ext.attention"(%q, %q, %q, %s, %q) <{indexing_maps = [#q, #k, #v, #s, #o]}> : (!t, !t, !t, f16, !t) -> !t
  return %o : !t
}
func.func @iree_region(%q: !t) -> !t {
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{is not raised: the region changes scores}}
  %o = "iree_linalg_ext.attention"(%q, %q, %q, %s, %q) <{indexing_maps = [#q, #k, #v, #s, #o]}> ({
  ^bb0(%score: f32):
    %t = math.tanh %score : f32
    "iree_linalg_ext.yield"(%t) : (f32) -> ()
  }) : (!t, !t, !t, f16, !t) -> !t
  return %o : !t
}
func.func @iree_maps(%q: !t) -> !t {
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{is not raised: expects an indexing map for every operand}}
  %o = "iree_linalg_ext.attention"(%q, %q, %q, %s, %q) <{indexing_maps = [#q, #k, #o]}> : (!t, !t, !t, f16, !t) -> !t
  return %o : !t
}
func.func @iree_ranks(%q: !t) -> !t {
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{is not raised: expects indexing maps that permute loops and fit the operands}}
  %o = "iree_linalg_ext.attention"(%q, %q, %q, %s, %q) <{indexing_maps = [#s, #k, #v, #s, #o]}> : (!t, !t, !t, f16, !t) -> !t
  return %o : !t
}
func.func @iree_sizes(%q: !t, %k: tensor<8x90x32xf16>) -> !t {
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{is not raised: expects one size for loop 3, but got 64 and 32}}
  %o = "iree_linalg_ext.attention"(%q, %k, %q, %s, %q) <{indexing_maps = [#q, #k, #v, #s, #o]}> : (!t, tensor<8x90x32xf16>, !t, f16, !t) -> !t
  return %o : !t
}
func.func @iree_keys(%q: !t, %k: tensor<8x10x10x64xf16>) -> !t {
  %s = arith.constant 0.125 : f16
  // expected-remark @+1 {{is not raised: expects one loop each of keys and head dimensions, but got several}}
  %o = "iree_linalg_ext.attention"(%q, %k, %k, %s, %q) <{indexing_maps = [
    affine_map<(b, m, n, k1, k2, k3) -> (b, m, k1)>,
    affine_map<(b, m, n, k1, k2, k3) -> (b, k2, k3, k1)>,
    affine_map<(b, m, n, k1, k2, k3) -> (b, k2, k3, n)>,
    affine_map<(b, m, n, k1, k2, k3) -> ()>,
    affine_map<(b, m, n, k1, k2, k3) -> (b, m, n)>]}> : (!t, tensor<8x10x10x64xf16>, tensor<8x10x10x64xf16>, f16, !t) -> !t
  return %o : !t
}

// -----

!q = tensor<2x3x4x8xf32>
!k = tensor<2x3x6x8xf32>

func.func @onnx_numbers(%q: !q, %k: !k) -> (!q, !q, !q) {
  // expected-remark @+1 {{'onnx.Attention' is not raised: expects scale to be a number, but got "wide"}}
  %x = "onnx.Attention"(%q, %k, %k) {scale = "wide"} : (!q, !k, !k) -> !q
  // expected-remark @+1 {{'onnx.Attention' is not raised: expects is_causal to be an integer, but got "yes"}}
  %y = "onnx.Attention"(%q, %k, %k) {is_causal = "yes"} : (!q, !k, !k) -> !q
  // expected-remark @+1 {{'onnx.Attention' is not raised: expects left_window_size to be an integer, but got 1.000000e+300}}
  %z = "onnx.Attention"(%q, %k, %k) {left_window_size = 1.0e300 : f64} : (!q, !k, !k) -> !q
  return %x, %y, %z : !q, !q, !q
}
func.func @onnx_softcap(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{'onnx.Attention' is not raised: softcap: expects 0 or more, but got -2}}
  %y = "onnx.Attention"(%q, %k, %k) {softcap = -2.0 : f32} : (!q, !k, !k) -> !q
  return %y : !q
}
func.func @onnx_scores(%q: !q, %k: !k) -> tensor<2x3x4x6xf32> {
  // expected-remark @+1 {{is not raised: qk_matmul_output: expects rank 4 and a mode of 0 to 3, but got tensor<2x3x4x6xf32> and 4}}
  %y:4 = "onnx.Attention"(%q, %k, %k) {qk_matmul_output_mode = 4 : si64} : (!q, !k, !k) -> (!q, none, none, tensor<2x3x4x6xf32>)
  return %y#3 : tensor<2x3x4x6xf32>
}
func.func @onnx_mode(%q: !q, %k: !k) -> tensor<2x3x4x6xf32> {
  // expected-remark @+1 {{is not raised: expects qk_matmul_output_mode to be an integer, but got 5.000000e-01}}
  %y:4 = "onnx.Attention"(%q, %k, %k) {qk_matmul_output_mode = 0.5 : f64} : (!q, !k, !k) -> (!q, none, none, tensor<2x3x4x6xf32>)
  return %y#3 : tensor<2x3x4x6xf32>
}
func.func @onnx_lengths(%q: !q, %k: !k, %n: tensor<2xi32>) -> !q {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{is not raised: nonpad_kv_seqlen: expects i64 of rank 1, but got tensor<2xi32>}}
  %y = "onnx.Attention"(%q, %k, %k, %z, %z, %z, %n) : (!q, !k, !k, none, none, none, tensor<2xi32>) -> !q
  return %y : !q
}
func.func @onnx_open_mask(%q: !q, %k: !k, %m: tensor<4x?xi1>) -> !q {
  // expected-remark @+1 {{is not raised: attn_mask: the mask is neither a constant nor made of row numbers, so it may be no band, and expects it to have size 1 or 6 in dimension 1, but got tensor<4x?xi1>}}
  %y = "onnx.Attention"(%q, %k, %k, %m) : (!q, !k, !k, tensor<4x?xi1>) -> !q
  return %y : !q
}
func.func @onnx_mask_of_integers(%q: !q, %k: !k, %m: tensor<4x6xi32>) -> !q {
  // expected-remark @+1 {{is not raised: attn_mask: expects a mask of booleans or of floating-point numbers, but got i32}}
  %y = "onnx.Attention"(%q, %k, %k, %m) : (!q, !k, !k, tensor<4x6xi32>) -> !q
  return %y : !q
}
func.func @onnx_wide_mask(%q: !q, %k: !k) -> !q {
  %m = arith.constant dense<true> : tensor<4x7xi1>
  // expected-remark @+1 {{is not raised: attn_mask: expects a mask of size 6 in dimension 1, but got 7}}
  %y = "onnx.Attention"(%q, %k, %k, %m) : (!q, !k, !k, tensor<4x7xi1>) -> !q
  return %y : !q
}
func.func @onnx_precision(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{is not raised: softmax_precision: attn.forward has f32, not f64}}
  %y = "onnx.Attention"(%q, %k, %k) {softmax_precision = 11 : si64} : (!q, !k, !k) -> !q
  return %y : !q
}
func.func @onnx_rank(%q: tensor<*xf32>) -> tensor<*xf32> {
  // expected-remark @+1 {{is not raised: expects q, k and v of rank 3 or 4, but got tensor<*xf32>}}
  %y = "onnx.Attention"(%q, %q, %q) : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  return %y : tensor<*xf32>
}
func.func @onnx_heads(%q: tensor<2x4x24xf32>) -> tensor<2x4x24xf32> {
  // expected-remark @+1 {{is not raised: expects q_num_heads for tensors of rank 3}}
  %y = "onnx.Attention"(%q, %q, %q) : (tensor<2x4x24xf32>, tensor<2x4x24xf32>, tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
  return %y : tensor<2x4x24xf32>
}
func.func @onnx_columns(%q: tensor<2x4x24xf32>) -> tensor<2x4x24xf32> {
  // expected-remark @+1 {{is not raised: expects columns that q_num_heads divides, but got 24 and 5}}
  %y = "onnx.Attention"(%q, %q, %q) {q_num_heads = 5 : si64, kv_num_heads = 5 : si64} : (tensor<2x4x24xf32>, tensor<2x4x24xf32>, tensor<2x4x24xf32>) -> tensor<2x4x24xf32>
  return %y : tensor<2x4x24xf32>
}
func.func @onnx_past(%q: !q, %k: !k, %p: tensor<2x3x5x9xf32>) -> !q {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{is not raised: expects past_key of 2x3x?x8, but got tensor<2x3x5x9xf32>}}
  %y = "onnx.Attention"(%q, %k, %k, %z, %p, %p) : (!q, !k, !k, none, tensor<2x3x5x9xf32>, tensor<2x3x5x9xf32>) -> !q
  return %y : !q
}
func.func @onnx_half_past(%q: !q, %k: !k, %p: !k) -> !q {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{is not raised: expects past_key and past_value together}}
  %y = "onnx.Attention"(%q, %k, %k, %z, %p) : (!q, !k, !k, none, !k) -> !q
  return %y : !q
}
// What joins the past is taken back when the rest does not fit.
func.func @onnx_taken_back(%q: tensor<2x3x4x8xf64>, %k: tensor<2x3x6x8xf64>) -> tensor<2x3x4x8xf64> {
  %z = "onnx.NoValue"() : () -> none
  // expected-remark @+1 {{is not raised: attn.forward expects a supported element type, but got 'f64'}}
  %y = "onnx.Attention"(%q, %k, %k, %z, %k, %k) : (tensor<2x3x4x8xf64>, tensor<2x3x6x8xf64>, tensor<2x3x6x8xf64>, none, tensor<2x3x6x8xf64>, tensor<2x3x6x8xf64>) -> tensor<2x3x4x8xf64>
  return %y : tensor<2x3x4x8xf64>
}
