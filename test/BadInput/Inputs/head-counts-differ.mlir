// attn-opt -attn-to-binary=format=isa
// error: expects k and v to have the same head count, but got 4 and 2
func.func @f(%q: tensor<1x4x64x64xbf16>, %k: tensor<1x4x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x4x64x64xbf16>, tensor<1x4x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x4x64x64xbf16>
  return
}
