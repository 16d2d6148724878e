// Attention as four frontends write it, each with what it means beside it.
#i4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#k4 = affine_map<(a, b, c, d) -> (a, b, c, 0)>
!q = tensor<1x4x30x64xf16>
!k = tensor<1x2x41x64xf16>

func.func @stablehlo(%q: !q, %k: !k, %v: !k) -> (!q, tensor<1x4x30xf32>) {
  %o:2 = "stablehlo.composite"(%q, %k, %v) <{
      name = "attn.forward", decomposition = @without_attn,
      composite_attributes = {mask = "causal_bottom_right", scale = 0.25 : f32}}>
      : (!q, !k, !k) -> (!q, tensor<1x4x30xf32>)
  return %o#0, %o#1 : !q, tensor<1x4x30xf32>
}
func.func @stablehlo_means(%q: !q, %k: !k, %v: !k) -> (!q, tensor<1x4x30xf32>) {
  %o:2 = attn.forward %q, %k, %v mask(causal_bottom_right) scale(0.25)
      : !q, !k, !k -> !q, tensor<1x4x30xf32>
  return %o#0, %o#1 : !q, tensor<1x4x30xf32>
}

// Three keys before and one behind, of queries from the first key on.
!x = tensor<2x3x20x48xf32>
!y = tensor<2x1x20x48xf32>
func.func @onnx(%q: !x, %k: !y, %v: !y) -> !x {
  %none = "onnx.NoValue"() : () -> none
  %y:4 = "onnx.Attention"(%q, %k, %v, %none, %none, %none, %none) {
      scale = 0.5 : f32, left_window_size = 3 : si64, right_window_size = 1 : si64}
      : (!x, !y, !y, none, none, none, none) -> (!x, none, none, none)
  return %y#0 : !x
}
func.func @onnx_means(%q: !x, %k: !y, %v: !y) -> !x {
  %o = attn.forward %q, %k, %v mask(window<3, 1>) scale(0.5) : !x, !y, !y -> !x
  return %o : !x
}

!b = tensor<2x4x30x64xf16>
!c = tensor<2x4x30x32xf16>
func.func @tm_tensor(%q: !b, %k: !b, %v: !c) -> !c {
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : !b into tensor<8x30x64xf16>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : !b into tensor<8x30x64xf16>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : !c into tensor<8x30x32xf16>
  %e = tensor.empty() : tensor<8x30x32xf16>
  %o3 = "tm_tensor.attention"(%q3, %k3, %v3, %e) <{operandSegmentSizes = array<i32: 3, 1>}>
      : (tensor<8x30x64xf16>, tensor<8x30x64xf16>, tensor<8x30x32xf16>, tensor<8x30x32xf16>)
     -> tensor<8x30x32xf16>
  %o = tensor.expand_shape %o3 [[0, 1], [2], [3]] output_shape [2, 4, 30, 32]
      : tensor<8x30x32xf16> into !c
  return %o : !c
}
func.func @tm_tensor_means(%q: !b, %k: !b, %v: !c) -> !c {
  %o = attn.forward %q, %k, %v : !b, !b, !c -> !c
  return %o : !c
}

