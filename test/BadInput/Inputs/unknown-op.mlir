// attn-opt -attn-to-binary=format=isa
// error: attn.foreward
func.func @f(%q: tensor<1x2x64x64xbf16>) {
  attn.foreward %q : tensor<1x2x64x64xbf16>
  return
}
