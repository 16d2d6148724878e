// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that has a kernel, but got output_spill, query = 32, key = 64, column = 32, slice = 16, stages = 2, warps = 2, reduce = 1 on h100_sxm
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<output_spill, query = 32, key = 64, column = 32, slice = 16, stages = 2, warps = 2, reduce = 1>} : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
