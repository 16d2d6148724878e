// attn-opt -attn-to-binary=format=isa
// error: expects a supported element type, but got 'i8'
func.func @f(%q: tensor<1x2x64x64xi8>, %k: tensor<1x2x64x64xi8>, %v: tensor<1x2x64x64xi8>) {
  %o = attn.forward %q, %k, %v : tensor<1x2x64x64xi8>, tensor<1x2x64x64xi8>, tensor<1x2x64x64xi8> -> tensor<1x2x64x64xi8>
  return
}
