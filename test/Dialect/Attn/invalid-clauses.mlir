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
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), values(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), outs(..)}}
  %o = attn.forward %q, %q, %q dropout(0.1) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @meant(%q: !t) {
  // expected-error @+3 {{expects a clause, but got 'causal'}}
  // expected-note @+2 {{the clause for it is mask(causal)}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), values(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), outs(..)}}
  %o = attn.forward %q, %q, %q causal : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @of_gradients_only(%q: !t, %lse: tensor<1x1x8xf32>) {
  // expected-error @+2 {{expects a clause, but got 'dlse'}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), values(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), outs(..)}}
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

// -----

!t = tensor<1x1x8x8xf16>
func.func @captures_behind(%q: !t, %x: tensor<4xf32>) {
  // expected-error @+3 {{expects captures(..) in front of the regions that name them}}
  %o = attn.forward %q, %q, %q score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    attn.yield %z : f32
  } captures(%x : tensor<4xf32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @arguments(%q: !t, %x: tensor<4xf32>) {
  // expected-error @+2 {{expects 7 arguments, but got 6}}
  // expected-note @+1 {{arguments: b, h, i, j, nq, nk, and one for each of captures(..)}}
  %o = attn.forward %q, %q, %q captures(%x : tensor<4xf32>) sees (%b, %h, %i, %j, %nq, %nk) {
  } : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @argument_type(%q: !t) {
  // expected-error @below {{expects an argument of 'f32', but got 'bf16'}}
  %o = attn.forward %q, %q, %q score (%z : bf16, %b, %h, %i, %j, %nq, %nk) {
  } : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @softcap(%q: !t) {
  // expected-error @below {{expects a finite and positive softcap, but got -1.000000e+00 : f32}}
  %o = attn.forward %q, %q, %q softcap(-1.0) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @alibi(%q: !t, %s: tensor<8xi32>) {
  // expected-error @below {{expects alibi of floats for each head, or for each batch entry and head, but got 'tensor<8xi32>'}}
  %o = attn.forward %q, %q, %q alibi(%s : tensor<8xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @document(%q: !t, %s: tensor<1x2x8xi32>) {
  // expected-error @below {{expects document of integers for each row, or for each batch entry and row, but got 'tensor<1x2x8xi32>'}}
  %o = attn.forward %q, %q, %q document(%s : tensor<1x2x8xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @bias(%q: !t, %s: tensor<8xf32>) {
  // expected-error @below {{expects bias of floats for each query and key, and in front of these for heads, or for batch entries and heads, but got 'tensor<8xf32>'}}
  %o = attn.forward %q, %q, %q bias(%s : tensor<8xf32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @both(%q: !t) {
  // expected-error @below {{expects either score or softcap(..), which is short for one, but got both}}
  %o = attn.forward %q, %q, %q softcap(2.0) score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    attn.yield %z : f32
  } : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @lists(%q: !t, %c: tensor<1x1x1xi32>) {
  // expected-error @below {{expects partial %counts, %indices, full %counts, %indices or size QUERIES x KEYS, each once}}
  %o = attn.forward %q, %q, %q blocks(some %c, %c, size 64 x 64 : tensor<1x1x1xi32>, tensor<1x1x1xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @lists_without_size(%q: !t, %c: tensor<1x1x1xi32>) {
  // expected-error @below {{expects partial or full lists of blocks, and size QUERIES x KEYS}}
  %o = attn.forward %q, %q, %q blocks(partial %c, %c : tensor<1x1x1xi32>, tensor<1x1x1xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x1x8x8xf16>
!l = tensor<1x1x8xf32>
func.func @gradient_of_another(%q: !t, %l: !l) {
  // expected-error @below {{expects a gradient of a capture or of sinks}}
  %0:4 = attn.backward %q, %q, %q, %q, %q, %l softcap(2.0) gradients(%l) : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !l
  return
}

// -----

!t = tensor<1x4x8x8xf16>
!l = tensor<1x4x8xf32>
!s = tensor<4xf32>
func.func @gradient_of_two(%q: !t, %l: !l, %s: !s) {
  // expected-error @below {{expects a gradient of an array that clauses name once, or its number, but got %s, which has the numbers 0 and 1}}
  %0:4 = attn.backward %q, %q, %q, %q, %q, %l alibi(%s : !s) sinks(%s : !s) gradients(%s) : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !s
  return
}
