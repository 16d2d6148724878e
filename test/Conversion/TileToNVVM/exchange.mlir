// What blocks exchange: registers through global memory, flags, clusters.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// 8 registers are two pieces of 512 bytes; lane l has 16 bytes in each.  Loads
// pass by the multiprocessor's own cache.
// CHECK-LABEL: llvm.func @image(
// CHECK-SAME: %[[BASE:[^:]*]]: !llvm.ptr<1>, %[[PLACE:[^:]*]]: i32, %[[TO:[^:]*]]: i32
// CHECK-DAG: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[LANE]], %c16_i32
// All images can take more than 2 GiB.
// CHECK-DAG: %[[WIDE:.*]] = arith.extsi %[[PLACE]] : i32 to i64
// CHECK-DAG: %[[FROM:.*]] = arith.muli %[[WIDE]], %c1024_i64
// CHECK-DAG: %[[IMAGE:.*]] = llvm.getelementptr %[[BASE]][%[[FROM]]]
// CHECK-DAG: %[[OFFSET:.*]] = arith.extsi %[[BYTES]] : i32 to i64
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[IMAGE]][%[[OFFSET]]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "ld.global.cg.v4.b32 {$0,$1,$2,$3}, [$4+0];", "=r,=r,=r,=r,l,~{memory}" %[[ADDRESS]] : (!llvm.ptr<1>) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "ld.global.cg.v4.b32 {$0,$1,$2,$3}, [$4+512];", "=f,=f,=f,=f,l,~{memory}" %[[ADDRESS]] : (!llvm.ptr<1>) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: "st.global.v4.b32 [$0+0], {$1,$2,$3,$4};", "l,r,r,r,r,~{memory}"
// CHECK: "st.global.v4.b32 [$0+512], {$1,$2,$3,$4};", "l,f,f,f,f,~{memory}"
// CHECK: nvvm.bar.warp.sync
gpu.module @m {
  tile.kernel @image(%base: !tile.ptr<i32>, %place: i32, %to: i32) attributes {warps = 4 : i32} {
    %v:3 = tile.load_registers %base[%place] : <i32> -> !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial>
    tile.store_registers %v#0, %v#1, %v#2 to %base[%to] : !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial> to <i32>
    tile.return
  }
}

// -----

// Pieces of near images have numbers of 32 bits: of 8 registers, 64 an image of
// 16 bytes each, and of the two that 6 leave, 96 of 8 bytes.
// CHECK-LABEL: llvm.func @near(
// CHECK-SAME: %[[BASE:[^:]*]]: !llvm.ptr<1>, %[[PLACE:[^:]*]]: i32
// CHECK-DAG: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK-DAG: %[[FIRST:.*]] = arith.muli %[[PLACE]], %c64_i32
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[LANE]]
// CHECK: %[[WIDE:.*]] = arith.extui %[[NUMBER]] : i32 to i64
// CHECK: %[[BYTES:.*]] = arith.muli %[[WIDE]], %c16_i64
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[BASE]][%[[BYTES]]]
// CHECK: "ld.global.cg.v4.b32 {$0,$1,$2,$3}, [$4+512];", {{.*}} %[[ADDRESS]] :
// CHECK: %[[FIRST:.*]] = arith.muli %[[PLACE]], %c96_i32
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]], %[[LANE]]
// CHECK: %[[WIDE:.*]] = arith.extui %[[NUMBER]] : i32 to i64
// CHECK: %[[BYTES:.*]] = arith.muli %[[WIDE]], %c8_i64
// CHECK: %[[REST:.*]] = llvm.getelementptr %[[BASE]][%[[BYTES]]]
// CHECK: "st.global.v2.b32 [$0+512], {$1,$2};", {{.*}} %[[REST]],
gpu.module @m {
  tile.kernel @near(%base: !tile.ptr<i32>, %place: i32) attributes {warps = 4 : i32} {
    %v:3 = tile.load_registers %base[%place] {near} : <i32> -> !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial>
    tile.store_registers %v#0, %v#1 to %base[%place] {near} : !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32> to <i32>
    tile.return
  }
}

// -----

