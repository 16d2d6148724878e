// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// A lane has a piece of 16 bytes of rows r and r + 8, 1024 bytes apart, which
// are loaded before any is stored, and become two of each, whose places differ
// in one bit; a stage of the source has 8192 bytes, of the target 16384, and
// both of its panels 8192.  Pairs of f16 by cvt become f32, and bf16.
// CHECK-LABEL: llvm.func @brain(
// CHECK-DAG: arith.muli %{{.*}}, %c16384_i32
// CHECK-DAG: arith.muli %{{.*}}, %c8192_i32
// CHECK: llvm.load %[[FROM:.*]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: %[[BELOW:.*]] = llvm.getelementptr %[[FROM]][1024]
// CHECK: llvm.load %[[BELOW]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK: arith.xori %{{.*}}, %c16_i32
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
// CHECK: llvm.store %{{.*}}, %[[TO:.*]] {alignment = 16 : i64} : vector<4xi32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"
// CHECK: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: llvm.store %{{.*}}, %[[NEXT:.*]] {alignment = 16 : i64} : vector<4xi32>
// CHECK: %[[TO_BELOW:.*]] = llvm.getelementptr %[[TO]][1024]
// CHECK: llvm.store %{{.*}}, %[[TO_BELOW]]
// CHECK: %[[NEXT_BELOW:.*]] = llvm.getelementptr %[[NEXT]][1024]
// CHECK: llvm.store %{{.*}}, %[[NEXT_BELOW]]
// CHECK-NOT: llvm.store
gpu.module @widens {
  tile.kernel @brain(%i: i32) attributes {warps = 1 : i32} {
    %s = tile.alloc "s" : <2x64x80xf8E4M3FN, sw128>
    %t = tile.alloc "t" : <2x64x80xbf16, sw128>
    tile.widen_rows %s[%i, %i, %i] to %t[%i] : <2x64x80xf8E4M3FN, sw128> to <2x64x80xbf16, sw128>
    tile.return
  }
}

// -----

// Pairs of f16 are what cvt makes.
// CHECK-LABEL: llvm.func @halves(
// CHECK-COUNT-16: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"
// CHECK-NOT: e4m3x2
// CHECK-NOT: llvm.fptrunc
gpu.module @widens {
  tile.kernel @halves(%i: i32) attributes {warps = 1 : i32} {
    %s = tile.alloc "s" : <64x64xf8E4M3FN, sw128>
    %t = tile.alloc "t" : <64x64xf16, sw128>
    tile.widen_rows %s[%i, %i, %i] to %t[%i] : <64x64xf8E4M3FN, sw128> to <64x64xf16, sw128>
    tile.return
  }
}
