// Products of a warpgroup: descriptors, registers, groups of instructions.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// Scores: both factors in shared memory, k along their rows.  A descriptor has
// the address in units of 16 bytes, 1 as its leading and 1024 / 16 as its stride
// offset, and 1 << 62 for the swizzle of 128 bytes.  A stage of the right factor
// is 4096 bytes further, which is 256; a row of the left one 128 bytes.
// CHECK-LABEL: llvm.func @scores(
// CHECK-SAME: %[[ROW:[^:]*]]: i32, %[[STAGE:[^:]*]]: i32
// CHECK: %[[Q:.*]] = llvm.ptrtoint
// CHECK: %[[K:.*]] = arith.addi %[[Q]], %c32768_i32
// CHECK: nvvm.setmaxregister decrease 240
// CHECK: %[[UNITS:.*]] = arith.shrui %[[K]], %c4_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[UNITS]], %c16383_i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[LOW]], %c65536_i32
// CHECK: %[[FURTHER:.*]] = arith.muli %[[STAGE]], %c256_i32
// CHECK: %[[RIGHT:.*]] = arith.addi %[[FIRST]], %[[FURTHER]]
// CHECK: %[[DOWN:.*]] = arith.muli %[[ROW]], %c128_i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[Q]], %[[DOWN]]
// CHECK: %[[UNITS:.*]] = arith.shrui %[[PLACE]], %c4_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[UNITS]], %c16383_i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[LOW]] : i32 to i64
// CHECK: %[[LEFT:.*]] = arith.ori %[[WIDE]], %c4611686293305360384_i64
// The sum starts at 0: the first step does not accumulate.  A step of 16 columns
// is 32 bytes, a panel of four steps 128 * 128 bytes on the left and 16 * 128 on
// the right.
// CHECK-NEXT: nvvm.wgmma.fence.aligned
// CHECK-NEXT: %[[WIDE:.*]] = arith.extui %[[RIGHT]] : i32 to i64
// CHECK-NEXT: %[[R0:.*]] = arith.ori %[[WIDE]], %c4611686293305294848_i64
// CHECK-NEXT: %[[S0:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{{.*}}setp.ne.b32 p, $18, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0,$1,$2,$3,$4,$5,$6,$7}, $16, $17, p, 1, 1, 0, 0; }", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,l,l,n" %cst, {{.*}}, %[[LEFT]], %[[R0]], %c0_i32
// CHECK: %[[A0:.*]] = llvm.extractvalue %[[S0]][0]
// CHECK: %[[A7:.*]] = llvm.extractvalue %[[S0]][7]
// CHECK: %[[L1:.*]] = arith.addi %[[LEFT]], %c2_i64
// CHECK: %[[NEXT:.*]] = arith.addi %[[RIGHT]], %c2_i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[NEXT]] : i32 to i64
// CHECK: %[[R1:.*]] = arith.ori %[[WIDE]],
// CHECK: wgmma.mma_async{{.*}} %[[A0]], {{.*}}, %[[A7]], %[[L1]], %[[R1]], %c1_i32
// CHECK: %[[L2:.*]] = arith.addi %[[LEFT]], %c4_i64
// CHECK: wgmma.mma_async{{.*}} %[[L2]], %{{.*}}, %c1_i32
// CHECK: %[[L3:.*]] = arith.addi %[[LEFT]], %c6_i64
// CHECK: wgmma.mma_async{{.*}} %[[L3]], %{{.*}}, %c1_i32
// CHECK: %[[L4:.*]] = arith.addi %[[LEFT]], %c1024_i64
// CHECK: %[[NEXT:.*]] = arith.addi %[[RIGHT]], %c128_i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[NEXT]] : i32 to i64
// CHECK: %[[R4:.*]] = arith.ori %[[WIDE]],
// CHECK: wgmma.mma_async{{.*}} %[[L4]], %[[R4]], %c1_i32
// CHECK: %[[L5:.*]] = arith.addi %[[LEFT]], %c1026_i64
// CHECK: %[[NEXT:.*]] = arith.addi %[[RIGHT]], %c130_i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[NEXT]] : i32 to i64
// CHECK: %[[R5:.*]] = arith.ori %[[WIDE]],
// CHECK: wgmma.mma_async{{.*}} %[[L5]], %[[R5]], %c1_i32
// CHECK-NOT: wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7"
gpu.module @products {
  tile.kernel @scores(%row: i32, %stage: i32) attributes {warps = 8 : i32} {
    %q = tile.alloc "q" : <128x96xbf16, sw128>
    %k = tile.alloc "k" : <2x16x96xbf16, sw128>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %p = tile.wgmma %q[%stage, %row], %k[%stage] transpose : !tile.smem<128x96xbf16, sw128>, <2x16x96xbf16, sw128> -> <16x16xf32>
        %x = tile.wgmma_wait 0, %p : !tile.pending<16x16xf32> -> !tile.frag<16x16xf32, acc>
      }
    }
    tile.return
  }
}

// -----

