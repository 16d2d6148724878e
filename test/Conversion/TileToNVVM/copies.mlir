// Copies between global and shared memory: pieces, zero fill, what a lane does.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// Rows of 128 bf16 are 16 pieces of 16 bytes: 32 lanes copy 2 rows a pass, 16
// rows are 8 passes.  Rows behind the view copy no byte and become zero.
// CHECK-LABEL: llvm.func @sixteen
// CHECK: %[[ROW:.*]] = arith.divui %[[THREAD:.*]], %c16_i32
// CHECK: %[[COLUMN:.*]] = arith.remui %[[THREAD]], %c16_i32
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %[[LEFT]], %c0_i32
// CHECK: %[[EXIST:.*]] = arith.select %[[INSIDE]], %c16_i32, %c0_i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[EXIST]] : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK: arith.cmpi sgt, %[[LEFT]], %c2_i32
// CHECK-COUNT-7: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-NOT: nvvm.cp.async.shared
gpu.module @copies {
  tile.kernel @sixteen(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x128xbf16, align = 16>
    %b = tile.alloc "b" : <16x128xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x128xbf16, align = 16> to <16x128xbf16>
    tile.return
  }
}

// -----

// Aligned to 8 bytes: 32 pieces a row, one row a pass.
// CHECK-LABEL: llvm.func @eight
// CHECK-COUNT-16: nvvm.cp.async.shared.global {{.*}}, 8, cache = ca
// CHECK-NOT: nvvm.cp.async.shared
gpu.module @copies {
  tile.kernel @eight(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x128xbf16, align = 8>
    %b = tile.alloc "b" : <16x128xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x128xbf16, align = 8> to <16x128xbf16>
    tile.return
  }
}

// -----

// Aligned to 4 bytes.
// CHECK-LABEL: llvm.func @four
// CHECK-COUNT-8: nvvm.cp.async.shared.global {{.*}}, 4, cache = ca
// CHECK-NOT: nvvm.cp.async.shared
gpu.module @copies {
  tile.kernel @four(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x32xbf16, align = 4>
    %b = tile.alloc "b" : <16x32xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x32xbf16, align = 4> to <16x32xbf16>
    tile.return
  }
}

// -----

// cp.async cannot copy a single element: it is loaded and stored, or zero.
// CHECK-LABEL: llvm.func @two
// CHECK-NOT: nvvm.cp.async.shared
// CHECK: %[[ELEMENT:.*]] = scf.if %{{.*}} -> (i16) {
// CHECK: %[[LOADED:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: scf.yield %[[LOADED]]
// CHECK: } else {
// CHECK: scf.yield %c0_i16
// CHECK: llvm.store %[[ELEMENT]], %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<3>
// CHECK-NOT: nvvm.cp.async.shared
// CHECK: llvm.return
gpu.module @copies {
  tile.kernel @two(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x16xbf16, align = 2>
    %b = tile.alloc "b" : <16x16xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x16xbf16, align = 2> to <16x16xbf16>
    tile.return
  }
}

// -----

// 12 columns in a buffer of 16: a piece has min(max(24 - 16 column, 0), 16)
// bytes, so the second of the two is half there.
// CHECK-LABEL: llvm.func @ragged
// CHECK: %[[AT:.*]] = arith.muli %{{.*}}, %c16_i32
// CHECK: %[[LEFT:.*]] = arith.subi %c24_i32, %[[AT]]
// CHECK: %[[NONE:.*]] = arith.maxsi %[[LEFT]], %c0_i32
// CHECK: %[[MOST:.*]] = arith.minsi %[[NONE]], %c16_i32
// CHECK: %[[EXIST:.*]] = arith.select %{{.*}}, %[[MOST]], %c0_i32
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %[[EXIST]]
// CHECK-NOT: nvvm.cp.async.shared
gpu.module @copies {
  tile.kernel @ragged(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x12xbf16, align = 16>
    %b = tile.alloc "b" : <16x16xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x12xbf16, align = 16> to <16x16xbf16>
    tile.return
  }
}

// -----

