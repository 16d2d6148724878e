// RUN: attn-opt -attn-derive-masks=explain=true -split-input-file %s -verify-diagnostics | FileCheck %s

!q = tensor<2x4x?x64xbf16>
!k = tensor<2x4x?x64xbf16>

// CHECK-LABEL: @causal
// CHECK: attn.forward %{{.*}}, %{{.*}}, %{{.*}} mask(causal) : tensor
func.func @causal(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{sees is the mask causal: tiles that it hides are not loaded, and tiles that it does not cut have no code for it}}
  %o = attn.forward %q, %k, %k
      sees (%b, %h, %i, %j, %nq, %nk) {
        %r = arith.cmpi sle, %j, %i : index
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// What another region reads stays, and so do other clauses.
// CHECK-LABEL: @beside
// CHECK: attn.forward {{.*}} mask(window<7, 0>) alibi(%{{.*}} : tensor<4xf32>) sinks(%{{.*}} : tensor<4xf32>)
func.func @beside(%q: tensor<2x4x96x64xbf16>, %s: tensor<4xf32>) -> tensor<2x4x96x64xbf16> {
  // expected-remark @+1 {{sees is the mask window<7, 0>}}
  %o = attn.forward %q, %q, %q
      captures(%s : tensor<4xf32>)
      sees (%b, %h, %i, %j, %nq, %nk, %x) {
        %c = arith.constant 8 : i32
        %y = arith.index_cast %i : index to i32
        %z = arith.index_cast %j : index to i32
        %d = arith.subi %y, %z : i32
        %r = arith.cmpi ult, %d, %c : i32
        attn.yield %r : i1
      }
      score (%z : f32, %b, %h, %i, %j, %nq, %nk, %x) {
        %a = attn.read %x[%h] : tensor<4xf32>
        %t = arith.subi %j, %i : index
        %u = arith.index_cast %t : index to i32
        %w = arith.sitofp %u : i32 to f32
        %m = arith.mulf %a, %w : f32
        %n = arith.addf %z, %m : f32
        attn.yield %n : f32
      } sinks(%s : tensor<4xf32>)
      : tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16> -> tensor<2x4x96x64xbf16>
  return %o : tensor<2x4x96x64xbf16>
}

// CHECK-LABEL: @documents
// CHECK: attn.forward {{.*}} mask(causal) captures(%{{.*}} : tensor<?xi32>)
// CHECK-SAME: sees
func.func @documents(%q: !q, %k: !k, %ids: tensor<?xi32>) -> !q {
  // expected-remark @+1 {{sees is within the mask causal, whose hidden tiles are not loaded, and is asked in every other one; attn.block_lists makes lists of the blocks that it shows}}
  %o = attn.forward %q, %k, %k
      captures(%ids : tensor<?xi32>)
      sees (%b, %h, %i, %j, %nq, %nk, %x) {
        %y = attn.read %x[%i] : tensor<?xi32>
        %z = attn.read %x[%j] : tensor<?xi32>
        %e = arith.cmpi eq, %y, %z : i32
        %c = arith.cmpi sle, %j, %i : index
        %r = arith.andi %c, %e : i1
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// CHECK-LABEL: @dilated
// CHECK-NOT: mask(
// CHECK: sees
func.func @dilated(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{sees is no mask, and is asked in every tile; attn.block_lists makes lists of the blocks that it shows}}
  %o = attn.forward %q, %k, %k
      sees (%b, %h, %i, %j, %nq, %nk) {
        %c2 = arith.constant 2 : index
        %c0 = arith.constant 0 : index
        %d = arith.subi %i, %j : index
        %m = arith.remsi %d, %c2 : index
        %r = arith.cmpi eq, %m, %c0 : index
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// CHECK-LABEL: @listed
// CHECK: document(
!c = tensor<1x1x?xi32>
!n = tensor<1x1x?x?xi32>
func.func @listed(%q: !q, %k: !k, %c: !c, %n: !n, %ids: tensor<?xi32>) -> !q {
  // expected-remark @+1 {{sees is asked in the partial blocks of the lists}}
  %o = attn.forward %q, %k, %k document(%ids : tensor<?xi32>)
      blocks(partial %c, %n, size 128 x 128 : !c, !n) : !q, !k, !k -> !q
  return %o : !q
}

// CHECK-LABEL: @two
// CHECK: mask(window<5, 5>)
// CHECK-SAME: sees
func.func @two(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{sees is the mask causal beside window<5, 5>, and is asked in every tile that window<5, 5> shows}}
  %o = attn.forward %q, %k, %k mask(window<5, 5>)
      sees (%b, %h, %i, %j, %nq, %nk) {
        %r = arith.cmpi sle, %j, %i : index
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// Of three bands: a window, first keys and first queries, all causal.
// CHECK-LABEL: @three
// CHECK-NOT: mask(
// CHECK: sees
func.func @three(%q: !q, %k: !k) -> !q {
  // expected-remark @+1 {{sees is a union of 3 bands: a tile walks the runs of blocks that it sees, and sees is asked in those that are not whole}}
  %o = attn.forward %q, %k, %k
      sees (%b, %h, %i, %j, %nq, %nk) {
        %five = arith.constant 5 : index
        %d = arith.subi %i, %j : index
        %causal = arith.cmpi sle, %j, %i : index
        %near = arith.cmpi sle, %d, %five : index
        %key = arith.cmpi slt, %j, %five : index
        %query = arith.cmpi slt, %i, %five : index
        %x = arith.ori %near, %key : i1
        %y = arith.ori %x, %query : i1
        %r = arith.andi %causal, %y : i1
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// CHECK-LABEL: @gradients
// CHECK: attn.backward {{.*}} mask(causal) : tensor
func.func @gradients(%q: !q, %k: !k, %lse: tensor<2x4x?xf32>) -> !q {
  // expected-remark @+1 {{sees is the mask causal}}
  %dq, %dk, %dv = attn.backward %q, %q, %k, %k, %q, %lse
      sees (%b, %h, %i, %j, %nq, %nk) {
        %r = arith.cmpi sle, %j, %i : index
        attn.yield %r : i1
      } : !q, !q, !k, !k, !q, tensor<2x4x?xf32> -> !q, !k, !k
  return %dq : !q
}

// Gradients walk runs of queries as well as of keys.
// CHECK-LABEL: @gradients_of_union
// CHECK-NOT: mask(
// CHECK: sees
func.func @gradients_of_union(%q: tensor<2x4x96x64xbf16>, %lse: tensor<2x4x96xf32>) -> tensor<2x4x96x64xbf16> {
  // expected-remark @+1 {{sees is a union of 2 bands: a tile walks the runs of blocks that it sees, and sees is asked in those that are not whole}}
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %q, %lse
      sees (%b, %h, %i, %j, %nq, %nk) {
        %nine = arith.constant 9 : index
        %two = arith.constant 2 : index
        %five = arith.constant 5 : index
        %d = arith.subi %i, %j : index
        %near = arith.cmpi sle, %d, %nine : index
        %far = arith.cmpi sge, %d, %two : index
        %window = arith.andi %near, %far : i1
        %before = arith.cmpi slt, %d, %two : index
        %later = arith.cmpi sge, %j, %five : index
        %z = arith.andi %before, %later : i1
        %r = arith.ori %window, %z : i1
        attn.yield %r : i1
      } : tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96xf32> -> tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>, tensor<2x4x96x64xbf16>
  return %dq : tensor<2x4x96x64xbf16>
}

// Of more rows than runs are counted for there is the mask around it.
// CHECK-LABEL: @gradients_of_many
// CHECK: mask(window<9, 1073741824>)
// CHECK-SAME: sees
func.func @gradients_of_many(%q: tensor<1x1x1048577x64xbf16>, %lse: tensor<1x1x1048577xf32>) -> tensor<1x1x1048577x64xbf16> {
  // expected-remark @+1 {{of its union of 2 bands no runs are walked, since there are more than 1048576 rows}}
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %q, %lse
      sees (%b, %h, %i, %j, %nq, %nk) {
        %nine = arith.constant 9 : index
        %two = arith.constant 2 : index
        %five = arith.constant 5 : index
        %d = arith.subi %i, %j : index
        %near = arith.cmpi sle, %d, %nine : index
        %far = arith.cmpi sge, %d, %two : index
        %window = arith.andi %near, %far : i1
        %before = arith.cmpi slt, %d, %two : index
        %later = arith.cmpi sge, %j, %five : index
        %z = arith.andi %before, %later : i1
        %r = arith.ori %window, %z : i1
        attn.yield %r : i1
      } : tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577xf32> -> tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>, tensor<1x1x1048577x64xbf16>
  return %dq : tensor<1x1x1048577x64xbf16>
}