// The same in shared memory: 6 registers are 768 bytes, of which two of each
// lane lie behind the first 512.
// CHECK-LABEL: llvm.func @put(
// CHECK-SAME: %[[STAGE:[^:]*]]: i32, %[[PLACE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c16384_i32
// CHECK: %[[START:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[IMAGE:.*]] = arith.muli %[[PLACE]], %c768_i32
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[MINE:.*]] = arith.muli %[[LANE]], %c16_i32
// CHECK: %[[BYTES:.*]] = arith.addi %[[IMAGE]], %[[MINE]]
// CHECK: %[[WHOLE:.*]] = arith.addi %[[START]], %[[BYTES]]
// CHECK: %[[MINE:.*]] = arith.muli %[[LANE]], %c8_i32
// CHECK: %[[BYTES:.*]] = arith.addi %[[IMAGE]], %[[MINE]]
// CHECK: %[[REST:.*]] = arith.addi %[[START]], %[[BYTES]]
// CHECK: "st.shared.v4.b32 [$0+0], {$1,$2,$3,$4};", "r,f,f,f,f,~{memory}" %[[WHOLE]],
// CHECK: "st.shared.v2.b32 [$0+512], {$1,$2};", "r,f,f,~{memory}" %[[REST]],
// CHECK: nvvm.bar.warp.sync
gpu.module @m {
  tile.kernel @put(%stage: i32, %place: i32, %x: f32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <2x64x128xbf16, sw128>
    %v = tile.fill %x : f32 -> !tile.frag<16x8xf32, acc>
    %r = tile.fill %x : f32 -> !tile.row<16xf32>
    tile.put_registers %v, %r to %s[%stage, %place] : !tile.frag<16x8xf32, acc>, !tile.row<16xf32> to <2x64x128xbf16, sw128>
    tile.return
  }
}

// -----

// The same places, from which registers come back.
// CHECK-LABEL: llvm.func @get(
// CHECK: "ld.shared.v4.b32 {$0,$1,$2,$3}, [$4+0];", "=f,=f,=f,=f,r,~{memory}"
// CHECK: "ld.shared.v2.b32 {$0,$1}, [$2+512];", "=f,=f,r,~{memory}"
gpu.module @m {
  tile.kernel @get(%stage: i32, %place: i32, %x: f32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <2x64x128xbf16, sw128>
    %v:2 = tile.get_registers %s[%stage, %place] : <2x64x128xbf16, sw128> -> !tile.frag<16x8xf32, acc>, !tile.row<16xf32>
    tile.put_registers %v#0, %v#1 to %s[%stage, %place] : !tile.frag<16x8xf32, acc>, !tile.row<16xf32> to <2x64x128xbf16, sw128>
    tile.return
  }
}

// -----

// Every other register of a piece is of the lower rows.
// CHECK-LABEL: llvm.func @scale(
// CHECK-COUNT-2: llvm.nvvm.ex2.approx.ftz
// CHECK-COUNT-4: llvm.fmul %{{.*}}, %{{.*}} : vector<2xbf16>
gpu.module @m {
  tile.kernel @scale(%base: !tile.ptr<i32>, %place: i32) attributes {warps = 4 : i32} {
    %v:3 = tile.load_registers %base[%place] : <i32> -> !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial>
    %x = tile.scale_rows %v#0 by %v#1 : <16x16xbf16, lhs>, <16xf32>
    tile.store_registers %x, %v#1, %v#2 to %base[%place] : !tile.frag<16x16xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial> to <i32>
    tile.return
  }
}

// -----

// Pairs of columns, if row and column lie in the view.
// CHECK-LABEL: llvm.func @fragment(
// CHECK: arith.cmpi ult
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 0; @p st.global.b32 [$0+0], $1; }", "l,r,r,~{memory}"
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 8; @p st.global.b32 [$0+16], $1; }", "l,r,r,~{memory}"
// CHECK: arith.cmpi ult
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 0; @p st.global.b32 [$0+0], $1; }", "l,r,r,~{memory}"
gpu.module @m {
  tile.kernel @fragment(%o: !tile.ptr<bf16>, %rows: i32, %row: i32, %stride: i64, %x: f32) attributes {warps = 4 : i32} {
    %n0 = arith.constant 0 : i64
    %acc = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %view = tile.view %o[%n0] rows(%rows) stride(%stride) : <bf16> -> <?x40xbf16, align = 16>
    tile.store_fragment %acc to %view[%row, %row] : <16x16xf32, acc> to <?x40xbf16, align = 16>
    tile.return
  }
}