// Weights: the left factor in registers, k down the rows of the right one.  The
// leading offset is a panel, 32 * 128 / 16 = 256; a step is 16 rows, 2048 bytes.
// Registers are tied before the fence of their product and behind its wait, and
// nothing else touches them; the older of two products is awaited first.
// CHECK-LABEL: llvm.func @weights(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32, %[[W:[^:]*]]: f32, %[[START:[^:]*]]: f32
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %c16777216_i32
// CHECK: %[[FURTHER:.*]] = arith.muli %{{.*}}, %c512_i32
// CHECK: %[[RIGHT:.*]] = arith.addi %[[FIRST]], %[[FURTHER]]
// CHECK: %[[ACC:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "", "=f,=f,=f,=f,0,1,2,3" %[[START]], %[[START]], %[[START]], %[[START]]
// CHECK: %[[P:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "", "=r,=r,=r,=r,=r,=r,=r,=r,0,1,2,3,4,5,6,7"
// CHECK: %[[P0:.*]] = llvm.extractvalue %[[P]][0]
// CHECK: %[[P3:.*]] = llvm.extractvalue %[[P]][3]
// CHECK: %[[P4:.*]] = llvm.extractvalue %[[P]][4]
// CHECK: %[[P7:.*]] = llvm.extractvalue %[[P]][7]
// CHECK-NEXT: nvvm.wgmma.fence.aligned
// CHECK-NEXT: arith.extui %[[RIGHT]] : i32 to i64
// CHECK-NEXT: %[[R0:.*]] = arith.ori
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "{{.*}}setp.ne.b32 p, $13, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0,$1,$2,$3}, {$8,$9,$10,$11}, $12, p, 1, 1, 1; }", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,l,n" {{.*}}, %[[P0]], %{{.*}}, %{{.*}}, %[[P3]], %[[R0]], %c1_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[RIGHT]], %c128_i32
// CHECK-NEXT: arith.extui %[[NEXT]] : i32 to i64
// CHECK-NEXT: %[[STEP:.*]] = arith.ori
// CHECK-NEXT: %[[O:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{{.*}}wgmma.mma_async{{.*}} %[[P4]], %{{.*}}, %{{.*}}, %[[P7]], %[[STEP]], %c1_i32
// CHECK: %[[O0:.*]] = llvm.extractvalue %[[O]][0]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "", "=r,=r,=r,=r,=r,=r,=r,=r,0,1,2,3,4,5,6,7"
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NEXT: wgmma.mma_async{{.*}} %cst, %cst, %cst, %cst, {{.*}}, %[[R0]], %c0_i32
// CHECK: %[[N:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{{.*}}wgmma.mma_async{{.*}}, %[[STEP]], %c1_i32
// CHECK: %[[N0:.*]] = llvm.extractvalue %[[N]][0]
// CHECK: nvvm.wgmma.commit.group.sync.aligned
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "=f,=f,=f,=f,0,1,2,3" %[[O0]],
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "", "=f,=f,=f,=f,0,1,2,3" %[[N0]],
gpu.module @products {
  tile.kernel @weights(%stage: i32, %w: f32, %start: f32) attributes {warps = 8 : i32} {
    %v = tile.alloc "v" : <2x32x96xf16, sw128>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %s = tile.fill %w : f32 -> !tile.frag<16x32xf32, acc>
        %o = tile.fill %start : f32 -> !tile.frag<16x8xf32, acc>
        %l = tile.cast %s : <16x32xf32, acc> -> <16x32xf16, lhs>
        %f = tile.wgmma %l, %v[%stage] acc(%o : !tile.frag<16x8xf32, acc>) : !tile.frag<16x32xf16, lhs>, <2x32x96xf16, sw128> -> <16x8xf32>
        %g = tile.wgmma %l, %v[%stage] : !tile.frag<16x32xf16, lhs>, <2x32x96xf16, sw128> -> <16x8xf32>
        %y = tile.wgmma_wait 1, %f : !tile.pending<16x8xf32> -> !tile.frag<16x8xf32, acc>
        %z = tile.wgmma_wait 0, %g : !tile.pending<16x8xf32> -> !tile.frag<16x8xf32, acc>
      }
    }
    tile.return
  }
}

// -----

