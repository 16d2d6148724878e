// Boxes through the copy engine, panel by panel of 64 columns of 16 bits; words.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// A map is 128 bytes of the launch's parameters.  A swizzled buffer begins at a
// multiple of 1024 bytes.  96 columns are two panels of 32 x 128 bytes, all of
// which count, and land in their stage.  Coordinates: column, row, head, batch.
// CHECK: llvm.mlir.global external @attn_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: llvm.func @load(
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %[[BATCH:[^:]*]]: i32, %[[HEAD:[^:]*]]: i32, %[[ROW:[^:]*]]: i32, %[[STAGE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[BARRIERS:.*]] = arith.addi %[[BASE]], %c16384_i32
// CHECK: nvvm.elect.sync
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c8192_i32
// CHECK: %[[TARGET:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[SLOT:.*]] = arith.muli %[[STAGE]], %c8_i32
// CHECK: %[[BARRIER:.*]] = arith.addi %[[BARRIERS]], %[[SLOT]]
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %[[BARRIER]], %c8192_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3,$4,$5,$6}], [$2];", "r,l,r,r,r,r,r,~{memory}" %[[TARGET]], %[[MAP]], %[[BARRIER]], %c0_i32, %[[ROW]], %[[HEAD]], %[[BATCH]]
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[TARGET]], %c4096_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.shared::cluster{{.*}} %[[SECOND]], %[[MAP]], %[[BARRIER]], %c64_i32, %[[ROW]], %[[HEAD]], %[[BATCH]]
// CHECK-NOT: cp.async
gpu.module @boxes {
  tile.kernel @load(%map: !tile.tensor_map<32x96xbf16>, %b: i32, %h: i32, %r: i32, %stage: i32) attributes {warps = 8 : i32} {
    %s = tile.alloc "s" : <2x32x96xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.tma_load %map[%b, %h, %r] to %s[%stage] arrive %full[%stage] : <32x96xbf16> to <2x32x96xbf16, sw128>, <2>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

// What is asked for ahead comes by panels too, and nobody hears of it.
// CHECK-LABEL: llvm.func @prefetch(
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {{{[^}]*}}}, %[[ROW:[^:]*]]: i32
// CHECK: "cp.async.bulk.prefetch.tensor.4d.L2.global.tile [$0, {$1,$2,$3,$4}];", "l,r,r,r,r,~{memory}" %[[MAP]], %c64_i32, %[[ROW]], %c1_i32, %c0_i32
// CHECK: "cp.async.bulk.prefetch.tensor{{.*}} %[[MAP]], %c128_i32, %[[ROW]], %c1_i32, %c0_i32
// CHECK-NOT: cp.async
gpu.module @boxes {
  tile.kernel @prefetch(%map: !tile.tensor_map<32x384xbf16>, %r: i32) attributes {warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.tma_prefetch %map[%c0, %c1, %r, %c64] columns 128 : <32x384xbf16>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

// Two boxes, one below the other, in each of two panels: one arrival for all.
// CHECK-LABEL: llvm.func @load_boxes(
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {{{[^}]*}}}, %[[ROW:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: "mbarrier.arrive.expect_tx{{.*}} %c32768_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.shared::cluster{{.*}} %[[BASE]], %[[MAP]], %{{.*}}, %c0_i32, %[[ROW]],
// CHECK-NEXT: %[[BELOW:.*]] = arith.addi %[[BASE]], %c8192_i32
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[ROW]], %c64_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.shared::cluster{{.*}} %[[BELOW]], %[[MAP]], %{{.*}}, %c0_i32, %[[NEXT]],
// CHECK: %[[BESIDE:.*]] = arith.addi %[[BASE]], %c16384_i32
// CHECK: "cp.async.bulk.tensor.4d.shared::cluster{{.*}} %[[BESIDE]], %[[MAP]], %{{.*}}, %c64_i32, %[[ROW]],
// CHECK: %[[LAST:.*]] = arith.addi %[[BASE]], %c24576_i32
// CHECK: "cp.async.bulk.tensor.4d.shared::cluster{{.*}} %[[LAST]], %[[MAP]], %{{.*}}, %c64_i32,
gpu.module @boxes {
  tile.kernel @load_boxes(%map: !tile.tensor_map<64x128xbf16>, %r: i32) attributes {warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %s = tile.alloc "s" : <128x128xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <1>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.tma_load %map[%c0, %c0, %r] to %s[%c0] arrive %full[%c0] : <64x128xbf16> to <128x128xbf16, sw128>, <1>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }
}

// -----

// The first lane of a warp stores: of a buffer of 128 columns from column 64 of
// 160 on, so both panels hold columns of the array.  Every lane waits, those
// that stored nothing for nothing.
// CHECK-LABEL: llvm.func @store(
// CHECK-SAME: %[[MAP:[^:]*]]: !llvm.ptr {{{[^}]*}}}, %[[BATCH:[^:]*]]: i32, %[[HEAD:[^:]*]]: i32, %[[ROW:[^:]*]]: i32, %[[FROM:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[OFFSET:.*]] = arith.muli %[[FROM]], %c128_i32
// CHECK: %[[SOURCE:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[LANE:.*]] = arith.andi %{{.*}}, %c31_i32
// CHECK: %[[LEADER:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: scf.if %[[LEADER]] {
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [$0, {$2,$3,$4,$5}], [$1];", "l,r,r,r,r,r,~{memory}" %[[MAP]], %[[SOURCE]], %c64_i32, %[[ROW]], %[[HEAD]], %[[BATCH]]
// CHECK-NEXT: %[[SECOND:.*]] = arith.addi %[[SOURCE]], %c8192_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.global{{.*}} %[[MAP]], %[[SECOND]], %c128_i32, %[[ROW]], %[[HEAD]], %[[BATCH]]
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;", "~{memory}"
// CHECK-NEXT: }
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.wait_group.read 0;", "~{memory}"
// CHECK-NEXT: llvm.return
gpu.module @boxes {
  tile.kernel @store(%map: !tile.tensor_map<64x160xbf16>, %b: i32, %h: i32, %r: i32, %from: i32) attributes {warps = 4 : i32} {
    %c64 = arith.constant 64 : i32
    %o = tile.alloc "o" : <64x128xbf16, sw128>
    tile.tma_store %o[%from] to %map[%b, %h, %r, %c64] : <64x128xbf16, sw128> to <64x160xbf16>
    tile.tma_store_wait 0
    tile.return
  }
  // Columns behind the array's take no copy.
  // CHECK-LABEL: llvm.func @store_last(
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.global{{.*}} %c128_i32,
  // CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;"
  tile.kernel @store_last(%map: !tile.tensor_map<64x160xbf16>, %b: i32, %h: i32, %r: i32, %from: i32) attributes {warps = 4 : i32} {
    %c128 = arith.constant 128 : i32
    %o = tile.alloc "o" : <64x128xbf16, sw128>
    tile.tma_store %o[%from] to %map[%b, %h, %r, %c128] : <64x128xbf16, sw128> to <64x160xbf16>
    tile.return
  }
}

// -----

// Of the second stage, 2048 bytes further.
// CHECK-LABEL: llvm.func @store_stage(
// CHECK-SAME: i32, %[[STAGE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c2048_i32
// CHECK: %[[START:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[DOWN:.*]] = arith.muli %{{.*}}, %c128_i32
// CHECK: %[[SOURCE:.*]] = arith.addi %[[START]], %[[DOWN]]
// CHECK: "cp.async.bulk.tensor.4d.global{{.*}} %{{.*}}, %[[SOURCE]], %c0_i32
gpu.module @boxes {
  tile.kernel @store_stage(%map: !tile.tensor_map<16x64xbf16>, %row: i32, %stage: i32) attributes {warps = 4 : i32} {
    %o = tile.alloc "o" : <2x16x64xbf16, sw128>
    %c0 = arith.constant 0 : i32
    tile.tma_store %o[%row] stage(%stage) to %map[%row, %row, %row, %c0] : <2x16x64xbf16, sw128> to <16x64xbf16>
    tile.return
  }
}

// -----

// 128 words of a stage of 528 bytes come from run `index`, whose place is
// counted in 64 bits; the bytes are announced before.  64 of them are added, or
// stored, by the only lane, or by the first one of a warp.
// CHECK-LABEL: llvm.func @words(
// CHECK-SAME: %[[ARRAY:[^:]*]]: !llvm.ptr<1>, %[[INDEX:[^:]*]]: i32, %[[STAGE:[^:]*]]: i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint
// CHECK: %[[BARRIERS:.*]] = arith.addi %[[BASE]], %c1056_i32
// CHECK: nvvm.elect.sync
// CHECK: %[[SLOT:.*]] = arith.muli %[[STAGE]], %c8_i32
// CHECK: %[[BARRIER:.*]] = arith.addi %[[BARRIERS]], %[[SLOT]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %[[BARRIER]], %c512_i32
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STAGE]], %c528_i32
// CHECK: %[[PLACE:.*]] = arith.addi %[[BASE]], %[[OFFSET]]
// CHECK: %[[WIDE:.*]] = arith.extsi %[[INDEX]] : i32 to i64
// CHECK: %[[BYTES:.*]] = arith.muli %[[WIDE]], %c512_i64
// CHECK: %[[FROM:.*]] = llvm.getelementptr %[[ARRAY]][%[[BYTES]]]
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];", "r,l,r,r,~{memory}" %[[PLACE]], %[[FROM]], %c512_i32, %[[BARRIER]]
// CHECK: %[[BYTES:.*]] = arith.muli %[[WIDE]], %c256_i64
// CHECK: %[[TO:.*]] = llvm.getelementptr %[[ARRAY]][%[[BYTES]]]
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [$0], [$1], $2;", "l,r,r,~{memory}" %[[TO]], %[[PLACE]], %c256_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;", "~{memory}"
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", "l,r,r,~{memory}" %{{.*}}, %[[PLACE]], %c256_i32
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;", "~{memory}"
// CHECK: } else {
// CHECK: %[[LEADER:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[LEADER]] {
// CHECK: cp.reduce.async.bulk
// CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;", "~{memory}"
// CHECK-NEXT: }
gpu.module @runs {
  tile.kernel @words(%array: !tile.ptr<f32>, %index: i32, %stage: i32) attributes {warps = 8 : i32} {
    %s = tile.alloc "s" : <2x1x128xf32>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.load_words %array[%index] to %s[%stage] arrive %full[%stage] : <f32> to <2x1x128xf32>, <2>
        tile.add_words %s[%stage] to %array[%index] count 64 : <2x1x128xf32> to <f32>
        tile.store_words %s[%stage] to %array[%index] count 64 : <2x1x128xf32> to <f32>
      }
      tile.role "consumer" warps 4 registers 240 {
        tile.add_words %s[%stage] to %array[%index] count 64 : <2x1x128xf32> to <f32>
      }
    }
    tile.return
  }
}
