// One function per way to break a numbered constraint of regions; the number is
// in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c22(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf64>) {
  // expected-error @below {{expects capture 0 to have elements that regions read, but got 'f64'}}
  // expected-note @below {{element types: i1, i8, i16, i32, i64, bf16, f16, f32}}
  %o = attn.forward %q, %k, %k captures(%x : tensor<4xf64>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c22(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf64>) {
  // expected-error @below {{expects capture 0 to have elements that regions read, but got 'f64'}}
  // expected-note @below {{element types: i1, i8, i16, i32, i64, bf16, f16, f32}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse captures(%x : tensor<4xf64>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c22(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xi7>) {
  // expected-error @below {{expects capture 0 to have elements that regions read, but got 'i7'}}
  // expected-note @below {{element types: i1, i8, i16, i32, i64, bf16, f16, f32}}
  %o = attn.forward %q, %k, %k captures(%x : tensor<4xi7>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c22(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xi7>) {
  // expected-error @below {{expects capture 0 to have elements that regions read, but got 'i7'}}
  // expected-note @below {{element types: i1, i8, i16, i32, i64, bf16, f16, f32}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse captures(%x : tensor<4xi7>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c23(%q: !q, %k: !k, %lse: !lse) {
  %o = attn.forward %q, %k, %k sees (%b, %h, %i, %j, %nq, %nk) {
    %r = arith.constant true
    // expected-error @below {{expects 'i1' of sees, but got 'index'}}
    attn.yield %b : index
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c23(%q: !q, %k: !k, %lse: !lse) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sees (%b, %h, %i, %j, %nq, %nk) {
    %r = arith.constant true
    // expected-error @below {{expects 'i1' of sees, but got 'index'}}
    attn.yield %b : index
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c23(%q: !q, %k: !k, %lse: !lse) {
  %o = attn.forward %q, %k, %k score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    %r = arith.truncf %z : f32 to bf16
    // expected-error @below {{expects 'f32' of score, but got 'bf16'}}
    attn.yield %r : bf16
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c23(%q: !q, %k: !k, %lse: !lse) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    %r = arith.truncf %z : f32 to bf16
    // expected-error @below {{expects 'f32' of score, but got 'bf16'}}
    attn.yield %r : bf16
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c23(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects sees of one block, but got 0}}
  %o = "attn.forward"(%q, %k, %k) ({}) : (!q, !k, !k) -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c23(%q: !q, %k: !k, %lse: !lse) {
  // expected-error @below {{expects sees of one block, but got 0}}
  %o:3 = "attn.backward"(%q, %q, %k, %k, %q, %lse) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({}) : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c24(%q: !q, %k: !k, %lse: !lse) {
  %o = attn.forward %q, %k, %k sees (%b, %h, %i, %j, %nq, %nk) {
    // expected-error @below {{expects an op of numbers in sees, but got 'arith.mulsi_extended'}}
    // expected-note @below {{ops: arith.constant, index.constant}}
    %0, %1 = arith.mulsi_extended %i, %j : index
    %r = arith.cmpi sle, %0, %1 : index
    attn.yield %r : i1
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c24(%q: !q, %k: !k, %lse: !lse) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sees (%b, %h, %i, %j, %nq, %nk) {
    // expected-error @below {{expects an op of numbers in sees, but got 'arith.mulsi_extended'}}
    // expected-note @below {{ops: arith.constant, index.constant}}
    %0, %1 = arith.mulsi_extended %i, %j : index
    %r = arith.cmpi sle, %0, %1 : index
    attn.yield %r : i1
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c24(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf32>) {
  %o = attn.forward %q, %k, %k captures(%x : tensor<4xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
    // expected-error @below {{expects numbers in score, but got 'tensor<4xf32>'}}
    // expected-note @below {{numbers: index, integers of up to 64 bits, bf16, f16, f32}}
    %0 = arith.addf %y, %y : tensor<4xf32>
    attn.yield %z : f32
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c24(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf32>) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse captures(%x : tensor<4xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
    // expected-error @below {{expects numbers in score, but got 'tensor<4xf32>'}}
    // expected-note @below {{numbers: index, integers of up to 64 bits, bf16, f16, f32}}
    %0 = arith.addf %y, %y : tensor<4xf32>
    attn.yield %z : f32
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c24(%q: !q, %k: !k, %lse: !lse) {
  %o = attn.forward %q, %k, %k score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    // expected-error @below {{expects numbers in score, but got 'f64'}}
    // expected-note @below {{numbers: index, integers of up to 64 bits, bf16, f16, f32}}
    %0 = arith.extf %z : f32 to f64
    attn.yield %z : f32
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c24(%q: !q, %k: !k, %lse: !lse) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    // expected-error @below {{expects numbers in score, but got 'f64'}}
    // expected-note @below {{numbers: index, integers of up to 64 bits, bf16, f16, f32}}
    %0 = arith.extf %z : f32 to f64
    attn.yield %z : f32
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c24(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf32>) {
  %o = attn.forward %q, %k, %k captures(%x : tensor<4xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
    // expected-error @below {{expects an index for each of 1 dimensions, but got 2}}
    %0 = attn.read %y[%i, %j] : tensor<4xf32>
    attn.yield %0 : f32
  } : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c24(%q: !q, %k: !k, %lse: !lse, %x: tensor<4xf32>) {
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse captures(%x : tensor<4xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
    // expected-error @below {{expects an index for each of 1 dimensions, but got 2}}
    %0 = attn.read %y[%i, %j] : tensor<4xf32>
    attn.yield %0 : f32
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}
