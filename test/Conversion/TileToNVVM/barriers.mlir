// Mbarriers, named barriers, queues, counters.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// A barrier has 8 bytes; the block's first thread initialises each slot.  A warp
// arrives by its first lane, under a predicate and not in a branch.
// CHECK-LABEL: llvm.func @mbarriers(
// CHECK-SAME: %[[SLOT:[^:]*]]: i32, %[[PARITY:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[BASE]], %c3_i32
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[BASE]], %c8_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[NEXT]], %c3_i32
// CHECK-NEXT: }
// CHECK: %[[IF:.*]] = arith.cmpi sgt, %[[SLOT]], %[[PARITY]]
// CHECK: %[[OFFSET:.*]] = arith.muli %[[SLOT]], %c8_i32
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; WAIT${:uid}: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @p bra DONE${:uid}; bra WAIT${:uid}; DONE${:uid}: }", "r,r,~{memory}" %[[AT]], %[[PARITY]]
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[LEADER:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: %[[WHO:.*]] = arith.extui %[[LEADER]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; bar.warp.sync 0xffffffff; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r,~{memory}" %[[AT]], %[[WHO]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[LEADER]], %[[IF]]
// CHECK: %[[WHO2:.*]] = arith.extui %[[BOTH]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; bar.warp.sync 0xffffffff; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r,~{memory}" %[[AT]], %[[WHO2]]
// CHECK-NEXT: llvm.return
gpu.module @barriers {
  tile.kernel @mbarriers(%slot: i32, %parity: i32) attributes {warps = 4 : i32} {
    %b = tile.mbarrier "b" arrivals 3 : <2>
    %if = arith.cmpi sgt, %slot, %parity : i32
    tile.mbarrier_wait %b[%slot] parity %parity : <2>
    tile.mbarrier_arrive %b[%slot] : <2>
    tile.mbarrier_arrive %b[%slot] if %if : <2>
    tile.return
  }
}

// -----

// Named barriers count threads.
// CHECK-LABEL: llvm.func @named(
// CHECK-SAME: %[[ID:[^:]*]]: i32
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %c128_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "bar.arrive $0, 256;", "r,~{memory}" %[[ID]]
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "fence.proxy.async.shared::cta;", "~{memory}"
// CHECK-NEXT: nvvm.bar.warp.sync %c-1_i32
// CHECK-NEXT: llvm.return
gpu.module @barriers {
  tile.kernel @named(%id: i32) attributes {warps = 8 : i32} {
    tile.bar_sync %id warps 4
    tile.bar_arrive %id warps 8
    tile.fence_async
    tile.return
  }
}

// -----

// A slot of a queue has 32 bytes: the message, then "full", to which the sender
// comes, at 16, and "empty", to which the readers come, at 24.
// CHECK-LABEL: llvm.func @queue(
// CHECK-SAME: %[[COUNTER:[^:]*]]: !llvm.ptr<1>, %[[SLOT:[^:]*]]: i32, %[[PARITY:[^:]*]]: i32, %[[BELOW:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[FULL0:.*]] = arith.addi %[[BASE]], %c16_i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init{{.*}} %[[FULL0]], %c1_i32
// CHECK: %[[EMPTY0:.*]] = arith.addi %[[BASE]], %c24_i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init{{.*}} %[[EMPTY0]], %c4_i32
// CHECK: %[[FULL1:.*]] = arith.addi %[[BASE]], %c48_i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init{{.*}} %[[FULL1]], %c1_i32
// CHECK: %[[EMPTY1:.*]] = arith.addi %[[BASE]], %c56_i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.init{{.*}} %[[EMPTY1]], %c4_i32
// The counter wraps around at the last number.  Before its slot is written the
// sender waits for the phase before, so the first round finds it empty.
// CHECK: nvvm.elect.sync
// CHECK: %[[LAST:.*]] = arith.addi %[[BELOW]], %c-1_i32
// CHECK: %[[DRAWN:.*]] = llvm.atomicrmw uinc_wrap %[[COUNTER]], %[[LAST]] syncscope("device") monotonic
// CHECK: %[[OFFSET:.*]] = arith.muli %[[SLOT]], %c32_i32
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[BEFORE:.*]] = arith.xori %[[PARITY]], %c1_i32
// CHECK: %[[EMPTY:.*]] = arith.addi %[[AT]], %c24_i32
// CHECK: mbarrier.try_wait.parity{{.*}} %[[EMPTY]], %[[BEFORE]]
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "st.shared.v4.b32 [$0], {$1,$2,$3,$4};", "r,r,r,r,r,~{memory}" %[[AT]], %[[DRAWN]], %[[BELOW]], %[[DRAWN]], %c0_i32
// CHECK-NEXT: %[[FULL:.*]] = arith.addi %[[AT]], %c16_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}" %[[FULL]]
// A reader's first lane reads, tells all lanes (and ptxas) its message, and hands
// the slot back.
// CHECK: } else {
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]]
// CHECK: %[[FULL:.*]] = arith.addi %[[AT]], %c16_i32
// CHECK: mbarrier.try_wait.parity{{.*}} %[[FULL]], %[[PARITY]]
// CHECK: %[[FIRST:.*]] = arith.extui
// CHECK-NEXT: %[[MESSAGE:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; setp.ne.b32 p, $5, 0;{{.*}}@p ld.shared.v4.b32 {$0,$1,$2,$3}, [$4]; }", "=&r,=&r,=&r,=&r,r,r,~{memory}" %[[AT]], %[[FIRST]]
// CHECK: %[[SECOND:.*]] = llvm.extractvalue %[[MESSAGE]][1]
// CHECK: nvvm.shfl.sync idx
// CHECK-NEXT: %[[UNIFORM:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[SECOND]], %c0_i32, %c31_i32
// CHECK-NEXT: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: %[[EMPTY:.*]] = arith.addi %[[AT]], %c24_i32
// CHECK: @p mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r,~{memory}" %[[EMPTY]], %[[FIRST]]
// CHECK: nvvm.barrier id = %[[UNIFORM]]
// A warp that draws draws once, by its first lane, and all lanes get to know.
// CHECK: %[[LAST:.*]] = arith.addi %[[BELOW]], %c-1_i32
// CHECK: %[[MINE:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; setp.ne.b32 p, $3, 0; mov.b32 $0, 0; @p atom.relaxed.gpu.global.inc.u32 $0, [$1], $2; }", "=&r,l,r,r,~{memory}" %{{.*}}, %[[LAST]], %{{.*}}
// CHECK: %[[ALL:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[MINE]], %c0_i32, %c31_i32
// CHECK: nvvm.barrier id = %[[ALL]]
gpu.module @queues {
  tile.kernel @queue(%counter: !tile.ptr<i32>, %slot: i32, %parity: i32, %below: i32) attributes {warps = 8 : i32} {
    %queue = tile.queue "next" readers 4 : <2x3>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        %d = tile.draw %counter below %below : <i32>
        tile.push %queue[%slot] parity %parity, %d, %below, %d : <2x3>
      }
      tile.role "consumer" warps 4 registers 240 {
        %m:3 = tile.pop %queue[%slot] parity %parity : <2x3> -> i32, i32, i32
        tile.bar_sync %m#1 warps 4
        %d = tile.draw %counter below %below : <i32>
        tile.bar_sync %d warps 4
      }
    }
    tile.return
  }
}

