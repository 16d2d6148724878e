// What a region reads outside of its array is named, before anything runs: a
// kernel might read 0 there, or what another array has.
// RUN: not attn-run --on interpreter --function table %s 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not attn-run --on interpreter --function ahead %s 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: not attn-run --on interpreter --function gradients --machine a100_80g %s 2>&1 | FileCheck %s --check-prefix=GRADIENTS
// RUN: not attn-run --on interpreter --function lists %s 2>&1 | FileCheck %s --check-prefix=LISTS
// RUN: not attn-run --on interpreter --function ragged %s 2>&1 | FileCheck %s --check-prefix=RAGGED
// RUN: attn-run --on interpreter --function hidden %s | FileCheck %s --check-prefix=HIDDEN

!q = tensor<1x2x150x64xbf16>
!lse = tensor<1x2x150xf32>

// By distance there are 150 to each side, and of one side none.
// TABLE: reads.mlir:[[#@LINE+3]]:8: error: expects attn.read inside of the array, but it reads element -1 of 150 in dimension 0 of capture 0 for batch entry 0, head 0, query 1 and key 0
// TABLE: note: capture 0 is this 'tensor<150xf32>'
func.func @table(%q: !q, %x: tensor<150xf32>) -> !q {
  %o = attn.forward %q, %q, %q captures(%x : tensor<150xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %d = arith.subi %j, %i : index
      %a = attn.read %s[%d] : tensor<150xf32>
      %r = arith.addf %z, %a : f32
      attn.yield %r : f32
    } : !q, !q, !q -> !q
  return %o : !q
}

// AHEAD: error: expects attn.read inside of the array, but it reads element 150 of 150 in dimension 0 of capture 0 for batch entry 0, head 0, query 0 and key 149
func.func @ahead(%q: !q, %x: tensor<150xi32>) -> !q {
  %o = attn.forward %q, %q, %q captures(%x : tensor<150xi32>)
    sees (%b, %h, %i, %j, %n, %m, %s) {
      %one = arith.constant 1 : index
      %next = arith.addi %j, %one : index
      %x0 = attn.read %s[%i] : tensor<150xi32>
      %x1 = attn.read %s[%next] : tensor<150xi32>
      %r = arith.cmpi sle, %x0, %x1 : i32
      attn.yield %r : i1
    } : !q, !q, !q -> !q
  return %o : !q
}

// GRADIENTS: error: expects attn.read inside of the array, but it reads element 2 of 2 in dimension 0 of capture 0 for batch entry 0, head 1, query 0 and key 0
func.func @gradients(%do: !q, %q: !q, %o: !q, %lse: !lse, %x: tensor<2xf32>) -> (!q, !q, !q) {
  %dq, %dk, %dv = attn.backward %do, %q, %q, %q, %o, %lse captures(%x : tensor<2xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %one = arith.constant 1 : index
      %next = arith.addi %h, %one : index
      %a = attn.read %s[%next] : tensor<2xf32>
      %r = arith.addf %z, %a : f32
      attn.yield %r : f32
    } : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
  return %dq, %dk, %dv : !q, !q, !q
}

!c = tensor<1x1x2xi32>
!i = tensor<1x1x2x2xi32>

// LISTS: error: expects attn.read inside of the array, but it reads element {{1[0-4][0-9]}} of 100 in dimension 0 of capture 0 for batch entry 0, head 0, query
func.func @lists(%x: tensor<100xi32>) -> (!c, !i, !c, !i) {
  %n = arith.constant 150 : index
  %pc, %pi, %fc, %fi = attn.block_lists queries(%n) keys(%n) batch(1) heads(1) size 128 x 128
      captures(%x : tensor<100xi32>)
      sees (%b, %h, %i, %j, %nq, %nk, %d) {
        %y = attn.read %d[%j] : tensor<100xi32>
        %zero = arith.constant 0 : i32
        %r = arith.cmpi eq, %y, %zero : i32
        attn.yield %r : i1
      } : !c, !i, !c, !i
  return %pc, %pi, %fc, %fi : !c, !i, !c, !i
}

!rows = tensor<300x2x64xbf16>
!cu = tensor<4xi32>

// Of three sequences the last has number 2.
// RAGGED: error: expects attn.read inside of the array, but it reads element 2 of 2 in dimension 0 of capture 0 for batch entry 2, head 0, query 0 and key 0
func.func @ragged(%q: !rows, %cu: !cu, %x: tensor<2xf32>) -> !rows {
  %o = attn.forward %q, %q, %q captures(%x : tensor<2xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %a = attn.read %s[%b] : tensor<2xf32>
      %r = arith.mulf %z, %a : f32
      attn.yield %r : f32
    } ragged(%cu, %cu, longest 100, 100 : !cu, !cu) : !rows, !rows, !rows -> !rows
  return %o : !rows
}

// Where nothing is seen nothing is read.
// HIDDEN: {{^o .* relative error}}
func.func @hidden(%q: !q, %x: tensor<150xf32>) -> !q {
  %o = attn.forward %q, %q, %q mask(causal) captures(%x : tensor<150xf32>)
    score (%z : f32, %b, %h, %i, %j, %n, %m, %s) {
      %d = arith.subi %i, %j : index
      %a = attn.read %s[%d] : tensor<150xf32>
      %r = arith.addf %z, %a : f32
      attn.yield %r : f32
    } : !q, !q, !q -> !q
  return %o : !q
}
