// RUN: attn-opt %s -attn-differentiate -split-input-file -verify-diagnostics

!q = tensor<1x1x8x8xf16>
func.func @another_op(%q: !q) -> !q {
  // expected-error @below {{expects only attn.forward and attn.merge between the arguments of a function and its results, but got 'arith.mulf'}}
  %k = arith.mulf %q, %q : !q
  %o = attn.forward %q, %k, %k : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x1x8x8xf16>
func.func @behind(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  // expected-error @below {{but got 'arith.negf'}}
  %n = arith.negf %o : !q
  return %n : !q
}

// -----

// What an op's region takes from outside counts like an operand.
!q = tensor<1x1x8x8xf16>
func.func @region(%q: !q, %c: i1) -> !q {
  %empty = arith.constant dense<1.0> : !q
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  // expected-error @below {{but got 'scf.if'}}
  %n = scf.if %c -> !q {
    scf.yield %o : !q
  } else {
    scf.yield %empty : !q
  }
  return %n : !q
}

// -----

!q = tensor<1x1x8x8xf16>
func.func private @g(!q) -> !q
func.func @call(%q: !q) -> !q {
  // expected-error @below {{but got 'func.call'}}
  %k = func.call @g(%q) : (!q) -> !q
  %o = attn.forward %q, %k, %k : !q, !q, !q -> !q
  return %o : !q
}

// -----

// expected-error @below {{expects a function without control flow to differentiate, but got one of several blocks}}
func.func @blocks(%q: tensor<1x1x8x8xf16>) -> tensor<1x1x8x8xf16> {
  cf.br ^next
^next:
  %o = attn.forward %q, %q, %q : tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8x8xf16> -> tensor<1x1x8x8xf16>
  return %o : tensor<1x1x8x8xf16>
}

// -----

func.func @buffers(%q: memref<1x1x8x8xf16>, %o: memref<1x1x8x8xf16>) {
  // expected-error @below {{expects tensors to differentiate, but got 'memref<1x1x8x8xf16>'}}
  attn.forward %q, %q, %q outs(%o : memref<1x1x8x8xf16>) : memref<1x1x8x8xf16>, memref<1x1x8x8xf16>, memref<1x1x8x8xf16>
  return
}

// -----

func.func @eight_bits(%q: tensor<1x1x8x8xf8E4M3FN>) -> tensor<1x1x8x8xbf16> {
  // expected-error @below {{expects bf16, f16 or f32 for gradients, but got f8e4m3}}
  %o = attn.forward %q, %q, %q : tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN>, tensor<1x1x8x8xf8E4M3FN> -> tensor<1x1x8x8xbf16>
  return %o : tensor<1x1x8x8xbf16>
}

// -----

!q = tensor<1x1x8x8xf16>
// expected-error @below {{expects the name @taken_vjp to be free for its gradients, but got a symbol of that name}}
func.func @taken(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  return %o : !q
}
func.func private @taken_vjp()

// -----

!q = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
!w = tensor<1x1x8x8xf16>
!r = tensor<1x1x2x8xf32>
func.func @weights(%q: !q) -> (!q, !w) {
  // expected-error @below {{expects gradients of O and LSE only, but got one of weights that are kept}}
  %o, %lse, %w, %r = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !w, !r
  return %o, %w : !q, !w
}

// -----

func.func @merge_on_memrefs(%o: memref<1x2x4x8xf16>, %l: memref<1x2x4xf32>, %to: memref<1x2x4x8xf16>) {
  // expected-error @below {{expects tensors to differentiate, but got 'memref<1x2x4x8xf16>'}}
  attn.merge (%o, %l) outs(%to : memref<1x2x4x8xf16>) : (memref<1x2x4x8xf16>, memref<1x2x4xf32>)
  return
}

// -----

!q = tensor<1x1x8x8xf16>
func.func @score(%q: !q) -> !q {
  // expected-error @below {{expects a score with a derivative, but got 'math.floor', which has none}}
  %o = attn.forward %q, %q, %q score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    // expected-note @below {{the op is here}}
    %r = math.floor %z : f32
    attn.yield %r : f32
  } : !q, !q, !q -> !q
  return %o : !q
}
