// Only what -attn-attach-nvvm-target found to be ours.
// RUN: attn-opt %s -attn-lower-kernels | FileCheck %s

// CHECK: gpu.module @ours attributes {tile.kernels}
// CHECK: llvm.func @sum(
// CHECK-NOT: scf.for
// CHECK: llvm.fadd
gpu.module @ours attributes {tile.kernels} {
  llvm.func @sum(%from: !llvm.ptr<1>, %n: i32) -> f32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant 0.0 : f32
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> f32 : i32 {
      %x = llvm.load %from : !llvm.ptr<1> -> f32
      %next = arith.addf %s, %x : f32
      scf.yield %next : f32
    }
    llvm.return %sum : f32
  }
}

// CHECK: gpu.module @theirs {
// CHECK: gpu.func @f(
// CHECK: scf.for
gpu.module @theirs {
  gpu.func @f(%a: memref<8xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %x = arith.constant 1.0 : f32
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %x, %a[%i] : memref<8xf32>
    }
    gpu.return
  }
}
