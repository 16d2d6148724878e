// attn-opt -attn-to-binary=format=isa
// error: empty block: expect at least a terminator
func.func @f(%q: tensor<1x2x64x64xbf16>) -> tensor<1x2x64x64xbf16> {
}
