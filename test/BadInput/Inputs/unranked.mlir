// attn-opt -attn-to-binary=format=isa
// error: must be ranked tensor or memref
func.func @f(%q: tensor<*xbf16>) {
  %o = attn.forward %q, %q, %q : tensor<*xbf16>, tensor<*xbf16>, tensor<*xbf16> -> tensor<1x2x64x64xbf16>
  return
}
