// Weights are kept with wgmma only, by the two schedules that have P in memory.
// RUN: attn-opt %s -split-input-file -attn-select-schedule -verify-diagnostics | FileCheck %s

!q = tensor<16x4x1024x512xbf16>
!lse = tensor<16x4x1024xf32>
!w = tensor<16x4x1024x1024xbf16>
!r = tensor<16x4x8x1024xf32>
// CHECK-LABEL: @chosen
// CHECK: attn.forward {{.*}}#attn.schedule<score_spill, {{.*}}kept = 1
// CHECK: attn.backward {{.*}}#attn.schedule<spill_backward, {{.*}}kept = 1
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @chosen(%q: !q) -> (!q, !q, !q) {
    %o, %lse, %w, %r = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !w, !r
    %0:3 = attn.backward %q, %q, %q, %q, %o, %lse weights(%w, %r : !w, !r) : !q, !q, !q, !q, !q, !lse -> !q, !q, !q
    return %0#0, %0#1, %0#2 : !q, !q, !q
  }
}

// -----

!q = tensor<16x4x1024x512xbf16>
!lse = tensor<16x4x1024xf32>
!w = tensor<16x4x1024x1024xbf16>
!r = tensor<16x4x8x1024xf32>
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @elsewhere(%q: !q) -> !q {
    // expected-error @below {{expects a schedule that fits a100_80g and has a kernel, but got none}}
    // expected-note @below {{flash: flash keeps no weights with mma_sync; score_spill does forward and spill_backward backward, both with wgmma only}}
    // expected-note @below {{output_spill: output_spill keeps no weights with mma_sync; score_spill does forward and spill_backward backward, both with wgmma only}}
    // expected-note @below {{score_spill: score_spill keeps no weights with mma_sync; score_spill does forward and spill_backward backward, both with wgmma only}}
    // expected-note @below {{streamed_query: streamed_query keeps no weights with mma_sync; score_spill does forward and spill_backward backward, both with wgmma only}}
    // expected-note @below {{known machines that fit: }}
    %o, %lse, %w, %r = attn.forward %q, %q, %q : !q, !q, !q -> !q, !lse, !w, !r
    return %o : !q
  }
}

// -----

!q = tensor<16x4x1024x512xbf16>
!lse = tensor<16x4x1024xf32>
!w = tensor<16x4x1024x1024xbf16>
!r = tensor<16x4x8x1024xf32>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @other_schedule(%q: !q) -> !q {
    // expected-error @below {{flash keeps no weights with}}
    // expected-note @below {{the best that fits: score_spill, }}
    %o, %lse, %w, %r = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 128>} : !q, !q, !q -> !q, !lse, !w, !r
    return %o : !q
  }
}
