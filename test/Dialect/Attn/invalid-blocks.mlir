// One function per way to break a numbered constraint of blocks,
// sinks and gradients; the number
// is in the function's name.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi64>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x8x5xi64>'}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi64>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi64>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x8x5xi64>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi64>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x6xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x8x6xi32>'}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 128 : tensor<1x8x6xi32>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x6xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x8x6xi32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x6xi32>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x2x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x2x5xi32>'}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 128 : tensor<1x2x5xi32>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x2x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of partial blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<1x2x5xi32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x2x5xi32>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x5xi32>) {
  // expected-error @below {{expects indices of partial blocks of i32 and shape 2x8x5x4, with 1 or all batch entries and heads, and so many columns or fewer, but got 'tensor<1x8x5x5xi32>'}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x5xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x5xi32>) {
  // expected-error @below {{expects indices of partial blocks of i32 and shape 2x8x5x4, with 1 or all batch entries and heads, and so many columns or fewer, but got 'tensor<1x8x5x5xi32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x5xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5xi32>) {
  // expected-error @below {{expects indices of partial blocks of i32 and shape 2x8x5x4, with 1 or all batch entries and heads, and so many columns or fewer, but got 'tensor<1x8x5xi32>'}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c25(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5xi32>) {
  // expected-error @below {{expects indices of partial blocks of i32 and shape 2x8x5x4, with 1 or all batch entries and heads, and so many columns or fewer, but got 'tensor<1x8x5xi32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x10xi32>, %n: tensor<1x8x10x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 32 x 128}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 32 x 128 : tensor<1x8x10xi32>, tensor<1x8x10x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x10xi32>, %n: tensor<1x8x10x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 32 x 128}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 32 x 128 : tensor<1x8x10xi32>, tensor<1x8x10x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 64 x 0}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 64 x 0 : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 64 x 0}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 0 : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x4xi32>, %n: tensor<1x8x4x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 96 x 128}}
  %o = attn.forward %q, %k, %k blocks(partial %c, %n, size 96 x 128 : tensor<1x8x4xi32>, tensor<1x8x4x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c26(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x4xi32>, %n: tensor<1x8x4x4xi32>) {
  // expected-error @below {{expects blocks of multiples of 64, but got 96 x 128}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 96 x 128 : tensor<1x8x4xi32>, tensor<1x8x4x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<2xf32>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<2xf32>'}}
  %o = attn.forward %q, %k, %k sinks(%s : tensor<2xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<2xf32>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<2xf32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sinks(%s : tensor<2xf32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xbf16>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<8xbf16>'}}
  %o = attn.forward %q, %k, %k sinks(%s : tensor<8xbf16>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xbf16>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<8xbf16>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sinks(%s : tensor<8xbf16>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<1x8xf32>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<1x8xf32>'}}
  %o = attn.forward %q, %k, %k sinks(%s : tensor<1x8xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<1x8xf32>) {
  // expected-error @below {{expects a sink of f32 for each of 8 heads, but got 'tensor<1x8xf32>'}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sinks(%s : tensor<1x8xf32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @forward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects one array of sinks, but got 2}}
  %o = attn.forward %q, %k, %k sinks(%s, %s : tensor<8xf32>, tensor<8xf32>) : !q, !k, !k -> !q
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c27(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects one array of sinks, but got 2}}
  %o:3 = attn.backward %q, %q, %k, %k, %q, %lse sinks(%s, %s : tensor<8xf32>, tensor<8xf32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
!w = tensor<2x8x300x400xbf16>
!r = tensor<2x8x4x300xf32>
func.func @forward_c28(%q: !q, %k: !k) {
  // expected-error @below {{expects no weights to be kept of attention with captures, sees, score, blocks, sinks, ragged, lengths, pages, scales or values, but got both}}
  %0:4 = attn.forward %q, %k, %k softcap(50.0) : !q, !k, !k -> !q, !lse, !w, !r
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
!w = tensor<2x8x300x400xbf16>
!r = tensor<2x8x4x300xf32>
func.func @backward_c28(%q: !q, %k: !k, %lse: !lse, %w: !w, %r: !r, %s: tensor<8xf32>) {
  // expected-error @below {{expects no weights to be kept of attention with captures, sees, score, blocks, sinks, ragged, lengths, pages, scales or values, but got both}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse weights(%w, %r : !w, !r) sinks(%s : tensor<8xf32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects three results, dq, dk and dv, and 1 more for gradients(..), but got 3}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse alibi(%s : tensor<8xf32>) gradients(%s) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects gradients of captures and sinks, which are 0 to 0, but got 1}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse alibi(%s : tensor<8xf32>) gradients(1) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects one gradient of each, but got two of 0}}
  %0:5 = attn.backward %q, %q, %k, %k, %q, %lse alibi(%s : tensor<8xf32>) gradients(%s, 0) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects a gradient of f32 and of the shape of 'tensor<8xf32>', but got 'tensor<8xbf16>'}}
  %0:4 = attn.backward %q, %q, %k, %k, %q, %lse alibi(%s : tensor<8xf32>) gradients(%s) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<8xbf16>
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  // expected-error @below {{expects a gradient of f32 and of the shape of 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %0:4 = attn.backward %q, %q, %k, %k, %q, %lse sinks(%s : tensor<8xf32>) gradients(%s) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<4xf32>
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c29(%q: !q, %k: !k, %lse: !lse, %s: tensor<400xi32>) {
  // expected-error @below {{expects gradients of floats, but got one of 'tensor<400xi32>'}}
  %0:4 = attn.backward %q, %q, %k, %k, %q, %lse document(%s : tensor<400xi32>) gradients(%s) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<400xf32>
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c30(%q: !q, %k: !k, %lse: !lse) {
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    // expected-error @below {{expects ops with derivatives between a score, or what has a gradient, and the result of score, but got 'math.floor'}}
    %y = math.floor %z : f32
    attn.yield %y : f32
  } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c30(%q: !q, %k: !k, %lse: !lse, %s: tensor<8xf32>) {
  %0:4 = attn.backward %q, %q, %k, %k, %q, %lse captures(%s : tensor<8xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {
    %y = attn.read %x[%h] : tensor<8xf32>
    // expected-error @below {{expects ops with derivatives between a score, or what has a gradient, and the result of score, but got 'arith.fptosi'}}
    %n = arith.fptosi %y : f32 to i32
    %m = arith.sitofp %n : i32 to f32
    %r = arith.addf %z, %m : f32
    attn.yield %r : f32
  } gradients(%s) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k, tensor<8xf32>
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c31(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects a transposed list for each list of blocks, partial and full, but got others}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) transposed(full %c, %n : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
!lse = tensor<2x8x300xf32>
func.func @backward_c31(%q: !q, %k: !k, %lse: !lse, %c: tensor<1x8x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of transposed partial blocks of i32 and shape 2x8x4, with 1 or all batch entries and heads, but got 'tensor<1x8x5xi32>'}}
  %0:3 = attn.backward %q, %q, %k, %k, %q, %lse blocks(partial %c, %n, size 64 x 128 : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) transposed(partial %c, %n : tensor<1x8x5xi32>, tensor<1x8x5x4xi32>) : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return
}

// -----

!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c25(%q: !q, %k: !k, %c: tensor<2x8x5xi32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts and indices of full blocks for as many batch entries, but got 2 and 1}}
  %o = attn.forward %q, %k, %k blocks(full %c, %n, size 64 x 128 : tensor<2x8x5xi32>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}

// -----

// What is no list is not counted.
!q = tensor<2x8x300x64xbf16>
!k = tensor<2x2x400x64xbf16>
func.func @forward_c25(%q: !q, %k: !k, %c: tensor<i32>, %n: tensor<1x8x5x4xi32>) {
  // expected-error @below {{expects counts of full blocks of i32 and shape 2x8x5, with 1 or all batch entries and heads, but got 'tensor<i32>'}}
  %o = attn.forward %q, %k, %k blocks(full %c, %n, size 64 x 128 : tensor<i32>, tensor<1x8x5x4xi32>) : !q, !k, !k -> !q
  return
}
