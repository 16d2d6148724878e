// attn-opt -attn-to-binary=format=isa
// error: expects k and v to have the same number of rows, but got 64 and 65
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x65x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x65x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
