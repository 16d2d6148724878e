// attn-opt -attn-to-binary=format=isa
// error: expects q to have a static and positive head dimension, but got 0
func.func @f(%q: tensor<1x2x64x0xbf16>, %k: tensor<1x2x64x0xbf16>, %v: tensor<1x2x64x0xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x0xbf16>, tensor<1x2x64x0xbf16>, tensor<1x2x64x0xbf16> -> tensor<1x2x64x0xbf16>
  return
}
