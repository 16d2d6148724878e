// attn-opt -attn-to-binary=format=isa
// error: expects outs in buffers of their own, but got that of q
func.func @f(%q: memref<1x2x64x64xbf16>, %k: memref<1x2x64x64xbf16>) {
  attn.forward %q, %k, %k outs(%q : memref<1x2x64x64xbf16>) : memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>
  return
}
