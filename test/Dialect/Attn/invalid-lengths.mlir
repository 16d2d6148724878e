// What says where rows lie, and says it wrongly.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c35(%q: !q, %k: !k, %n: tensor<2xi8>) {
  // expected-error @+1 {{expects used keys of i32 or i64 for each of 2 batch entries, but got 'tensor<2xi8>'}}
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<2xi8>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c35(%q: !q, %k: !k, %n: tensor<3xi32>) {
  // expected-error @+1 {{expects used keys of i32 or i64 for each of 2 batch entries, but got 'tensor<3xi32>'}}
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<3xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c35(%q: !q, %k: !k, %n: tensor<2xi32>) {
  // expected-error @+1 {{expects mask(causal_bottom_right) beside lengths(..), since causal counts from the first key, but got mask(causal) for 3 queries and 400 keys}}
  %o = attn.forward %q, %k, %k mask(causal) lengths(k %n : tensor<2xi32>) : !q, !k, !k -> !q
  return
}

// -----

// Equal at run time is not known to be equal.
!q = tensor<2x8x?x64xbf16>
!k = tensor<2x2x?x64xbf16>
func.func @forward_c35(%q: !q, %k: !k, %n: tensor<2xi32>) {
  // expected-error @+1 {{expects mask(causal_bottom_right) beside lengths(..), since causal counts from the first key, but got mask(causal) for ? queries and ? keys}}
  %o = attn.forward %q, %k, %k mask(causal) lengths(k %n : tensor<2xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x128x64xbf16>
!k = tensor<2x2x128x64xbf16>
func.func @forward_c35(%q: !q, %k: !k, %n: tensor<2xi32>, %c: tensor<1x1x1xi32>, %i: tensor<1x1x1x1xi32>) {
  // expected-error @+1 {{expects no lists of blocks beside lengths(k), but got some}}
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<2xi32>) blocks(partial %c, %i, size 128 x 128 : tensor<1x1x1xi32>, tensor<1x1x1x1xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<50x2x16x64xbf16>
func.func @forward_c36(%q: !q, %k: !k, %t: tensor<2x25xi32>) {
  // expected-error @+1 {{expects lengths(k ..) beside pages(..), but got none}}
  %o = attn.forward %q, %k, %k pages(%t : tensor<2x25xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<50x2x16x64xbf16>
func.func @forward_c36(%q: !q, %k: !k, %n: tensor<2xi32>, %t: tensor<2x25xi64>) {
  // expected-error @+1 {{expects a table of i32 and shape 2 x pages, but got 'tensor<2x25xi64>'}}
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<2xi32>) pages(%t : tensor<2x25xi64>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<50x2x20x64xbf16>
func.func @forward_c36(%q: !q, %k: !k, %n: tensor<2xi32>, %t: tensor<2x25xi32>) {
  // expected-error @+1 {{expects pages of a static multiple of 8 keys, but got 20}}
  %o = attn.forward %q, %k, %k lengths(k %n : tensor<2xi32>) pages(%t : tensor<2x25xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x3x64xbf16>
!k = tensor<50x2x16x64xbf16>
!v = tensor<40x2x16x64xbf16>
func.func @forward_c36(%q: !q, %k: !k, %v: !v, %n: tensor<2xi32>, %t: tensor<2x25xi32>) {
  // expected-error @+1 {{expects k and v to have the same number of pages, but got 50 and 40}}
  %o = attn.forward %q, %k, %v lengths(k %n : tensor<2xi32>) pages(%t : tensor<2x25xi32>) : !q, !k, !v -> !q
  return
}
