// Attention that attn.forward cannot express.
!t = tensor<1x8x100x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t, %n: tensor<1xi64>) -> !t {
  %z = "onnx.NoValue"() : () -> none
  %y = "onnx.Attention"(%q, %k, %v, %z, %z, %z, %n) : (!t, !t, !t, none, none, none, tensor<1xi64>) -> !t
  return %y : !t
}
