// attn-opt -attn-to-binary=format=isa
// error: expects a supported element type, but got 'f8E4M3FN'
!q = tensor<1x2x64x64xf8E4M3FN>
func.func @f(%q: !q, %lse: tensor<1x2x64xf32>) {
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, tensor<1x2x64xf32> -> !q, !q, !q
  return
}