func.func @linalg(%q: tensor<2x8x40x64xf32>, %k: tensor<2x8x50x64xf32>, %v: tensor<2x8x50x64xf32>) -> tensor<2x8x40x64xf32> {
  %cst = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale = arith.constant 8.0 : f32
  %kt0 = tensor.empty() : tensor<2x8x64x50xf32>
  %kt = linalg.transpose ins(%k : tensor<2x8x50x64xf32>) outs(%kt0 : tensor<2x8x64x50xf32>) permutation = [0, 1, 3, 2]
  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x8x40x64xf32> into tensor<16x40x64xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x8x64x50xf32> into tensor<16x64x50xf32>
  %s0 = tensor.empty() : tensor<16x40x50xf32>
  %s1 = linalg.fill ins(%cst : f32) outs(%s0 : tensor<16x40x50xf32>) -> tensor<16x40x50xf32>
  %s2 = linalg.batch_matmul ins(%qc, %kc : tensor<16x40x64xf32>, tensor<16x64x50xf32>) outs(%s1 : tensor<16x40x50xf32>) -> tensor<16x40x50xf32>
  %s = tensor.expand_shape %s2 [[0, 1], [2], [3]] output_shape [2, 8, 40, 50] : tensor<16x40x50xf32> into tensor<2x8x40x50xf32>
  %e = tensor.empty() : tensor<2x8x40x50xf32>
  %x = linalg.generic {indexing_maps = [#i4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x8x40x50xf32>) outs(%e : tensor<2x8x40x50xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %in, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x40x50xf32>
  %m0 = tensor.empty() : tensor<2x8x40x1xf32>
  %mi0 = tensor.empty() : tensor<2x8x40x1xi64>
  %c0 = arith.constant 0 : i64
  %mi1 = linalg.fill ins(%c0 : i64) outs(%mi0 : tensor<2x8x40x1xi64>) -> tensor<2x8x40x1xi64>
  %m1 = linalg.fill ins(%ninf : f32) outs(%m0 : tensor<2x8x40x1xf32>) -> tensor<2x8x40x1xf32>
  %m:2 = linalg.generic {indexing_maps = [#i4, #k4, #k4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<2x8x40x50xf32>) outs(%m1, %mi1 : tensor<2x8x40x1xf32>, tensor<2x8x40x1xi64>) {
  ^bb0(%in: f32, %out: f32, %oi: i64):
    %i = linalg.index 3 : index
    %ii = arith.index_cast %i : index to i64
    %0 = arith.maximumf %in, %out : f32
    %1 = arith.cmpf ogt, %in, %out : f32
    %2 = arith.select %1, %ii, %oi : i64
    linalg.yield %0, %2 : f32, i64
  } -> (tensor<2x8x40x1xf32>, tensor<2x8x40x1xi64>)
  %sub = linalg.generic {indexing_maps = [#i4, #k4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %m#0 : tensor<2x8x40x50xf32>, tensor<2x8x40x1xf32>) outs(%e : tensor<2x8x40x50xf32>) {
  ^bb0(%in: f32, %mm: f32, %out: f32):
    %0 = arith.subf %in, %mm : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x40x50xf32>
  %exp = linalg.generic {indexing_maps = [#i4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sub : tensor<2x8x40x50xf32>) outs(%e : tensor<2x8x40x50xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x40x50xf32>
  %z1 = linalg.fill ins(%cst : f32) outs(%m0 : tensor<2x8x40x1xf32>) -> tensor<2x8x40x1xf32>
  %sum = linalg.generic {indexing_maps = [#i4, #k4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%exp : tensor<2x8x40x50xf32>) outs(%z1 : tensor<2x8x40x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x40x1xf32>
  %p = linalg.generic {indexing_maps = [#i4, #k4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<2x8x40x50xf32>, tensor<2x8x40x1xf32>) outs(%e : tensor<2x8x40x50xf32>) {
  ^bb0(%in: f32, %mm: f32, %out: f32):
    %0 = arith.divf %in, %mm : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x40x50xf32>
  %pc = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x8x40x50xf32> into tensor<16x40x50xf32>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x8x50x64xf32> into tensor<16x50x64xf32>
  %o0 = tensor.empty() : tensor<16x40x64xf32>
  %o1 = linalg.fill ins(%cst : f32) outs(%o0 : tensor<16x40x64xf32>) -> tensor<16x40x64xf32>
  %o2 = linalg.batch_matmul ins(%pc, %vc : tensor<16x40x50xf32>, tensor<16x50x64xf32>) outs(%o1 : tensor<16x40x64xf32>) -> tensor<16x40x64xf32>
  %o = tensor.expand_shape %o2 [[0, 1], [2], [3]] output_shape [2, 8, 40, 64] : tensor<16x40x64xf32> into tensor<2x8x40x64xf32>
  return %o : tensor<2x8x40x64xf32>
}
!s = tensor<2x8x40x64xf32>
!t = tensor<2x8x50x64xf32>
func.func @linalg_means(%q: !s, %k: !t, %v: !t) -> !s {
  %o = attn.forward %q, %k, %v scale(0.125) : !s, !t, !t -> !s
  return %o : !s
}
