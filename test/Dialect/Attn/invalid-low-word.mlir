// The low word of LSE obeys the constraints that LSE does.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @forward_c3(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects lse_low of rank 3, but got rank 4}}
  %0:3 = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf32>, tensor<1x1x8x8xf16>
  return
}

// -----

func.func @forward_c6(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects lse_low to have the element type 'f32', but got 'f16'}}
  %0:3 = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf32>, tensor<1x1x8xf16>
  return
}

// -----

func.func @forward_c12(%t: tensor<1x1x8x8xf16>) {
  // expected-error @below {{expects lse_low of shape 1x1x8, but got 1x1x7}}
  %0:5 = attn.forward %t, %t, %t : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>, tensor<1x1x8xf32>, tensor<1x1x7xf32>, tensor<1x1x8x8xf16>, tensor<1x1x2x8xf32>
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c3(%q: !q, %lse: !lse) {
  // expected-error @below {{expects lse_low of rank 3, but got rank 4}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse lse_low(%q : !q) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
!low = tensor<1x1x8xf16>
func.func @backward_c6(%q: !q, %lse: !lse, %low: !low) {
  // expected-error @below {{expects lse_low to have the element type 'f32', but got 'f16'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse lse_low(%low : !low) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
!low = tensor<1x1x9xf32>
func.func @backward_c12(%q: !q, %lse: !lse, %low: !low) {
  // expected-error @below {{expects lse_low of shape 1x1x8, but got 1x1x9}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse lse_low(%low : !low) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = memref<1x1x8x8xf32>
!lse = memref<1x1x8xf32>
func.func @backward_c16(%q: !q, %dq: !q, %dk: !q, %lse: !lse) {
  // expected-error @below {{expects outs in buffers of their own, but got that of dk}}
  attn.backward %q, %q, %q, %q, %q, %lse lse_low(%lse : !lse) outs(%dq, %dk, %dk : !q, !q, !q) : !q, !q, !q, !q, !q, !lse
  return
}
