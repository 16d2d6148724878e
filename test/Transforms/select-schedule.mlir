// What does the pass choose, and what does it say about it?  The numbers are
// the plan's and tested there; here stands which op gets which decision.
// RUN: attn-opt %s -attn-select-schedule -split-input-file | FileCheck %s
// RUN: attn-opt %s -attn-select-schedule="schedule='flash, query = 64, key = 32'" -split-input-file | FileCheck %s --check-prefix=GIVEN
// RUN: attn-opt %s -attn-select-schedule=explain=true -split-input-file -o %t 2>&1 | FileCheck %s --check-prefix=WHY

// All tile sizes of the family are written, in the schedule's order.
// CHECK-LABEL: @best
// CHECK: {schedule = #attn.schedule<flash, query = {{[0-9]+}}, key = {{[0-9]+}}, stages = {{[0-9]+}}, {{warps = [0-9]+|query_stages = .*persistent = [01]}}>}
// GIVEN-LABEL: @best
// GIVEN: {schedule = #attn.schedule<flash, query = 64, key = 32, stages = {{[0-9]+}}, {{warps = [0-9]+|query_stages = .*persistent = [01]}}>}
// WHY: remark: flash, query = {{.*}}: predicted {{.*}} on h100_sxm, bound by {{[a-z0-9]+}}
// WHY: note: runner-up: {{[a-z_]+}}, query = {{.*}}: {{.*(slower|as fast)}}
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @best(%q: tensor<1x16x4096x128xbf16>) -> tensor<1x16x4096x128xbf16> {
    %o = attn.forward %q, %q, %q
        : tensor<1x16x4096x128xbf16>, tensor<1x16x4096x128xbf16>, tensor<1x16x4096x128xbf16>
       -> tensor<1x16x4096x128xbf16>
    return %o : tensor<1x16x4096x128xbf16>
  }
}

// -----

// What stands on the op comes before the option; it is completed, not replaced.
// CHECK-LABEL: @kept
// CHECK: {schedule = #attn.schedule<flash, query = 64, key = 16, stages = 1, warps = 4>}
// CHECK: {schedule = #attn.schedule<flash, query = 128, key = {{[0-9]+}}, stages = {{[0-9]+}}, {{warps = [0-9]+|query_stages = .*persistent = [01]}}>}
// GIVEN-LABEL: @kept
// GIVEN: {schedule = #attn.schedule<flash, query = 64, key = 16, stages = 1, warps = 4>}
// GIVEN: {schedule = #attn.schedule<flash, query = 128, key = {{[0-9]+}}, stages = {{[0-9]+}}, {{warps = [0-9]+|query_stages = .*persistent = [01]}}>}
// WHY: remark: flash, query = 64, key = 16, stages = 1, warps = 4: predicted
// WHY: note: faster: {{.*}}, but {{was not asked for|has no kernel yet}}
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @kept(%q: memref<?x8x?x64xf16>, %o: memref<?x8x?x64xf16>, %lse: memref<?x8x?xf32>) {
    attn.forward %q, %q, %q mask(causal) outs(%o, %lse : memref<?x8x?x64xf16>, memref<?x8x?xf32>)
        {schedule = #attn.schedule<flash, stages = 1, warps = 4, key = 16, query = 64>}
        : memref<?x8x?x64xf16>, memref<?x8x?x64xf16>, memref<?x8x?x64xf16>
    attn.forward %q, %q, %q outs(%o : memref<?x8x?x64xf16>) {schedule = #attn.schedule<flash, query = 128>}
        : memref<?x8x?x64xf16>, memref<?x8x?x64xf16>, memref<?x8x?x64xf16>
    return
  }
}

// -----

// The nearest module says for which machine: in less shared memory
// smaller tiles fit.
// CHECK-LABEL: @large
// CHECK: #attn.schedule<flash
// CHECK-LABEL: @small
// CHECK: #attn.schedule<flash, query = {{16|32}}, key = {{16|32}}, stages =
// GIVEN-LABEL: @large
// WHY: on a100_80g
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @large(%q: tensor<1x8x512x64xf16>) -> tensor<1x8x512x64xf16> {
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash>}
        : tensor<1x8x512x64xf16>, tensor<1x8x512x64xf16>, tensor<1x8x512x64xf16> -> tensor<1x8x512x64xf16>
    return %o : tensor<1x8x512x64xf16>
  }
  module attributes {attn.machine = #attn.machine<a100_80g, smem_bytes_per_block = 15000>} {
    func.func @small(%q: tensor<1x8x512x64xf16>) -> tensor<1x8x512x64xf16> {
      %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash>}
          : tensor<1x8x512x64xf16>, tensor<1x8x512x64xf16>, tensor<1x8x512x64xf16> -> tensor<1x8x512x64xf16>
      return %o : tensor<1x8x512x64xf16>
    }
  }
}

// -----

// What is empty has a schedule too, of a representative that is not.
// CHECK-LABEL: @no_keys
// CHECK: {schedule = #attn.schedule<flash, query = {{[0-9]+}}
// GIVEN-LABEL: @no_keys
// GIVEN: {schedule = #attn.schedule<flash, query = 64, key = 32
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @no_keys(%q: tensor<1x1x64x128xf16>, %k: tensor<1x1x0x128xf16>) -> tensor<1x1x64x128xf16> {
    %o = attn.forward %q, %k, %k : tensor<1x1x64x128xf16>, tensor<1x1x0x128xf16>, tensor<1x1x0x128xf16> -> tensor<1x1x64x128xf16>
    return %o : tensor<1x1x64x128xf16>
  }
}
