// Kernel functions, position, buffers, views.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// Shared memory is dynamic and declared once; its size comes with the launch.
// Denormals of f32 are flushed, so that the machine's approximations need no
// scaling around them.
// CHECK: gpu.module @functions
// CHECK: llvm.mlir.global external @attn_shared_memory() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
// CHECK-NOT: llvm.mlir.global
// CHECK: llvm.func @arguments(%{{.*}}: !llvm.ptr<1>, %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: f32) attributes {denormal_fp_math_f32 = "preserve-sign,preserve-sign", gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 128>, nvvm.minctasm = 2 : i32}
// CHECK-NEXT: llvm.return
// CHECK: llvm.func @one_warp() attributes {denormal_fp_math_f32 = "preserve-sign,preserve-sign", gpu.kernel, nvvm.kernel, nvvm.maxntid = array<i32: 32>, nvvm.minctasm = 1 : i32}
gpu.module @functions {
  tile.kernel @arguments(%p: !tile.ptr<bf16>, %n: i32, %s: i64, %x: f32) attributes {warps = 4 : i32, min_blocks_per_sm = 2 : i32} {
    tile.return
  }
  tile.kernel @one_warp() attributes {warps = 1 : i32} {
    tile.return
  }
}

// -----

// CHECK: llvm.func @position
// CHECK-DAG: %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-DAG: %[[Y:.*]] = nvvm.read.ptx.sreg.ctaid.y : i32
// CHECK-DAG: %[[Z:.*]] = nvvm.read.ptx.sreg.ctaid.z : i32
// CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : i32
// CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: %[[WARP:.*]] = arith.shrui %[[THREAD]], %[[FIVE]]
// CHECK: %[[UNIFORM:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]], %{{.*}}, %{{.*}} : i32 -> i32
// CHECK: %[[XY:.*]] = arith.addi %[[X]], %[[Y]]
// CHECK: %[[ZW:.*]] = arith.addi %[[Z]], %[[UNIFORM]]
// CHECK: %[[SUM:.*]] = arith.addi %[[XY]], %[[ZW]]
gpu.module @positions {
  tile.kernel @position(%p: !tile.ptr<f32>, %s: i64) attributes {warps = 4 : i32} {
    %x = tile.program_id 0
    %y = tile.program_id 1
    %z = tile.program_id 2
    %w = tile.warp_id
    %xy = arith.addi %x, %y : i32
    %zw = arith.addi %z, %w : i32
    %sum = arith.addi %xy, %zw : i32
    %v = tile.view %p[%s] rows(%sum) stride(%s) : <f32> -> <?xf32, align = 4>
    %c = arith.constant 0.0 : f32
    %r = tile.fill %c : f32 -> !tile.row<16xf32>
    tile.store_row %r to %v[%sum] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// Buffers begin at multiples of 128 bytes: a takes 16 * 48 = 768 bytes, which
// is one, b 16 * 80 = 1280, c begins at 2048.  An alias begins where its buffer
// does.
// CHECK: llvm.func @places
// CHECK: %[[C:.*]] = arith.constant 2048 : i32
// CHECK: %[[BASE:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// CHECK-NOT: 2560
// CHECK: %[[AT:.*]] = arith.addi %[[BASE]], %[[C]] : i32
// CHECK: llvm.inttoptr
gpu.module @buffers {
  tile.kernel @places(%x: f32, %n: i32) attributes {warps = 1 : i32} {
    %a = tile.alloc "a" : <16x16xf16>
    %b = tile.alloc "b" : <16x32xf16>
    %c = tile.alloc "c" : <16x16xf16>
    %d = tile.alias %c : <16x16xf16> -> <16x16xf16>
    %f = tile.fill %x : f32 -> !tile.frag<16x8xf32, acc>
    tile.store_matrix %f to %d[%n] : <16x8xf32, acc> to <16x16xf16>
    tile.return
  }
}

// -----

// A view counts bytes: elements of two bytes from a vector of them.
// CHECK: llvm.func @views(%[[P:[^:]*]]: !llvm.ptr<1>, %[[OFFSET:[^:]*]]: i64, %[[STRIDE:[^:]*]]: i64, %[[ROWS:[^:]*]]: i32
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK: %[[OFFSETBYTES:.*]] = arith.muli %[[OFFSET]], %[[FOUR]] : i64
// CHECK: %[[START:.*]] = llvm.getelementptr %[[P]][%[[OFFSETBYTES]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK: %[[STRIDEBYTES:.*]] = arith.muli %[[STRIDE]], %[[FOUR]] : i64
// CHECK: arith.cmpi ult, %{{.*}}, %[[ROWS]] : i32
// CHECK: %[[ROWBYTES:.*]] = arith.muli %{{.*}}, %[[STRIDEBYTES]] : i64
// CHECK: llvm.getelementptr %[[START]][%[[ROWBYTES]]]
gpu.module @global {
  tile.kernel @views(%p: !tile.ptr<f32>, %o: i64, %s: i64, %n: i32, %x: f32) attributes {warps = 1 : i32} {
    %v = tile.view %p[%o] rows(%n) stride(%s) : <f32> -> <?xf32, align = 4>
    %r = tile.fill %x : f32 -> !tile.row<16xf32>
    tile.store_row %r to %v[%n] : <16xf32> to <?xf32, align = 4>
    tile.return
  }
}

// -----

// What a loop carries becomes the registers of one lane: 16 x 16 f32 are 8.
// CHECK: llvm.func @carried
// CHECK: scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
gpu.module @loops {
  tile.kernel @carried(%p: !tile.ptr<f32>, %s: i64, %n: i32, %x: f32) attributes {warps = 1 : i32} {
    %c1 = arith.constant 1 : i32
    %f0 = tile.fill %x : f32 -> !tile.frag<16x16xf32, acc>
    %r0 = tile.fill %x : f32 -> !tile.row<16xf32>
    %f:2 = scf.for %i = %c1 to %n step %c1 iter_args(%f = %f0, %r = %r0) -> (!tile.frag<16x16xf32, acc>, !tile.row<16xf32>) : i32 {
      %g = tile.map %f, %r : !tile.frag<16x16xf32, acc>, !tile.row<16xf32> -> !tile.frag<16x16xf32, acc> {
      ^bb0(%row: i32, %column: i32, %a: f32, %b: f32):
        %d = arith.mulf %a, %b : f32
        tile.yield %d : f32
      }
      %m = tile.row_reduce max %g : <16x16xf32, acc> -> <16xf32>
      scf.yield %g, %m : !tile.frag<16x16xf32, acc>, !tile.row<16xf32>
    }
    %b = tile.alloc "b" : <16x16xf16>
    tile.store_matrix %f#0 to %b[%n] : <16x16xf32, acc> to <16x16xf16>
    tile.return
  }
}
