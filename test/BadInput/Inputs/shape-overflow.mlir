// attn-opt -attn-to-binary=format=isa
// error: invalid dimension
func.func private @f(tensor<1x2x64x99999999999999999999xbf16>)
