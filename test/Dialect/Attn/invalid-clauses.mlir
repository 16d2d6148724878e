// Clauses that are not there, or twice.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!t = tensor<1x1x8x8xf16>
func.func @twice(%q: !t) {
  // expected-error @below {{expects every clause once, but got 'mask' twice}}
  %o = attn.forward %q, %q, %q mask(causal) scale(2.0) mask(causal) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @twice_in_two_ways(%q: !t) {
  // expected-error @below {{expects every clause once, but got "scale" as an attribute too}}
  %o = attn.forward %q, %q, %q scale(2.0) {scale = 3.0 : f32} : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @unknown(%q: !t) {
  // expected-error @+2 {{expects a clause, but got 'dropout'}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), outs(..)}}
  %o = attn.forward %q, %q, %q dropout(0.1) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @meant(%q: !t) {
  // expected-error @+3 {{expects a clause, but got 'causal'}}
  // expected-note @+2 {{the clause for it is mask(causal)}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), outs(..)}}
  %o = attn.forward %q, %q, %q causal : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @of_gradients_only(%q: !t, %lse: tensor<1x1x8xf32>) {
  // expected-error @+2 {{expects a clause, but got 'dlse'}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), outs(..)}}
  %o = attn.forward %q, %q, %q dlse(%lse : tensor<1x1x8xf32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @scale_of_another_type(%q: !t) {
  // expected-error @below {{attribute 'scale' failed to satisfy constraint: 32-bit float attribute}}
  %o = attn.forward %q, %q, %q {scale = 3.0 : f64} : !t, !t, !t -> !t
  return
}
