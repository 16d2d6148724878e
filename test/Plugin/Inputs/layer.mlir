!t = tensor<1x2x64x64xbf16>
func.func private @layer(%x: !t) -> !t {
  %o = attn.forward %x, %x, %x mask(causal) : !t, !t, !t -> !t
  return %o : !t
}
func.func @twice(%x: !t) -> !t {
  %a = func.call @layer(%x) : (!t) -> !t
  %b = func.call @layer(%a) : (!t) -> !t
  return %b : !t
}
