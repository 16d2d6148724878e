// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that fits h100_sxm and has a kernel, but got none
// note: needs 7680 bytes of shared memory, but a block on h100_sxm has 1024
module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 1024>} {
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
}
