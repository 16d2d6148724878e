// What is planned is the packed problem, and a remark says so, or why not.
// RUN: attn-opt %s -attn-attach-machine -attn-select-schedule=explain -verify-diagnostics=only-expected | FileCheck %s

!q = tensor<64x32x1x128xbf16>
!k = tensor<64x8x32768x128xbf16>
// CHECK-LABEL: func.func @decode
// CHECK: attn.forward {{.*}} {schedule = #attn.schedule<flash, query = 
func.func @decode(%q: !q, %k: !k, %v: !k) -> !q {
  // expected-remark@+2 {{flash}}
  // expected-note@+1 {{4 query heads of a key head are rows of one: 8 heads x 4 rows}}
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) : !q, !k, !k -> !q
  return %o : !q
}

func.func @window(%q: tensor<?x32x1x128xbf16>, %k: tensor<?x8x?x128xbf16>) -> tensor<?x32x1x128xbf16> {
  // expected-remark@+2 {{predicted}}
  // expected-note@+1 {{4 query heads of a key head are rows of one: 8 heads x 4 rows, which see 1024 of 4096 keys}}
  %o = attn.forward %q, %k, %k mask(window<1023, 0>) : tensor<?x32x1x128xbf16>, tensor<?x8x?x128xbf16>, tensor<?x8x?x128xbf16> -> tensor<?x32x1x128xbf16>
  return %o : tensor<?x32x1x128xbf16>
}

func.func @speculative(%q: tensor<64x32x4x128xbf16>, %k: !k) -> tensor<64x32x4x128xbf16> {
  // expected-remark@+2 {{predicted}}
  // expected-note@+1 {{the 4 query heads of a key head are not rows of one: the mask causal_bottom_right moves with each of 4 queries}}
  %o = attn.forward %q, %k, %k mask(causal_bottom_right) : tensor<64x32x4x128xbf16>, !k, !k -> tensor<64x32x4x128xbf16>
  return %o : tensor<64x32x4x128xbf16>
}

// Heads that share nothing are not spoken of.
func.func @alone(%q: tensor<64x8x1x128xbf16>, %k: !k) -> tensor<64x8x1x128xbf16> {
  // expected-remark@+1 {{predicted}}
  %o = attn.forward %q, %k, %k : tensor<64x8x1x128xbf16>, !k, !k -> tensor<64x8x1x128xbf16>
  return %o : tensor<64x8x1x128xbf16>
}
