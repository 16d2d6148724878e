// attn-opt -attn-to-binary="machine=a100_80g format=isa"
// error: expects a schedule that fits a100_80g and has a kernel, but got none
// note: flash: mma_sync expects bf16, f16 or f32, but got f8e4m3
func.func @f(%q: tensor<1x2x64x64xf8E4M3FN>, %k: tensor<1x2x64x64xf8E4M3FN>, %v: tensor<1x2x64x64xf8E4M3FN>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xf8E4M3FN>, tensor<1x2x64x64xf8E4M3FN>, tensor<1x2x64x64xf8E4M3FN> -> tensor<1x2x64x64xbf16>
  return
}
