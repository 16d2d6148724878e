// Attention as a frontend over StableHLO wraps it.
!t = tensor<1x8x100x64xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %o = "stablehlo.composite"(%q, %k, %v) <{name = "attn.forward", composite_attributes = {mask = "causal"}, decomposition = @impl}> : (!t, !t, !t) -> !t
  return %o : !t
}
func.func private @impl(%q: !t, %k: !t, %v: !t) -> !t {
  %o = "stablehlo.something"(%q, %k, %v) : (!t, !t, !t) -> !t
  return %o : !t
}
