// attn-opt -attn-to-binary=format=isa
// error: but got 6 and 4
func.func @f(%q: tensor<1x6x64x64xbf16>, %k: tensor<1x4x64x64xbf16>, %v: tensor<1x4x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x6x64x64xbf16>, tensor<1x4x64x64xbf16>, tensor<1x4x64x64xbf16> -> tensor<1x6x64x64xbf16>
  return
}
