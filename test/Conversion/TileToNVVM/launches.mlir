// A launch on the host: addresses, block size, shared memory.
// RUN: attn-opt %s -convert-tile-to-nvvm -split-input-file | FileCheck %s

// 64 rows of 128 bf16 take 64 * 288 = 18432 bytes, then 16 rows of 32.
// CHECK: module attributes {gpu.container_module}
// CHECK-LABEL: func.func @host(
// CHECK-SAME: %[[X:[^:]*]]: index, %[[Y:[^:]*]]: index, %[[Z:[^:]*]]: index, %[[M:[^:]*]]: memref<4x?xf16, strided<[?, 1], offset: ?>>, %[[N:[^:]*]]: i32)
// CHECK: %[[INDEX:.*]] = memref.extract_aligned_pointer_as_index %[[M]]
// CHECK: %[[INTEGER:.*]] = arith.index_cast %[[INDEX]] : index to i64
// CHECK: %[[ADDRESS:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr<1>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[THREADS:.*]] = arith.constant 96 : index
// CHECK-DAG: %[[SHARED:.*]] = arith.constant 18944 : i32
// CHECK: gpu.launch_func @kernels::@kernel blocks in (%[[X]], %[[Y]], %[[Z]]) threads in (%[[THREADS]], %[[ONE]], %[[ONE]])
// CHECK-SAME: dynamic_shared_memory_size %[[SHARED]] args(%[[ADDRESS]] : !llvm.ptr<1>, %[[N]] : i32)
// CHECK-NOT: tile.launch
module {
  gpu.module @kernels {
    tile.kernel @kernel(%p: !tile.ptr<f16>, %n: i32) attributes {warps = 3 : i32} {
      %a = tile.alloc "a" : <64x128xbf16>
      %b = tile.alloc "b" : <16x16xbf16>
      tile.return
    }
  }
  func.func @host(%x: index, %y: index, %z: index, %m: memref<4x?xf16, strided<[?, 1], offset: ?>>, %n: i32) {
    tile.launch @kernels::@kernel grid(%x, %y, %z) args(%m, %n) : memref<4x?xf16, strided<[?, 1], offset: ?>>, i32
    return
  }
}

// -----

// A module without launches is not one that launches.
// CHECK: module {
// CHECK: llvm.func @alone
module {
  gpu.module @kernels {
    tile.kernel @alone() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}
