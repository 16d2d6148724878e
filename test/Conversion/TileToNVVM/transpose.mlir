// 8-bit matrices transposed in shared memory, and rounded accumulators.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// 48 columns are three pieces of 16: each is loaded transposed by pairs of
// columns, of which bytes are picked, lane by lane those of the even or of the
// odd column first.  16 target rows are 2048 bytes.
// CHECK-LABEL: llvm.func @columns(
// CHECK: %[[EARLY:.*]] = arith.cmpi slt, %{{.*}}, %c16_i32
// CHECK: %[[FIRST:.*]] = arith.select %[[EARLY]], %[[EVEN:.*]], %[[ODD:.*]] : i32
// CHECK: %[[SECOND:.*]] = arith.select %[[EARLY]], %[[ODD]], %[[EVEN]] : i32
// CHECK: nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.nvvm.prmt"(%[[R0:.*]], %[[R1:.*]], %[[FIRST]])
// CHECK: %[[B:.*]] = llvm.call_intrinsic "llvm.nvvm.prmt"(%[[R0]], %[[R1]], %[[SECOND]])
// CHECK: %[[C:.*]] = llvm.call_intrinsic "llvm.nvvm.prmt"(%[[R2:.*]], %[[R3:.*]], %[[FIRST]])
// CHECK: %[[D:.*]] = llvm.call_intrinsic "llvm.nvvm.prmt"(%[[R2]], %[[R3]], %[[SECOND]])
// CHECK: nvvm.stmatrix %[[TO:.*]], %[[A]], %[[B]], %[[C]], %[[D]]
// CHECK: arith.xori %{{.*}}, %c16_i32
// CHECK: nvvm.ldmatrix %{{.*}} {{{.*}}layout = #nvvm.mma_layout<col>, num = 4 : i32
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[TO]][2048]
// CHECK: nvvm.stmatrix %[[NEXT]]
// CHECK: arith.xori %{{.*}}, %c32_i32
// CHECK: nvvm.ldmatrix
// CHECK: %[[LAST:.*]] = llvm.getelementptr %[[TO]][4096]
// CHECK: nvvm.stmatrix %[[LAST]]
// CHECK-NOT: nvvm.ldmatrix
gpu.module @transposes {
  tile.kernel @columns(%i: i32) attributes {warps = 1 : i32} {
    %v = tile.alloc "v" : <2x64x48xf8E4M3FN, sw128>
    %t = tile.alloc "t" : <2x48x64xf8E4M3FN, sw128_paired>
    tile.transpose %v[%i, %i] to %t[%i] : <2x64x48xf8E4M3FN, sw128> to <2x48x64xf8E4M3FN, sw128_paired>
    tile.return
  }
}

// -----

// A cast rounds what a lane has of two pieces, two and two: the pair of the
// first piece lies lower, and in a pair the first column (the intrinsic takes
// it second).
// CHECK-LABEL: llvm.func @rounded(
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"(%{{.*}}, %{{.*}}) : (f32, f32) -> i16
// CHECK: llvm.bitcast %{{.*}} : vector<2xi16> to i32
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3
gpu.module @casts {
  tile.kernel @rounded(%x: f32, %i: i32) attributes {warps = 4 : i32} {
    %t = tile.alloc "t" : <16x32xf8E4M3FN, sw128_paired>
    %s = tile.fill %x : f32 -> !tile.frag<16x32xf32, acc>
    %p = tile.cast %s : <16x32xf32, acc> -> <16x32xf8E4M3FN, lhs>
    %o = tile.wgmma %p, %t[%i] transpose : !tile.frag<16x32xf8E4M3FN, lhs>, <16x32xf8E4M3FN, sw128_paired> -> <16x16xf32>
    %w = tile.wgmma_wait 0, %o : !tile.pending<16x16xf32> -> !tile.frag<16x16xf32, acc>
    tile.return
  }
}
