// attn-opt -attn-to-binary=format=isa
// error: output_spill
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<output_spill>} : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
