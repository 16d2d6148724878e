// Keys that every query sees beside those before it, on ragged rows, by every kernel
// against fp64; and the bytes that were promised.
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_f32 | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_8_bits | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function flash_mma_sync | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function streamed_query | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function column_split | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function output_spill | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function output_spill_mma_sync | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function score_spill | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function score_spill_merged | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function score_spill_parts | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function score_spill_mma_sync | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_backward | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_backward_in_order | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_backward_beside | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function split_backward | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function split_backward_mma_sync | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function spill_backward | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function spill_backward_merged | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function spill_backward_mma_sync | FileCheck %s
// RUN: attn-opt %s -attn-to-tile -attn-check-traffic -attn-check-footprint -o /dev/null
// RUN: attn-opt %s -attn-to-nvvm -o /dev/null

// CHECK-NOT: WRONG
// CHECK: moved

func.func @flash(%q: memref<1x2x300x40xbf16>, %k: memref<1x1x330x40xbf16>, %v: memref<1x1x330x48xbf16>,
    %o: memref<1x2x300x48xbf16>, %lse: memref<1x2x300xf32>) {
  attn.forward %q, %k, %v mask(prefix<70>) outs(%o, %lse : memref<1x2x300x48xbf16>, memref<1x2x300xf32>)
      {schedule = #attn.schedule<flash, query = 128, key = 48, stages = 2, query_stages = 1, staging = 64, ping_pong = 1, overlap = 1, persistent = 1>}
      : memref<1x2x300x40xbf16>, memref<1x1x330x40xbf16>, memref<1x1x330x48xbf16>
  return
}

func.func @flash_f32(%q: memref<1x1x150x40xf32>, %k: memref<1x1x200x40xf32>, %v: memref<1x1x200x40xf32>,
    %o: memref<1x1x150x40xf32>, %lse: memref<1x1x150xf32>) {
  attn.forward %q, %k, %v mask(prefix<130>) outs(%o, %lse : memref<1x1x150x40xf32>, memref<1x1x150xf32>)
      {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, query_stages = 1, staging = 0, ping_pong = 0, overlap = 1, persistent = 1>}
      : memref<1x1x150x40xf32>, memref<1x1x200x40xf32>, memref<1x1x200x40xf32>
  return
}

func.func @flash_8_bits(%q: memref<1x1x200x32xf8E4M3FN>, %k: memref<1x1x150x32xf8E4M3FN>, %v: memref<1x1x150x32xf8E4M3FN>,
    %o: memref<1x1x200x32xbf16>, %lse: memref<1x1x200xf32>) {
  attn.forward %q, %k, %v mask(prefix<60>) outs(%o, %lse : memref<1x1x200x32xbf16>, memref<1x1x200xf32>)
      {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, query_stages = 1, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>}
      : memref<1x1x200x32xf8E4M3FN>, memref<1x1x150x32xf8E4M3FN>, memref<1x1x150x32xf8E4M3FN>
  return
}

func.func @flash_mma_sync(%q: memref<1x2x150x32xf16>, %k: memref<1x2x110x32xf16>, %v: memref<1x2x110x32xf16>,
    %o: memref<1x2x150x32xf16>, %lse: memref<1x2x150xf32>) {
  attn.forward %q, %k, %v mask(prefix<50>) outs(%o, %lse : memref<1x2x150x32xf16>, memref<1x2x150xf32>)
      {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 2, warps = 4>}
      : memref<1x2x150x32xf16>, memref<1x2x110x32xf16>, memref<1x2x110x32xf16>
  return
}

func.func @streamed_query(%q: memref<1x1x100x72xbf16>, %k: memref<1x1x170x72xbf16>, %v: memref<1x1x170x72xbf16>,
    %o: memref<1x1x100x72xbf16>, %lse: memref<1x1x100xf32>) {
  attn.forward %q, %k, %v mask(prefix<90>) outs(%o, %lse : memref<1x1x100x72xbf16>, memref<1x1x100xf32>)
      {schedule = #attn.schedule<streamed_query>}
      : memref<1x1x100x72xbf16>, memref<1x1x170x72xbf16>, memref<1x1x170x72xbf16>
  return
}

func.func @column_split(%q: memref<1x1x200x264xbf16>, %k: memref<1x1x600x264xbf16>, %v: memref<1x1x600x264xbf16>,
    %o: memref<1x1x200x264xbf16>, %lse: memref<1x1x200xf32>) {
  attn.forward %q, %k, %v mask(prefix<300>) outs(%o, %lse : memref<1x1x200x264xbf16>, memref<1x1x200xf32>)
      {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 2, slots = 6, resident = 1>}
      : memref<1x1x200x264xbf16>, memref<1x1x600x264xbf16>, memref<1x1x600x264xbf16>
  return
}

func.func @output_spill(%q: memref<1x1x150x264xbf16>, %k: memref<1x1x600x264xbf16>, %v: memref<1x1x600x264xbf16>,
    %o: memref<1x1x150x264xbf16>, %lse: memref<1x1x150xf32>) {
  attn.forward %q, %k, %v mask(prefix<540>) outs(%o, %lse : memref<1x1x150x264xbf16>, memref<1x1x150xf32>)
      {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 8>}
      : memref<1x1x150x264xbf16>, memref<1x1x600x264xbf16>, memref<1x1x600x264xbf16>
  return
}

func.func @output_spill_mma_sync(%q: memref<1x1x70x64xbf16>, %k: memref<1x1x150x64xbf16>, %v: memref<1x1x150x96xbf16>,
    %o: memref<1x1x70x96xbf16>, %lse: memref<1x1x70xf32>) {
  attn.forward %q, %k, %v mask(prefix<100>) outs(%o, %lse : memref<1x1x70x96xbf16>, memref<1x1x70xf32>)
      {schedule = #attn.schedule<output_spill, query = 32, key = 64, column = 32, slice = 64, stages = 2, warps = 2>}
      : memref<1x1x70x64xbf16>, memref<1x1x150x64xbf16>, memref<1x1x150x96xbf16>
  return
}

func.func @score_spill(%q: memref<1x2x700x72xbf16>, %k: memref<1x2x600x72xbf16>, %v: memref<1x2x600x136xbf16>,
    %o: memref<1x2x700x136xbf16>, %lse: memref<1x2x700xf32>) {
  attn.forward %q, %k, %v mask(prefix<500>) outs(%o, %lse : memref<1x2x700x136xbf16>, memref<1x2x700xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 128, strip = 256, heads = 1, stages = 3, merged = 0, persistent = 1>}
      : memref<1x2x700x72xbf16>, memref<1x2x600x72xbf16>, memref<1x2x600x136xbf16>
  return
}

func.func @score_spill_merged(%q: memref<1x2x700x72xf16>, %k: memref<1x1x500x72xf16>, %v: memref<1x1x500x136xf16>,
    %o: memref<1x2x700x136xf16>, %lse: memref<1x2x700xf32>) {
  attn.forward %q, %k, %v mask(prefix<30>) outs(%o, %lse : memref<1x2x700x136xf16>, memref<1x2x700xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 128, column = 128, strip = 512, heads = 1, stages = 3, merged = 1, persistent = 1>}
      : memref<1x2x700x72xf16>, memref<1x1x500x72xf16>, memref<1x1x500x136xf16>
  return
}

func.func @score_spill_parts(%q: memref<1x1x300x72xf32>, %k: memref<1x1x300x72xf32>, %v: memref<1x1x300x72xf32>,
    %o: memref<1x1x300x72xf32>, %lse: memref<1x1x300xf32>) {
  attn.forward %q, %k, %v mask(prefix<250>) outs(%o, %lse : memref<1x1x300x72xf32>, memref<1x1x300xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 128, column = 128, strip = 256, heads = 1, parts = 2, stages = 6, merged = 1, persistent = 1>}
      : memref<1x1x300x72xf32>, memref<1x1x300x72xf32>, memref<1x1x300x72xf32>
  return
}

func.func @score_spill_mma_sync(%q: memref<1x1x70x64xbf16>, %k: memref<1x1x600x64xbf16>, %v: memref<1x1x600x64xbf16>,
    %o: memref<1x1x70x64xbf16>, %lse: memref<1x1x70xf32>) {
  attn.forward %q, %k, %v mask(prefix<400>) outs(%o, %lse : memref<1x1x70x64xbf16>, memref<1x1x70xf32>)
      {schedule = #attn.schedule<score_spill, query = 32, key = 64, column = 64, slice = 32, warps = 2, strip = 256, stages = 2>}
      : memref<1x1x70x64xbf16>, memref<1x1x600x64xbf16>, memref<1x1x600x64xbf16>
  return
}

func.func @flash_backward(%do: memref<1x2x300x64xbf16>, %q: memref<1x2x300x64xbf16>, %k: memref<1x1x330x64xbf16>, %v: memref<1x1x330x64xbf16>, %o: memref<1x2x300x64xbf16>, %lse: memref<1x2x300xf32>,
    %dq: memref<1x2x300x64xbf16>, %dk: memref<1x1x330x64xbf16>, %dv: memref<1x1x330x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<100>) outs(%dq, %dk, %dv : memref<1x2x300x64xbf16>, memref<1x1x330x64xbf16>, memref<1x1x330x64xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, overlap = 0, stages = 2, ordered = 0, short_first = 0, first_stores = 1, persistent = 1>}
      : memref<1x2x300x64xbf16>, memref<1x2x300x64xbf16>, memref<1x1x330x64xbf16>, memref<1x1x330x64xbf16>, memref<1x2x300x64xbf16>, memref<1x2x300xf32>
  return
}

func.func @flash_backward_in_order(%do: memref<1x2x330x64xbf16>, %q: memref<1x2x330x64xbf16>, %k: memref<1x2x300x64xbf16>, %v: memref<1x2x300x64xbf16>, %o: memref<1x2x330x64xbf16>, %lse: memref<1x2x330xf32>,
    %dq: memref<1x2x330x64xbf16>, %dk: memref<1x2x300x64xbf16>, %dv: memref<1x2x300x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<200>) outs(%dq, %dk, %dv : memref<1x2x330x64xbf16>, memref<1x2x300x64xbf16>, memref<1x2x300x64xbf16>)
      {deterministic, schedule = #attn.schedule<flash_backward, key = 64, query_block = 64, beside = 0, overlap = 1, stages = 2, ordered = 1, short_first = 1, first_stores = 0, persistent = 1>}
      : memref<1x2x330x64xbf16>, memref<1x2x330x64xbf16>, memref<1x2x300x64xbf16>, memref<1x2x300x64xbf16>, memref<1x2x330x64xbf16>, memref<1x2x330xf32>
  return
}

func.func @flash_backward_beside(%do: memref<1x2x300x32xf16>, %q: memref<1x2x300x64xf16>, %k: memref<1x1x500x64xf16>, %v: memref<1x1x500x32xf16>, %o: memref<1x2x300x32xf16>, %lse: memref<1x2x300xf32>,
    %dq: memref<1x2x300x64xf16>, %dk: memref<1x1x500x64xf16>, %dv: memref<1x1x500x32xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<150>) outs(%dq, %dk, %dv : memref<1x2x300x64xf16>, memref<1x1x500x64xf16>, memref<1x1x500x32xf16>)
      {schedule = #attn.schedule<flash_backward, key = 64, query_block = 64, beside = 1, overlap = 1, stages = 2, ordered = 0, short_first = 0, first_stores = 0, persistent = 1>}
      : memref<1x2x300x32xf16>, memref<1x2x300x64xf16>, memref<1x1x500x64xf16>, memref<1x1x500x32xf16>, memref<1x2x300x32xf16>, memref<1x2x300xf32>
  return
}

func.func @split_backward(%do: memref<1x1x200x72xbf16>, %q: memref<1x1x200x136xbf16>, %k: memref<1x1x300x136xbf16>, %v: memref<1x1x300x72xbf16>, %o: memref<1x1x200x72xbf16>, %lse: memref<1x1x200xf32>,
    %dq: memref<1x1x200x136xbf16>, %dk: memref<1x1x300x136xbf16>, %dv: memref<1x1x300x72xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<150>) outs(%dq, %dk, %dv : memref<1x1x200x136xbf16>, memref<1x1x300x136xbf16>, memref<1x1x300x72xbf16>)
      {schedule = #attn.schedule<split_backward, query = 64, key_block = 64, key = 64, query_block = 64, separate = 1, stages = 2, value_stages = 2, persistent = 1>}
      : memref<1x1x200x72xbf16>, memref<1x1x200x136xbf16>, memref<1x1x300x136xbf16>, memref<1x1x300x72xbf16>, memref<1x1x200x72xbf16>, memref<1x1x200xf32>
  return
}

func.func @split_backward_mma_sync(%do: memref<1x2x100x40xbf16>, %q: memref<1x2x100x32xbf16>, %k: memref<1x1x130x32xbf16>, %v: memref<1x1x130x40xbf16>, %o: memref<1x2x100x40xbf16>, %lse: memref<1x2x100xf32>,
    %dq: memref<1x2x100x32xbf16>, %dk: memref<1x1x130x32xbf16>, %dv: memref<1x1x130x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<50>) outs(%dq, %dk, %dv : memref<1x2x100x32xbf16>, memref<1x1x130x32xbf16>, memref<1x1x130x40xbf16>)
      {schedule = #attn.schedule<split_backward, query = 64, key_block = 32, query_warps = 4, key = 64, query_block = 32, key_warps = 4, stages = 2, separate = 0>}
      : memref<1x2x100x40xbf16>, memref<1x2x100x32xbf16>, memref<1x1x130x32xbf16>, memref<1x1x130x40xbf16>, memref<1x2x100x40xbf16>, memref<1x2x100xf32>
  return
}

func.func @spill_backward(%do: memref<1x2x200x72xbf16>, %q: memref<1x2x200x136xbf16>, %k: memref<1x1x600x136xbf16>, %v: memref<1x1x600x72xbf16>, %o: memref<1x2x200x72xbf16>, %lse: memref<1x2x200xf32>,
    %dq: memref<1x2x200x136xbf16>, %dk: memref<1x1x600x136xbf16>, %dv: memref<1x1x600x72xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<300>) outs(%dq, %dk, %dv : memref<1x2x200x136xbf16>, memref<1x1x600x136xbf16>, memref<1x1x600x72xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 128, query_block = 64, strip = 256, heads = 1, stages = 3, merged = 0, persistent = 1>}
      : memref<1x2x200x72xbf16>, memref<1x2x200x136xbf16>, memref<1x1x600x136xbf16>, memref<1x1x600x72xbf16>, memref<1x2x200x72xbf16>, memref<1x2x200xf32>
  return
}

func.func @spill_backward_merged(%do: memref<1x2x500x72xbf16>, %q: memref<1x2x500x136xbf16>, %k: memref<1x2x300x136xbf16>, %v: memref<1x2x300x72xbf16>, %o: memref<1x2x500x72xbf16>, %lse: memref<1x2x500xf32>,
    %dq: memref<1x2x500x136xbf16>, %dk: memref<1x2x300x136xbf16>, %dv: memref<1x2x300x72xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<140>) outs(%dq, %dk, %dv : memref<1x2x500x136xbf16>, memref<1x2x300x136xbf16>, memref<1x2x300x72xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 128, query_block = 64, strip = 256, heads = 2, stages = 3, merged = 1, persistent = 1>}
      : memref<1x2x500x72xbf16>, memref<1x2x500x136xbf16>, memref<1x2x300x136xbf16>, memref<1x2x300x72xbf16>, memref<1x2x500x72xbf16>, memref<1x2x500xf32>
  return
}

func.func @spill_backward_mma_sync(%do: memref<1x1x150x40xbf16>, %q: memref<1x1x150x72xbf16>, %k: memref<1x1x200x72xbf16>, %v: memref<1x1x200x40xbf16>, %o: memref<1x1x150x40xbf16>, %lse: memref<1x1x150xf32>,
    %dq: memref<1x1x150x72xbf16>, %dk: memref<1x1x200x72xbf16>, %dv: memref<1x1x200x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(prefix<90>) outs(%dq, %dk, %dv : memref<1x1x150x72xbf16>, memref<1x1x200x72xbf16>, memref<1x1x200x40xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 128, key = 128, column = 64, query_block = 64, strip = 128, heads = 1, slice = 64, warps = 8, stages = 2>}
      : memref<1x1x150x40xbf16>, memref<1x1x150x72xbf16>, memref<1x1x200x72xbf16>, memref<1x1x200x40xbf16>, memref<1x1x150x40xbf16>, memref<1x1x150xf32>
  return
}
