// One function per way to break a numbered constraint of the ops of lists; the
// number is in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c1(%nq: index, %nk: index) {
  // expected-error @below {{expects four lists, counts and indices of partial and of full blocks, but got 3}}
  %l:3 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 128
    sees (%b, %h, %i, %j, %n, %m) {
      %r = arith.constant true
      attn.yield %r : i1
    } : !c, !n, !c
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c1(%nq: index, %nk: index, %x: memref<4xi32>) {
  // expected-error @below {{expects tensors, or memrefs, as the lists are, but got 'memref<4xi32>'}}
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 128 captures(%x : memref<4xi32>)
    sees (%b, %h, %i, %j, %n, %m, %y) {
      %r = arith.constant true
      attn.yield %r : i1
    } : !c, !n, !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c2(%nk: index) {
  %nq = arith.constant 300 : index
  // expected-error @below {{expects counts of partial blocks of i32 and shape 1x1x5, but got 'tensor<1x1x4xi32>'}}
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 128
    sees (%b, %h, %i, %j, %n, %m) {
      %r = arith.constant true
      attn.yield %r : i1
    } : !c, !n, !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c3(%nq: index, %nk: index) {
  // expected-error @below {{expects blocks of two multiples of 64, but got array<i64: 64, 96>}}
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 96
    sees (%b, %h, %i, %j, %n, %m) {
      %r = arith.constant true
      attn.yield %r : i1
    } : !c, !n, !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c3(%nq: index, %nk: index) {
  // expected-error @below {{expects batch and heads of 1 or more, but got 0}}
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(0) heads(1) size 64 x 64
    sees (%b, %h, %i, %j, %n, %m) {
      %r = arith.constant true
      attn.yield %r : i1
    } : !c, !n, !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @block_lists_c4(%nq: index, %nk: index) {
  %l:4 = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 64 x 64
    sees (%b, %h, %i, %j, %n, %m) {
      // expected-error @below {{expects 'i1' of sees, but got 'index'}}
      attn.yield %b : index
    } : !c, !n, !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
func.func @transpose_blocks_c1(%c: !c, %n: !n) {
  // expected-error @below {{expects four lists, counts and indices of partial and of full blocks, but got 2}}
  %l:2 = attn.transpose_blocks %c, %n, %c, %n : !c, !n, !c, !n -> !c, !n
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
!tc = tensor<1x1x8xi32>
!tn = tensor<1x1x8x4xi32>
func.func @transpose_blocks_c2(%c: !c, %n: !n, %other: tensor<1x1x4x7xi32>) {
  // expected-error @below {{expects indices of full blocks of i32 and shape 1x1x4x8, but got 'tensor<1x1x4x7xi32>'}}
  %l:4 = attn.transpose_blocks %c, %n, %c, %other : !c, !n, !c, tensor<1x1x4x7xi32> -> !tc, !tn, !tc, !tn
  return
}

// -----

!c = tensor<1x1x4xi32>
!n = tensor<1x1x4x8xi32>
!tc = tensor<1x1x8xi32>
func.func @transpose_blocks_c3(%c: !c, %n: !n) {
  // expected-error @below {{expects indices of partial blocks of i32 and shape 1x1x8x4, but got 'tensor<1x1x4x8xi32>'}}
  %l:4 = attn.transpose_blocks %c, %n, %c, %n : !c, !n, !c, !n -> !tc, !n, !tc, !n
  return
}
