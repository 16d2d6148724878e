// attn-opt -attn-to-binary=format=isa
// error: 4096
func.func @f(%q: tensor<1x2x64x4096xbf16>, %k: tensor<1x2x64x4096xbf16>, %v: tensor<1x2x64x4096xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x4096xbf16>, tensor<1x2x64x4096xbf16>, tensor<1x2x64x4096xbf16> -> tensor<1x2x64x4096xbf16>
  return
}
