// f32 in parts of bf16 or f16, as text and back, and what ops refuse of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: tile.kernel @parts
tile.kernel @parts(%i: i32, %x: f32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <2x8x128xf32, sw128>
  %a = tile.alloc "a" : <64x80xbf16, sw128>
  %b = tile.alloc "b" : <64x80xbf16, sw128>
  %c = tile.alloc "c" : <64x80xbf16, sw128>
  // CHECK: tile.split_rows %[[S:.*]][%[[I:.*]], %[[I]], %[[I]]] to %[[A:.*]], %[[B:.*]], %[[C:.*]][%[[I]], %[[I]]] : <2x8x128xf32, sw128> to <64x80xbf16, sw128>, <64x80xbf16, sw128>, <64x80xbf16, sw128>
  tile.split_rows %s[%i, %i, %i] to %a, %b, %c[%i, %i] : <2x8x128xf32, sw128> to <64x80xbf16, sw128>, <64x80xbf16, sw128>, <64x80xbf16, sw128>
  %p = tile.fill %x : f32 -> !tile.frag<16x64xf32, acc>
  // CHECK: %[[P0:.*]], %[[P1:.*]], %[[P2:.*]] = tile.split_bf16 %{{.*}} : <16x64xf32, acc> -> <16x64xbf16, lhs>
  %p0, %p1, %p2 = tile.split_bf16 %p : <16x64xf32, acc> -> <16x64xbf16, lhs>
  // CHECK: %[[T:.*]] = tile.wgmma %[[P2]], %[[A]][%[[I]]] open :
  // CHECK: tile.wgmma %[[P0]], %[[C]][%[[I]]] acc(%[[T]] : !tile.pending<16x80xf32>) :
  %t = tile.wgmma %p2, %a[%i] open : !tile.frag<16x64xbf16, lhs>, <64x80xbf16, sw128> -> <16x80xf32>
  %u = tile.wgmma %p0, %c[%i] acc(%t : !tile.pending<16x80xf32>) : !tile.frag<16x64xbf16, lhs>, <64x80xbf16, sw128> -> <16x80xf32>
  %o = tile.wgmma_wait 0, %u : !tile.pending<16x80xf32> -> !tile.frag<16x80xf32, acc>
  tile.return
}

// CHECK-LABEL: @map
// CHECK-SAME: !tile.tensor_map<8x36xf32>
func.func private @map(!tile.tensor_map<8x36xf32>)

// CHECK-LABEL: tile.kernel @views
tile.kernel @views(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %e: !tile.ptr<i32>, %n: i32, %o: i64) attributes {warps = 8 : i32} {
  %a = tile.view %p[%o] rows(%n) stride(%o) : !tile.ptr<f32> -> !tile.view<?x65xf32, align = 4>
  %b = tile.view %q[%o] rows(%n) stride(%o) : !tile.ptr<f16> -> !tile.view<?x256xf16, align = 16>
  %l = tile.alloc "l" : <1x16xf32>
  // CHECK: tile.split_view %{{.*}} to %{{.*}}[%[[N:.*]]] exponent %[[E:.*]][%[[N]]] at_most 60 by %{{.*}} : <?x65xf32, align = 4> to <?x256xf16, align = 16>, <i32>, <1x16xf32>
  tile.split_view %a to %b[%n] exponent %e[%n] at_most 60 by %l : <?x65xf32, align = 4> to <?x256xf16, align = 16>, <i32>, <1x16xf32>
  // CHECK: %[[PART:.*]], %{{.*}} = tile.split_f16 %{{.*}} : <16x64xf32, acc> -> <16x64xf16, lhs>
  // CHECK: tile.store_matrix %[[PART]] to %{{.*}}[%{{.*}}] : <16x64xf16, lhs> to <64x64xf16, sw128>
  %s = tile.alloc "s" : <64x64xf16, sw128>
  %x = arith.constant 1.0 : f32
  %f = tile.fill %x : f32 -> !tile.frag<16x64xf32, acc>
  %f0, %f1 = tile.split_f16 %f : <16x64xf32, acc> -> <16x64xf16, lhs>
  tile.store_matrix %f0 to %s[%n] : <16x64xf16, lhs> to <64x64xf16, sw128>
  tile.return
}

// -----

// expected-error @below {{expects rows of f32 in multiples of 8, but got 4}}
func.func private @rows(!tile.smem<4x32xf32, sw128>)

// -----

// expected-error @below {{expects columns in multiples of 4 up to 65536, but got 6}}
func.func private @columns(!tile.tensor_map<8x6xf32>)

// -----

func.func @source(%s: !tile.smem<8x32xf32>, %a: !tile.smem<16x32xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.split_rows' op expects a source of f32 in layout sw128, but got '!tile.smem<8x32xf32>'}}
  tile.split_rows %s[%i, %i, %i] to %a, %a, %a[%i, %i] : <8x32xf32> to <16x32xbf16, sw128>, <16x32xbf16, sw128>, <16x32xbf16, sw128>
  return
}

// -----

func.func @half(%s: !tile.smem<8x48xf32, sw128>, %a: !tile.smem<16x48xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.split_rows' op expects a source of at most 32 columns or a multiple of 64, but got '!tile.smem<8x48xf32, sw128>'}}
  tile.split_rows %s[%i, %i, %i] to %a, %a, %a[%i, %i] : <8x48xf32, sw128> to <16x48xbf16, sw128>, <16x48xbf16, sw128>, <16x48xbf16, sw128>
  return
}

// -----