// Gradients of keys: k runs down the rows of both factors.  The left one begins
// at a panel, 64 columns or 64 * 128 bytes, which is 512, from the first.
// CHECK-LABEL: llvm.func @gradients(
// CHECK-SAME: %[[COLUMN:[^:]*]]: i32, %[[STAGE:[^:]*]]: i32
// CHECK: nvvm.setmaxregister decrease 240
// CHECK: %[[PANEL:.*]] = arith.divui %[[COLUMN]], %c64_i32
// CHECK: arith.muli %[[PANEL]], %c8192_i32
// CHECK: arith.addi %{{.*}}, %c33554432_i32
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.*}} p, 1, 1, 1, 1; }"
// CHECK: arith.addi %{{.*}}, %c128_i32
// CHECK: wgmma.mma_async{{.*}} p, 1, 1, 1, 1; }"
gpu.module @products {
  tile.kernel @gradients(%column: i32, %stage: i32) attributes {warps = 8 : i32} {
    %p = tile.alloc "p" : <2x64x128xf16, sw128>
    %o = tile.alloc "o" : <2x64x64xf16, sw128>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %a = tile.wgmma %p[%stage, %column] transpose, %o[%stage] : !tile.smem<2x64x128xf16, sw128>, <2x64x64xf16, sw128> -> <16x64xf32>
        %x = tile.wgmma_wait 0, %a : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
        // The values of a factor again: two of each register.
        %w = tile.cast %x : <16x64xf32, acc> -> <16x64xf16, lhs>
        // CHECK: %[[HALF:.*]] = llvm.extractelement %{{.*}}[%c0_i32 : i32] : vector<2xf16>
        // CHECK: llvm.fpext %[[HALF]] : f16 to f32
        %y = tile.cast %w : <16x64xf16, lhs> -> <16x64xf32, acc>
        tile.store_matrix %y to %o[%column] stage(%stage) : !tile.frag<16x64xf32, acc> to !tile.smem<2x64x64xf16, sw128>
      }
    }
    tile.return
  }
}

// -----

// Factors of 8 bits: 32 of them a step, and no choice of what runs along a row.
// A buffer of one stage has no part for the stage.
// CHECK-LABEL: llvm.func @bytes(
// CHECK: nvvm.setmaxregister decrease 240
// CHECK-NOT: arith.muli {{.*}} : i64
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {$0,$1,$2,$3,$4,$5,$6,$7}, $16, $17, p, 1, 1; }"{{.*}}, %[[LEFT:.*]], %[[RIGHT:.*]], %c0_i32 :
// CHECK: %[[L1:.*]] = arith.addi %[[LEFT]], %c2_i64
// CHECK: %[[R1:.*]] = arith.addi %[[RIGHT]], %c2_i64
// CHECK: wgmma.mma_async{{.*}} %[[L1]], %[[R1]], %c1_i32
// CHECK-NOT: wgmma.mma_async
gpu.module @products {
  tile.kernel @bytes(%n: i32) attributes {warps = 8 : i32} {
    %q = tile.alloc "q" : <64x64xf8E4M3FN, sw128>
    %k = tile.alloc "k" : <16x64xf8E4M3FN, sw128>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %p = tile.wgmma %q[%n, %n], %k[%n] transpose : !tile.smem<64x64xf8E4M3FN, sw128>, <16x64xf8E4M3FN, sw128> -> <16x16xf32>
        %x = tile.wgmma_wait 0, %p : !tile.pending<16x16xf32> -> !tile.frag<16x16xf32, acc>
      }
    }
    tile.return
  }
}

// -----

// The columns of the right factor from a panel on, whose panels have 32 rows of
// 128 bytes.  The contracted extent is that of its rows.
// CHECK-LABEL: llvm.func @columns(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32, %[[COLUMN:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[K:.*]] = arith.addi %[[BASE]], %c16384_i32
// CHECK: %[[PANEL:.*]] = arith.divui %[[COLUMN]], %c64_i32
// CHECK: %[[BYTES:.*]] = arith.muli %[[PANEL]], %c4096_i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[K]], %[[BYTES]]
// CHECK: %[[UNITS:.*]] = arith.shrui %[[PLACE]], %c4_i32
// CHECK: %[[LOW:.*]] = arith.andi %[[UNITS]], %c16383_i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[LOW]],
// CHECK: %[[RIGHT:.*]] = arith.addi %[[FIRST]],
// CHECK: arith.extui %[[RIGHT]] : i32 to i64
// CHECK-NEXT: %[[R0:.*]] = arith.ori
// CHECK: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16{{.*}}p, 1, 1, 0, 1; }", {{.*}} %[[R0]], %c0_i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[RIGHT]], %c128_i32
// CHECK: arith.extui %[[NEXT]] : i32 to i64
// CHECK-NEXT: %[[R1:.*]] = arith.ori
// CHECK: wgmma.mma_async{{.*}} %[[R1]], %c1_i32
// CHECK-NOT: wgmma.mma_async
gpu.module @products {
  tile.kernel @columns(%stage: i32, %column: i32) attributes {warps = 8 : i32} {
    %ds = tile.alloc "ds" : <2x64x64xbf16, sw128>
    %k = tile.alloc "k" : <2x32x128xbf16, sw128>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
      }
      tile.role "consumer" warps 4 registers 240 {
        %c0 = arith.constant 0 : i32
        %p = tile.wgmma %ds[%stage, %c0], %k[%stage, %column] : !tile.smem<2x64x64xbf16, sw128>, <2x32x128xbf16, sw128> -> <16x8xf32>
        %x = tile.wgmma_wait 0, %p : !tile.pending<16x8xf32> -> !tile.frag<16x8xf32, acc>
      }
    }
    tile.return
  }
}
