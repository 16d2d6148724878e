// attn-opt -attn-to-binary=format=isa
// error: expects q and k to have the same head dimension, but got 64 and 32
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x32xbf16>, %v: tensor<1x2x64x32xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xbf16>, tensor<1x2x64x32xbf16>, tensor<1x2x64x32xbf16> -> tensor<1x2x64x64xbf16>
  return
}
