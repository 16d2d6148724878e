// attn-opt -attn-to-binary=format=isa
// error: redefinition of symbol named 'f'
func.func private @f()
func.func private @f()