// -----

// Four lanes load eights of four pieces and change them; the pieces that are
// left come in pairs.  What lies behind the view is 0, and read from its last
// row or first column.
// CHECK-LABEL: llvm.func @load_fragment(
// CHECK: arith.minsi
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi32>
// CHECK-COUNT-4: nvvm.shfl.sync  bfly
// CHECK: llvm.fpext %{{.*}} : vector<2xbf16> to vector<2xf32>
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-LABEL: llvm.func @load_odd_fragment(
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> f16
// CHECK-LABEL: llvm.func @load_wide_fragment(
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
gpu.module @m {
  tile.kernel @load_fragment(%o: !tile.ptr<bf16>, %p: !tile.ptr<bf16>, %rows: i32, %row: i32, %stride: i64) attributes {warps = 4 : i32} {
    %view = tile.view %o[%stride] rows(%rows) stride(%stride) : <bf16> -> <?x40xbf16, align = 16>
    %acc = tile.load_fragment %view[%row, %row] : <?x40xbf16, align = 16> -> <16x40xf32, acc>
    tile.store_fragment %acc to %view[%row, %row] : <16x40xf32, acc> to <?x40xbf16, align = 16>
    tile.return
  }
  tile.kernel @load_odd_fragment(%o: !tile.ptr<f16>, %rows: i32, %row: i32, %stride: i64) attributes {warps = 4 : i32} {
    %view = tile.view %o[%stride] rows(%rows) stride(%stride) : <f16> -> <?x41xf16, align = 2>
    %acc = tile.load_fragment %view[%row, %row] : <?x41xf16, align = 2> -> <16x8xf32, acc>
    tile.store_fragment %acc to %view[%row, %row] : <16x8xf32, acc> to <?x41xf16, align = 2>
    tile.return
  }
  tile.kernel @load_wide_fragment(%o: !tile.ptr<f32>, %rows: i32, %row: i32, %stride: i64) attributes {warps = 4 : i32} {
    %view = tile.view %o[%stride] rows(%rows) stride(%stride) : <f32> -> <?x40xf32, align = 16>
    %acc = tile.load_fragment %view[%row, %row] : <?x40xf32, align = 16> -> <16x8xf32, acc>
    tile.store_fragment %acc to %view[%row, %row] : <16x8xf32, acc> to <?x40xf32, align = 16>
    tile.return
  }
}

// -----

// An odd view takes them one by one.
// CHECK-LABEL: llvm.func @odd_fragment(
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 0; @p st.global.b16 [$0+0], $1; }", "l,h,r,~{memory}"
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 1; @p st.global.b16 [$0+2], $1; }", "l,h,r,~{memory}"
// CHECK: "{ .reg .pred p; setp.gt.s32 p, $2, 8; @p st.global.b16 [$0+16], $1; }", "l,h,r,~{memory}"
gpu.module @m {
  tile.kernel @odd_fragment(%o: !tile.ptr<bf16>, %rows: i32, %row: i32, %stride: i64, %x: f32) attributes {warps = 4 : i32} {
    %n0 = arith.constant 0 : i64
    %acc = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %view = tile.view %o[%n0] rows(%rows) stride(%stride) : <bf16> -> <?x41xbf16, align = 2>
    tile.store_fragment %acc to %view[%row, %row] : <16x16xf32, acc> to <?x41xbf16, align = 2>
    tile.return
  }
}

// -----

