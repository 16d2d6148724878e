// attn-opt -attn-to-binary=format=isa
// error: but got 'flash', which is forward
!q = memref<1x2x64x64xbf16>
func.func @f(%q: !q, %lse: memref<1x2x64xf32>, %dq: !q, %dk: !q, %dv: !q) {
  attn.backward %q, %q, %q, %q, %q, %lse outs(%dq, %dk, %dv : !q, !q, !q) {schedule = #attn.schedule<flash>} : !q, !q, !q, !q, !q, memref<1x2x64xf32>
  return
}
