// Factors of f32 and tf32, as text and back, and what ops refuse of them.
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @types
// CHECK-SAME: !tile.frag<16x8xf32, lhs>, !tile.frag<8x16xf32, rhs>, !tile.frag<16x8xtf32, lhs_paired>, !tile.frag<8x32xtf32, rhs_paired>
func.func private @types(!tile.frag<16x8xf32, lhs>, !tile.frag<8x16xf32, rhs>, !tile.frag<16x8xtf32, lhs_paired>, !tile.frag<8x32xtf32, rhs_paired>)

// CHECK-LABEL: tile.kernel @products
tile.kernel @products(%i: i32, %x: f32) attributes {warps = 1 : i32} {
  %b = tile.alloc "b" : <16x16xf32>
  // CHECK: tile.load_matrix %{{.*}} : <16x16xf32> -> <16x8xf32, lhs>
  // CHECK: tile.load_matrix %{{.*}} transpose : <16x16xf32> -> <8x16xf32, rhs>
  // CHECK: tile.load_matrix %{{.*}} : <16x16xf32> -> <8x16xf32, rhs_paired>
  %q = tile.load_matrix %b[%i, %i, %i] : <16x16xf32> -> <16x8xf32, lhs>
  %k = tile.load_matrix %b[%i, %i, %i] transpose : <16x16xf32> -> <8x16xf32, rhs>
  %v = tile.load_matrix %b[%i, %i, %i] : <16x16xf32> -> <8x16xf32, rhs_paired>
  // CHECK: %[[QH:.*]], %[[QL:.*]] = tile.split %{{.*}} : <16x8xf32, lhs> -> <16x8xtf32, lhs>
  // CHECK: %[[KH:.*]], %{{.*}} = tile.split %{{.*}} : <8x16xf32, rhs> -> <8x16xtf32, rhs>
  %qh, %ql = tile.split %q : <16x8xf32, lhs> -> <16x8xtf32, lhs>
  %kh, %kl = tile.split %k : <8x16xf32, rhs> -> <8x16xtf32, rhs>
  %zero = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
  // CHECK: %[[S:.*]] = tile.mma %[[QL]], %[[KH]], %{{.*}} : <16x8xtf32, lhs>, <8x16xtf32, rhs>, <16x16xf32, acc>
  %s = tile.mma %ql, %kh, %zero : <16x8xtf32, lhs>, <8x16xtf32, rhs>, <16x16xf32, acc>
  // CHECK: %[[P:.*]] = tile.cast %[[S]] : <16x16xf32, acc> -> <16x16xtf32, lhs_paired>
  // CHECK: tile.split %[[S]] : <16x16xf32, acc> -> <16x16xtf32, lhs_paired>
  // CHECK: %[[P0:.*]] = tile.extract %[[P]][8] : <16x16xtf32, lhs_paired> -> <16x8xtf32, lhs_paired>
  %p = tile.cast %s : <16x16xf32, acc> -> <16x16xtf32, lhs_paired>
  %ph, %pl = tile.split %s : <16x16xf32, acc> -> <16x16xtf32, lhs_paired>
  %p0 = tile.extract %p[8] : <16x16xtf32, lhs_paired> -> <16x8xtf32, lhs_paired>
  %vr = tile.cast %v : <8x16xf32, rhs_paired> -> <8x16xtf32, rhs_paired>
  // CHECK: tile.mma %[[P0]], %{{.*}} : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
  %o = tile.mma %p0, %vr, %zero : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs_paired>, <16x16xf32, acc>
  // CHECK: tile.store_matrix %{{.*}} : <16x16xf32, acc> to <16x16xf32>
  tile.store_matrix %o to %b[%i] : <16x16xf32, acc> to <16x16xf32>
  tile.return
}

// -----

func.func @mma_pairs(%a: !tile.frag<16x8xtf32, lhs_paired>, %b: !tile.frag<8x16xtf32, rhs>, %c: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects factors that are both paired or both not, but got '!tile.frag<16x8xtf32, lhs_paired>' and '!tile.frag<8x16xtf32, rhs>'}}
  %d = tile.mma %a, %b, %c : <16x8xtf32, lhs_paired>, <8x16xtf32, rhs>, <16x16xf32, acc>
  return
}

// -----

func.func @mma_not_rounded(%a: !tile.frag<16x8xf32, lhs>, %b: !tile.frag<8x16xf32, rhs>, %c: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects factors of one 16-bit type or of tf32, but got 'f32' and 'f32'}}
  %d = tile.mma %a, %b, %c : <16x8xf32, lhs>, <8x16xf32, rhs>, <16x16xf32, acc>
  return
}

// -----

func.func @cast_keeps_layout(%a: !tile.frag<16x8xf32, lhs>) {
  // expected-error @below {{'tile.cast' op expects f32 to tf32 in layout lhs, but got '!tile.frag<16x8xf32, lhs>' to '!tile.frag<16x8xtf32, lhs_paired>'}}
  %b = tile.cast %a : <16x8xf32, lhs> -> <16x8xtf32, lhs_paired>
  return
}

// -----

func.func @split_pairs(%a: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.split' op expects f32 to tf32 in layout lhs_paired, but got '!tile.frag<16x16xf32, acc>' to '!tile.frag<16x16xtf32, lhs>'}}
  %b, %c = tile.split %a : <16x16xf32, acc> -> <16x16xtf32, lhs>
  return
}

// -----

func.func @split_element(%a: !tile.frag<16x16xbf16, lhs>) {
  // expected-error @below {{'tile.split' op expects f32 to tf32 in layout lhs, but got '!tile.frag<16x16xbf16, lhs>' to '!tile.frag<16x16xbf16, lhs>'}}
  %b, %c = tile.split %a : <16x16xbf16, lhs> -> <16x16xbf16, lhs>
  return
}

// -----

func.func @split_shape(%a: !tile.frag<16x8xf32, lhs>) {
  // expected-error @below {{'tile.split' op expects the same shape, but got '!tile.frag<16x8xf32, lhs>' to '!tile.frag<16x16xtf32, lhs>'}}
  %b, %c = tile.split %a : <16x8xf32, lhs> -> <16x16xtf32, lhs>
  return
}

// -----

func.func @load_across(%b: !tile.smem<16x16xf32>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects f32 in layout rhs_paired, from rows across k, but got rhs}}
  %f = tile.load_matrix %b[%i, %i, %i] : <16x16xf32> -> <8x16xf32, rhs>
  return
}

// -----

func.func @load_along(%b: !tile.smem<16x16xf32>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects f32 in layout rhs, from rows along k, but got rhs_paired}}
  %f = tile.load_matrix %b[%i, %i, %i] transpose : <16x16xf32> -> <8x16xf32, rhs_paired>
  return
}
