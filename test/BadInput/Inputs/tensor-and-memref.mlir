// attn-opt -attn-to-binary=format=isa
// error: expects operands to be all tensors or all memrefs
func.func @f(%q: tensor<1x2x64x64xbf16>, %k: memref<1x2x64x64xbf16>) {
  %o = attn.forward %q, %k, %k : tensor<1x2x64x64xbf16>, memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16> -> tensor<1x2x64x64xbf16>
  return
}
