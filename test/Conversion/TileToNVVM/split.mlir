// f32 in parts of bf16 or f16: registers, rows in shared and in global memory.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// A number is cut off, the rest gets a little of it and is bounded, and is cut
// off again.  Upper halves of two numbers are a register of a factor.
// CHECK-LABEL: llvm.func @factor(
// CHECK-DAG: %[[MASK:.*]] = arith.constant -65536 : i32
// CHECK-DAG: %[[LITTLE:.*]] = arith.constant 9.31322574E-10 : f32
// CHECK-DAG: %[[MOST:.*]] = arith.constant 1.2676506E+30 : f32
// CHECK: %[[CUT:.*]] = arith.andi %{{.*}}, %[[MASK]]
// CHECK: %[[FIRST:.*]] = llvm.bitcast %[[CUT]] : i32 to f32
// CHECK: %[[LEFT:.*]] = arith.subf %[[X:.*]], %[[FIRST]] : f32
// CHECK: %[[MORE:.*]] = llvm.intr.fma(%[[X]], %[[LITTLE]], %[[LEFT]])
// CHECK: arith.minnumf %[[MORE]], %[[MOST]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// Products that go on with each other are one group.
// CHECK: nvvm.wgmma.fence.aligned
// CHECK-NOT: nvvm.wgmma
// CHECK: wgmma.mma_async
// CHECK-NOT: nvvm.wgmma
// CHECK: wgmma.mma_async
// CHECK: nvvm.wgmma.commit.group.sync.aligned
gpu.module @factors {
  tile.kernel @factor(%x: f32, %i: i32) attributes {warps = 4 : i32} {
    %t = tile.alloc "t" : <16x32xbf16, sw128>
    %s = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %a, %b, %c = tile.split_bf16 %s : <16x16xf32, acc> -> <16x16xbf16, lhs>
    %o = tile.wgmma %c, %t[%i] open : !tile.frag<16x16xbf16, lhs>, <16x32xbf16, sw128> -> <16x32xf32>
    %p = tile.wgmma %a, %t[%i] acc(%o : !tile.pending<16x32xf32>) : !tile.frag<16x16xbf16, lhs>, <16x32xbf16, sw128> -> <16x32xf32>
    %w = tile.wgmma_wait 0, %p : !tile.pending<16x32xf32> -> !tile.frag<16x32xf32, acc>
    tile.return
  }
}

// -----

// Eight rows of a panel of bf16 are two panels of f32: a lane reads two pieces
// of each, the second of them 16 bytes off by its row, before it writes one to
// each of three buffers, and one 64 bytes off.  Two panels of eight rows are
// 2048 bytes, a panel of 64 rows 8192.
// CHECK-LABEL: llvm.func @rows(
// CHECK-DAG: arith.muli %{{.*}}, %c2048_i32
// CHECK-DAG: arith.muli %{{.*}}, %c8192_i32
// CHECK: arith.xori %[[FROM:.*]], %c16_i32
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK-COUNT-3: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK: arith.xori %{{.*}}, %c64_i32
// CHECK-COUNT-3: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK-NOT: llvm.store
gpu.module @splits {
  tile.kernel @rows(%i: i32) attributes {warps = 1 : i32} {
    %s = tile.alloc "s" : <2x8x128xf32, sw128>
    %a = tile.alloc "a" : <64x80xbf16, sw128>
    %b = tile.alloc "b" : <64x80xbf16, sw128>
    %c = tile.alloc "c" : <64x80xbf16, sw128>
    tile.split_rows %s[%i, %i, %i] to %a, %b, %c[%i, %i] : <2x8x128xf32, sw128> to <64x80xbf16, sw128>, <64x80xbf16, sw128>, <64x80xbf16, sw128>
    tile.return
  }
}

// -----

// Eight lanes have a row, and a lane eight of 64 columns.  Four rows at once
// make 16 in four steps, of two chunks of columns: all are looked at, warps tell
// each other by a barrier, and one thread tells of the exponent, before any is
// split; of each of two parts of 128 columns a lane has a piece of 16 bytes.
// CHECK-LABEL: llvm.func @views(
// CHECK-COUNT-32: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// CHECK-NOT: !llvm.ptr<1> -> vector<2xf32>
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.store {{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-8: llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK: llvm.store {{.*}} : i32, !llvm.ptr<1>
// CHECK: "llvm.nvvm.ff2f16x2.rz"
// CHECK: llvm.intr.copysign
// CHECK: "llvm.nvvm.ff2f16x2.rn"
// CHECK-COUNT-16: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT: vector<4xi32>, !llvm.ptr<1>
gpu.module @rows_of_views {
  tile.kernel @views(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %e: !tile.ptr<i32>, %n: i32, %o: i64) attributes {warps = 8 : i32} {
    %a = tile.view %p[%o] rows(%n) stride(%o) : !tile.ptr<f32> -> !tile.view<?x70xf32, align = 8>
    %b = tile.view %q[%o] rows(%n) stride(%o) : !tile.ptr<f16> -> !tile.view<?x256xf16, align = 16>
    %l = tile.alloc "l" : <1x16xf32>
    tile.split_view %a to %b[%n] exponent %e[%n] at_most 60 by %l : <?x70xf32, align = 8> to <?x256xf16, align = 16>, <i32>, <1x16xf32>
    tile.return
  }
}

// -----

// Of 576 columns 320 stay in registers, 40 numbers of a lane in each of four
// steps; others come again, the last ones first.
// CHECK-LABEL: llvm.func @wide(
// CHECK-COUNT-40: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: scf.for
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: scf.yield
// CHECK: nvvm.barrier
// CHECK: scf.for
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: !llvm.ptr<1> -> vector<4xf32>
gpu.module @wide_rows {
  tile.kernel @wide(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %e: !tile.ptr<i32>, %n: i32, %o: i64) attributes {warps = 8 : i32} {
    %a = tile.view %p[%o] rows(%n) stride(%o) : !tile.ptr<f32> -> !tile.view<?x576xf32, align = 16>
    %b = tile.view %q[%o] rows(%n) stride(%o) : !tile.ptr<f16> -> !tile.view<?x1152xf16, align = 16>
    %l = tile.alloc "l" : <1x16xf32>
    tile.split_view %a to %b[%n] exponent %e[%n] at_most 60 by %l : <?x576xf32, align = 16> to <?x1152xf16, align = 16>, <i32>, <1x16xf32>
    tile.return
  }
}

// -----

// Two columns of a part are a register already.
// CHECK-LABEL: llvm.func @part(
// CHECK-COUNT-12: "llvm.nvvm.prmt"
// CHECK-NOT: fptrunc
// CHECK: nvvm.stmatrix
gpu.module @stores {
  tile.kernel @part(%x: f32, %i: i32) attributes {warps = 4 : i32} {
    %t = tile.alloc "t" : <64x64xbf16, sw128>
    %s = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %a, %b, %c = tile.split_bf16 %s : <16x16xf32, acc> -> <16x16xbf16, lhs>
    tile.store_matrix %b to %t[%i] : <16x16xbf16, lhs> to <64x64xbf16, sw128>
    tile.return
  }
}
