// attn-opt -attn-to-binary=format=isa
// error: expects q of rank 4, but got rank 5
func.func @f(%q: tensor<1x1x2x64x64xbf16>, %k: tensor<1x1x2x64x64xbf16>, %v: tensor<1x1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x1x2x64x64xbf16>, tensor<1x1x2x64x64xbf16>, tensor<1x1x2x64x64xbf16> -> tensor<1x1x2x64x64xbf16>
  return
}
