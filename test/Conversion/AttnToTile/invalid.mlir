// The pass decides nothing: what is missing or impossible is an error.
// RUN: attn-opt %s -convert-attn-to-tile -split-input-file -verify-diagnostics

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @no_schedule(%q: memref<1x1x64x16xf16>, %o: memref<1x1x64x16xf16>) {
    // expected-error @below {{'attn.forward' op expects a schedule: run -attn-select-schedule first or give one}}
    attn.forward %q, %q, %q outs(%o : memref<1x1x64x16xf16>) : memref<1x1x64x16xf16>, memref<1x1x64x16xf16>, memref<1x1x64x16xf16>
    return
  }
}

// -----

// expected-error @below {{expects the module attribute attn.machine: run -attn-attach-machine first}}
module {
  func.func @no_machine(%q: memref<1x1x64x16xf16>, %o: memref<1x1x64x16xf16>) {
    attn.forward %q, %q, %q outs(%o : memref<1x1x64x16xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x1x64x16xf16>, memref<1x1x64x16xf16>, memref<1x1x64x16xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @tensors(%q: tensor<1x1x64x16xf16>) {
    // expected-error @below {{'attn.forward' op expects memrefs here: bufferize first}}
    %o = attn.forward %q, %q, %q {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : tensor<1x1x64x16xf16>, tensor<1x1x64x16xf16>, tensor<1x1x64x16xf16> -> tensor<1x1x64x16xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @illegal_schedule(%q: memref<1x1x64x16xf16>, %o: memref<1x1x64x16xf16>) {
    // expected-error @below {{'attn.forward' op expects 16 or 32 rows per warp, but got 64 rows and 8 warps}}
    attn.forward %q, %q, %q outs(%o : memref<1x1x64x16xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 8>}
        : memref<1x1x64x16xf16>, memref<1x1x64x16xf16>, memref<1x1x64x16xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<gtx_1060>} {
  func.func @no_tensor_cores(%q: memref<1x1x64x16xf16>, %o: memref<1x1x64x16xf16>) {
    // expected-error @below {{'attn.forward' op expects a schedule with a kernel, but got flash, which has none yet on gtx_1060}}
    // expected-note @below {{there is a kernel column_split_wgmma}}
    // expected-note @below {{there is a kernel flash_mma_sync}}
    // expected-note @below {{there is a kernel flash_wgmma}}
    // expected-note @below {{there is a kernel output_spill_mma_sync}}
    // expected-note @below {{there is a kernel output_spill_wgmma}}
    // expected-note @below {{there is a kernel score_spill_mma_sync}}
    // expected-note @below {{there is a kernel score_spill_wgmma}}
    // expected-note @below {{there is a kernel streamed_query_mma_sync}}
    attn.forward %q, %q, %q outs(%o : memref<1x1x64x16xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x1x64x16xf16>, memref<1x1x64x16xf16>, memref<1x1x64x16xf16>
    return
  }
}

// -----

// Clauses of which no kernel knows are never dropped.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @clause(%q: memref<1x1x64x16xf16>, %o: memref<1x1x64x16xf16>) {
    attn.forward %q, %q, %q score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
      // expected-error @+1 {{expects ops that kernels have code for, but got 'math.erf'}}
      %r = math.erf %z : f32
      attn.yield %r : f32
    } outs(%o : memref<1x1x64x16xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32>} : memref<1x1x64x16xf16>, memref<1x1x64x16xf16>, memref<1x1x64x16xf16>
    return
  }
}

// -----

// A step of a kernel is not part of several blocks.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @small_blocks(%q: memref<1x1x64x64xf16>, %o: memref<1x1x64x64xf16>, %fc: memref<1x1x1xi32>, %fb: memref<1x1x1x1xi32>) {
    // expected-error @below {{expects tiles that divide blocks of 64x64, but got 64x128}}
    attn.forward %q, %q, %q blocks(full %fc, %fb, size 64 x 64 : memref<1x1x1xi32>, memref<1x1x1x1xi32>) outs(%o : memref<1x1x64x64xf16>)
        {schedule = #attn.schedule<flash, query = 64, key = 128, stages = 2, query_stages = 1, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>}
        : memref<1x1x64x64xf16>, memref<1x1x64x64xf16>, memref<1x1x64x64xf16>
    return
  }
}

// -----

// Another schedule is priced, and walks no lists.
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @no_lists(%q: memref<1x1x64x64xf16>, %o: memref<1x1x64x64xf16>, %fc: memref<1x1x1xi32>, %fb: memref<1x1x1x1xi32>) {
    // expected-error @below {{expects a schedule with a kernel, but got streamed_query}}
    // expected-note @below {{there is a kernel column_split_wgmma}}
    // expected-note @below {{there is a kernel flash_mma_sync}}
    // expected-note @below {{there is a kernel flash_wgmma}}
    // expected-note @below {{there is a kernel score_spill_wgmma}}
    attn.forward %q, %q, %q blocks(full %fc, %fb, size 64 x 64 : memref<1x1x1xi32>, memref<1x1x1x1xi32>) outs(%o : memref<1x1x64x64xf16>)
        {schedule = #attn.schedule<streamed_query, query = 64, key = 128, slice = 64, piece = 32, stages = 2, warps = 8, column_warps = 4>}
        : memref<1x1x64x64xf16>, memref<1x1x64x64xf16>, memref<1x1x64x64xf16>
    return
  }
}

// -----

module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @lists(%nq: index) -> tensor<1x1x4xi32> {
    // expected-error @below {{expects memrefs here: bufferize first}}
    %c, %n, %d, %m = attn.block_lists queries(%nq) keys(%nq) batch(1) heads(1) size 64 x 64 sees (%b, %h, %i, %j, %x, %y) {
      %r = arith.cmpi sle, %j, %i : index
      attn.yield %r : i1
    } : tensor<1x1x4xi32>, tensor<1x1x4x4xi32>, tensor<1x1x4xi32>, tensor<1x1x4x4xi32>
    return %c : tensor<1x1x4xi32>
  }
}
