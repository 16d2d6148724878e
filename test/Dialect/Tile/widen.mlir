// 8-bit rows in 16 bits, as text and back, and what the op refuses.
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: tile.kernel @rows
tile.kernel @rows(%i: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <3x64x80xf8E4M3FN, sw128>
  %a = tile.alloc "a" : <2x64x80xbf16, sw128>
  %b = tile.alloc "b" : <64x80xf16, sw128>
  // CHECK: tile.widen_rows %[[S:.*]][%[[I:.*]], %[[I]], %[[I]]] to %[[A:.*]][%[[I]]] : <3x64x80xf8E4M3FN, sw128> to <2x64x80xbf16, sw128>
  tile.widen_rows %s[%i, %i, %i] to %a[%i] : <3x64x80xf8E4M3FN, sw128> to <2x64x80xbf16, sw128>
  // CHECK: tile.widen_rows %[[S]][%[[I]], %[[I]], %[[I]]] to %{{.*}}[%[[I]]] : <3x64x80xf8E4M3FN, sw128> to <64x80xf16, sw128>
  tile.widen_rows %s[%i, %i, %i] to %b[%i] : <3x64x80xf8E4M3FN, sw128> to <64x80xf16, sw128>
  tile.return
}

// -----

tile.kernel @source(%i: i32) attributes {warps = 1 : i32} {
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  %a = tile.alloc "a" : <64x64xbf16, sw128>
  // expected-error @below {{'tile.widen_rows' op expects a source of 8-bit elements in layout sw128, but got '!tile.smem<64x64xbf16, sw128>'}}
  tile.widen_rows %s[%i, %i, %i] to %a[%i] : <64x64xbf16, sw128> to <64x64xbf16, sw128>
  tile.return
}

// -----

tile.kernel @target(%i: i32) attributes {warps = 1 : i32} {
  %s = tile.alloc "s" : <64x64xf8E4M3FN, sw128>
  %a = tile.alloc "a" : <64x64xbf16>
  // expected-error @below {{'tile.widen_rows' op expects a target of 64 x 64 bf16 or f16 in layout sw128, but got '!tile.smem<64x64xbf16>'}}
  tile.widen_rows %s[%i, %i, %i] to %a[%i] : <64x64xf8E4M3FN, sw128> to <64x64xbf16>
  tile.return
}

// -----

tile.kernel @shape(%i: i32) attributes {warps = 1 : i32} {
  %s = tile.alloc "s" : <64x64xf8E4M3FN, sw128>
  %a = tile.alloc "a" : <64x128xf16, sw128>
  // expected-error @below {{'tile.widen_rows' op expects a target of 64 x 64 bf16 or f16 in layout sw128, but got '!tile.smem<64x128xf16, sw128>'}}
  tile.widen_rows %s[%i, %i, %i] to %a[%i] : <64x64xf8E4M3FN, sw128> to <64x128xf16, sw128>
  tile.return
}