// -----

// One thread of a block draws for all of it.
// CHECK-LABEL: llvm.func @draws(
// CHECK-SAME: %[[COUNTER:[^:]*]]: !llvm.ptr<1>
// CHECK-SAME: %[[BELOW:[^:]*]]: i32
// CHECK: %[[LEADS:.*]] = arith.cmpi eq
// CHECK: scf.if %[[LEADS]]
// CHECK: %[[LAST:.*]] = arith.addi %[[BELOW]], %c-1_i32
// CHECK: %[[NUMBER:.*]] = llvm.inline_asm {{.*}}atom.relaxed.gpu.global.inc.u32{{.*}} %[[COUNTER]], %[[LAST]], %c1_i32
// CHECK: llvm.store %[[NUMBER]], %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
gpu.module @draws {
  tile.kernel @draws(%counter: !tile.ptr<i32>, %below: i32, %out: !tile.ptr<f32>) attributes {warps = 4 : i32} {
    %zero = arith.constant 0 : i64
    %buffer = tile.alloc "tile" : <16x16xbf16>
    tile.put_draw %counter below %below to %buffer : <i32> to <16x16xbf16>
    tile.barrier
    %number = tile.get_draw %buffer : <16x16xbf16>
    %value = arith.sitofp %number : i32 to f32
    %row = tile.fill %value : f32 -> !tile.row<16xf32>
    %view = tile.view %out[%zero] rows(%below) stride(%zero) : <f32> -> <?xf32, align = 4>
    tile.store_row %row to %view[%number] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// One lane fences for itself, a warp meets behind its fences.
// CHECK-LABEL: llvm.func @fences(
// CHECK: nvvm.elect.sync
// CHECK: fence.proxy.async.shared::cta;
// CHECK-NOT: nvvm.bar.warp.sync
// CHECK: } else {
// CHECK: fence.proxy.async.shared::cta;
// CHECK-NEXT: nvvm.bar.warp.sync
gpu.module @fences {
  tile.kernel @fences() attributes {warps = 8 : i32} {
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.fence_async
      }
      tile.role "consumer" warps 4 registers 240 {
        tile.fence_async
      }
    }
    tile.return
  }
}

// -----

// A thread for each sequence: it stores length and slots, counts those before
// it when all have, and stores its entry when all have counted.
// CHECK-LABEL: llvm.func @ranks(
// CHECK: scf.if
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK: arith.subi
// CHECK: nvvm.barrier
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: arith.cmpi eq
// CHECK: arith.cmpi slt
// CHECK: nvvm.barrier
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
gpu.module @ranks {
  tile.kernel @ranks(%cu: !tile.ptr<i32>, %at: i64, %n: i32, %out: !tile.ptr<i32>) attributes {warps = 4 : i32} {
    %table = tile.alloc "ranks" : <8x32xf32, sw128>
    tile.rank %cu[%at, %at] by %cu[%at, %at] differences count %n rows 64 to %table : <i32>, <i32> to <8x32xf32, sw128>
    tile.barrier
    %first = tile.get_number %table[%n] : <8x32xf32, sw128>
    tile.store_number %first to %out[%n] : <i32>, i32
    tile.return
  }
}
