// attn-opt -attn-to-binary=format=isa
// error: expects one, two, three, four or five outs, o, lse, lse_low, weights and block_rows, but got 0
func.func @f(%q: memref<1x2x64x64xbf16>) {
  attn.forward %q, %q, %q : memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>
  return
}
