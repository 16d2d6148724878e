// attn-opt -attn-to-binary=format=isa
// error: expects o to have the element type 'bf16' of q, but got 'f32'
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: tensor<1x2x64x64xbf16>, %v: tensor<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16>, tensor<1x2x64x64xbf16> -> tensor<1x2x64x64xf32>
  return
}
