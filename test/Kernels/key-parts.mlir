// RUN: attn-run %s --on interpreter --function warpgroups | FileCheck %s
// RUN: attn-run %s --on interpreter --function warps | FileCheck %s
// RUN: attn-run %s --on interpreter --function derived | FileCheck %s --check-prefixes=CHECK,DERIVED
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm -attn-check-traffic -attn-check-footprint -o /dev/null

// The keys of few queries are dealt out to blocks, whose results a second
// kernel makes whole: against fp64, and byte for byte.
// DERIVED: kernel {{.*}}_parts_lse: flash, {{.*}}parts = 16
// DERIVED: kernel {{.*}}_merge_lse: flash, {{.*}}parts = 16
// CHECK-NOT: WRONG
// CHECK: moved

!q = tensor<1x8x3x64xbf16>
!k = tensor<1x2x700x64xbf16>
!lse = tensor<1x8x3xf32>

func.func @warpgroups(%q: !q, %k: !k, %v: !k) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right)
      {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, parts = 5, overlap = 1, persistent = 1>}
      : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

func.func @warps(%q: !q, %k: !k, %v: !k) -> !q {
  %o = attn.forward %q, %k, %v mask(window<300, 0>)
      {schedule = #attn.schedule<flash, query = 16, key = 64, stages = 2, warps = 1, parts = 3>}
      : !q, !k, !k -> !q
  return %o : !q
}

!q1 = tensor<1x8x1x64xbf16>
!many = tensor<1x8x16384x64xbf16>
!lse1 = tensor<1x8x1xf32>

func.func @derived(%q: !q1, %k: !many, %v: !many) -> (!q1, !lse1) {
  %o, %lse = attn.forward %q, %k, %v : !q1, !many, !many -> !q1, !lse1
  return %o, %lse : !q1, !lse1
}
