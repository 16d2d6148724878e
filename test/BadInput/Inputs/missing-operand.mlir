// attn-opt -attn-to-binary=format=isa
// error: custom op 'attn.forward' expects either V or values(keys, first n), but got neither
func.func @f(%q: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %q : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
