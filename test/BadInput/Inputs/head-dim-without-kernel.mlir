// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that fits h100_sxm and has a kernel, but got none
// note: needs 787200 bytes of shared memory, but a block on h100_sxm has 232448
func.func @f(%q: tensor<1x2x64x8192xbf16>, %k: tensor<1x2x64x8192xbf16>, %v: tensor<1x2x64x8192xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x8192xbf16>, tensor<1x2x64x8192xbf16>, tensor<1x2x64x8192xbf16> -> tensor<1x2x64x8192xbf16>
  return
}