// Rows of 80 are 10 pieces: 128 lanes copy 12 rows a pass, 8 sit idle, and the
// last of 3 passes over 32 rows copies 8.  Rows of 96 are 12 pieces, of which 10
// rows would fit: a pass has 8, so that places are the same in all.
// CHECK-LABEL: llvm.func @idle
// CHECK: %[[ROW:.*]] = arith.divui %{{.*}}, %c10_i32
// CHECK: %[[BUSY:.*]] = arith.cmpi slt, %[[ROW]], %c12_i32
// CHECK-COUNT-2: scf.if %[[BUSY]] {
// CHECK: %[[FEW:.*]] = arith.cmpi slt, %[[ROW]], %c8_i32
// CHECK: %[[BOTH:.*]] = arith.andi %[[BUSY]], %[[FEW]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: nvvm.cp.async.shared.global
// CHECK-LABEL: llvm.func @even
// CHECK: %[[BUSY:.*]] = arith.cmpi slt, %{{.*}}, %c8_i32
// CHECK-COUNT-4: scf.if %[[BUSY]] {
// CHECK-NOT: scf.if
gpu.module @copies {
  tile.kernel @idle(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x80xbf16, align = 16>
    %b = tile.alloc "b" : <32x80xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x80xbf16, align = 16> to <32x80xbf16>
    tile.return
  }
  tile.kernel @even(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 4 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x96xbf16, align = 16>
    %b = tile.alloc "b" : <32x96xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x96xbf16, align = 16> to <32x96xbf16>
    tile.return
  }
}

// -----

// More than 16 passes become a loop over rows, 16 passes of them or fewer.
// CHECK-LABEL: llvm.func @many
// CHECK: scf.for %{{.*}} = %{{.*}} to %c64_i32 step %c32_i32
// CHECK-COUNT-16: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-NOT: nvvm.cp.async.shared
// CHECK-LABEL: llvm.func @few
// CHECK: scf.for %{{.*}} = %{{.*}} to %c48_i32 step %c24_i32
// CHECK-COUNT-12: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg
// CHECK-NOT: nvvm.cp.async.shared
gpu.module @copies {
  tile.kernel @many(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x128xbf16, align = 16>
    %b = tile.alloc "b" : <64x128xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x128xbf16, align = 16> to <64x128xbf16>
    tile.return
  }
  tile.kernel @few(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x112xbf16, align = 16>
    %b = tile.alloc "b" : <48x112xbf16>
    tile.copy_async %v[%row] to %b[%c0] : <?x112xbf16, align = 16> to <48x112xbf16>
    tile.return
  }
}

// -----

// Out: the lanes of the warp see each other's stores, then each row in the view
// is stored by pieces that divide it.
// CHECK-LABEL: llvm.func @out
// CHECK: nvvm.bar.warp.sync %c-1_i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi sgt, %[[LEFT:.*]], %c0_i32
// CHECK: scf.if %[[INSIDE]] {
// CHECK: %[[VALUE:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: llvm.store %[[VALUE]], %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-COUNT-7: llvm.store {{.*}} vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT: llvm.store
gpu.module @copies {
  tile.kernel @out(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x128xbf16, align = 16>
    %b = tile.alloc "b" : <16x128xbf16>
    tile.copy_out %b[%row] to %v[%row] count 16 : <16x128xbf16> to <?x128xbf16, align = 16>
    tile.return
  }
}

// -----

// 12 columns are 24 bytes: pieces of 8, whatever the rows are aligned to.
// CHECK-LABEL: llvm.func @out_ragged
// CHECK: llvm.store {{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
gpu.module @copies {
  tile.kernel @out_ragged(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x12xbf16, align = 16>
    %b = tile.alloc "b" : <16x16xbf16>
    tile.copy_out %b[%row] to %v[%row] count 16 : <16x16xbf16> to <?x12xbf16, align = 16>
    tile.return
  }
}

// -----

// 7 columns are stored one by one.
// CHECK-LABEL: llvm.func @out_odd
// CHECK: llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> i16
// CHECK: llvm.store {{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
gpu.module @copies {
  tile.kernel @out_odd(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x7xbf16, align = 2>
    %b = tile.alloc "b" : <16x16xbf16>
    tile.copy_out %b[%row] to %v[%row] count 16 : <16x16xbf16> to <?x7xbf16, align = 2>
    tile.return
  }
}

// -----

// CHECK-LABEL: llvm.func @out_four
// CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
// CHECK: llvm.store {{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
gpu.module @copies {
  tile.kernel @out_four(%p: !tile.ptr<bf16>, %s: i64, %rows: i32, %row: i32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %v = tile.view %p[%s] rows(%rows) stride(%s) : <bf16> -> <?x16xbf16, align = 4>
    %b = tile.alloc "b" : <16x16xbf16>
    tile.copy_out %b[%row] to %v[%row] count 16 : <16x16xbf16> to <?x16xbf16, align = 4>
    tile.return
  }
}

// -----

// CHECK-LABEL: llvm.func @order
// CHECK: nvvm.cp.async.commit.group
// CHECK-NEXT: nvvm.cp.async.wait.group 2
// CHECK-NEXT: nvvm.barrier0
// CHECK-NEXT: nvvm.cp.async.wait.group 0
gpu.module @groups {
  tile.kernel @order() attributes {warps = 4 : i32} {
    tile.commit_group
    tile.wait_group 2
    tile.barrier
    tile.wait_group 0
    tile.return
  }
}
