// Attention that attn.forward cannot express: its softmax is to be in f64.
!t = tensor<1x8x100x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %y = "onnx.Attention"(%q, %k, %v) {softmax_precision = 11 : si64} : (!t, !t, !t) -> !t
  return %y : !t
}
