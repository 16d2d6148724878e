// attn-opt -attn-to-binary=format=isa
// error: smem_bytes_per_block
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = -5>} {
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
}
