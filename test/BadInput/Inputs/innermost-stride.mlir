// attn-opt -attn-to-binary=format=isa
// error: expects q to have an innermost stride of 1
func.func @f(%q: memref<1x2x64x64xbf16, strided<[16384, 8192, 128, 2]>>, %o: memref<1x2x64x64xbf16>) {
  attn.forward %q, %q, %q outs(%o : memref<1x2x64x64xbf16>) : memref<1x2x64x64xbf16, strided<[16384, 8192, 128, 2]>>, memref<1x2x64x64xbf16, strided<[16384, 8192, 128, 2]>>, memref<1x2x64x64xbf16, strided<[16384, 8192, 128, 2]>>
  return
}
