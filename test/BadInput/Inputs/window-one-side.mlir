// attn-opt -attn-to-binary=format=isa
// error: expects a mask, but got 'window<16>'
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v mask(window<16>) : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
