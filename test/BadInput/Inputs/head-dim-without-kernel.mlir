// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that fits h100_sxm and has a kernel, but got none
// note: fits, but has no kernel yet
func.func @f(%q: tensor<1x2x64x8192xf8E4M3FN>, %k: tensor<1x2x64x8192xf8E4M3FN>, %v: tensor<1x2x64x8192xf8E4M3FN>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x8192xf8E4M3FN>, tensor<1x2x64x8192xf8E4M3FN>, tensor<1x2x64x8192xf8E4M3FN> -> tensor<1x2x64x8192xbf16>
  return
}
