// Attention that attn.forward cannot express.
!t = tensor<1x8x100x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %y = "onnx.Attention"(%q, %k, %v) {softcap = 2.0 : f32} : (!t, !t, !t) -> !t
  return %y : !t
}
