// C37: arrays of short forms have 1 element for all or one for each of what
// they are read by; and a constant index is one of the array.
// RUN: attn-opt -split-input-file -verify-diagnostics %s

!q = tensor<1x4x300x64xbf16>

func.func @forward_c37_bias_of_columns(%q: !q, %x: tensor<300x64xf32>) -> !q {
  // expected-error @+1 {{expects an array of bias(..) with 300 elements or more in dimension 1, one for each of the keys, or 1 for all, but got 'tensor<300x64xf32>'}}
  %o = attn.forward %q, %q, %q bias(%x : tensor<300x64xf32>) : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>

func.func @forward_c37_bias_of_heads(%q: !q, %x: tensor<3x300x300xf32>) -> !q {
  // expected-error @+1 {{expects an array of bias(..) with 4 elements or more in dimension 0, one for each of the heads, or 1 for all, but got 'tensor<3x300x300xf32>'}}
  %o = attn.forward %q, %q, %q bias(%x : tensor<3x300x300xf32>) : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<3x4x?x64xbf16>

func.func @forward_c37_bias_of_entries(%q: !q, %x: tensor<2x1x?x?xbf16>) -> !q {
  // expected-error @+1 {{with 3 elements or more in dimension 0, one for each of the batch entries, or 1 for all, but got 'tensor<2x1x?x?xbf16>'}}
  %o = attn.forward %q, %q, %q bias(%x : tensor<2x1x?x?xbf16>) : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>

func.func @forward_c37_alibi(%q: !q, %x: tensor<3xf32>) -> !q {
  // expected-error @+1 {{expects an array of alibi(..) with 4 elements or more in dimension 0, one for each of the heads, or 1 for all, but got 'tensor<3xf32>'}}
  %o = attn.forward %q, %q, %q softcap(20.0) alibi(%x : tensor<3xf32>) : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>
!k = tensor<1x4x200x64xbf16>

func.func @forward_c37_document(%q: !q, %k: !k, %ids: tensor<200xi32>) -> !q {
  // expected-error @+1 {{expects an array of document(..) with 300 elements or more in dimension 0, one for each of the queries, or 1 for all, but got 'tensor<200xi32>'}}
  %o = attn.forward %q, %k, %k document(%ids : tensor<200xi32>) : !q, !k, !k -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>
!lse = tensor<1x4x300xf32>

func.func @backward_c37(%do: !q, %q: !q, %o: !q, %lse: !lse, %x: tensor<3xf32>) -> !q {
  // expected-error @+1 {{expects an array of alibi(..) with 4 elements or more in dimension 0}}
  %dq, %dk, %dv = attn.backward %do, %q, %q, %q, %o, %lse alibi(%x : tensor<3xf32>)
      : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return %dq : !q
}

// -----

// Written as a region it is the same.
!q = tensor<1x4x300x64xbf16>

func.func @forward_c37_region(%q: !q, %x: tensor<3xf32>) -> !q {
  // expected-error @+1 {{expects an array of alibi(..) with 4 elements or more in dimension 0}}
  %o = attn.forward %q, %q, %q captures(%x : tensor<3xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %a = attn.read %s[%h] : tensor<3xf32>
      %d = arith.subi %j, %i : index
      %w = arith.index_cast %d : index to i32
      %f = arith.sitofp %w : i32 to f32
      %p = arith.mulf %a, %f : f32
      %r = arith.addf %z, %p : f32
      attn.yield %r : f32
    } : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>

func.func @constant_index(%q: !q, %x: tensor<300xf32>) -> !q {
  %o = attn.forward %q, %q, %q captures(%x : tensor<300xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %c = arith.constant 100000 : index
      // expected-error @+1 {{expects an index of 0 or more and below 300 in dimension 0, but got 100000 of 'tensor<300xf32>'}}
      %a = attn.read %s[%c] : tensor<300xf32>
      %r = arith.addf %z, %a : f32
      attn.yield %r : f32
    } : !q, !q, !q -> !q
  return %o : !q
}

// -----

!q = tensor<1x4x300x64xbf16>

func.func @negative_index(%q: !q, %x: tensor<?xf32>) -> !q {
  %o = attn.forward %q, %q, %q captures(%x : tensor<?xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %c = arith.constant -1 : index
      // expected-error @+1 {{expects an index of 0 or more in dimension 0, but got -1 of 'tensor<?xf32>'}}
      %a = attn.read %s[%c] : tensor<?xf32>
      %r = arith.addf %z, %a : f32
      attn.yield %r : f32
    } : !q, !q, !q -> !q
  return %o : !q
}

// -----

func.func @block_lists_c4(%n: index, %ids: tensor<2x?xi32>) -> tensor<3x1x?xi32> {
  // expected-error @+1 {{expects an array of document(..) with 3 elements or more in dimension 0, one for each of the batch entries, or 1 for all, but got 'tensor<2x?xi32>'}}
  %pc, %pi, %fc, %fi = attn.block_lists queries(%n) keys(%n) batch(3) heads(1) size 128 x 128
      captures(%ids : tensor<2x?xi32>)
      sees (%b, %h, %i, %j, %nq, %nk, %d) {
        %x = attn.read %d[%b, %i] : tensor<2x?xi32>
        %y = attn.read %d[%b, %j] : tensor<2x?xi32>
        %r = arith.cmpi eq, %x, %y : i32
        attn.yield %r : i1
      } : tensor<3x1x?xi32>, tensor<3x1x?x?xi32>, tensor<3x1x?xi32>, tensor<3x1x?x?xi32>
  return %pc : tensor<3x1x?xi32>
}

// -----

// More than that is never read, 1 is for all, and what is not known may do.
!q = tensor<2x4x300x64xbf16>

func.func @right(%q: !q, %a: tensor<400x304xf32>, %b: tensor<7x4xf32>,
                 %c: tensor<1x1x300x1xf32>, %d: tensor<2x?xi32>) -> !q {
  %0 = attn.forward %q, %q, %q bias(%a : tensor<400x304xf32>) : !q, !q, !q -> !q
  %1 = attn.forward %0, %q, %q alibi(%b : tensor<7x4xf32>) : !q, !q, !q -> !q
  %2 = attn.forward %1, %q, %q bias(%c : tensor<1x1x300x1xf32>) : !q, !q, !q -> !q
  %3 = attn.forward %2, %q, %q document(%d : tensor<2x?xi32>) : !q, !q, !q -> !q
  return %3 : !q
}
