// attn-opt -attn-to-binary=format=isa
// error: expects a schedule that has a kernel, but got score_spill, query = 64, key = 64, out_query = 64, column = 64, slice = 64, warps = 4, stages = 3 on h100_sxm
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<score_spill, query = 64, key = 64, out_query = 64, column = 64, slice = 64, warps = 4, stages = 3>} : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
