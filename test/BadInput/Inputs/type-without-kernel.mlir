// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that fits h100_sxm and has a kernel, but got none
// note: flash: mma_sync expects bf16 or f16, but got f32
func.func @f(%q: tensor<1x2x64x64xf32>, %k: tensor<1x2x64x64xf32>, %v: tensor<1x2x64x64xf32>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32> -> tensor<1x2x64x64xf32>
  return
}
