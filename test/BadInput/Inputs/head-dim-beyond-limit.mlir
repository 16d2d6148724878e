// attn-opt -attn-to-binary=format=isa
// error: 65537
func.func @f(%q: tensor<1x2x64x65537xbf16>, %k: tensor<1x2x64x65537xbf16>, %v: tensor<1x2x64x65537xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x65537xbf16>, tensor<1x2x64x65537xbf16>, tensor<1x2x64x65537xbf16> -> tensor<1x2x64x65537xbf16>
  return
}
