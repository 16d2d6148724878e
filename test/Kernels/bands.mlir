// First keys, first queries and a window on ragged rows, by the kernels that
// walk their runs, against fp64; and the bytes that were promised.
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_f32 | FileCheck %s
// RUN: attn-run %s --on interpreter --machine h100_sxm --function flash_8_bits | FileCheck %s
// RUN: attn-run %s --on interpreter --machine a100_80g --function flash_mma_sync | FileCheck %s
// RUN: attn-opt %s -attn-to-tile -attn-check-traffic -attn-check-footprint -o %t
// RUN: FileCheck %s --check-prefix=TILE < %t
// RUN: attn-opt %s -attn-to-nvvm -o /dev/null

// CHECK-NOT: WRONG
// CHECK: moved

// TILE: tile.kernel @flash_wgmma_bf16_40_48_bands_3_sees
// TILE-SAME: bands = array<i64:
// TILE-NOT: partial_counts

func.func @flash(%q: memref<1x2x300x40xbf16>, %k: memref<1x1x330x40xbf16>, %v: memref<1x1x330x48xbf16>,
    %o: memref<1x2x300x48xbf16>, %lse: memref<1x2x300xf32>) {
  attn.forward %q, %k, %v
      sees (%b, %h, %i, %j, %nq, %nk) {
        %few = arith.constant 20 : index
        %wide = arith.constant 50 : index
        %d = arith.subi %i, %j : index
        %a = math.absi %d : index
        %x = arith.cmpi slt, %j, %few : index
        %y = arith.cmpi slt, %i, %few : index
        %z = arith.cmpi sle, %a, %wide : index
        %xy = arith.ori %x, %y : i1
        %r = arith.ori %xy, %z : i1
        attn.yield %r : i1
      } outs(%o, %lse : memref<1x2x300x48xbf16>, memref<1x2x300xf32>)
      {schedule = #attn.schedule<flash, query = 128, key = 48, stages = 2, query_stages = 1, staging = 64, ping_pong = 1, overlap = 1, persistent = 1>}
      : memref<1x2x300x40xbf16>, memref<1x1x330x40xbf16>, memref<1x1x330x48xbf16>
  return
}

// Under a mask, counted from the last key.
func.func @flash_f32(%q: memref<1x1x150x40xf32>, %k: memref<1x1x200x40xf32>, %v: memref<1x1x200x40xf32>,
    %o: memref<1x1x150x40xf32>, %lse: memref<1x1x150xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right)
      sees (%b, %h, %i, %j, %nq, %nk) {
        %few = arith.constant 10 : index
        %wide = arith.constant 33 : index
        %more = arith.subi %nk, %nq : index
        %p = arith.addi %i, %more : index
        %d = arith.subi %p, %j : index
        %x = arith.cmpi slt, %j, %few : index
        %z = arith.cmpi slt, %d, %wide : index
        %r = arith.ori %x, %z : i1
        attn.yield %r : i1
      } outs(%o, %lse : memref<1x1x150x40xf32>, memref<1x1x150xf32>)
      {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, query_stages = 1, staging = 0, ping_pong = 0, overlap = 1, persistent = 1>}
      : memref<1x1x150x40xf32>, memref<1x1x200x40xf32>, memref<1x1x200x40xf32>
  return
}

func.func @flash_8_bits(%q: memref<1x1x130x64xf8E4M3FN>, %k: memref<1x1x200x64xf8E4M3FN>, %v: memref<1x1x200x64xf8E4M3FN>,
    %o: memref<1x1x130x64xbf16>) {
  attn.forward %q, %k, %v
      sees (%b, %h, %i, %j, %nq, %nk) {
        %r = arith.cmpi slt, %j, %i : index
        attn.yield %r : i1
      } outs(%o : memref<1x1x130x64xbf16>)
      {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 2, query_stages = 1, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>}
      : memref<1x1x130x64xf8E4M3FN>, memref<1x1x200x64xf8E4M3FN>, memref<1x1x200x64xf8E4M3FN>
  return
}

func.func @flash_mma_sync(%q: memref<2x2x100x40xf16>, %k: memref<2x1x130x40xf16>, %v: memref<2x1x130x40xf16>,
    %o: memref<2x2x100x40xf16>) {
  attn.forward %q, %k, %v
      sees (%b, %h, %i, %j, %nq, %nk) {
        %few = arith.constant 20 : index
        %from = arith.constant 90 : index
        %x = arith.cmpi slt, %j, %few : index
        %y = arith.cmpi sge, %j, %from : index
        %r = arith.ori %x, %y : i1
        attn.yield %r : i1
      } outs(%o : memref<2x2x100x40xf16>)
      {schedule = #attn.schedule<flash, query = 32, key = 32, stages = 2, warps = 2>}
      : memref<2x2x100x40xf16>, memref<2x1x130x40xf16>, memref<2x1x130x40xf16>
  return
}