// A statistic in shared memory: lane l has rows l / 4 and that + 8; the first
// of four lanes stores.  Rows of 32 f32 take 144 bytes.
// CHECK-LABEL: llvm.func @statistic(
// CHECK-SAME: %[[ROW:[^:]*]]: i32, %[[COLUMN:[^:]*]]: i32, %{{[^:]*}}: i32
// CHECK-DAG: %[[QUAD:.*]] = arith.shrui %{{.*}}, %c2_i32
// CHECK-DAG: %[[MINE:.*]] = arith.addi %[[COLUMN]], %[[QUAD]]
// CHECK-DAG: %[[DOWN:.*]] = arith.muli %[[ROW]], %c144_i32
// CHECK-DAG: %[[RIGHT:.*]] = arith.muli %[[MINE]], %c4_i32
// CHECK: %[[FIRST:.*]] = llvm.load %[[ADDRESS:.*]] {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[ADDRESS]][32]
// CHECK: %[[SECOND:.*]] = llvm.load %[[NEXT]] {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK: scf.if
// CHECK: llvm.store %[[FIRST]], %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: llvm.store %[[SECOND]], %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
gpu.module @m {
  tile.kernel @statistic(%row: i32, %column: i32, %to: i32) attributes {warps = 4 : i32} {
    %b = tile.alloc "statistic" : <2x32xf32>
    %x = tile.get_row %b[%row, %column] : <2x32xf32> -> <16xf32>
    tile.put_row %x to %b[%to, %column] : <16xf32> to <2x32xf32>
    tile.return
  }
}

// -----

// A cluster meets before the roles and behind them.  Its blocks load together:
// each 64 of the 128 rows, to the same place and barrier of both.  Lane r
// arrives in block r, without a memory barrier (.release.cluster has one).
// CHECK-LABEL: llvm.func @cluster(
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[RANK:.*]] = arith.remui %[[BLOCK]], %c2_i32
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvvm.cluster.arrive{{$}}
// CHECK-NEXT: nvvm.cluster.wait{{$}}
// CHECK: "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %{{.*}}, %c16384_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[RANK]], %c64_i32
// CHECK: arith.addi %{{.*}}, %[[FIRST]]
// CHECK: %[[DOWN:.*]] = arith.muli %{{.*}}, %c8192_i32
// CHECK: arith.addi %{{.*}}, %[[DOWN]]
// CHECK: "{ .reg .b16 all; mov.b16 all, 3; cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$3,$4,$5,$6}], [$2], all; }"
// CHECK: "st.release.gpu.global.b32 [$0], $1;", "l,r,~{memory}"
// CHECK: "{ .reg .pred p; WAIT${:uid}: ld.relaxed.gpu.global.b32 $0, [$1]; setp.ge.s32 p, $0, $2; @p bra DONE${:uid}; bra WAIT${:uid}; DONE${:uid}: ld.acquire.gpu.global.b32 $0, [$1]; }"
// CHECK: "{ .reg .pred p; LOOK${:uid}: ld.acquire.gpu.global.b32 $0, [$1]; setp.ge.s32 p, $0, $2; @p bra DONE${:uid}; WAIT${:uid}: ld.relaxed.gpu.global.b32 $0, [$1]; setp.ge.s32 p, $0, $2; @p bra LOOK${:uid}; bra WAIT${:uid}; DONE${:uid}: }"
// CHECK: "{ .reg .pred p; .reg .b32 r, a; bar.warp.sync 0xffffffff; setp.le.u32 p, $1, $2; min.u32 r, $1, $2; mapa.shared::cluster.u32 a, $0, r; @p mbarrier.arrive.shared::cluster.b64 _, [a]; }", "r,r,n,~{memory}" %{{.*}}, %{{.*}}, %c1_i32
// CHECK-NOT: .release.cluster
// CHECK: nvvm.cluster.arrive{{$}}
// CHECK-NEXT: nvvm.cluster.wait{{$}}
gpu.module @m {
  tile.kernel @cluster(%map: !tile.tensor_map<64x512xbf16>, %flags: !tile.ptr<i32>, %c: i32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    %rank = tile.cluster_rank
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] multicast(%rank) arrive %full[%c] : <64x512xbf16> to <2x128x64xbf16, sw128>, <2>
        tile.publish %flags[%c], %c : <i32>
        %x = tile.await %flags[%c] at_least %c : <i32>
        %y = tile.await %flags[%c] at_least %c {mostly_set} : <i32>
      }
      tile.role "consumer" warps 4 registers 240 {
        tile.mbarrier_arrive %full[%c] cluster : <2>
      }
    }
    tile.return
  }
}

