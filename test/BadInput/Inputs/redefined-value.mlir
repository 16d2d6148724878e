// attn-opt -attn-to-binary=format=isa
// error: already in use
func.func @f(%q: tensor<1x2x64x64xbf16>, %q: tensor<1x2x64x64xbf16>) {
  
  return
}
