// attn-opt -attn-to-binary=format=isa
// error: expects q of rank 4, but got rank 3
func.func @f(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>, tensor<2x64x64xbf16> -> tensor<2x64x64xbf16>
  return
}
