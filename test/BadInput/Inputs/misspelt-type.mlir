// attn-opt -attn-to-binary=format=isa
// error: expected
func.func private @f(tensor<1x2x64x64xbfloat>)
