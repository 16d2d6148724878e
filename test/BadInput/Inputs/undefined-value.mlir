// attn-opt -attn-to-binary=format=isa
// error: use of undeclared SSA value name
func.func @f(%q: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %q : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
