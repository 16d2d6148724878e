// attn-opt -attn-to-binary=format=isa
// error: expects q and k to have the same batch size, but got 2 and 3
func.func @f(%q: tensor<2x2x64x64xbf16>, %k: tensor<3x2x64x64xbf16>, %v: tensor<3x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<2x2x64x64xbf16>, tensor<3x2x64x64xbf16>, tensor<3x2x64x64xbf16> -> tensor<2x2x64x64xbf16>
  return
}
