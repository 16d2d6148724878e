// Boxes through the copy engine, panel by panel of 64 columns of 16 bits.
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
    %o = tile.alloc "o" : <64x128xbf16, sw128>
    tile.tma_store %o[%from] to %map[%b, %h, %r, 64] : <64x128xbf16, sw128> to <64x160xbf16>
    tile.tma_store_wait 0
    tile.return
  }
  // Columns behind the array's take no copy.
  // CHECK-LABEL: llvm.func @store_last(
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.4d.global{{.*}} %c128_i32,
  // CHECK-NEXT: llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.commit_group;"
  tile.kernel @store_last(%map: !tile.tensor_map<64x160xbf16>, %b: i32, %h: i32, %r: i32, %from: i32) attributes {warps = 4 : i32} {
    %o = tile.alloc "o" : <64x128xbf16, sw128>
    tile.tma_store %o[%from] to %map[%b, %h, %r, 128] : <64x128xbf16, sw128> to <64x160xbf16>
    tile.return
  }
}
