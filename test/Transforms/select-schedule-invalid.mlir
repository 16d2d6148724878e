// What is refused, and with which reason.
// RUN: attn-opt %s -attn-select-schedule -split-input-file -verify-diagnostics
// RUN: not attn-opt %s -split-input-file -attn-select-schedule="schedule='flash> x <'" 2>&1 | FileCheck %s --check-prefix=GARBAGE
// RUN: not attn-opt %s -split-input-file -attn-select-schedule="schedule='flush'" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// GARBAGE: error: found trailing characters
// GARBAGE: error: expects the option schedule to be a schedule, but got 'flash> x <'
// UNKNOWN: error: expects the name of a schedule, but got 'flush'
// UNKNOWN: note: schedules: {{.*}}flash

func.func @no_machine(%q: tensor<1x1x64x64xf16>) {
  // expected-error @below {{expects a module with 'attn.machine', but got none: run -attn-attach-machine first}}
  %o = attn.forward %q, %q, %q : tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16> -> tensor<1x1x64x64xf16>
  return
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = 4096>} {
  func.func @nothing_fits(%q: tensor<1x1x64x64xf16>) {
    // expected-error @below {{expects a schedule that fits h100_sxm and has a kernel, but got none}}
    // expected-note-re @below {{flash, query = {{.*}}, persistent = {{[01]}}: needs {{[0-9]+}} bytes of shared memory, but a block on h100_sxm has 4096}}
    // expected-note-re @below {{flash, query = {{.*}}, warps = {{[0-9]+}}: needs {{[0-9]+}} bytes of shared memory, but a block on h100_sxm has 4096}}
    // expected-note-re @below {{output_spill, query = {{.*}}: needs {{[0-9]+}} bytes of shared memory, but a block on h100_sxm has 4096}}
    // expected-note-re @below {{score_spill, query = {{.*}}: needs {{[0-9]+}} bytes of shared memory, but a block on h100_sxm has 4096}}
    // expected-note-re @below {{streamed_query, query = {{.*}}: needs {{[0-9]+}} bytes of shared memory, but a block on h100_sxm has 4096}}
    // expected-note-re @below {{nearest to fitting: flash, query = {{.*}} needs {{[0-9]+}} bytes of shared memory}}
    // expected-note-re @below {{known machines that fit: a100_80g, {{.*}}h100_sxm, {{.*}}; the smallest is {{.*}} with {{[0-9]+}} bytes}}
    %o = attn.forward %q, %q, %q : tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16> -> tensor<1x1x64x64xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<rtx_a6000>} {
  func.func @given_does_not_fit(%q: tensor<1x1x64x128xf16>) {
    // expected-error-re @below {{expects a schedule that fits rtx_a6000, but got flash, query = 128, key = 128, stages = 2, warps = 8: needs {{[0-9]+}} bytes of shared memory, but a block on rtx_a6000 has 101376}}
    // expected-note @below {{the best that fits: streamed_query, query = }}
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 128, key = 128, stages = 2, warps = 8>}
        : tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16> -> tensor<1x1x64x128xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<rtx_a6000>} {
  func.func @given_makes_no_sense(%q: tensor<1x1x64x128xf16>) {
    // expected-error @below {{expects a schedule that fits rtx_a6000, but got flash, query = 100: }}
    // expected-note @below {{the best that fits: streamed_query, query = }}
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 100>}
        : tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16> -> tensor<1x1x64x128xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @given_is_absurd(%q: tensor<1x1x64x128xf16>) {
    // expected-error @below {{expects a schedule that fits h100_sxm, but got flash, query = 9223372036854775792: }}
    // expected-note @below {{the best that fits: flash, query = }}
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 9223372036854775792>}
        : tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16>, tensor<1x1x64x128xf16> -> tensor<1x1x64x128xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<gtx_1060>} {
  func.func @given_has_no_kernel(%q: tensor<1x1x64x64xf16>) {
    // expected-error-re @below {{expects a schedule that has a kernel, but got flash, query = 64, {{.*}} on gtx_1060}}
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 64>}
        : tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16> -> tensor<1x1x64x64xf16>
    return
  }
}


// -----

