// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that fits h100_sxm and has a kernel, but got none
// note: fits, but has no kernel yet
func.func @f(%q: tensor<1x2x64x8192xf32>, %k: tensor<1x2x64x8192xf32>, %v: tensor<1x2x64x8192xf32>) {
  %o = attn.forward %q, %k, %v precision(tf32) : tensor<1x2x64x8192xf32>, tensor<1x2x64x8192xf32>, tensor<1x2x64x8192xf32> -> tensor<1x2x64x8192xf32>
  return
}
