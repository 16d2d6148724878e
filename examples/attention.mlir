// Grouped-query attention of 300 tokens: 4 heads of 64, which share 2 heads of
// keys and values; a query sees itself and what came before.
func.func @attention(%q: tensor<1x4x300x64xbf16>, %k: tensor<1x2x300x64xbf16>,
                     %v: tensor<1x2x300x64xbf16>)
    -> (tensor<1x4x300x64xbf16>, tensor<1x4x300xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal)
      : tensor<1x4x300x64xbf16>, tensor<1x2x300x64xbf16>, tensor<1x2x300x64xbf16>
     -> tensor<1x4x300x64xbf16>, tensor<1x4x300xf32>
  return %o, %lse : tensor<1x4x300x64xbf16>, tensor<1x4x300xf32>
}