!q = tensor<1x1x64x16xf16>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @clause_without_code(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
    // expected-error @+1 {{expects ops that kernels have code for, but got 'math.erf'}}
    %r = math.erf %z : f32
    attn.yield %r : f32
  } : !q, !q, !q -> !q
  return %o : !q
}
}

// -----

!q = tensor<1x1x64x16xf16>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @clause_of_many_dimensions(%q: !q, %x: tensor<1x1x1x1x64xf32>) -> !q {
  // expected-error @+1 {{expects captures of up to 4 dimensions in kernels, but got capture 0 of 5}}
  %o = attn.forward %q, %q, %q captures(%x : tensor<1x1x1x1x64xf32>) score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
    %n = arith.constant 0 : index
    %r = attn.read %y[%n, %n, %n, %n, %j] : tensor<1x1x1x1x64xf32>
    attn.yield %r : f32
  } : !q, !q, !q -> !q
  return %o : !q
}
}

// -----

!q = tensor<1x1x64x16xf16>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @clause_of_another_schedule(%q: !q) -> !q {
  // expected-error @+2 {{expects a schedule that has a kernel, but got streamed_query}}
  // expected-note @+1 {{the best that fits: flash}}
  %o = attn.forward %q, %q, %q softcap(3.0) {schedule = #attn.schedule<streamed_query>} : !q, !q, !q -> !q
  return %o : !q
}
}

// -----

!q = tensor<1x1x64x16xf16>
!s = tensor<1x1x64xf32>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @shared_elements(%q: !q, %l: !s, %x: tensor<64x64xf32>, %m: tensor<1xf32>) -> (!q, !q, !q, tensor<64x64xf32>) {
  // expected-error @+1 {{expects elements that one pair reads, or all of a head, for deterministic gradients of captures, but got gradient 0 of elements that several pairs read}}
  %dq, %dk, %dv, %dx = attn.backward %q, %q, %q, %q, %q, %l captures(%x : tensor<64x64xf32>)
      score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
        // expected-note @+1 {{the read is here}}
        %r = attn.read %y[%i, %i] : tensor<64x64xf32>
        %s = arith.addf %z, %r : f32
        attn.yield %s : f32
      } gradients(%x) {deterministic} : !q, !q, !q, !q, !q, !s -> !q, !q, !q, tensor<64x64xf32>
  return %dq, %dk, %dv, %dx : !q, !q, !q, tensor<64x64xf32>
}
}

// -----

!q = tensor<1x1x64x16xf16>
!s = tensor<1x1x64xf32>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @sums_of_heads(%q: !q, %l: !s, %x: tensor<1xf32>) -> (!q, !q, !q, tensor<1xf32>) {
  // expected-error @+3 {{expects a schedule that has a kernel, but got flash_backward}}
  // expected-note @+2 {{flash_backward_wgmma does not take gradients of captures of a head yet}}
  // expected-note @+1 {{the best that fits: split_backward}}
  %dq, %dk, %dv, %dx = attn.backward %q, %q, %q, %q, %q, %l alibi(%x : tensor<1xf32>) gradients(%x) {schedule = #attn.schedule<flash_backward>} : !q, !q, !q, !q, !q, !s -> !q, !q, !q, tensor<1xf32>
  return %dq, %dk, %dv, %dx : !q, !q, !q, tensor<1xf32>
}
}

// -----

// Sums over queries walk transposed lists.
!q = tensor<1x1x64x64xf16>
!l = tensor<1x1x64xf32>
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @blocks_without_transposed(%q: !q, %l: !l, %x: tensor<1x1x1xi32>, %y: tensor<1x1x1x1xi32>) -> (!q, !q, !q) {
  // expected-error @+2 {{expects transposed(..) lists beside blocks(..) for gradients, but got none}}
  // expected-note @+1 {{attn.transpose_blocks makes them}}
  %d:3 = attn.backward %q, %q, %q, %q, %q, %l blocks(full %x, %y, size 64 x 64 : tensor<1x1x1xi32>, tensor<1x1x1x1xi32>) : !q, !q, !q, !q, !q, !l -> !q, !q, !q
  return %d#0, %d#1, %d#2 : !q, !q, !q
}
}