// -----

// A lane counts behind copies that are complete.  Warps count by one lane,
// behind what all did; all lanes look for a flag, now and then, and acquire it
// when they have seen it.
// CHECK-LABEL: llvm.func @counts(
// CHECK-SAME: %[[FLAGS:[^:]*]]: !llvm.ptr<1>, %[[I:[^:]*]]: i32, %[[BELOW:[^:]*]]: i32
// CHECK: nvvm.elect.sync
// CHECK: "cp.async.bulk.wait_group 0;", "~{memory}"
// CHECK: %[[LAST:.*]] = arith.addi %[[BELOW]], %c-1_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "atom.release.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}" %[[FLAG:.*]], %[[LAST]]
// CHECK: } else {
// CHECK: "{ .reg .pred p; WAIT${:uid}: ld.relaxed.gpu.global.b32 $0, [$1]; setp.ge.s32 p, $0, $2; @p bra DONE${:uid}; nanosleep.u32 500; bra WAIT${:uid}; DONE${:uid}: fence.acq_rel.gpu; }", "=&r,l,r,~{memory}"
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: "atom.release.gpu.global.inc.u32 $0, [$1], $2;"
// CHECK-NEXT: {{^ *}}}
gpu.module @m {
  tile.kernel @counts(%flags: !tile.ptr<i32>, %i: i32, %below: i32) attributes {warps = 8 : i32} {
    tile.roles {
      tile.role "writer" warps 4 registers 24 single_lane {
        tile.tma_store_wait 0 complete
        tile.count %flags[%i] below %below : <i32>
      }
      tile.role "finisher" warps 4 registers 240 {
        %x = tile.await %flags[%i] at_least %below : <i32>
        tile.count %flags[%i] below %x : <i32>
      }
    }
    tile.return
  }
}

// -----

// A product goes on with the sum of one in flight: nothing touches its registers
// in between, and a wait without products only waits.
// CHECK-LABEL: llvm.func @goes_on(
// CHECK: nvvm.wgmma.fence.aligned
// CHECK: %[[A:.*]] = llvm.inline_asm {{.*}}wgmma.mma_async
// CHECK-NOT: ""
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NEXT: llvm.inline_asm {{.*}}wgmma.mma_async
// CHECK: nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NEXT: nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att ""
gpu.module @m {
  tile.kernel @goes_on(%c: i32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <1x64x16xbf16, sw128>
    %a = tile.wgmma %s[%c, %c], %s[%c] transpose : !tile.smem<64x16xbf16, sw128>, <64x16xbf16, sw128> -> <16x64xf32>
    %b = tile.wgmma %s[%c, %c], %s[%c] transpose acc(%a : !tile.pending<16x64xf32>) : !tile.smem<64x16xbf16, sw128>, <64x16xbf16, sw128> -> <16x64xf32>
    tile.wgmma_wait 1
    %x = tile.wgmma_wait 0, %b : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
    tile.return
  }
}

// -----

// Where boxes have all rows, blocks share the panels: two of four each.
// CHECK-LABEL: llvm.func @panels(
// CHECK: expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %{{.*}}, %c16384_i32
// CHECK: %[[ACROSS:.*]] = arith.muli %[[RANK:.*]], %c128_i32
// CHECK: arith.addi %{{.*}}, %[[ACROSS]]
// CHECK: %[[AWAY:.*]] = arith.muli %[[RANK]], %c8192_i32
// CHECK: arith.addi %{{.*}}, %[[AWAY]]
// CHECK-COUNT-2: .multicast::cluster
// CHECK-NOT: .multicast::cluster
gpu.module @m {
  tile.kernel @panels(%map: !tile.tensor_map<32x512xbf16>, %c: i32) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %s = tile.alloc "s" : <2x32x256xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    %rank = tile.cluster_rank
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] multicast(%rank) arrive %full[%c] : <32x512xbf16> to <2x32x256xbf16, sw128>, <2>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

