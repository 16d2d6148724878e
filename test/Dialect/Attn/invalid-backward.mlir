// One function per way to break a numbered constraint of the op; the number is
// in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c1(%q: !q, %lse: memref<1x1x8xf32>) {
  // expected-error @below {{expects operands to be all tensors or all memrefs, but got 'tensor<1x1x8x8xf16>' and 'memref<1x1x8xf32>'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, memref<1x1x8xf32> -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c2(%q: !q, %lse: !lse) {
  // expected-error @below {{expects three results, dq, dk and dv, but got 2}}
  %0:2 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q
  return
}

// -----

!q = memref<1x1x8x8xf16>
!lse = memref<1x1x8xf32>
func.func @backward_c2(%q: !q, %lse: !lse, %dq: !q) {
  // expected-error @below {{expects three outs, dq, dk and dv, but got 1}}
  attn.backward %q, %q, %q, %q, %q, %lse outs(%dq : !q) : !q, !q, !q, !q, !q, !lse
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c2(%q: !q, %lse: !lse) {
  // expected-error @below {{expects outs to be absent or of the types of the results, but got}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse outs(%q, %q : !q, !q) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c3(%q: !q, %lse: !lse) {
  // expected-error @below {{expects dlse of rank 3, but got rank 4}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse dlse(%q : !q) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = memref<1x1x8x8xf16>
!do = memref<1x1x8x8xf16, strided<[128, 128, 16, 2]>>
!lse = memref<1x1x8xf32>
func.func @backward_c4(%do: !do, %q: !q, %lse: !lse, %dq: !q, %dk: !q, %dv: !q) {
  // expected-error @below {{expects do to have an innermost stride of 1, but got}}
  attn.backward %do, %q, %q, %q, %q, %lse outs(%dq, %dk, %dv : !q, !q, !q) : !do, !q, !q, !q, !q, !lse
  return
}

// -----

!q = tensor<1x1x8x8xf8E4M3FN>
!lse = tensor<1x1x8xf32>
func.func @backward_c5(%q: !q, %lse: !lse) {
  // expected-error @below {{expects a supported element type, but got 'f8E4M3FN'}}
  // expected-note @below {{element types: bf16, f16, f32}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!wide = tensor<1x1x8x8xf32>
!lse = tensor<1x1x8xf32>
func.func @backward_c6(%q: !q, %do: !wide, %lse: !lse) {
  // expected-error @below {{expects do to have the element type 'f16' of q, but got 'f32'}}
  %0:3 = attn.backward %do, %q, %q, %q, %q, %lse : !wide, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf16>
func.func @backward_c6(%q: !q, %lse: !lse) {
  // expected-error @below {{expects lse to have the element type 'f32', but got 'f16'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<2x1x8x8xf16>
!k = tensor<3x1x8x8xf16>
!lse = tensor<2x1x8xf32>
func.func @backward_c7(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects q and k to have the same batch size, but got 2 and 3}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<1x2x8x8xf16>
!k = tensor<1x4x8x8xf16>
!lse = tensor<1x2x8xf32>
func.func @backward_c8(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects the head count of q to be a multiple of that of k, but got 2 and 4}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<1x2x8x8xf16>
!lse = tensor<1x?x8xf32>
func.func @backward_c8(%q: !q, %lse: !lse) {
  // expected-error @below {{expects lse to have a static and positive head count, but got ?}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!v = tensor<1x1x9x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c9(%q: !q, %v: !v, %lse: !lse) {
  // expected-error @below {{expects k and v to have the same number of rows, but got 8 and 9}}
  %0:3 = attn.backward %q, %q, %q, %v, %q, %lse : !q, !q, !q, !v, !q, !lse -> !q, !q, !v
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!k = tensor<1x1x8x16xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c10(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects q and k to have the same head dimension, but got 8 and 16}}
  %0:3 = attn.backward %q, %q, %k, %q, %q, %lse : !q, !q, !k, !q, !q, !lse -> !q, !k, !q
  return
}

// -----

!q = tensor<1x4x8x8xf16>
!k = tensor<1x2x9x8xf16>
!lse = tensor<1x4x8xf32>
func.func @backward_c11(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects dk of shape 1x2x9x8, but got 1x4x8x8}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse : !q, !q, !k, !k, !q, !lse -> !q, !q, !k
  return
}

// -----

// Nor does it here: dO and O must have equally many rows.
!q = tensor<1x1x?x8xf16>
!do = tensor<1x1x5x8xf16>
!o = tensor<1x1x6x8xf16>
!lse = tensor<1x1x?xf32>
func.func @backward_c11(%q: !q, %do: !do, %o: !o, %lse: !lse) {
  // expected-error @below {{expects o of shape 1x1x5x8, but got 1x1x6x8}}
  %0:3 = attn.backward %do, %q, %q, %q, %o, %lse : !do, !q, !q, !q, !o, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x8x8xf16>
!lse = tensor<1x2x9xf32>
func.func @backward_c12(%q: !q, %lse: !lse) {
  // expected-error @below {{expects lse of shape 1x2x8, but got 1x2x9}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x65537xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c13(%q: !q, %lse: !lse) {
  // expected-error @below {{expects head dim between 1 and 65536, but got 65537}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c14(%q: !q, %lse: !lse) {
  // expected-error @below {{expects the window's right side between 0 and 1073741824, but got -1}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse mask(window<0, -1>) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c15(%q: !q, %lse: !lse) {
  // expected-error @below {{expects a finite scale, but got 0x7F800000 : f32}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse scale(1.0e300) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = memref<1x1x8x8xf16>
!lse = memref<1x1x8xf32>
func.func @backward_c16(%q: !q, %do: !q, %lse: !lse, %dq: !q, %dk: !q) {
  // expected-error @below {{expects outs in buffers of their own, but got that of do}}
  attn.backward %do, %q, %q, %q, %q, %lse outs(%dq, %dk, %do : !q, !q, !q) : !q, !q, !q, !q, !q, !lse
  return
}

// -----

!q = memref<1x1x8x8xf16>
!lse = memref<1x1x8xf32>
func.func @backward_c16(%q: !q, %lse: !lse, %dq: !q, %dk: !q) {
  // expected-error @below {{expects outs in buffers of their own, but got that of dk}}
  attn.backward %q, %q, %q, %q, %q, %lse outs(%dq, %dk, %dk : !q, !q, !q) : !q, !q, !q, !q, !q, !lse
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c17(%q: !q, %lse: !lse) {
  // expected-error @below {{expects an alignment that is a power of two from 2 to 16 bytes, but got 32}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse {alignment = 32 : i64} : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @backward_c18(%q: !q, %lse: !lse) {
  // expected-error @below {{expects a precision only for operands of f32, but got operands of 'f16'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse precision(tf32) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x4x300xf32>
func.func @backward_c3(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects weights of rank 4, but got rank 3}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%lse, %r : !lse, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x4x300xf32>
func.func @backward_c6(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects weights to have the element type 'f16' of q, but got 'f32'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%r, %r : !r, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x4x300xf32>
func.func @backward_c11(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects weights of shape 1x2x300x300, but got 1x2x300x8}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%q, %r : !q, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x4x300xf32>
func.func @backward_c6(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects block_rows to have the element type 'f32', but got 'f16'}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%w, %w : !w, !w) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x4x300xf32>
func.func @backward_c19(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects 8 inputs, do, q, k, v, o, lse, weights, block_rows, but got 7}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%w : !w) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf32>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf32>
!r = tensor<1x2x4x300xf32>
func.func @backward_c19(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects bf16 or f16 to keep weights, but got f32}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%w, %r : !w, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!q = tensor<1x2x300x8xf16>
!lse = tensor<1x2x300xf32>
!w = tensor<1x2x300x300xf16>
!r = tensor<1x2x2x300xf32>
func.func @backward_c12(%q: !q, %lse: !lse, %w: !w, %r: !r) {
  // expected-error @below {{expects block_rows of shape 1x2x4x300, but got 1x2x2x300}}
  %0:3 = attn.backward %q, %q, %q, %q, %q, %lse weights(%w, %r : !w, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return
}

// -----

!t = memref<1x2x8x8xf16>
!same = memref<1x2x8x8xf16, strided<[128, 64, 4, 1]>>
func.func @backward_c20(%q: !t, %lse: memref<1x2x8xf32>, %dq: !t, %dk: !t, %dv: !same) {
  // expected-error @below {{expects dv to have rows that do not lie on each other, so a stride of 8 or more in dimension 2}}
  attn.backward %q, %q, %q, %q, %q, %lse outs(%dq, %dk, %dv : !t, !t, !same) : !t, !t, !t, !t, !t, memref<1x2x8xf32>
  return
}

// -----

!t = memref<1x2x8x8xf16>
func.func @backward_c21(%q: !t, %lse: memref<1x2x8xf32, 5>, %dq: !t, %dk: !t, %dv: !t) {
  // expected-error @below {{expects lse in global memory, but got memory space 5}}
  // expected-note @below {{memory spaces: none, 0, 1, #gpu.address_space<global>}}
  attn.backward %q, %q, %q, %q, %q, %lse outs(%dq, %dk, %dv : !t, !t, !t) : !t, !t, !t, !t, !t, memref<1x2x8xf32, 5>
  return
}
