// attn-opt -attn-to-binary=format=isa
// error: needs 5263360 bytes of shared memory, but a block on h100_sxm has 232448
// note: the best that fits:
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<flash, query = 128, key = 4096, stages = 4, warps = 8>} : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