func.func @target(%s: !tile.smem<8x32xf32, sw128>, %a: !tile.smem<16x32xf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.split_rows' op expects targets of bf16 in layout sw128 with at most 32 columns, but got '!tile.smem<16x32xf16, sw128>'}}
  tile.split_rows %s[%i, %i, %i] to %a, %a, %a[%i, %i] : <8x32xf32, sw128> to <16x32xf16, sw128>, <16x32xf16, sw128>, <16x32xf16, sw128>
  return
}

// -----

func.func @targets(%s: !tile.smem<8x32xf32, sw128>, %a: !tile.smem<16x32xbf16, sw128>, %b: !tile.smem<32x32xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.split_rows' op expects targets of one type, but got '!tile.smem<16x32xbf16, sw128>' and '!tile.smem<32x32xbf16, sw128>'}}
  tile.split_rows %s[%i, %i, %i] to %a, %b, %a[%i, %i] : <8x32xf32, sw128> to <16x32xbf16, sw128>, <32x32xbf16, sw128>, <16x32xbf16, sw128>
  return
}

// -----

func.func @factor(%p: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.split_bf16' op expects an accumulator to left factors of bf16 of its shape, but got '!tile.frag<16x32xf32, acc>' to '!tile.frag<16x16xbf16, lhs>'}}
  %a, %b, %c = tile.split_bf16 %p : <16x32xf32, acc> -> <16x16xbf16, lhs>
  return
}

// -----

func.func @left_open(%p: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects the next product to go on with it}}
  %t = tile.wgmma %p, %b[%i] open : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  %u = tile.wgmma %p, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  %v, %w = tile.wgmma_wait 0, %t, %u : !tile.pending<16x64xf32>, !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>, !tile.frag<16x64xf32, acc>
  return
}

// -----

func.func @view_of_halves(%a: !tile.view<?x64xbf16, align = 16>, %b: !tile.view<?x128xf16, align = 16>, %e: !tile.ptr<i32>, %l: !tile.smem<1x16xf32>, %i: i32) {
  // expected-error @below {{'tile.split_view' op expects a source of rows of f32, but got '!tile.view<?x64xbf16, align = 16>'}}
  tile.split_view %a to %b[%i] exponent %e[%i] at_most 60 by %l : <?x64xbf16, align = 16> to <?x128xf16, align = 16>, <i32>, <1x16xf32>
  return
}

// -----

func.func @narrow_view(%a: !tile.view<?x65xf32, align = 4>, %b: !tile.view<?x128xf16, align = 16>, %e: !tile.ptr<i32>, %l: !tile.smem<1x16xf32>, %i: i32) {
  // expected-error @below {{'tile.split_view' op expects a target of f16 in 2 times a multiple of 64 columns, at least 65, aligned to 16 bytes, but got '!tile.view<?x128xf16, align = 16>'}}
  tile.split_view %a to %b[%i] exponent %e[%i] at_most 60 by %l : <?x65xf32, align = 4> to <?x128xf16, align = 16>, <i32>, <1x16xf32>
  return
}

// -----

func.func @crooked_view(%a: !tile.view<?x65xf32, align = 4>, %b: !tile.view<?x256xf16, align = 8>, %e: !tile.ptr<i32>, %l: !tile.smem<1x16xf32>, %i: i32) {
  // expected-error @below {{aligned to 16 bytes, but got '!tile.view<?x256xf16, align = 8>'}}
  tile.split_view %a to %b[%i] exponent %e[%i] at_most 60 by %l : <?x65xf32, align = 4> to <?x256xf16, align = 8>, <i32>, <1x16xf32>
  return
}

// -----

func.func @few_numbers(%a: !tile.view<?x65xf32, align = 4>, %b: !tile.view<?x256xf16, align = 16>, %e: !tile.ptr<i32>, %l: !tile.smem<1x32xf32>, %i: i32) {
  // expected-error @below {{'tile.split_view' op expects a buffer of 16 numbers of f32, but got '!tile.smem<1x32xf32>'}}
  tile.split_view %a to %b[%i] exponent %e[%i] at_most 60 by %l : <?x65xf32, align = 4> to <?x256xf16, align = 16>, <i32>, <1x32xf32>
  return
}

// -----

tile.kernel @four_warps(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %e: !tile.ptr<i32>, %n: i32, %o: i64) attributes {warps = 4 : i32} {
  %a = tile.view %p[%o] rows(%n) stride(%o) : !tile.ptr<f32> -> !tile.view<?x65xf32, align = 4>
  %b = tile.view %q[%o] rows(%n) stride(%o) : !tile.ptr<f16> -> !tile.view<?x256xf16, align = 16>
  %l = tile.alloc "l" : <1x16xf32>
  // expected-error @below {{'tile.split_view' op expects 8 warps, but got 4}}
  tile.split_view %a to %b[%n] exponent %e[%n] at_most 60 by %l : <?x65xf32, align = 4> to <?x256xf16, align = 16>, <i32>, <1x16xf32>
  tile.return
}

// -----

func.func @weights(%p: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.split_f16' op expects an accumulator to left factors of f16 of its shape, but got '!tile.frag<16x32xf32, acc>' to '!tile.frag<16x32xbf16, lhs>'}}
  %a, %b = tile.split_f16 %p : <16x32xf32, acc> -> <16x32xbf16, lhs>
  return
}

// -----

func.func @factor_of_rows(%f: !tile.frag<16x64xbf16, lhs>, %s: !tile.smem<64x64xbf16>, %i: i32) {
  // expected-error @below {{'tile.store_matrix' op expects a fragment in layout acc, but got lhs}}
  tile.store_matrix %f to %s[%i] : <16x64xbf16, lhs> to <64x64xbf16>
  return
}
