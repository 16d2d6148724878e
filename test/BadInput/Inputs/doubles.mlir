// attn-opt -attn-to-binary=format=isa
// error: expects a supported element type, but got 'f64'
func.func @f(%q: tensor<1x2x64x64xf64>, %k: tensor<1x2x64x64xf64>, %v: tensor<1x2x64x64xf64>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xf64>, tensor<1x2x64x64xf64>, tensor<1x2x64x64xf64> -> tensor<1x2x64x64xf64>
  return
}
