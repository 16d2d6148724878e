// attn-opt -attn-to-binary=format=isa
// error: use of value '%q' expects different type
func.func @f(%q: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %q, %q : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x32xbf16> -> tensor<1x2x64x64xbf16>
  return
}
