// Sequences one behind the other that are no such thing.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!t = tensor<?x2x8xf16>
!n = tensor<?xi32>
func.func @forward_c34(%q: !t, %a: !n, %b: !n) {
  // expected-error @+2 {{expects mask(causal) of ragged sequences only where queries and keys have the same offsets, but got two values}}
  // expected-note @+1 {{mask(causal_bottom_right) says that the last query of a sequence sees its last key}}
  %o = attn.forward %q, %q, %q mask(causal) ragged(%a, %b, longest 5, 5 : !n, !n) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<?x2x8xf16>
func.func @forward_c33(%q: !t, %a: tensor<?xi16>) {
  // expected-error @below {{expects offsets of i32 or of i64, and of one shape, [sequences + 1], but got 'tensor<?xi16>' and 'tensor<?xi16>'}}
  %o = attn.forward %q, %q, %q ragged(%a, %a, longest 5, 5 : tensor<?xi16>, tensor<?xi16>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<?x2x8xf16>
func.func @forward_c33_shape(%q: !t, %a: tensor<4xi32>, %b: tensor<5xi32>) {
  // expected-error @below {{expects offsets of i32 or of i64, and of one shape, [sequences + 1], but got 'tensor<4xi32>' and 'tensor<5xi32>'}}
  %o = attn.forward %q, %q, %q ragged(%a, %b, longest 5, 5 : tensor<4xi32>, tensor<5xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<?x2x8xf16>
func.func @forward_c33_longest(%q: !t, %a: tensor<4xi32>) {
  // expected-error @below {{expects the longest queries between 0 and 1073741823, but got -1}}
  %o = attn.forward %q, %q, %q ragged(%a, %a, longest -1, 5 : tensor<4xi32>, tensor<4xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<1x?x2x8xf16>
func.func @forward_c3_ragged(%q: !t, %a: tensor<4xi32>) {
  // expected-error @below {{expects q of rank 3, but got rank 4 (ragged rows are [rows, heads, columns])}}
  %o = attn.forward %q, %q, %q ragged(%a, %a, longest 5, 5 : tensor<4xi32>, tensor<4xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<?x2x8xf16>
func.func @forward_c12_ragged(%q: !t, %a: tensor<4xi32>) {
  // expected-error @below {{expects lse of shape 2x?, but got 3x?}}
  %o, %l = attn.forward %q, %q, %q ragged(%a, %a, longest 5, 5 : tensor<4xi32>, tensor<4xi32>) : !t, !t, !t -> !t, tensor<3x?xf32>
  return
}

// -----

!t = tensor<64x2x8xf16>
!c = tensor<1x1x1xi32>
!i = tensor<1x1x1x1xi32>
func.func @forward_c34_blocks(%q: !t, %a: tensor<4xi32>, %c: !c, %i: !i) {
  // expected-error @below {{expects no lists of blocks of ragged sequences, which would have to be ragged too, but got both}}
  %o = attn.forward %q, %q, %q blocks(full %c, %i, size 64 x 64 : !c, !i) ragged(%a, %a, longest 5, 5 : tensor<4xi32>, tensor<4xi32>) : !t, !t, !t -> !t
  return
}

// -----

!t = tensor<?x2x8xf16>
!l = tensor<2x?xf32>
func.func @backward_c33(%q: !t, %l: !l, %a: tensor<4xi32>, %b: tensor<5xi32>) {
  // expected-error @below {{expects offsets of i32 or of i64, and of one shape, [sequences + 1], but got 'tensor<4xi32>' and 'tensor<5xi32>'}}
  %o:3 = attn.backward %q, %q, %q, %q, %q, %l ragged(%a, %b, longest 5, 5 : tensor<4xi32>, tensor<5xi32>) : !t, !t, !t, !t, !t, !l -> !t, !t, !t
  return
}

// -----

!t = tensor<?x2x8xf16>
!l = tensor<2x?xf32>
!n = tensor<?xi32>
func.func @backward_c34(%q: !t, %l: !l, %a: !n, %b: !n) {
  // expected-error @+2 {{expects mask(causal) of ragged sequences only where queries and keys have the same offsets, but got two values}}
  // expected-note @+1 {{mask(causal_bottom_right) says that the last query of a sequence sees its last key}}
  %o:3 = attn.backward %q, %q, %q, %q, %q, %l mask(causal) ragged(%a, %b, longest 5, 5 : !n, !n) : !t, !t, !t, !t, !t, !l -> !t, !t, !t
  return
}

// -----

!t = tensor<?x2x8xf16>
!l = tensor<2x?xf32>
!n = tensor<?xi32>
func.func @backward_c34_gradients(%q: !t, %l: !l, %a: !n, %s: tensor<2xf32>) {
  // expected-error @below {{expects no gradients of captures and sinks of ragged sequences, but got some}}
  %o:4 = attn.backward %q, %q, %q, %q, %q, %l sinks(%s : tensor<2xf32>) ragged(%a, %a, longest 5, 5 : !n, !n) gradients(%s) : !t, !t, !t, !t, !t, !l -> !t, !t, !t, tensor<2xf32>
  return
}

// -----

!q = tensor<?x2x8xf16>
!k = tensor<3x2x9x8xf16>
func.func @forward_c33_cache(%q: !q, %k: !k, %a: tensor<4xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{expects offsets and the longest of queries only beside lengths(k ..), which tells where keys of a sequence end, but got 2 and 2}}
  %o = attn.forward %q, %k, %k ragged(%a, %a, longest 5, 5 : tensor<4xi32>, tensor<4xi32>) lengths(k %n : tensor<3xi32>) : !q, !k, !k -> !q
  return
}

// -----

!t = tensor<?x2x8xf16>
func.func @forward_c33_one(%q: !t, %a: tensor<4xi32>) {
  // expected-error @below {{expects offsets of queries and of keys, and the longest that a sequence has of either, but got 1 and 1}}
  %o = attn.forward %q, %q, %q ragged(%a, longest 5 : tensor<4xi32>) : !t, !t, !t -> !t
  return
}

// -----

!q = tensor<?x2x8xf16>
!k = tensor<4x2x9x8xf16>
func.func @forward_c33_entries(%q: !q, %k: !k, %a: tensor<4xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{expects k with an entry for each of 3 sequences, but got 4}}
  %o = attn.forward %q, %k, %k ragged(%a, longest 5 : tensor<4xi32>) lengths(k %n : tensor<3xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<?x2x8xf16>
!k = tensor<3x2x9x8xf16>
func.func @forward_c35_sequences(%q: !q, %k: !k, %a: tensor<4xi32>, %n: tensor<2xi32>) {
  // expected-error @below {{expects used keys of i32 or i64 for each of 3 batch entries, but got 'tensor<2xi32>'}}
  %o = attn.forward %q, %k, %k ragged(%a, longest 5 : tensor<4xi32>) lengths(k %n : tensor<2xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<?x2x8xf16>
!k = tensor<3x2x9x8xf16>
func.func @forward_c34_cache(%q: !q, %k: !k, %a: tensor<4xi32>, %n: tensor<3xi32>) {
  // expected-error @below {{expects mask(causal_bottom_right) of ragged queries beside lengths(..), since causal counts from the first key, but got mask(causal)}}
  %o = attn.forward %q, %k, %k mask(causal) ragged(%a, longest 5 : tensor<4xi32>) lengths(k %n : tensor<3xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<?x2x8xf16>
!k = tensor<30x2x16x8xf16>
func.func @forward_c36_sequences(%q: !q, %k: !k, %a: tensor<4xi32>, %n: tensor<3xi32>, %t: tensor<2x7xi32>) {
  // expected-error @below {{expects a table of i32 and shape 3 x pages, but got 'tensor<2x7xi32>'}}
  %o = attn.forward %q, %k, %k ragged(%a, longest 5 : tensor<4xi32>) lengths(k %n : tensor<3xi32>) pages(%t : tensor<2x7xi32>) : !q, !k, !k -> !q
  return
}
