// attn-opt -attn-to-binary=format=isa
// error: expects three results, dq, dk and dv, but got 2
!q = tensor<1x2x64x64xbf16>
func.func @f(%q: !q, %lse: tensor<1x2x64xf32>) {
  %0:2 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, tensor<1x2x64xf32> -> !q, !q
  return
}