// Rows at multiples of 16 bytes: four lanes exchange what they have of four
// times 8 columns, pairs with the neighbour, then with the pair beside, and
// store 8 columns each; the columns that make no four leave in pairs.
// CHECK-LABEL: llvm.func @store_aligned(
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: st.global.v4.b32 [$0+0], {$1,$2,$3,$4}
// CHECK: st.global.b32 [$0+64], $1
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK: st.global.v4.b32
// CHECK: st.global.b32
// CHECK-NOT: st.global
// CHECK-LABEL: llvm.func @store_askew(
// CHECK-NOT: shfl.sync bfly
// CHECK-COUNT-10: st.global.b32
// CHECK-NOT: st.global
gpu.module @stores {
  tile.kernel @store_aligned(%w: f32, %p: !tile.ptr<bf16>, %s: i64, %rows: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %f = tile.fill %w : f32 -> !tile.frag<16x40xf32, acc>
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x40xbf16, align = 16>
    tile.store_fragment %f to %v[%c0, %c0] : !tile.frag<16x40xf32, acc> to !tile.view<?x40xbf16, align = 16>
    tile.return
  }
  tile.kernel @store_askew(%w: f32, %p: !tile.ptr<bf16>, %s: i64, %rows: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %f = tile.fill %w : f32 -> !tile.frag<16x40xf32, acc>
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x40xbf16, align = 4>
    tile.store_fragment %f to %v[%c0, %c0] : !tile.frag<16x40xf32, acc> to !tile.view<?x40xbf16, align = 4>
    tile.return
  }
}

// -----

// The launch before, as a whole, and the one behind.
// CHECK-LABEL: llvm.func @ahead(
// CHECK: nvvm.griddepcontrol wait
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
gpu.module @m {
  tile.kernel @ahead() attributes {warps = 4 : i32} {
    tile.await_launch
    tile.release_launch
    tile.return
  }
}

// -----

// A module with a kernel that asks has one table, in constant memory, of which a
// multiprocessor reads its bit; and one of two counters is drawn from.
// CHECK-LABEL: gpu.module @sides
// CHECK-NEXT: llvm.mlir.global external @attn_sides(dense<-1431655766> : tensor<8xi32>) {addr_space = 4 : i32, alignment = 4 : i64} : !llvm.array<8 x i32>
// CHECK-NOT: @attn_sides(
// CHECK: llvm.func @side(%[[COUNTERS:[^:]*]]: !llvm.ptr<1>
// CHECK: %[[TABLE:.*]] = llvm.mlir.addressof @attn_sides : !llvm.ptr<4>
// CHECK: %[[SM:.*]] = nvvm.read.ptx.sreg.smid : i32
// CHECK: %[[FIVE:.*]] = arith.shrui %[[SM]], %c5_i32
// CHECK: %[[WORD:.*]] = arith.andi %[[FIVE]], %c7_i32
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[TABLE]][%[[WORD]]] : (!llvm.ptr<4>, i32) -> !llvm.ptr<4>, i32
// CHECK: %[[ALL:.*]] = llvm.load %[[PLACE]] : !llvm.ptr<4> -> i32
// CHECK: %[[BIT:.*]] = arith.andi %[[SM]], %c31_i32
// CHECK: %[[DOWN:.*]] = arith.shrui %[[ALL]], %[[BIT]]
// CHECK: %[[SIDE:.*]] = arith.andi %[[DOWN]], %c1_i32
// CHECK: %[[BYTES:.*]] = arith.muli %[[SIDE]], %c4_i32
// CHECK: %[[WIDE:.*]] = arith.extsi %[[BYTES]]
// CHECK: %[[COUNTER:.*]] = llvm.getelementptr %[[COUNTERS]][%[[WIDE]]]
// CHECK: %[[LAST:.*]] = arith.addi
// CHECK: llvm.atomicrmw uinc_wrap %[[COUNTER]], %[[LAST]]
gpu.module @sides {
  tile.kernel @side(%counters: !tile.ptr<i32>, %below: i32) attributes {warps = 8 : i32} {
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        %side = tile.side
        %d = tile.draw %counters[%side] below %below : <i32>
        %again = tile.side
        %e = tile.draw %counters[%again] below %below : <i32>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}
