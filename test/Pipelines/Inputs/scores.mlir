// Attention that attn.forward cannot express: its scores are asked for.
!t = tensor<1x8x100x64xf16>
!s = tensor<1x8x100x100xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, !s) {
  %y:4 = "onnx.Attention"(%q, %k, %v) : (!t, !t, !t) -> (!t, !t, !t, !s)
  return %y#0, %y#3 : !t, !s
}
