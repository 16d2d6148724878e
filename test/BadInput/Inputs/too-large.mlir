// attn-opt -attn-to-binary=format=isa
// error: at most 2^58 products
func.func @f(%q: tensor<1048576x1x1000000x64xbf16>, %k: tensor<1048576x1x1000000x64xbf16>, %v: tensor<1048576x1x1000000x64xbf16>) {
  %o = attn.forward %q, %k, %v : tensor<1048576x1x1000000x64xbf16>, tensor<1048576x1x1000000x64xbf16>, tensor<1048576x1x1000000x64xbf16> -> tensor<1048576x1x1000000x64xbf16>
  return
}
