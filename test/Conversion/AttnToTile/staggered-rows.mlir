// Rows of 72 columns are 144 bytes, an odd number of 16: in memory every other
// one begins in the middle of a sector, and in shared memory too.  P does not
// come from such rows, nor do rows stagger of which only those of V do.
// RUN: attn-opt %s -split-input-file -attn-to-tile=machine=a100_80g -attn-check-footprint | FileCheck %s

// CHECK-LABEL: tile.kernel @flash_mma_sync_bf16_72
// CHECK: tile.alloc "query" : <64x80xbf16, staggered>
// CHECK: tile.alloc "key" : <2x64x80xbf16, staggered>
// CHECK: tile.alloc "value" : <2x64x80xbf16, staggered>
func.func @flash(%q: memref<1x2x100x72xbf16>, %o: memref<1x2x100x72xbf16>) {
  attn.forward %q, %q, %q outs(%o : memref<1x2x100x72xbf16>) {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, warps = 4>}
      : memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>
  return
}

// -----

// CHECK-LABEL: tile.kernel @flash_mma_sync_bf16_64_72
// CHECK-NOT: staggered
// CHECK: tile.return
func.func @values(%q: memref<1x2x100x64xbf16>, %v: memref<1x2x100x72xbf16>, %o: memref<1x2x100x72xbf16>) {
  attn.forward %q, %q, %v outs(%o : memref<1x2x100x72xbf16>) {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, warps = 4>}
      : memref<1x2x100x64xbf16>, memref<1x2x100x64xbf16>, memref<1x2x100x72xbf16>
  return
}

// -----

// CHECK-LABEL: tile.kernel @streamed_query_mma_sync_bf16_264
// CHECK: tile.alloc "weight" : <32x64xbf16>{{$}}
// CHECK: tile.alloc "query" : <2x32x64xbf16, staggered>
// CHECK: tile.alloc "key" : <2x64x64xbf16, staggered>
// CHECK: tile.alloc "value" : <2x16x288xbf16, staggered>
func.func @streamed_query(%q: memref<1x2x100x264xbf16>, %o: memref<1x2x100x264xbf16>) {
  attn.forward %q, %q, %q outs(%o : memref<1x2x100x264xbf16>) {schedule = #attn.schedule<streamed_query, query = 32, key = 64, slice = 64, piece = 16, stages = 2, warps = 4, column_warps = 2>}
      : memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>
  return
}

// -----

// CHECK-LABEL: tile.kernel @output_spill_mma_sync_bf16_264
// CHECK: tile.alloc "query" : <2x64x64xbf16, staggered>
// CHECK: tile.alloc "key" : <2x64x64xbf16, staggered>
// CHECK: tile.alloc "value" : <2x32x64xbf16, staggered>
func.func @output_spill(%q: memref<1x2x100x264xbf16>, %o: memref<1x2x100x264xbf16>) {
  attn.forward %q, %q, %q outs(%o : memref<1x2x100x264xbf16>) {schedule = #attn.schedule<output_spill, query = 64, key = 64, column = 64, slice = 64, stages = 2, warps = 4>}
      : memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>
  return
}

// -----

// CHECK-LABEL: tile.kernel @split_backward_mma_sync_bf16_72_dq
// CHECK-COUNT-4: tile.alloc "{{(q|do|k|v)}}" : <{{.*}}x80xbf16, staggered>
// CHECK-LABEL: tile.kernel @split_backward_mma_sync_bf16_72_dk_dv
// CHECK-COUNT-4: tile.alloc "{{(q|do|k|v)}}" : <{{.*}}x80xbf16, staggered>
func.func @split_backward(%x: memref<1x2x100x72xbf16>, %lse: memref<1x2x100xf32>, %dq: memref<1x2x100x72xbf16>, %dk: memref<1x2x100x72xbf16>, %dv: memref<1x2x100x72xbf16>) {
  attn.backward %x, %x, %x, %x, %x, %lse
      outs(%dq, %dk, %dv : memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>) {schedule = #attn.schedule<split_backward>}
      : memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100x72xbf16>, memref<1x2x100xf32>
  return
}

// -----

// P and dS are whole tiles in scratch memory.
// CHECK-LABEL: tile.kernel @spill_backward_mma_sync_bf16_264_scores
// CHECK: tile.alloc "left" : <{{.*}}xbf16, staggered>
// CHECK: tile.alloc "right" : <{{.*}}xbf16, staggered>
// CHECK-LABEL: tile.kernel @spill_backward_mma_sync_bf16_264_dk_dv
// CHECK: tile.alloc "left" : <{{[0-9x]+}}xbf16>{{$}}
// CHECK: tile.alloc "right" : <{{.*}}xbf16, staggered>
func.func @spill_backward(%x: memref<1x2x100x264xbf16>, %lse: memref<1x2x100xf32>, %dq: memref<1x2x100x264xbf16>, %dk: memref<1x2x100x264xbf16>, %dv: memref<1x2x100x264xbf16>) {
  attn.backward %x, %x, %x, %x, %x, %lse
      outs(%dq, %dk, %dv : memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>) {schedule = #attn.schedule<spill_backward>}
      : memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100x264xbf16>, memref<1x2x100xf32>
  return
}
