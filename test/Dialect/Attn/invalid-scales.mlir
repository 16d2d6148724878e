// Scales of operands that are none.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c38(%q: !q, %k: !k, %s: tensor<2x8xf32>) {
  // expected-error @+1 {{expects scales of f32, [1 or batch, 1 or key heads], here 2 x 2, but got 'tensor<2x8xf32>'}}
  %o = attn.forward %q, %k, %k scales(k %s : tensor<2x8xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c38(%q: !q, %k: !k, %s: tensor<2x2xbf16>) {
  // expected-error @+1 {{expects scales of f32, [1 or batch, 1 or key heads], here 2 x 2, but got 'tensor<2x2xbf16>'}}
  %o = attn.forward %q, %k, %k scales(v %s : tensor<2x2xbf16>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c38(%q: !q, %k: !k, %s: tensor<1xf32>) {
  // expected-error @+1 {{expects scales of f32, [1 or batch, 1 or key heads], here 2 x 2, but got 'tensor<1xf32>'}}
  %o = attn.forward %q, %k, %k scales(q %s : tensor<1xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
!w = tensor<2x8x3x400xbf16>
!r = tensor<2x8x4x3xf32>
func.func @forward_c28(%q: !q, %k: !k, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expects no weights to be kept of attention with captures, sees, score, blocks, sinks, ragged, lengths, pages, scales or values, but got both}}
  %o, %lse, %w, %r = attn.forward %q, %k, %k scales(q %s : tensor<1x1xf32>) : !q, !k, !k -> !q, tensor<2x8x3xf32>, !w, !r
  return
}

// -----

!q = tensor<2x8x400x64xbf16>
!l = tensor<2x8x400xf32>
func.func @backward_refused(%q: !q, %l: !l, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expects no scales(..) for gradients, but got some}}
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %q, %l scales(q %s : tensor<1x1xf32>) : !q, !q, !q, !q, !q, !l -> !q, !q, !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @twice(%q: !q, %k: !k, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expects q %scale, k %scale or v %scale, each once}}
  %o = attn.forward %q, %k, %k scales(q %s, q %s : tensor<1x1xf32>, tensor<1x1xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @types(%q: !q, %k: !k, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{expects 2 types, but got 1}}
  %o = attn.forward %q, %k, %k scales(q %s, v %s : tensor<1x1xf32>) : !q, !k, !k -> !q
  return
}
