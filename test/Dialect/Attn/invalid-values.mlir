// Values that are columns of K, wrongly.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
func.func @neither(%q: !q, %k: !k) {
  // expected-error @+1 {{expects either V or values(keys, first n), but got neither}}
  %o = attn.forward %q, %k : !q, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
func.func @both(%q: !q, %k: !k) {
  // expected-error @+1 {{expects either V or values(keys, first n), but got both}}
  %o = attn.forward %q, %k, %k values(keys, first 64) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
func.func @forward_c39(%q: !q, %k: !k) {
  // expected-error @+1 {{expects values to be the first 1 to 64 columns of K, but got 65}}
  %o = attn.forward %q, %k values(keys, first 65) : !q, !k -> tensor<2x8x3x65xbf16>
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
func.func @forward_c39(%q: !q, %k: !k) {
  // expected-error @+1 {{expects o of shape 2x8x3x40, but got 2x8x3x64}}
  %o = attn.forward %q, %k values(keys, first 40) : !q, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x1x400x64xbf16>
func.func @forward_c39(%q: !q, %k: !k, %v: !k) {
  // expected-error @+1 {{expects V to be K beside values(keys, ..), but got two values}}
  %o = "attn.forward"(%q, %k, %v) <{values = 64 : i64}> : (!q, !k, !k) -> !q
  return
}

// -----

!q = tensor<2x8x512x64xbf16>
!k = tensor<2x1x512x64xbf16>
func.func @forward_c28(%q: !q, %k: !k) {
  // expected-error @+1 {{expects no weights to be kept of attention with captures, sees, score, blocks, sinks, ragged, lengths, pages, scales or values, but got both}}
  %o, %l, %w, %r = attn.forward %q, %k values(keys, first 64) : !q, !k -> !q, tensor<2x8x512xf32>, tensor<2x8x512x512xbf16>, tensor<2x8x4x512xf32>
  return
}
